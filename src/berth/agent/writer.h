// The lines of the agent's protocols, put together: for the files that encode them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/exec/messages.h"

namespace berth::agent {

inline void append_quoted(std::string& text, std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  text += '"';
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '"' || byte == '\\') {
      text += '\\';
      text += c;
    } else if (byte == '\n') {
      text += "\\n";
    } else if (byte < 0x20) {
      text += "\\u00";
      text += kHex[byte >> 4];
      text += kHex[byte & 0xF];
    } else if (byte < 0x80) {
      text += c;
    } else {  // U+0080 to U+00FF in UTF-8
      text += static_cast<char>(0xC0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  text += '"';
}

/// One message, field by field.
class Writer {
 public:
  explicit Writer(std::string_view method) {
    text_ = fmt::format(R"({{"jsonrpc":"2.0","method":"{}","params":{{)", method);
  }
  /// A call that is answered, by its own name.
  static Writer request(std::string_view method) {
    return Writer(fmt::format(R"({{"jsonrpc":"2.0","id":"{0}","method":"{0}","params":{{)", method),
                  0);
  }
  static Writer result(std::string_view of) {
    return Writer(fmt::format(R"({{"jsonrpc":"2.0","id":"{}","result":{{)", of), 0);
  }

  Writer& add(std::string_view name, std::int64_t value) {
    key(name);
    const fmt::format_int digits(value);
    text_.append(digits.data(), digits.size());
    return *this;
  }
  Writer& add(std::string_view name, bool value) {
    key(name);
    text_ += value ? "true" : "false";
    return *this;
  }
  Writer& add_number(std::string_view name, double value) {
    key(name);
    fmt::format_to(std::back_inserter(text_), "{}", value);
    return *this;
  }
  Writer& add(std::string_view name, std::string_view bytes) {
    key(name);
    append_quoted(text_, bytes);
    return *this;
  }
  template <class List, class Append>
  Writer& add_list(std::string_view name, const List& list, Append append) {
    key(name);
    text_ += '[';
    for (const auto& item : list) {
      if (text_.back() != '[') text_ += ',';
      append(text_, item);
    }
    text_ += ']';
    return *this;
  }
  Writer& add(std::string_view name, const std::vector<std::string>& texts) {
    return add_list(name, texts, append_quoted);
  }
  Writer& add(std::string_view name, const exec::Environment& environment) {
    return add_list(name, environment, [](std::string& text, const auto& variable) {
      append_quoted(text, variable.first + "=" + variable.second);
    });
  }
  std::string finish() { return std::move(text_) + "}}"; }

 private:
  Writer(std::string begin, int) : text_(std::move(begin)) {}
  void key(std::string_view name) {
    if (text_.back() != '{') text_ += ',';
    text_ += '"';
    text_ += name;
    text_ += "\":";
  }
  std::string text_;
};

inline std::string write_error(const Error& error) {
  constexpr int kOurs = -32000;  // the first of those that JSON-RPC leaves to us
  std::string message;
  append_quoted(message, error.message);
  return fmt::format(
      R"({{"jsonrpc":"2.0","id":null,"error":{{"code":{},"message":{},"data":{{"kind":"{}"}}}}}})",
      kOurs, message, name(error.kind));
}

}  // namespace berth::agent
