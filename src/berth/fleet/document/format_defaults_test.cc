// The defaults that the format documents are those of the reader.
#include <map>

#include "berth/base/json.h"
#include "berth/fleet/document/format.h"
#include "berth/fleet/model/replica_group.h"
#include "berth/fleet/model/system_view.h"
#include "berth/testing/fleet.h"

namespace berth::fleet {
namespace {

/// A map of the format, and a document that ends within one, with only the required keys.
struct Opened {
  const MapFormat& map;
  std::string_view document;
};
const Opened kOpened[] = {
    {kAcceleratorFormat, R"({"accelerators": [{"name": "A")"},
    {kPowerFormat, R"({"accelerators": [{"name": "A", "power": {)"},
    {kCapacityFormat, R"({"count": [{"type": "T")"},
    {kPurchaseFormat, R"({"count": [{"type": "T", "purchase": [{"kind": "spot", "cost": 1)"},
    {kModelFormat, R"({"models": [{"name": "m", "acc": "A")"},
    {kPerformanceFormat, R"({"models": [{"name": "m", "acc": "A", "perfParms": {"beta": 2)"},
    {kClassFormat, R"({"serviceClasses": [{"name": "c")"},
    {kTargetFormat, R"({"serviceClasses": [{"name": "c", "modelTargets": [{"model": "m")"},
    {kServerFormat, R"({"servers": [{"name": "s")"},
    {kAllocationFormat, R"({"servers": [{"name": "s", "currentAlloc": {)"},
    {kLoadFormat, R"({"servers": [{"name": "s", "currentAlloc": {"load": {)"},
    {kStartFormat, R"({"servers": [{"name": "s", "start": {)"},
    {kOptimizerFormat, R"({"optimizer": {)"},
    {kTransferFormat, R"({"models": [{"name": "m", "acc": "A", "perfParms": {"transfer": {)"},
};

/// A default in words, and the value that means the same; null where only a missing key does.
const std::map<std::string_view, std::string_view> kInWords{
    {"0 W", "{}"},
    {"0 ms", "{}"},
    {"beta", "0"},
    {"chosen by the planner", "0"},
    {"from the histogram; otherwise 0", "0"},
    {"from the mean and the variation", "null"},
    {"idle", "{}"},
    {"its name", R"("A")"},
    {"no limit", "0"},
    {"no limit; 1 with --start", "0"},
    {"no target", "0"},
    {"none", "null"},
    {"nvidia.com/gpu; amd.com/gpu for types such as MI300X", R"("")"},
    {"priced by the accelerator's cost", "[]"},
    {"the image's", "[]"},
    {"the model's", "{}"},
    {"the sum of its kinds of purchase", "0"},
    {"Free", R"("")"},
};

/// The value of a key's default in JSON; "": the test does not know it.
std::string default_of(const KeyFormat& key) {
  if (key.name == "powerBudget") return "null";  // 0 is a budget, too
  if (key.value.kind == ValueFormat::Kind::choice) return "\"" + std::string(key.without) + "\"";
  const auto words = kInWords.find(key.without);
  const std::string value(words != kInWords.end() ? words->second : key.without);
  return parse_json(value) ? value : "";
}

System read_with(std::string_view opened, const std::string& member) {
  std::string document(opened), closing;
  const bool is_first = document.ends_with('{');
  for (const char c : document) {
    if (c == '{') closing.insert(0, "}");
    if (c == '[') closing.insert(0, "]");
    if (c == '}' || c == ']') closing.erase(0, 1);
  }
  if (!member.empty()) document += (is_first ? "" : ", ") + member;
  const auto reading = read_documents(std::array{Document{"f", document + closing}});
  EXPECT_TRUE(reading) << document << closing << ": " << reading.error().message;
  return reading ? reading->system : System{};
}

TEST(FleetFormat, DefaultsAreThoseOfTheReader) {
  int checked = 0;
  for (const auto& [map, opened] : kOpened)
    for (const KeyFormat& key : map.keys) {
      if (key.without.empty() || key.required) continue;
      const std::string value = default_of(key);
      ASSERT_NE(value, "") << map.name << "." << key.name << ": '" << key.without
                           << "' is not in this test";
      // A transfer has at least one key.
      std::string others;
      if (&map == &kTransferFormat)
        others = key.name == "fixed" ? R"("perToken": 1)" : R"("fixed": 1)";
      const std::string member = fmt::format("\"{}\": {}", key.name, value);
      if (opened.ends_with("\"beta\": 2") && key.name == "beta") continue;
      EXPECT_EQ(read_with(opened, others.empty() ? member : others + ", " + member),
                read_with(opened, others))
          << map.name << "." << key.name << ": " << key.without;
      ++checked;
    }
  EXPECT_GT(checked, 70);
}

TEST(FleetFormat, DefaultsInWordsAreThoseOfThePlanner) {
  Performance performance;
  performance.beta_ms = 2;
  EXPECT_EQ(performance.prefill_ms(), 2);
  EXPECT_EQ(Performance{}.beta_ms, 0);
  EXPECT_EQ(class_of(Server{}), "Free");
  const auto resource_of_type = [](const char* type) {
    Accelerator accelerator;
    accelerator.type = type;
    return resource_of(accelerator);
  };
  EXPECT_EQ(resource_of_type("H100"), "nvidia.com/gpu");
  EXPECT_EQ(resource_of_type("MI300X"), "amd.com/gpu");
  EXPECT_EQ(Server{}.max_queue, 0);
  EXPECT_EQ(Start{}.port, 0);
}

}  // namespace
}  // namespace berth::fleet
