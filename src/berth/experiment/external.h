// What is said to a proposer of one's own, and how its answers are read: one JSON object a line.
// Pure; the process is in run/.
#pragma once

#include "berth/experiment/proposer.h"

namespace berth::experiment {

/// {"berth":1,"run":…,"seed":…,"samples":…,"goals":[…],"params":[…]}
std::string hello_line(const Program& program, const std::string& run);
/// {"tell":{"trial":…,"state":"done","params":{…},"metrics":{…}}}
std::string tell_line(const std::string& trial, const Values& params, Told::State state,
                      const Numbers& metrics);
/// {"ask":"17"}
std::string ask_line(const std::string& trial);

/// What it answers when it is asked: {"params":{…}}, {"wait":true} or {"done":true}.
struct Answer {
  enum class Kind : std::uint8_t { params, wait, done };
  Kind kind = Kind::params;
  Values params{};
};
/// invalid: none of these, or a parameter that the program does not know or could not have.
Result<Answer> read_answer(const Program& program, std::string_view line);

/// Whether a trial of these values could have been proposed for the program.
bool fits(const std::vector<Parameter>& params, const Values& values);

}  // namespace berth::experiment
