#include "berth/agent/protocol/codec.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "berth/base/text.h"
#include "berth/machine/block.h"

namespace berth::agent {
namespace {

constexpr int kOurError = -32000;  // the first code that JSON-RPC leaves to its users

/// The text under `name`; nullopt where there is none.
std::optional<std::string_view> text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get_ref<const std::string&>();
}

/// The object under `name`, or nullptr.
const Json* object_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

/// The bytes whose numbers the characters of the text are; false: one is greater than any byte.
bool bytes_of(const std::string& text, std::string& bytes) {
  bytes.resize(text.size());
  char* out = bytes.data();
  for (std::size_t i = 0; i < text.size(); ++i) {  // valid UTF-8, says the parser
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80)
      *out++ = text[i];
    else if (byte == 0xC2 || byte == 0xC3)
      *out++ = static_cast<char>((byte << 6) | (text[++i] & 0x3F));
    else
      return false;
  }
  bytes.resize(static_cast<std::size_t>(out - bytes.data()));
  return true;
}

Result<Error> error_of(const Json& object) {
  Error error;
  MessageReader reader(object);
  reader.field("message", error.message);
  const Json* data = object_of(object, "data");
  const auto kind = data != nullptr ? text_of(*data, "kind") : std::nullopt;
  error.kind = kErrorKindNames.value(kind.value_or("")).value_or(ErrorKind::io);
  return reader.finish(std::move(error));
}

}  // namespace

// The writer.

MessageWriter::MessageWriter(const Envelope& envelope) : open_(2) {
  const auto& [kind, method] = envelope;
  json_.object().add("jsonrpc", "2.0");
  if (kind != kNotification) json_.add("id", method);
  if (kind != kAnswer) json_.add("method", method);
  json_.key(kind == kAnswer ? "result" : "params").object();
}

void MessageWriter::write(const std::vector<std::string>& texts) {
  json_.array();
  for (const auto& text : texts) json_.bytes(text);
  json_.end();
}

void MessageWriter::write(const exec::Environment& environment) {
  json_.array();
  for (const auto& [name, value] : environment) json_.bytes(name + "=" + value);
  json_.end();
}

void MessageWriter::write(const Resources& resources) {
  write(machine::Block{resources, {}, {}});
}

void MessageWriter::write(const machine::Block& block) {
  json_.bytes(machine::write_block(block));
}

void MessageWriter::write(const machine::DeviceSelection& selection) {
  json_.bytes(machine::to_json(selection));
}

std::string MessageWriter::take() {
  for (; open_ > 0; --open_) json_.end();
  return json_.take();
}

std::string write_error(const Error& error) {
  JsonWriter json;
  json.object().add("jsonrpc", "2.0").key("id").raw("null");
  json.key("error").object().add("code", kOurError).key("message").bytes(error.message);
  json.key("data").object().add("kind", name(error.kind)).end().end().end();
  return json.take();
}

// The reader.

const Json* MessageReader::find(const char* name) const {
  const auto found = object_.find(name);
  return found != object_.end() ? &*found : nullptr;
}

const Json* MessageReader::find_array(const char* name) {
  const Json* array = find(name);
  if (array != nullptr && array->is_array()) return array;
  refuse();
  return nullptr;
}

bool MessageReader::begin_row(const Json& array, std::size_t i) {
  if (i == array.size()) return false;
  row_ = &array[i];
  cells_ = 0;
  if (!row_->is_array()) refuse();
  return row_->is_array();
}

const Json* MessageReader::next_cell() {
  if (cells_ < row_->size()) return &(*row_)[cells_++];
  refuse();
  return nullptr;
}

void MessageReader::end_row() {
  if (cells_ != row_->size()) refuse();
}

void MessageReader::read(const Json& at, std::int64_t& value, Bounds bounds) {
  const bool fits =
      at.is_number_integer() &&
      !(at.is_number_unsigned() && at.get<std::uint64_t>() > static_cast<std::uint64_t>(kMost));
  const std::int64_t number = fits ? at.get<std::int64_t>() : 0;
  if (!fits || number < bounds.least || number > bounds.most) return refuse();
  value = number;
}

