#include "berth/api/http_message.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "berth/base/text.h"

namespace berth::api {
namespace {

constexpr std::size_t kLongestChunkLine = 4096;       // bytes
constexpr std::size_t kMostChunkOverhead = 16 << 10;  // bytes of extensions and trailers of a body
constexpr int kHexBase = 16;

std::unexpected<Refusal> refuse(int status, std::string why) {
  return std::unexpected(Refusal{status, std::move(why)});
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

std::optional<std::size_t> whole_number(std::string_view digits, int base) {
  std::size_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty())
    return std::nullopt;
  return number;
}

/// The next line without its CR LF; nullopt: it does not end with both, or has one of them inside.
std::optional<std::string_view> next_line(std::string_view& text) {
  const auto end = text.find_first_of("\r\n");
  if (end == text.npos || !text.substr(end).starts_with("\r\n")) return std::nullopt;
  const auto line = text.substr(0, end);
  text.remove_prefix(end + 2);
  return line;
}

std::expected<void, Refusal> read_request_line(std::string_view line, RequestHead& head,
                                               bool& is_1_0) {
  const auto parts = split(line, ' ');
  if (parts.size() != 3 || !is_token(parts[0]) || parts[1].empty() ||
      std::ranges::any_of(parts[1], [](char c) { return is_control(c) || c == '\t'; }))
    return refuse(400, fmt::format("'{}' is not a request line; expected METHOD TARGET HTTP/1.1",
                                   clip(line)));
  if (parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0")
    return refuse(parts[2].starts_with("HTTP/") ? 505 : 400,
                  fmt::format("'{}' is not supported; expected HTTP/1.1", clip(parts[2])));
  if (parts[1].size() > kLongestTarget)
    return refuse(414, fmt::format("the request's target is longer than {} bytes", kLongestTarget));
  head.method = parts[0];
  head.target = parts[1];
  is_1_0 = parts[2] == "HTTP/1.0";
  return {};
}

std::expected<std::pair<std::string, std::string>, Refusal> read_field(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon)))
    return refuse(400, fmt::format("'{}' is not a header field; expected NAME: VALUE", clip(line)));
  const auto value = trim(line.substr(colon + 1));
  if (std::ranges::any_of(value, is_control))
    return refuse(400, fmt::format("the header field '{}' has a control character",
                                   clip(line.substr(0, colon))));
  return std::pair(std::string(line.substr(0, colon)), std::string(value));
}

/// What the fields say about the message itself.
struct Framing {
  std::vector<std::string> lengths, codings, hosts, connections, expectations;
};

Framing framing_of(const RequestHead& head) {
  Framing framing;
  for (const auto& [name, value] : head.fields) {
    const std::string lowered = lower(name);
    if (lowered == "content-length") framing.lengths.push_back(value);
    if (lowered == "transfer-encoding") framing.codings.push_back(value);
    if (lowered == "host") framing.hosts.push_back(value);
    if (lowered == "expect") framing.expectations.push_back(value);
    if (lowered == "connection")
      for (const auto option : split(value, ','))
        framing.connections.push_back(lower(trim(option)));
  }
  return framing;
}

std::expected<void, Refusal> read_framing(RequestHead& head, bool is_1_0) {
  const Framing framing = framing_of(head);
  if (framing.hosts.size() > 1 || (framing.hosts.empty() && !is_1_0))
    return refuse(400, fmt::format("{} Host fields; expected one", framing.hosts.size()));
  if (!framing.codings.empty() && (is_1_0 || !framing.lengths.empty()))
    return refuse(400, is_1_0 ? "HTTP/1.0 has no Transfer-Encoding"
                              : "Content-Length together with Transfer-Encoding; expected one");
  if (framing.codings.size() > 1 ||
      (framing.codings.size() == 1 && lower(framing.codings[0]) != "chunked"))
    return refuse(501, fmt::format("Transfer-Encoding '{}' is not supported; expected chunked",
                                   clip(join(framing.codings, ", "))));
  head.is_chunked = !framing.codings.empty();
  if (framing.lengths.size() > 1)
    return refuse(400,
                  fmt::format("{} Content-Length fields; expected one", framing.lengths.size()));
  if (!framing.lengths.empty()) {
    const auto length = whole_number(framing.lengths[0], 10);
    if (!length)
      return refuse(400, fmt::format("Content-Length '{}': expected a whole number of bytes",
                                     clip(framing.lengths[0])));
    head.content_length = *length;
  }
  const auto has = [&](std::string_view option) {
    return std::ranges::find(framing.connections, option) != framing.connections.end();
  };
  head.keeps_connection = !has("close") && (!is_1_0 || has("keep-alive"));
  head.expects_continue = !is_1_0 && framing.expectations.size() == 1 &&
                          lower(framing.expectations[0]) == "100-continue";
  return {};
}

}  // namespace

