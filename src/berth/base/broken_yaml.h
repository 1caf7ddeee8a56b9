// What is wrong with a text that is no YAML, as its writer would say it: the library that reads it
// knows only where it gave up. Pure.
#pragma once

#include <string>
#include <string_view>

namespace berth {

struct BrokenYaml {
  int line = 1;  ///< Where the mistake is, which may be before the place where reading ended.
  std::string what;
};

/// What a person has to mend. `line` is where reading ended, counted from 1, and `message` what the
/// library said there, which decides only where the text itself does not tell.
BrokenYaml explain_yaml(std::string_view text, int line, std::string_view message);

}  // namespace berth
