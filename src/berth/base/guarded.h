// Functions and classes of the library's callers may throw anything. They are called through
// guarded(), which makes an error of it, so that no exception passes through Berth's own code.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "berth/base/result.h"

namespace berth {

template <class T>
struct GuardedResult {
  using type = Result<T>;
};
template <class T>
struct GuardedResult<Result<T>> {
  using type = Result<T>;
};

/// What `call` returns, as a Result. Errors: its own; invalid, where it throws (full, where it
/// throws std::bad_alloc): "WHAT threw: …".
template <class Call>
auto guarded(std::string_view what, Call&& call) ->
    typename GuardedResult<std::invoke_result_t<Call>>::type {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      std::forward<Call>(call)();
      return {};
    } else {
      return std::forward<Call>(call)();
    }
  } catch (const std::bad_alloc&) {
    return fail(ErrorKind::full, "{}: no memory", what);
  } catch (const std::exception& error) {
    return fail(ErrorKind::invalid, "{} threw: {}", what, error.what());
  } catch (...) {
    return fail(ErrorKind::invalid, "{} threw an exception that is not a std::exception", what);
  }
}

}  // namespace berth
