#include "berth/render/machines/examination.h"

#include "berth/base/record_json.h"

namespace berth {

template <>
inline constexpr const auto& kNamesOf<engine::Finding::State> = engine::kFindingStates;
template <>
inline constexpr auto kRecordOf<engine::Finding> =
    Record{"Finding",
           "What was found about one topic, and what to do.",
           key("topic", &engine::Finding::topic),
           key("state", &engine::Finding::state),
           key("found", &engine::Finding::found),
           key("advice", &engine::Finding::advice)};
template <>
inline constexpr auto kRecordOf<engine::Examination> =
    Record{"Examination", "What this installation lets Berth do, and what to do about the rest.",
           version_key(), key("faults", &engine::Examination::faults),
           key("findings", &engine::Examination::findings)};

}  // namespace berth

namespace berth::render {

std::string to_text(const engine::Examination& examination, const View&) {
  std::string text;
  for (const auto& finding : examination.findings) {
    text += fmt::format("{:8}  {:8}  {}\n", engine::kFindingStates.name(finding.state),
                        finding.topic, finding.found);
    if (!finding.advice.empty()) text += fmt::format("{:20}→ {}\n", "", finding.advice);
  }
  const auto faults = examination.faults();
  return text + (faults == 0   ? "nothing to do\n"
                 : faults == 1 ? "1 thing to do\n"
                               : fmt::format("{} things to do\n", faults));
}

void add_examination_schemas(JsonWriter& json) {
  add_schemas<engine::Finding, engine::Examination>(json);
}

std::string to_json(const engine::Examination& examination) {
  return json_line(examination);
}

}  // namespace berth::render
