#include "berth/render/cells.h"

#include <algorithm>
#include <array>
#include <span>

#include "berth/base/text.h"
#include "berth/base/visible.h"

namespace berth::render {
namespace {

struct CodeRange {
  char32_t first, last;
};
// From EastAsianWidth.txt (W and F) and the general categories Mn, Me and Cf of Unicode, in whole
// blocks.
constexpr std::array kWideOnes{
    CodeRange{0x1100, 0x115f},   CodeRange{0x2e80, 0x303e},   CodeRange{0x3041, 0xa4cf},
    CodeRange{0xac00, 0xd7a3},   CodeRange{0xf900, 0xfaff},   CodeRange{0xfe30, 0xfe6f},
    CodeRange{0xff00, 0xff60},   CodeRange{0xffe0, 0xffe6},   CodeRange{0x1f300, 0x1f64f},
    CodeRange{0x1f680, 0x1f6ff}, CodeRange{0x1f900, 0x1f9ff}, CodeRange{0x20000, 0x3fffd}};
constexpr std::array kWidthless{CodeRange{0x300, 0x36f},   CodeRange{0x483, 0x489},
                                CodeRange{0x1ab0, 0x1aff}, CodeRange{0x1dc0, 0x1dff},
                                CodeRange{0x200b, 0x200f}, CodeRange{0x2060, 0x2064},
                                CodeRange{0x20d0, 0x20ff}, CodeRange{0xfe00, 0xfe0f},
                                CodeRange{0xfe20, 0xfe2f}, CodeRange{0xfeff, 0xfeff}};

bool is_in(std::span<const CodeRange> ranges, char32_t character) {
  return std::ranges::any_of(ranges, [&](const CodeRange& one) {
    return character >= one.first && character <= one.last;
  });
}

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
};

Character character_at(std::string_view text, std::size_t at) {
  const std::size_t bytes = utf8_length(text, at);
  if (bytes == 0) return {};
  return {utf8_code(text, at), bytes};
}

std::size_t width_of(char32_t code) {
  return is_in(kWidthless, code) ? 0 : is_in(kWideOnes, code) ? 2 : 1;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : visible_text(valid_utf8(text)))
    if (c == '\n' || c == '\t')
      line += {'^', static_cast<char>(c ^ 0x40)};
    else
      line += c;
  return line;
}

std::size_t cells(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = character_at(text, at);
    width += width_of(code);
    at += bytes;
  }
  return width;
}

std::string cut(std::string_view text, std::size_t most, std::size_t from) {
  std::string part;
  std::size_t end = 0, whole = 0;  // bytes of `part` that leave a cell for "…"; cells of `part`
  std::size_t passed = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = character_at(text, at);
    const std::size_t width = width_of(code);
    if (passed < from) {
      passed += width;
    } else if (whole + width > most) {
      part.resize(end);
      return most == 0 ? "" : part + "…";
    } else if (passed > from || width > 0 || whole > 0) {
      part.append(text, at, bytes);
      whole += width;
      if (whole < most) end = part.size();
    }
    at += bytes;
  }
  return part;
}

std::string fit(std::string_view text, std::size_t width, bool right) {
  std::string shown = cut(text, width);
  const std::string blanks(width - cells(shown), ' ');
  return right ? blanks + shown : shown + blanks;
}

}  // namespace berth::render
