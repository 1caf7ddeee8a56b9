// What the examples promise, checked where they stand: a wrong value ends the program with its
// line.
#pragma once

#include <berth/error.h>

#include <cstdlib>
#include <iostream>

#define EXPECT(condition)                                               \
  do {                                                                  \
    if (!(condition)) {                                                 \
      std::cerr << __FILE__ << ':' << __LINE__ << ": " #condition "\n"; \
      std::exit(1);                                                     \
    }                                                                   \
  } while (false)

/// The value, or the end of the program with the error.
template <class T>
T value(berth::Result<T> result) {
  if (!result) {
    std::cerr << berth::name(result.error().kind) << ": " << result.error().message << '\n';
    std::exit(berth::exit_code(result.error().kind));
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
