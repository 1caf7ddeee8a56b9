#include "berth/render/machines/examination.h"

#include "berth/base/json_writer.h"

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

std::string to_json(const engine::Examination& examination) {
  JsonWriter json;
  json.object().add("version", 1).add("faults", examination.faults()).key("findings").array();
  for (const auto& finding : examination.findings)
    json.object()
        .add("topic", finding.topic)
        .add("state", engine::kFindingStates.name(finding.state))
        .add("found", finding.found)
        .add("advice", finding.advice)
        .end();
  return json.end().end().take() + "\n";
}

}  // namespace berth::render
