// Keys as a terminal sends them: bytes become keys. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

struct KeyPress {
  enum class Kind : std::uint8_t {
    text,  ///< A character that somebody typed.
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    home,
    end,
    enter,
    tab,
    escape,
    backspace,
    clear_line,  ///< Ctrl-U.
    redraw,      ///< Ctrl-L.
    function,    ///< F1 to F12: the number is `text`.
    ignored,     ///< A sequence that means nothing here.
  };
  Kind kind = Kind::ignored;
  std::string text = {};  ///< One character in UTF-8.
  bool operator==(const KeyPress&) const = default;
};

/// Converts what comes from a terminal, part by part. A character or a sequence may begin in one
/// part and end in the next.
class Keys {
 public:
  std::vector<KeyPress> operator()(std::string_view part);
  /// Whether a sequence has begun. When nothing follows soon, an Esc was the key Esc: end() says
  /// so.
  bool is_open() const { return !open_.empty(); }
  std::vector<KeyPress> end();

 private:
  std::string open_;
};

}  // namespace berth::cli
