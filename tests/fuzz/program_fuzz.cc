// A program that is read proposes what it says, and is kept whole.
#include "berth/experiment/program.h"

#include <algorithm>

#include "berth/base/units.h"
#include "fuzz.h"

namespace {

using namespace berth::experiment;

void check_json(const Program& program) {
  const auto text = to_json_text(program);
  const auto back = from_json_text(text);
  BERTH_ASSERT(back && to_json_text(*back) == text);
}

void check_value(const Parameter& parameter, const std::string& text) {
  if (!parameter.choices.empty()) {
    BERTH_ASSERT(std::ranges::find(parameter.choices, text) != parameter.choices.end());
    return;
  }
  const auto value = berth::parse_number(text);
  BERTH_ASSERT(value && parameter.min <= *value && *value <= parameter.max);
  BERTH_ASSERT(!parameter.integer || berth::parse_integer(text));
}

void check_trials(const Program& program) {
  constexpr std::int64_t kMostWork = 1000;
  const auto count = count_trials(program);
  BERTH_ASSERT(count && *count >= 0 && *count <= kMostTrials);
  if (*count * static_cast<std::int64_t>(program.params.size() + 1) > kMostWork) return;
  const auto trials = propose(program);
  BERTH_ASSERT(trials && trials->size() == static_cast<std::size_t>(*count));
  for (const auto& values : *trials) {
    BERTH_ASSERT(values.size() == program.params.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      BERTH_ASSERT(values[i].first == program.params[i].name);
      check_value(program.params[i], values[i].second);
    }
    BERTH_ASSERT(!values_json(values).empty());
  }
}

}  // namespace

void berth::fuzz(std::string_view text) {
  if (std::ranges::count(text, '*') > 6) return;  // as in document_fuzz.cc
  if (const auto program = read_program(text, "f.yaml")) {
    check_json(*program);
    check_trials(*program);
  } else {
    BERTH_ASSERT(program.error().message.starts_with("f.yaml:"));
  }
  if (const auto program = from_json_text(text)) check_json(*program);
}
