// What every fuzz target shares: the entry point hands it text. One file of a program includes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "berth/base/result.h"

namespace berth {

void fuzz(std::string_view text);

/// The text before the first NUL, and that after it: two inputs in one.
inline std::pair<std::string_view, std::string_view> halves(std::string_view text) {
  const auto at = text.find('\0');
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace berth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  berth::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
