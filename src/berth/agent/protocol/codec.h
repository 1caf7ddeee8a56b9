// How a message becomes a line and a line a message. Each message is described once, by a function
//
//   template <class Codec>
//   void describe(Codec& codec, Of<Codec, exec::Cancel>& cancel) {
//     codec.field("token", cancel.token, at_least(1));
//   }
//
// which a MessageWriter visits to write it and a MessageReader to read it. kEnvelope says how the
// message travels as JSON-RPC 2.0. The reader passes over fields that it does not know, remembers
// the first one that is not as wanted, and returns `invalid` with its name; nothing here throws.
//
// A text may hold any bytes: each byte is sent as the character of that number (U+0000 to U+00FF),
// so that plain text stays plain. Durations are in nanoseconds. For the files that describe
// messages: protocol.cc, pool_protocol.cc, push.cc, agent_file.cc.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "berth/base/digest.h"
#include "berth/base/ids.h"
#include "berth/base/json.h"
#include "berth/base/json_writer.h"
#include "berth/base/names.h"
#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/exec/messages.h"
#include "berth/machine/devices/device_selection.h"

namespace berth::agent {

inline constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kLongest_ns = kMost / 4;  ///< Added to a clock it still fits.

/// What an integer may be, both ends included.
struct Bounds {
  std::int64_t least = 0, most = kMost;
};
constexpr Bounds at_least(std::int64_t least) {
  return {least, kMost};
}

/// The texts are UTF-8 as they stand, not bytes one by one.
struct Utf8 {};
inline constexpr Utf8 kUtf8;

/// The message that a codec visits: a writer changes nothing of it.
template <class Codec, class Message>
using Of = std::conditional_t<Codec::kWrites, const Message, Message>;

/// How a message travels: as one that nobody answers, as a call, or as the answer to the call of
/// that method.
struct Envelope {
  enum class Kind : std::uint8_t { notification, call, answer };
  Kind kind;
  std::string_view method;
};
template <class Message>
inline constexpr Envelope kEnvelope = Message::no_envelope_is_defined;
inline constexpr auto kNotification = Envelope::Kind::notification;
inline constexpr auto kCall = Envelope::Kind::call;
inline constexpr auto kAnswer = Envelope::Kind::answer;

class MessageWriter {
 public:
  static constexpr bool kWrites = true;
  /// Of one object without an envelope.
  MessageWriter() { json_.object(); }
  explicit MessageWriter(const Envelope& envelope);

  /// Integers, identifiers and durations take Bounds as `how`, enumerations their Names.
  template <class Value, class... How>
  void field(std::string_view name, const Value& value, const How&... how) {
    json_.key(name);
    write(value, how...);
  }
  /// Whether an optional field goes along.
  bool has(std::string_view /*name*/, bool wanted) const { return wanted; }
  void require(std::string_view /*name*/, bool /*good*/) {}
  /// An array of arrays, each of which `row` describes by its cells.
  template <class List, class Row>
  void rows(std::string_view name, const List& list, Row row) {
    json_.key(name).array();
    for (const auto& each : list) {
      json_.array();
      row(*this, each);
      json_.end();
    }
    json_.end();
  }
  template <class Value, class... How>
  void cell(const Value& value, const How&... how) {
    write(value, how...);
  }
  std::string take();

 private:
  void write(std::int64_t value, Bounds = {}) { json_.value(value); }
  void write(int value, Bounds) { json_.value(value); }
  void write(std::optional<int> value, Bounds) { json_.value(value.value_or(0)); }
  void write(bool value) { json_.value(value); }
  void write(double value) { json_.value(value); }
  void write(const std::string& bytes) { json_.bytes(bytes); }
  void write(const std::vector<std::string>& texts);
  void write(const std::vector<std::string>& texts, Utf8) { json_.list(texts); }
  void write(const Digest& digest) { json_.value(to_hex(digest)); }
  void write(const std::vector<int>& numbers, Bounds) { json_.list(numbers); }
  void write(const exec::Environment& environment);
  void write(const Resources& resources);
  void write(const machine::Block& block);
  void write(const machine::DeviceSelection& selection);
  void write(Duration time, Bounds) { json_.value(time.count()); }
  template <class Tag>
  void write(Id<Tag> id, Bounds) {
    json_.value(id.value);
  }
  template <class Enum, std::size_t kCount>
  void write(Enum value, const Names<Enum, kCount>& names) {
    json_.value(names.name(value));
  }

  JsonWriter json_;
  int open_ = 1;  // objects
};

class MessageReader {
 public:
  static constexpr bool kWrites = false;
  /// Reads the fields of `object`, which outlives the reader.
  explicit MessageReader(const Json& object) : object_(object) {}

