#include "berth/base/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "berth/base/result.h"
#include "berth/base/text.h"

namespace berth {
namespace {

/// The byte stands for itself, whatever is around it.
bool is_plain(char c) {
  return c >= ' ' && c < '\x7f' && c != '"' && c != '\\';
}

/// How many bytes stand for each byte within a JSON text of bytes.
constexpr auto kEscapedSizes = [] {
  std::array<std::uint8_t, 256> sizes{};
  for (std::size_t byte = 0; byte < sizes.size(); ++byte) {
    const bool pair = byte >= 0x80 || byte == '"' || byte == '\\' || byte == '\n';
    sizes[byte] = pair ? 2 : byte < 0x20 ? 6 : 1;
  }
  return sizes;
}();

char* put_escaped(char* out, unsigned char byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  if (byte >= 0x80) {  // U+0080 to U+00FF in UTF-8
    *out++ = static_cast<char>(0xC0 | (byte >> 6));
    *out++ = static_cast<char>(0x80 | (byte & 0x3F));
  } else if (byte == '"' || byte == '\\' || byte == '\n') {
    *out++ = '\\';
    *out++ = byte == '\n' ? 'n' : static_cast<char>(byte);
  } else if (byte < 0x20) {
    for (const char c : {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 0xF]}) *out++ = c;
  } else {
    *out++ = static_cast<char>(byte);
  }
  return out;
}

}  // namespace

void JsonWriter::break_line() {
  text_ += '\n';
  text_.append(static_cast<std::size_t>(std::exchange(indent_, -1)), ' ');
}

void JsonWriter::begin_value() {
  if (!separated_) text_ += ',';
  if (indent_ >= 0)
    break_line();
  else if (!separated_ && spaced_)
    text_ += ' ';
  separated_ = false;
}

JsonWriter& JsonWriter::open(char begin, char end) {
  begin_value();
  text_ += begin;
  ends_ += end;
  separated_ = true;
  return *this;
}

JsonWriter& JsonWriter::end() {
  BERTH_ASSERT(!ends_.empty());
  if (indent_ >= 0) break_line();
  text_ += ends_.back();
  ends_.pop_back();
  separated_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  begin_value();
  quote(name);
  text_ += spaced_ ? ": " : ":";
  separated_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  begin_value();
  quote(text);
  return *this;
}

void JsonWriter::quote(std::string_view text) {
  if (std::ranges::all_of(text, is_plain))
    text_.append(1, '"').append(text).append(1, '"');
  else
    text_ += json_quote(text);
}

JsonWriter& JsonWriter::value(double number) {
  return raw(std::isfinite(number) ? fmt::format("{}", number) : "null");
}

JsonWriter& JsonWriter::integer(std::int64_t number) {
  const fmt::format_int digits(number);
  return raw({digits.data(), digits.size()});
}

JsonWriter& JsonWriter::bytes(std::string_view bytes) {
  begin_value();
  std::size_t size = 2;
  for (const char c : bytes) size += kEscapedSizes[static_cast<unsigned char>(c)];
  const std::size_t before = text_.size();
  text_.resize(before + size);
  char* out = text_.data() + before;
  *out++ = '"';
  for (const char c : bytes) out = put_escaped(out, static_cast<unsigned char>(c));
  *out = '"';
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  begin_value();
  text_ += json;
  return *this;
}

std::string JsonWriter::take() {
  BERTH_ASSERT(ends_.empty());
  separated_ = true;
  return std::exchange(text_, {});
}

}  // namespace berth
