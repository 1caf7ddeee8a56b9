// The book of a run's instances: one line for each, "token id type price ending named kept since
// allowed lease", times in ms; first what those that ended have cost.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/remote/ec2/ec2_instances.h"

namespace berth::remote {
namespace {

constexpr std::string_view kTitle = "berth-ec2 1";
constexpr std::size_t kMostBook = 1 << 20;
constexpr std::int64_t kMostNumber = 9'000'000'000'000;

}  // namespace

Status Ec2Instances::save() {
  std::string text = fmt::format("{} {}\n", kTitle, closed_);
  for (const Ec2Machine& each : machines_)
    text +=
        fmt::format("{} {} {} {} {} {} {} {} {} {}\n", each.token, each.id.empty() ? "-" : each.id,
                    each.type.name.empty() ? "-" : each.type.name, each.type.price,
                    int{each.phase == Phase::ending}, int{each.named}, int{each.kept},
                    to_ms(each.since), to_ms(each.allowed), to_ms(each.lease));
  return env_.replace_file(book_, text, 0600);
}

Status Ec2Instances::open() {
  const auto text = env_.read_file(book_, kMostBook);
  if (!text && text.error().kind == ErrorKind::not_found) return {};
  if (!text) return std::unexpected(text.error());
  const auto lines = split(*text, '\n');
  const auto broken = [&] {
    return fail(ErrorKind::corrupt, "{} is not a list of instances", book_);
  };
  if (!lines.front().starts_with(kTitle)) return broken();
  const auto closed = parse_number(trim(lines.front().substr(kTitle.size())));
  if (!closed) return broken();
  closed_ = *closed;
  for (const auto line : std::span(lines).subspan(1)) {
    const auto fields = words(line);
    if (fields.empty()) continue;
    if (fields.size() != 10) return broken();
    std::array<std::int64_t, 7> numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto number = parse_integer(fields[i + 3]);
      if (!number || *number < 0 || *number > kMostNumber) return broken();
      numbers[i] = *number;
    }
    const auto [price, ending, named, kept, since, allowed, lease] = numbers;
    Ec2Machine machine;
    machine.token = fields[0];
    if (fields[1] != "-") machine.id = fields[1];
    machine.type.name = fields[2] == "-" ? "" : fields[2];
    const auto type = std::ranges::find(settings_.types, machine.type.name, &Ec2Type::name);
    if (type != settings_.types.end()) machine.type = *type;
    machine.type.price = price;
    machine.named = named != 0;
    machine.kept = kept != 0;
    machine.phase = ending != 0 || machine.id.empty() ? Phase::ending : Phase::starting;
    machine.since = wall_from_ms(since);
    machine.allowed = wall_from_ms(allowed);
    machine.lease = from_ms(lease);
    machine.seen = machine.unused_since = env_.wall();
    machine.patient_since = env_.wall();
    if (machine.named && machine.id.empty()) machine.id = machine.token;
    machines_.push_back(std::move(machine));
  }
  return {};
}

}  // namespace berth::remote
