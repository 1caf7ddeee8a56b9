#include "berth/experiment/external.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/experiment/halving.h"
#include "berth/experiment/reading.h"
#include "berth/experiment/space.h"

namespace berth::experiment {

std::string tell_line(const std::string& trial, const Values& params, TrialReport::State state,
                      const Numbers& metrics) {
  constexpr std::array<std::string_view, 3> kStates{"open", "done", "failed"};
  std::vector<std::string> numbers;
  for (const auto& [name, value] : metrics)
    numbers.push_back(fmt::format("{}:{}", json_quote(name), format_number(value)));
  return fmt::format(R"({{"tell":{{"trial":{},"state":"{}","params":{},"metrics":{{{}}}}}}})"
                     "\n",
                     json_quote(trial), kStates[static_cast<std::size_t>(state)],
                     values_json(params), join(numbers, ","));
}

std::string ask_line(const std::string& trial) {
  return fmt::format("{{\"ask\":{}}}\n", json_quote(trial));
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

bool can_warm_start(const Program& program, const Values& values, const Numbers& metrics) {
  if (scores_of(program, metrics).empty()) return false;
  Values point = values;
  if (const auto& budget = program.search.budget) {
    if (!level_of(*budget, values)) return false;
    std::erase_if(point, [&](const auto& each) { return each.first == budget->parameter; });
  }
  return fits(program.params, point);
}

Result<Answer> read_answer(const Program& program, std::string_view line) {
  BERTH_ASSIGN(const Field root, Field::parse(line, "the proposer's answer"));
  if (const auto params = root.find("params")) {
    BERTH_ASSIGN(Values values, read_point(*params));
    if (!program.params.empty() && !fits(program.params, values))
      return fail(ErrorKind::invalid, "the proposer's answer is no point of params: {}",
                  clip(line, 200));
    return Answer{Answer::Kind::params, std::move(values)};
  }
  if (root.find("wait")) return Answer{Answer::Kind::wait};
  if (root.find("done")) return Answer{Answer::Kind::done};
  return fail(ErrorKind::invalid,
              "the proposer's answer is none of {{\"params\":{{…}}}}, {{\"wait\":true}} and "
              "{{\"done\":true}}: {}",
              clip(line, 200));
}

}  // namespace berth::experiment
