#include "berth/agent/protocol/frames.h"

#include <utility>

#include "berth/base/digest.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::agent {
namespace {

constexpr std::size_t kHead = 5;
constexpr std::size_t kErrorMessageMost = 4096;  // bytes
constexpr std::string_view kKinds = "famodpPwcgrstn.e";

}  // namespace

std::string encode(FrameKind kind, std::string_view bytes) {
  BERTH_ASSERT(bytes.size() <= kFrameMost);
  std::string frame(1, static_cast<char>(kind));
  for (int shift = 24; shift >= 0; shift -= 8)
    frame += static_cast<char>((bytes.size() >> shift) & 0xFF);
  frame += bytes;
  return frame;
}

Result<std::optional<Frame>> take_frame(std::string_view& rest) {
  if (rest.size() < kHead) return std::nullopt;
  std::size_t size = 0;
  for (const char c : rest.substr(1, 4)) size = size << 8 | static_cast<unsigned char>(c);
  if (kKinds.find(rest[0]) == std::string_view::npos)
    return fail(ErrorKind::invalid, "no kind of frame: {}", static_cast<int>(rest[0]));
  if (size > kFrameMost) return fail(ErrorKind::invalid, "a frame of {} bytes", size);
  if (rest.size() < kHead + size) return std::nullopt;
  Frame frame{static_cast<FrameKind>(rest[0]), std::string(rest.substr(kHead, size))};
  rest.remove_prefix(kHead + size);
  return frame;
}

Result<std::optional<Frame>> FrameReader::next() {
  auto rest = std::string_view(in_).substr(taken_);
  BERTH_ASSIGN(auto frame, take_frame(rest));
  taken_ = in_.size() - rest.size();
  if (taken_ == in_.size() || taken_ > kFrameMost) in_.erase(0, std::exchange(taken_, 0));
  return frame;
}

std::string to_text(const Piece& piece) {
  return fmt::format("{} {} {} {}", piece.digest, piece.executable ? 'x' : 'f', piece.offset,
                     piece.size);
}

Result<Piece> parse_piece(std::string_view text) {
  const auto fields = split(text, ' ');
  if (fields.size() != 4 || (fields[1] != "x" && fields[1] != "f"))
    return fail(ErrorKind::invalid, "no piece of an object: {}", clip(text));
  BERTH_TRY(parse_digest(fields[0]));
  BERTH_ASSIGN(const auto offset, parse_integer(fields[2]));
  BERTH_ASSIGN(const auto size, parse_integer(fields[3]));
  if (offset < 0 || size < offset)
    return fail(ErrorKind::invalid, "no piece of an object: {}", clip(text));
  return Piece{std::string(fields[0]), fields[1] == "x", offset, size};
}

std::string to_text(const Error& error) {
  return fmt::format("{} {}", static_cast<int>(error.kind), clip(error.message, kErrorMessageMost));
}

Error parse_error(std::string_view text) {
  const auto blank = std::min(text.find(' '), text.size());
  const auto kind = parse_integer(text.substr(0, blank));
  constexpr auto kLast = static_cast<int>(ErrorKind::interrupted);
  const bool known = kind && *kind >= 0 && *kind <= kLast && blank < text.size();
  if (!known) return {ErrorKind::invalid, clip(text, kErrorMessageMost)};
  return {static_cast<ErrorKind>(*kind), clip(text.substr(blank + 1), kErrorMessageMost)};
}

}  // namespace berth::agent