  template <class Value, class... How>
  void field(const char* name, Value& value, const How&... how) {
    name_ = name;
    if (const Json* at = find(name))
      read(*at, value, how...);
    else
      refuse();
  }
  /// Whether an optional field is there.
  bool has(const char* name, bool /*wanted*/) const { return find(name) != nullptr; }
  void require(const char* name, bool good) {
    name_ = name;
    if (!good) refuse();
  }
  template <class Item, class Row>
  void rows(const char* name, std::vector<Item>& list, Row row) {
    name_ = name;
    const Json* array = find_array(name);
    for (std::size_t i = 0; array != nullptr && begin_row(*array, i); ++i) {
      row(*this, list.emplace_back());
      end_row();
    }
  }
  template <class Value, class... How>
  void cell(Value& value, const How&... how) {
    if (const Json* at = next_cell()) read(*at, value, how...);
  }

  /// The message, or invalid with the name of the first field that is not as wanted.
  template <class Message>
  Result<Message> finish(Message message) const {
    if (wrong_ != nullptr) return fail(ErrorKind::invalid, "field '{}' is not as expected", wrong_);
    return message;
  }

 private:
  const Json* find(const char* name) const;
  const Json* find_array(const char* name);
  bool begin_row(const Json& array, std::size_t i);
  void end_row();
  const Json* next_cell();
  void refuse() {
    if (wrong_ == nullptr) wrong_ = name_;
  }

  void read(const Json& at, std::int64_t& value, Bounds bounds = {});
  void read(const Json& at, int& value, Bounds bounds);
  void read(const Json& at, std::optional<int>& value, Bounds bounds) {
    read(at, value.emplace(), bounds);
  }
  void read(const Json& at, bool& value);
  void read(const Json& at, double& value);
  void read(const Json& at, std::string& bytes);
  void read(const Json& at, std::vector<std::string>& texts);
  void read(const Json& at, std::vector<std::string>& texts, Utf8);
  void read(const Json& at, Digest& digest);
  void read(const Json& at, std::vector<int>& numbers, Bounds bounds);
  void read(const Json& at, exec::Environment& environment);
  void read(const Json& at, Resources& resources);
  void read(const Json& at, machine::Block& block);
  void read(const Json& at, machine::DeviceSelection& selection);
  void read(const Json& at, Duration& time, Bounds bounds) {
    std::int64_t time_ns = 0;
    read(at, time_ns, bounds);
    time = Duration(time_ns);
  }
  template <class Tag>
  void read(const Json& at, Id<Tag>& id, Bounds bounds) {
    read(at, id.value, bounds);
  }
  template <class Enum, std::size_t kCount>
  void read(const Json& at, Enum& value, const Names<Enum, kCount>& names) {
    std::string name;
    read(at, name);
    const auto named = names.value(name);
    if (!named) return refuse();
    value = *named;
  }

  const Json& object_;
  const Json* row_ = nullptr;
  std::size_t cells_ = 0;        // read of the row
  const char* name_ = "";        // of the field that is being read
  const char* wrong_ = nullptr;  // the first that was refused
};

/// A line that has come, and what of it matters.
class Received {
 public:
  /// invalid: it is no JSON-RPC 2.0, or neither call, notification, answer nor error.
  static Result<Received> parse(std::string_view line);
  /// One object without an envelope. invalid: it is none.
  static Result<Received> parse_object(std::string_view text);
  Received(Received&&) noexcept;
  ~Received();

  bool is_answer() const { return is_answer_; }
  std::string_view method() const { return method_; }
  bool is(const Envelope& envelope) const {
    return (envelope.kind == kAnswer) == is_answer_ && envelope.method == method_;
  }
  /// What the other party refused with, where the line is an error.
  const std::optional<Error>& error() const { return error_; }
  const Json& fields() const { return *fields_; }
  /// invalid: nobody here takes a message of that name.
  std::unexpected<Error> unknown() const;

 private:
  Received();
  std::unique_ptr<Json> line_;
  const Json* fields_ = nullptr;
  std::string_view method_;
  bool is_answer_ = false;
  std::optional<Error> error_;
};

std::string write_error(const Error& error);

template <class Message>
std::string write_message(const Message& message) {
  MessageWriter writer(kEnvelope<Message>);
  describe(writer, message);
  return writer.take();
}

/// One object without an envelope.
template <class Message>
std::string write_object(const Message& message) {
  MessageWriter writer;
  describe(writer, message);
  return writer.take();
}

template <class Message>
Result<Message> read_fields(const Json& object) {
  MessageReader reader(object);
  Message message;
  describe(reader, message);
  return reader.finish(std::move(message));
}

/// invalid: the text is no object, or a field of it is not as wanted.
template <class Message>
Result<Message> read_object(std::string_view text) {
  BERTH_ASSIGN(const auto object, Received::parse_object(text));
  return read_fields<Message>(object.fields());
}

/// The one of the Messages that the line is, converted to All; nullopt where it is none of them.
template <class All, class... Messages>
std::optional<Result<All>> read_one_of(const Received& received) {
  std::optional<Result<All>> one;
  const auto read = [&]<class Message>(const Message*) {
    if (!received.is(kEnvelope<Message>)) return false;
    one = read_fields<Message>(received.fields());
    return true;
  };
  (void)(... || read(static_cast<const Messages*>(nullptr)));
  return one;
}

}  // namespace berth::agent
