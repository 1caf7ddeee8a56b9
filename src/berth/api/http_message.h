// A strict reader of HTTP/1.1 requests (RFC 9112). Where a request begins and ends has exactly one
// meaning here; a request that could be read in two ways is refused, because a proxy in front of
// the server may have read it in the other one. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::api {

/// Why a request is refused, and with which status.
struct Refusal {
  int status;
  std::string why;
};

struct RequestHead {
  std::string method, target;  ///< As they were sent.
  std::vector<std::pair<std::string, std::string>> fields;
  std::size_t content_length = 0;  ///< In bytes; 0 for a chunked body.
  bool is_chunked = false;
  bool keeps_connection = true;   ///< The client accepts further answers on this connection.
  bool expects_continue = false;  ///< The client sends the body after "100 Continue".
};

inline constexpr std::size_t kLongestHead = 64U << 10;  // bytes
inline constexpr std::size_t kLongestTarget = 8192;     // bytes
inline constexpr std::size_t kMostFields = 100;

/// Returns the length of the head that begins `text`, its empty line included; 0 while the empty
/// line has not arrived. `from`: the number of bytes that an earlier call has searched in vain.
std::size_t head_length(std::string_view text, std::size_t from = 0);

/// Reads a head of head_length() bytes. Refuses what RFC 9112 does not allow: several
/// Content-Length fields or one together with Transfer-Encoding, codings other than "chunked",
/// lines that do not end with CR LF, folded lines, blanks before a colon, control characters.
std::expected<RequestHead, Refusal> read_head(std::string_view head);

/// Decodes a chunked body as it arrives. One object a body.
class ChunkDecoder {
 public:
  /// `most`: the limit of the decoded body in bytes.
  explicit ChunkDecoder(std::size_t most) : most_(most) {}

  /// Appends to `body` the data in `text`, which continues the earlier calls' texts. Returns the
  /// number of bytes that belong to the body: fewer than there are once is_done(). Refusals: 400
  /// for wrong syntax, 413 for a body, chunk extensions or trailers that are too large.
  std::expected<std::size_t, Refusal> decode(std::string_view text, std::string& body);
  bool is_done() const { return state_ == State::done; }

 private:
  enum class State : std::uint8_t { size, data, data_end, trailer, done };
  std::expected<void, Refusal> take_line_byte(char byte);
  std::expected<void, Refusal> end_line();

  State state_ = State::size;
  std::size_t most_, body_ = 0;  // bytes of the body: allowed, announced
  std::size_t left_ = 0;         // bytes of the present chunk
  std::size_t overhead_ = 0;     // bytes of extensions and trailers
  std::string line_;             // the line that is being read, without its end
};

}  // namespace berth::api
