// The protocol of an external proposer, one JSON object a line: the messages to it, and the reader
// of its answers. Pure; run/ has the process.
#pragma once

#include "berth/experiment/proposers/proposer.h"

namespace berth::experiment {

/// {"berth":1,"run":…,"seed":…,"samples":…,"goals":[…],"params":[…]}
std::string hello_line(const Program& program, const std::string& run);
/// {"tell":{"trial":…,"state":"done","params":{…},"metrics":{…}}}
std::string tell_line(const std::string& trial, const Values& params, TrialReport::State state,
                      const Numbers& metrics, const ValueTypes& types);
/// {"ask":"17"}
std::string ask_line(const std::string& trial);

/// The answer to an ask: {"params":{…}}, {"wait":true} or {"done":true}.
struct Answer {
  enum class Kind : std::uint8_t { params, wait, done };
  Kind kind = Kind::params;
  Values params{};
};
/// Errors: invalid if it is none of these, or has a parameter or value outside the search space.
Result<Answer> read_answer(const Program& program, std::string_view line);

/// Whether a trial of these values could have been proposed for the program.
bool fits(const std::vector<Parameter>& params, const Values& values);

}  // namespace berth::experiment
