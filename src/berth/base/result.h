// How a call fails: Result<T> is a value or an Error. The kind alone decides the exit code, whether
// a retry can mend it, and the HTTP status; the message names what, where, wanted and found.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "berth/base/names.h"

namespace berth {

enum class ErrorKind : std::uint8_t {
  usage,        // the command line is wrong
  invalid,      // a document, value or request is wrong, and will be wrong again
  not_found,    // the named thing does not exist
  exists,       // the named thing exists already
  impossible,   // more than there is, even when all of it is free
  busy,         // fits, but not now: something else holds it
  denied,       // permissions
  full,         // no space, no inodes, no descriptors, no memory
  io,           // the operating system failed us
  corrupt,      // stored data is not what was written
  stale,        // the caller's token, generation or lease is no longer the current one
  interrupted,  // the person or the system asked to stop
  unconfirmed,  // a person has to say yes to it first; last, as agents tell kinds by their number
};

/// The kinds as `--json` prints them and agents send them.
inline constexpr auto kErrorKindNames = names<ErrorKind>({
    {ErrorKind::usage, "usage"},
    {ErrorKind::invalid, "invalid"},
    {ErrorKind::not_found, "not_found"},
    {ErrorKind::exists, "exists"},
    {ErrorKind::impossible, "impossible"},
    {ErrorKind::busy, "busy"},
    {ErrorKind::denied, "denied"},
    {ErrorKind::full, "full"},
    {ErrorKind::io, "io"},
    {ErrorKind::corrupt, "corrupt"},
    {ErrorKind::stale, "stale"},
    {ErrorKind::interrupted, "interrupted"},
    {ErrorKind::unconfirmed, "unconfirmed"},
});
constexpr std::string_view name(ErrorKind kind) {
  return kErrorKindNames.name(kind);
}

struct Error {
  ErrorKind kind = ErrorKind::io;
  std::string message;

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

template <class... Args>
std::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{kind, fmt::format(format, std::forward<Args>(args)...)});
}

/// 2 wrong usage or input, 3 not possible now, 130 interrupted.
int exit_code(ErrorKind kind);

/// Whether the same call may succeed later without anybody changing the input.
bool retryable(ErrorKind kind);

/// The same error, with where it happened put in front: "where: message".
Error within(std::string_view where, Error error);

[[noreturn]] void assert_failed(const char* what, const char* file, int line);

}  // namespace berth

/// Stays on in release: a broken invariant ends the process before it spreads.
#define BERTH_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::berth::assert_failed(#condition, __FILE__, __LINE__))

#define BERTH_JOIN_(a, b) a##b
#define BERTH_JOIN(a, b) BERTH_JOIN_(a, b)

/// BERTH_TRY(status): returns the error of a Status or Result from the enclosing function.
#define BERTH_TRY(expression)                               \
  do {                                                      \
    if (auto berth_try = (expression); !berth_try)          \
      return std::unexpected(std::move(berth_try).error()); \
  } while (false)

/// BERTH_ASSIGN(auto value, result): declares or assigns the value, or returns the error.
#define BERTH_ASSIGN(target, expression) \
  BERTH_ASSIGN_(target, expression, BERTH_JOIN(berth_result_, __LINE__))
#define BERTH_ASSIGN_(target, expression, result)                 \
  auto result = (expression);                                     \
  if (!result) return std::unexpected(std::move(result).error()); \
  target = *std::move(result)
