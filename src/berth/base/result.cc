#include "berth/base/result.h"

#include <cstdio>
#include <cstdlib>

namespace berth {

std::string_view name(ErrorKind kind) {
  return kErrorKindNames.name(kind);
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::invalid:
    case ErrorKind::not_found:
    case ErrorKind::exists: return 2;
    case ErrorKind::interrupted: return 130;
    default: return 3;
  }
}

bool retryable(ErrorKind kind) {
  return kind == ErrorKind::busy || kind == ErrorKind::full || kind == ErrorKind::io;
}

Error within(std::string_view where, Error error) {
  error.message = fmt::format("{}: {}", where, error.message);
  return error;
}

void assert_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "berth: broken invariant: %s (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace berth
