#include "berth/store/postgres_values.h"

#include <charconv>

#include "berth/base/text.h"

namespace berth::store {
namespace {

constexpr char kMark = '\x1a';

template <class Number>
bool parse(std::string_view text, Number& value) {
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end;
}

template <class State>
bool assign(const std::optional<State>& state, State& value) {
  if (state) value = *state;
  return state.has_value();
}

}  // namespace

std::string to_text(std::string_view bytes) {
  constexpr std::string_view kMarked("\0\x1a", 2);
  if (bytes.find_first_of(kMarked) == std::string_view::npos && valid_utf8(bytes) == bytes)
    return std::string(bytes);
  std::string text;
  for (const char byte : bytes) {
    const auto number = static_cast<unsigned char>(byte);
    if (number >= 0x80 || kMarked.find(byte) != std::string_view::npos)
      text += fmt::format("{}{:02x}", kMark, number);
    else
      text += byte;
  }
  return text;
}

std::string from_text(std::string_view text) {
  std::string bytes;
  for (;;) {
    const auto mark = text.find(kMark);
    bytes += text.substr(0, mark);
    if (mark == std::string_view::npos) return bytes;
    const auto digits = text.substr(mark + 1, 2);
    unsigned number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    bytes += static_cast<char>(number);
    text.remove_prefix(mark + 1 + digits.size());
  }
}

bool from_sql(std::string_view text, std::int64_t& value) {
  return parse(text, value);
}
bool from_sql(std::string_view text, int& value) {
  return parse(text, value);
}
bool from_sql(std::string_view text, double& value) {
  return parse(text, value);
}
bool from_sql(std::string_view text, std::string& value) {
  value = from_text(text);
  return true;
}
bool from_sql(std::string_view text, RunState& value) {
  return assign(run_state(text), value);
}
bool from_sql(std::string_view text, TaskState& value) {
  return assign(task_state(text), value);
}
bool from_sql(std::string_view text, Phase& value) {
  return assign(phase(text), value);
}
bool from_sql(std::string_view text, Values& value) {
  auto values = values_from_json(text);
  if (values) value = *std::move(values);
  return values.has_value();
}
bool from_sql(std::string_view text, Wall& value) {
  std::int64_t ns = 0;
  const bool good = parse(text, ns);
  value = Wall(Duration(ns));
  return good;
}

void Lists::append(std::string& list, const Sql& value) {
  if (!list.empty()) list += ',';
  if (!value) {
    list += "NULL";
    return;
  }
  list += '"';
  for (const char c : *value) {
    if (c == '"' || c == '\\') list += '\\';
    list += c;
  }
  list += '"';
}

}  // namespace berth::store
