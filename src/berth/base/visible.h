// Makes control characters visible, so that no text of others (output of a task, a file's name, a
// parameter, a host's message) can change a terminal's title, clipboard, keyboard or display. Pure.
#pragma once

#include <string>
#include <string_view>

namespace berth {

/// Converts text that is shown whole. Control characters become "^[" or, beyond ASCII, "<9b>", and
/// so do carriage returns and the characters that turn the direction of writing ("<202e>"). Line
/// ends, tabs and all other text stay.
std::string visible_text(std::string_view text);

/// The same for a JSON text, in which they become escapes such as "\u202e", so that its values
/// stay.
std::string visible_json(std::string_view json);

/// The characters that turn the direction of writing, or end a line beyond ASCII.
bool turns_writing(char32_t character);

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

}  // namespace berth
