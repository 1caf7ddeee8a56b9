// Files travel in frames. A frame has a kind and some bytes:
//
//   one byte: the kind · four bytes, big-endian: how many follow · these bytes
//
// Everything here is pure. Failure: invalid, where a frame announces more than kFrameMost bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "berth/base/result.h"

namespace berth::agent {

inline constexpr std::size_t kFrameMost = 1 << 20;  ///< The bytes of a frame at most.

/// files.h and push.h say when each kind is sent, and what it means.
enum class FrameKind : char {
  files = 'f',           ///< A piece of a fileset's text.
  ask = 'a',             ///< The fileset's text is complete; which of its objects are missing?
  missing = 'm',         ///< A piece of the list of missing objects.
  object = 'o',          ///< An object begins: "DIGEST x 0 SIZE".
  data = 'd',            ///< A piece of that object.
  publish = 'p',         ///< Make the fileset that was asked about last stand at PATH.
  publish_folder = 'P',  ///< As publish; changes of its files count as `written`.
  written = 'w',         ///< How many files below PATH did tasks write that are not fetched?
  capture = 'c',         ///< Send what stands at PATH, as a fileset.
  get = 'g',             ///< Send an object: "DIGEST x OFFSET SIZE".
  remove = 'r',          ///< Remove PATH with all below it.
  same = 's',            ///< Is there a file of this path?
  to = 't',              ///< Of push.h: the request.
  sent = 'n',            ///< Of push.h: how many bytes have gone.
  end = '.',             ///< An answer is complete.
  error = 'e',           ///< The answer is an error: "KIND message".
};

struct Frame {
  FrameKind kind = FrameKind::end;
  std::string bytes;
};

std::string encode(FrameKind kind, std::string_view bytes);

/// Takes the first whole frame from the front of `rest`; nullopt where none has come whole.
Result<std::optional<Frame>> take_frame(std::string_view& rest);

/// Gathers bytes and returns whole frames.
class FrameReader {
 public:
  void add(std::string_view bytes) { in_ += bytes; }
  /// The next frame; nullopt where none has come whole.
  Result<std::optional<Frame>> next();

 private:
  std::string in_;
  std::size_t taken_ = 0;
};

/// An object from a byte on; as text "DIGEST x 17 1000", where x stands for an executable one.
struct Piece {
  std::string digest;
  bool executable = false;
  std::int64_t offset = 0, size = 0;  ///< In bytes; `size` is that of the whole object.
};
std::string to_text(const Piece& piece);
/// Failure: invalid.
Result<Piece> parse_piece(std::string_view text);

/// "busy the message", as an error frame has it.
std::string to_text(const Error& error);
/// Reads an error that anybody may have written. Its message is of bounded length, and has no
/// control characters.
Error parse_error(std::string_view text);

}  // namespace berth::agent
