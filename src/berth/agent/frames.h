// What travels when files are brought and fetched: frames of a kind and some bytes. Pure.
//
//   one byte: the kind · four bytes, the greatest first: how many follow · these
//
// Failure: invalid where more is announced than kFrameMost.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "berth/base/result.h"

namespace berth::agent {

inline constexpr std::size_t kFrameMost = 1 << 20;  // bytes of one

// There and back: what each says is in files.h, and in push.h.
enum class FrameKind : char {
  files = 'f',    // a piece of a fileset's text
  ask = 'a',      // that is all of it: what of it is missing?
  missing = 'm',  // a piece of the list
  object = 'o',   // one begins: "DIGEST x 0 SIZE"
  data = 'd',     // a piece of it
  publish = 'p',  // the fileset last asked about becomes PATH
  capture = 'c',  // PATH as a fileset
  get = 'g',      // one object: "DIGEST x OFFSET SIZE"
  remove = 'r',   // PATH, with all below
  same = 's',     // whether a file of this path is here
  to = 't',       // of push.h: where to
  sent = 'n',     // of push.h: bytes so far
  end = '.',      // of an answer
  error = 'e',    // "KIND message": the answer
};

struct Frame {
  FrameKind kind = FrameKind::end;
  std::string bytes;
};

std::string encode(FrameKind kind, std::string_view bytes);

/// The first whole frame of what has come, which then stands behind it; nullopt: it is not whole.
Result<std::optional<Frame>> take_frame(std::string_view& rest);

/// Takes what has come and gives whole frames.
class FrameReader {
 public:
  void add(std::string_view bytes) { in_ += bytes; }
  /// nullopt: not whole yet.
  Result<std::optional<Frame>> next();

 private:
  std::string in_;
  std::size_t taken_ = 0;
};

/// "DIGEST x 17 1000": an object, whether it is executable, from where, how long it is.
struct Piece {
  std::string digest;
  bool executable = false;
  std::int64_t offset = 0, size = 0;
};
std::string to_text(const Piece& piece);
/// invalid.
Result<Piece> parse_piece(std::string_view text);

/// "busy the message", as of an error frame.
std::string to_text(const Error& error);
/// Whoever wrote it: of bounded length, and without control characters.
Error parse_error(std::string_view text);

}  // namespace berth::agent
