// How a call fails within Berth. The public face (berth/error.h) has Result, Error and the kinds;
// the kind alone decides the exit code, whether a retry can mend it, and the HTTP status.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "berth/base/names.h"
#include "berth/error.h"

namespace berth {

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
template <class... Args>
std::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{kind, fmt::format(format, std::forward<Args>(args)...)});
}

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
