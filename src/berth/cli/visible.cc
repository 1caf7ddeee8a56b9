#include "berth/cli/visible.h"

#include <fmt/core.h>

#include "berth/base/text.h"

namespace berth::cli {
namespace {

constexpr char kHeld = '\xc2';  // begins U+0080 to U+00BF, of which the first 32 are controls

bool is_control(unsigned char byte) {
  return (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7f;
}

int bytes_behind(unsigned char first) {
  return first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
}

}  // namespace

std::string Visible::operator()(std::string_view part) {
  std::string shown;
  for (const char character : part) {
    const auto byte = static_cast<unsigned char>(character);
    const bool continues = byte >= 0x80 && byte < 0xc0;
    const bool is_upper_control = byte >= 0x80 && byte < 0xa0 && (is_held_ || expected_ == 0);
    if (is_held_ && !is_upper_control) shown += kHeld;
    is_held_ = character == kHeld;
    expected_ = continues && expected_ > 0 ? expected_ - 1 : bytes_behind(byte);
    if (is_upper_control)
      shown += fmt::format("<{:02x}>", byte);
    else if (is_control(byte))
      shown += {'^', static_cast<char>(byte ^ 0x40)};
    else if (!is_held_)
      shown += character;
  }
  return shown;
}

}  // namespace berth::cli
