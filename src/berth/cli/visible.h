// Control characters made visible, so that the output of a task cannot change a terminal's title,
// clipboard or keyboard.
#pragma once

#include <string>
#include <string_view>

namespace berth::cli {

/// Converts a stream part by part. Control characters become "^[" or, beyond ASCII, "<9b>"; line
/// ends, tabs, carriage returns and all other text stay. A character may begin in one part and end
/// in the next.
class Visible {
 public:
  std::string operator()(std::string_view part);

 private:
  int expected_ = 0;      // bytes that the character still takes
  bool is_held_ = false;  // its first byte (C2) is kept back: with the next it may be a control
};

}  // namespace berth::cli