void MessageReader::read(const Json& at, int& value, Bounds bounds) {
  std::int64_t number = value;
  read(at, number, bounds);
  value = static_cast<int>(number);
}

void MessageReader::read(const Json& at, bool& value) {
  if (!at.is_boolean()) return refuse();
  value = at.get<bool>();
}

void MessageReader::read(const Json& at, double& value) {
  if (!at.is_number()) return refuse();
  value = at.get<double>();
}

void MessageReader::read(const Json& at, std::string& bytes) {
  if (!at.is_string() || !bytes_of(at.get_ref<const std::string&>(), bytes)) refuse();
}

void MessageReader::read(const Json& at, std::vector<std::string>& texts) {
  if (!at.is_array()) return refuse();
  for (const Json& item : at) read(item, texts.emplace_back());
}

void MessageReader::read(const Json& at, std::vector<std::string>& texts, Utf8) {
  if (!at.is_array()) return refuse();
  for (const Json& item : at) {
    if (!item.is_string()) return refuse();
    texts.push_back(item.get_ref<const std::string&>());
  }
}

void MessageReader::read(const Json& at, Digest& digest) {
  std::string text;
  read(at, text);
  auto parsed = parse_digest(text);
  if (!parsed) return refuse();
  digest = *std::move(parsed);
}

void MessageReader::read(const Json& at, std::vector<int>& numbers, Bounds bounds) {
  if (!at.is_array()) return refuse();
  for (const Json& item : at) read(item, numbers.emplace_back(), bounds);
}

void MessageReader::read(const Json& at, exec::Environment& environment) {
  std::vector<std::string> texts;
  read(at, texts);
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) return refuse();
    environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
}

void MessageReader::read(const Json& at, Resources& resources) {
  machine::Block block;
  read(at, block);
  resources = std::move(block.resources);
}

void MessageReader::read(const Json& at, machine::Block& block) {
  std::string text;
  read(at, text);
  auto parsed = machine::read_block(text);
  if (!parsed) return refuse();
  block = *std::move(parsed);
}

void MessageReader::read(const Json& at, machine::DeviceSelection& selection) {
  std::string text;
  read(at, text);
  auto parsed = machine::selection_of_json(text);
  if (!parsed) return refuse();
  selection = *std::move(parsed);
}

// What has come.

Received::Received() : line_(std::make_unique<Json>()) {}
Received::Received(Received&&) noexcept = default;
Received::~Received() = default;

Result<Received> Received::parse(std::string_view line) {
  Received received;
  BERTH_ASSIGN(*received.line_, parse_json(line));
  const Json& message = *received.line_;
  if (!message.is_object() || text_of(message, "jsonrpc") != "2.0")
    return fail(ErrorKind::invalid, "no JSON-RPC 2.0: {}", clip(line));
  for (const bool is_answer : {false, true}) {
    const auto method = text_of(message, is_answer ? "id" : "method");
    received.fields_ = object_of(message, is_answer ? "result" : "params");
    if (!method || received.fields_ == nullptr) continue;
    received.method_ = *method;
    received.is_answer_ = is_answer;
    return received;
  }
  const Json* error = object_of(message, "error");
  if (error == nullptr)
    return fail(ErrorKind::invalid, "neither message nor answer: {}", clip(line));
  BERTH_ASSIGN(received.error_, error_of(*error));
  return received;
}

Result<Received> Received::parse_object(std::string_view text) {
  Received received;
  BERTH_ASSIGN(*received.line_, parse_json(text));
  if (!received.line_->is_object()) return fail(ErrorKind::invalid, "no object: {}", clip(text));
  received.fields_ = received.line_.get();
  return received;
}

std::unexpected<Error> Received::unknown() const {
  return fail(ErrorKind::invalid, "no such {}: '{}'", is_answer_ ? "call" : "method",
              clip(method_));
}

}  // namespace berth::agent
