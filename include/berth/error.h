// How a call of Berth's library fails. A Result<T> is a value or an Error; the library throws
// nothing of its own (std::bad_alloc may pass through). The kind says what can help, the message
// names what, where, wanted and found.
//
//   berth::Result<berth::topology::Topology> machine = berth::topology::known_machine("dgx-h100");
//   if (!machine) std::cerr << berth::name(machine.error().kind) << ": " <<
//   machine.error().message;
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

/// Marks what the shared library shows; everything else in it is hidden.
#ifndef BERTH_EXPORT
#define BERTH_EXPORT __attribute__((visibility("default")))
#endif

namespace berth {

/// New kinds are added at the end.
enum class ErrorKind : std::uint8_t {
  usage,        ///< The command line is wrong.
  invalid,      ///< A document, value or request is wrong, and will be wrong again.
  not_found,    ///< The named thing does not exist.
  exists,       ///< The named thing exists already.
  impossible,   ///< It is more than there is, even when all of it is free.
  busy,         ///< It fits, but not now: something else holds it.
  denied,       ///< Permissions.
  full,         ///< No space, no inodes, no descriptors, no memory.
  io,           ///< The operating system failed us.
  corrupt,      ///< Stored data is not what was written.
  stale,        ///< The caller's token, generation or lease is no longer the current one.
  interrupted,  ///< The person or the system asked to stop.
  unconfirmed,  ///< A person has to say yes to it first. Agents tell kinds by their number.
};

/// "invalid", "not_found": as `--json` prints the kind.
BERTH_EXPORT std::string_view name(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::io;
  std::string message;  ///< One sentence for people, without the kind.

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

/// The exit code of a program that ends for this: 2 wrong usage or input, 3 not possible now, 130
/// interrupted.
BERTH_EXPORT int exit_code(ErrorKind kind);
/// Whether the same call may succeed later without anybody changing the input.
BERTH_EXPORT bool retryable(ErrorKind kind);
/// The library's version, "0.3.0".
BERTH_EXPORT std::string_view version();

}  // namespace berth
