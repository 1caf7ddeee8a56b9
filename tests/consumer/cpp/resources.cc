// Amounts in exact integers: berth/resources.h.
#include <berth/resources.h>

#include "expect.h"

int main() {
  berth::Resources node;
  node.set(berth::Known::cpu, 32'000);  // thousandths of a core
  node.set("mem", value(berth::parse_amount("mem", "64G")));
  node.set("licence", 2000);  // a name of one's own, in thousandths

  berth::Requirements wanted;
  wanted.min.set("cpu", value(berth::parse_amount("cpu", "1.5")));
  wanted.min.set("mem", value(berth::parse_amount("mem", "512MiB")));
  wanted.width = 100;
  EXPECT(wanted.min.get(berth::Known::cpu) == 1500);
  EXPECT(node.covers(wanted.min) && node.fits(wanted.min, wanted.width) == 21);

  const auto ten = value(wanted.min.times(10));
  value(node.subtract(ten));
  EXPECT(node.get("cpu") == 17'000);
  const auto left = node;
  const auto status = node.subtract(value(wanted.min.times(12)));
  EXPECT(!status && status.error().kind == berth::ErrorKind::impossible && node == left);

  EXPECT(berth::to_json(wanted.min) == R"({"cpu":1.5,"mem":536870912})");
  node.each([](std::string_view name, std::int64_t amount) {
    std::cout << name << ' ' << berth::format_amount(name, amount) << '\n';
  });
  node.set("licence", -1);  // there is nothing of it
  EXPECT(node.get("licence") == 0);
  EXPECT(berth::parse_amount("mem", "ten").error().kind == berth::ErrorKind::invalid);
}
