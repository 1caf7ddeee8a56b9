#include "berth/experiment/proposers/external.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/experiment/document/reading.h"
#include "berth/experiment/own_point.h"
#include "berth/experiment/proposers/halving.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {

std::string tell_line(const std::string& trial, const Values& params, TrialReport::State state,
                      const Numbers& metrics, const ValueTypes& types) {
  JsonWriter json;
  json.object().key("tell").object().add("trial", trial);
  json.add("state", TrialReport::kStateNames.name(state))
      .key("params")
      .raw(values_json(params, types));
  json.key("metrics").object();
  for (const auto& [name, value] : metrics) json.add(name, value);
  return json.end().end().end().take() + "\n";
}

std::string ask_line(const std::string& trial) {
  return JsonWriter().object().add("ask", trial).end().take() + "\n";
}

bool fits(const std::vector<Parameter>& params, const Values& values) {
  Values earlier;
  std::size_t known = 0;
  for (const auto& parameter : params) {
    const auto* value = find_value(values, parameter.name);
    if (present(parameter, earlier) != (value != nullptr)) return false;
    if (value == nullptr) continue;
    if (!part_of(parameter, *value)) return false;
    earlier.emplace_back(parameter.name, *value);
    ++known;
  }
  return known == values.size();
}

Result<Answer> read_answer(const Program& program, std::string_view line) {
  BERTH_ASSIGN(const Field root, Field::parse(line, "the proposer's answer"));
  if (const auto params = root.find("params")) {
    ValueTypes types;  // what params say counts
    BERTH_ASSIGN(Values values, read_point(*params, types));
    if (!program.params.empty() && !fits(program.params, values))
      return fail(ErrorKind::invalid, "the proposer's answer is not a point of params: {}",
                  clip(line, 200));
    for (auto& [name, value] : values) {
      const auto parameter = std::ranges::find(program.params, name, &Parameter::name);
      if (parameter == program.params.end()) continue;
      auto own = value_of(*parameter, value, program.types);
      if (!own)
        return std::unexpected(
            within("the proposer's answer", not_in_space(*parameter, value).error()));
      value = *std::move(own);
    }
    return Answer{Answer::Kind::params, std::move(values)};
  }
  if (root.find("wait")) return Answer{Answer::Kind::wait};
  if (root.find("done")) return Answer{Answer::Kind::done};
  return fail(ErrorKind::invalid,
              "expected {{\"params\":{{…}}}}, {{\"wait\":true}} or {{\"done\":true}} from the "
              "proposer, got {}",
              clip(line, 200));
}

}  // namespace berth::experiment