std::size_t head_length(std::string_view text, std::size_t from) {
  constexpr std::size_t kOverlap = 3;  // the longest beginning of an empty line's end
  for (auto at = text.find('\n', from - std::min(from, kOverlap)); at != text.npos;
       at = text.find('\n', at + 1)) {
    // A line that ends with LF alone ends here too, and is refused when it is read.
    if (text.substr(at + 1).starts_with('\n')) return at + 2;
    if (text.substr(at + 1).starts_with("\r\n")) return at + 3;
  }
  return 0;
}

std::expected<RequestHead, Refusal> read_head(std::string_view text) {
  RequestHead head;
  bool is_1_0 = false;
  for (bool is_first = true;; is_first = false) {
    const auto line = next_line(text);
    if (!line)
      return refuse(400, "a line of the request's head does not end with CR LF, or has one inside");
    if (is_first) {
      if (auto read = read_request_line(*line, head, is_1_0); !read)
        return std::unexpected(read.error());
      continue;
    }
    if (line->empty()) break;
    if (head.fields.size() == kMostFields)
      return refuse(431, fmt::format("more than {} header fields", kMostFields));
    auto field = read_field(*line);
    if (!field) return std::unexpected(field.error());
    head.fields.push_back(*std::move(field));
  }
  if (auto read = read_framing(head, is_1_0); !read) return std::unexpected(read.error());
  return head;
}

std::expected<std::size_t, Refusal> ChunkDecoder::decode(std::string_view text, std::string& body) {
  std::size_t at = 0;
  while (at < text.size() && state_ != State::done) {
    if (state_ == State::data) {
      const std::size_t part = std::min(left_, text.size() - at);
      body.append(text.substr(at, part));
      at += part;
      left_ -= part;
      if (left_ == 0) state_ = State::data_end;
      continue;
    }
    if (auto taken = take_line_byte(text[at++]); !taken) return std::unexpected(taken.error());
  }
  return at;
}

std::expected<void, Refusal> ChunkDecoder::take_line_byte(char byte) {
  const bool ends = !line_.empty() && line_.back() == '\r';
  if (ends && byte == '\n') {
    line_.pop_back();
    return end_line();
  }
  if (ends || byte == '\n' || (byte != '\r' && is_control(byte)))
    return refuse(400, "the chunked body has a control character, or a line without CR LF");
  if (line_.size() == kLongestChunkLine)
    return refuse(
        413, fmt::format("a line of the chunked body is longer than {} bytes", kLongestChunkLine));
  line_ += byte;
  return {};
}

std::expected<void, Refusal> ChunkDecoder::end_line() {
  const std::string line = std::exchange(line_, {});
  if (state_ == State::data_end) {
    if (!line.empty())
      return refuse(
          400, fmt::format("the chunk is longer than its size: '{}' follows its data", clip(line)));
    state_ = State::size;
    return {};
  }
  const bool is_size = state_ == State::size;
  const std::size_t digits = is_size ? std::min(line.find(';'), line.size()) : 0;
  overhead_ += line.size() - digits;
  if (overhead_ > kMostChunkOverhead)
    return refuse(413, fmt::format("more than {} bytes of chunk extensions and trailers",
                                   kMostChunkOverhead));
  if (!is_size) {
    if (line.empty()) {
      state_ = State::done;
      return {};
    }
    if (auto field = read_field(line); !field) return std::unexpected(field.error());
    return {};
  }
  const auto size = whole_number(std::string_view(line).substr(0, digits), kHexBase);
  if (!size)
    return refuse(400, fmt::format("'{}' is not the size of a chunk; expected hexadecimal digits",
                                   clip(line)));
  if (*size > most_ - body_) return refuse(413, fmt::format("larger than {} bytes", most_));
  body_ += *size;
  left_ = *size;
  state_ = left_ == 0 ? State::trailer : State::data;
  return {};
}

}  // namespace berth::api
