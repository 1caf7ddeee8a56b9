// The lines of the agent's protocols, taken apart: for the files that decode them.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/agent/protocol.h"
#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/machine/ledger_file.h"

namespace berth::agent {

inline constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// The parameters of one message. The first field that is not as wanted is remembered, and what is
/// read after it means nothing.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  std::int64_t integer(const char* name, std::int64_t least = 0, std::int64_t most = kMost) {
    const Json* value = find(name);
    return value != nullptr ? integer_of(*value, name, least, most) : least;
  }
  bool boolean(const char* name) {
    const Json* value = find(name);
    if (value != nullptr && !value->is_boolean()) refuse(name);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  double number(const char* name) {
    const Json* value = find(name);
    if (value != nullptr && !value->is_number()) refuse(name);
    return value != nullptr && value->is_number() ? value->get<double>() : 0;
  }
  std::string bytes(const char* name) {
    const Json* value = find(name);
    return value != nullptr ? bytes_of(*value, name) : std::string();
  }
  template <std::size_t N>
  std::size_t choice(const char* name, const std::array<std::string_view, N>& choices) {
    const std::string text = bytes(name);
    const auto found = std::ranges::find(choices, text);
    if (found == choices.end() || text.empty()) refuse(name);
    return found == choices.end() ? 0 : static_cast<std::size_t>(found - choices.begin());
  }
  template <class Enum, std::size_t kCount>
  std::optional<Enum> choice(const char* name, const Names<Enum, kCount>& names) {
    const auto value = names.value(bytes(name));
    if (!value) refuse(name);
    return value;
  }
  machine::Block block(const char* name) {
    auto block = machine::read_block(bytes(name));
    if (!block) refuse(name);
    return block ? *std::move(block) : machine::Block();
  }
  /// The default where it is not there.
  machine::DeviceSelection selection(const char* name) {
    if (!has(name)) return {};
    auto selection = machine::selection_of_json(bytes(name));
    if (!selection) refuse(name);
    return selection ? *std::move(selection) : machine::DeviceSelection();
  }
  Attempt attempt() { return {{integer("task", 1)}, {integer("token", 1)}}; }
  /// Of an optional field only when it is there.
  bool has(const char* name) const { return object_.contains(name); }

  template <class Read>
  void each(const char* name, Read read) {
    const Json* list = find(name);
    if (list == nullptr) return;
    if (!list->is_array()) return refuse(name);
    for (const auto& item : *list) read(item);
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> texts;
    each(name, [&](const Json& item) { texts.push_back(bytes_of(item, name)); });
    return texts;
  }
  exec::Environment environment(const char* name) {
    exec::Environment environment;
    each(name, [&](const Json& item) {
      const std::string text = bytes_of(item, name);
      const auto equals = text.find('=');
      if (equals == std::string::npos) return refuse(name);
      environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    });
    return environment;
  }
  std::int64_t integer_of(const Json& value, const char* name, std::int64_t least = 0,
                          std::int64_t most = kMost) {
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() &&
                        value.get<std::uint64_t>() > static_cast<std::uint64_t>(kMost));
    const std::int64_t number = fits ? value.get<std::int64_t>() : least;
    if (!fits || number < least || number > most) refuse(name);
    return number;
  }
  std::string bytes_of(const Json& value, const char* name) {
    std::string bytes;
    if (!value.is_string()) {
      refuse(name);
      return bytes;
    }
    const auto& text = value.get_ref<const std::string&>();
    bytes.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {  // valid UTF-8, says the parser
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte < 0x80) {
        bytes += text[i];
      } else if (byte == 0xC2 || byte == 0xC3) {
        bytes += static_cast<char>((byte << 6) | (text[++i] & 0x3F));
      } else {
        refuse(name);
        return bytes;
      }
    }
    return bytes;
  }

  void refuse(const char* name) {
    if (wrong_.empty()) wrong_ = name;
  }

  template <class Message>
  Result<Message> finish(Message message) const {
    if (!wrong_.empty()) return fail(ErrorKind::invalid, "field '{}' is not as wanted", wrong_);
    return message;
  }

 private:
  const Json* find(const char* name) {
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    refuse(name);
    return nullptr;
  }
  const Json& object_;
  std::string wrong_;
};

/// The text under `name`; nullopt where there is none.
inline std::optional<std::string_view> text_of(const Json& message, const char* name) {
  const auto found = message.find(name);
  if (found == message.end() || !found->is_string()) return std::nullopt;
  return found->get_ref<const std::string&>();
}

/// The object under `name`, or nullptr.
inline const Json* object_of(const Json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_object() ? &*found : nullptr;
}

inline Result<Json> read_line(std::string_view line) {
  BERTH_ASSIGN(Json message, parse_json(line));
  if (!message.is_object() || text_of(message, "jsonrpc") != "2.0")
    return fail(ErrorKind::invalid, "no JSON-RPC 2.0: {}", clip(line));
  return message;
}

inline Result<Error> read_error(const Json& error) {
  constexpr auto kLast = static_cast<std::uint8_t>(ErrorKind::interrupted);
  Fields fields(error);
  Error told{ErrorKind::io, fields.bytes("message")};
  const Json* data = object_of(error, "data");
  const auto kind = data != nullptr ? text_of(*data, "kind") : std::nullopt;
  for (std::uint8_t i = 0; i <= kLast; ++i)
    if (kind == name(static_cast<ErrorKind>(i))) told.kind = static_cast<ErrorKind>(i);
  return fields.finish(std::move(told));
}

}  // namespace berth::agent
