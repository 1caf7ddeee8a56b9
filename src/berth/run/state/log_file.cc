#include "berth/run/state/log_file.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>
#include <deque>
#include <optional>

#include "berth/base/units.h"
#include "berth/run/state/layout.h"

namespace berth::run {
namespace {

constexpr std::uint32_t kMagic = 0x4c545242;  // "BRTL"
constexpr std::size_t kHeadSize = 32;
constexpr std::size_t kLargestFrame = 16U << 20;
constexpr std::int64_t kSmallOutput = 1 << 20;  // an attempt that prints more gets its own file
constexpr std::string_view kOwnBegin = "output-", kOwnEnd = ".log";
constexpr std::size_t kReadStep = 4U << 20;

enum class FrameKind : std::uint8_t { bytes = 0, goes_on_in_own_file = 1 };

static_assert(std::endian::native == std::endian::little, "the log is little-endian");

struct Head {
  std::uint32_t magic = kMagic;
  std::uint32_t length = 0;
  std::int64_t token = 0;
  std::uint32_t task = 0;
  std::uint8_t stream = 0;
  std::uint8_t kind = 0;
  std::uint8_t unused[2] = {};
  std::int64_t number = 0;
};
static_assert(sizeof(Head) == kHeadSize);

void put_frame(std::string& buffer, const exec::Output& output, std::string_view bytes,
               FrameKind kind, std::int64_t number = 0) {
  Head head;
  head.length = static_cast<std::uint32_t>(bytes.size());
  head.token = output.token.value;
  head.task = static_cast<std::uint32_t>(output.task.value);
  head.stream = static_cast<std::uint8_t>(output.stream);
  head.kind = static_cast<std::uint8_t>(kind);
  head.number = number;
  buffer.append(reinterpret_cast<const char*>(&head), kHeadSize);
  buffer += bytes;
}

/// As one frame, or as many as it takes, of which the last tells that all of it is there.
void put(std::string& buffer, const exec::Output& output) {
  std::string_view rest = output.bytes;
  do {
    const auto part = rest.substr(0, kLargestFrame);
    rest.remove_prefix(part.size());
    put_frame(buffer, output, part, FrameKind::bytes, rest.empty() ? output.number : 0);
  } while (!rest.empty());
}

/// The head at the front of `bytes`; nullopt where none stands whole and sound.
std::optional<Head> head_of(std::string_view bytes) {
  Head head;
  if (bytes.size() < kHeadSize) return std::nullopt;
  std::memcpy(&head, bytes.data(), kHeadSize);
  if (head.magic != kMagic || head.length > kLargestFrame) return std::nullopt;
  return head;
}

std::string own_file(const std::string& directory, Token token) {
  return fmt::format("{}/{}{}{}", directory, kOwnBegin, token.value, kOwnEnd);
}

}  // namespace

Result<LogWriter> LogWriter::open(os::Env& env, std::string directory) {
  LogWriter writer(env, std::move(directory));
  BERTH_ASSIGN(writer.main_, writer.open_sink(output_log(writer.directory_)));
  BERTH_ASSIGN(const auto names, env.list(writer.directory_));
  for (const auto& name : names) {
    std::string_view token = name;
    if (!token.starts_with(kOwnBegin) || !token.ends_with(kOwnEnd)) continue;
    token.remove_prefix(kOwnBegin.size());
    token.remove_suffix(kOwnEnd.size());
    if (const auto number = parse_integer(token)) writer.begun_.insert(Token{*number});
  }
  return writer;
}

Result<LogWriter::Sink> LogWriter::open_sink(const std::string& path) {
  Sink sink;
  BERTH_ASSIGN(sink.file, env_->open_append(path, 0600));
  BERTH_ASSIGN(const os::FileStatus status, env_->status(path));
  BERTH_ASSIGN(sink.size, find_sound_end(sink.file, status.size));
  if (sink.size < status.size) BERTH_TRY(env_->truncate(sink.file, sink.size));
  return sink;
}

/// The offset after the last whole frame. What each attempt has logged by then is remembered.
Result<std::int64_t> LogWriter::find_sound_end(const os::Fd& file, std::int64_t size) {
  std::int64_t offset = 0;
  while (offset < size) {
    BERTH_ASSIGN(const std::string bytes, env_->read_at(file, offset, kHeadSize));
    const auto head = head_of(bytes);
    const std::int64_t next =
        head ? offset + static_cast<std::int64_t>(kHeadSize + head->length) : size + 1;
    if (next > size) break;
    if (head->number > 0) last_[head->token] = head->number;
    offset = next;
  }
  return offset;
}

Status LogWriter::open_own(const exec::Output& output) {
  BERTH_ASSIGN(Sink own, open_sink(own_file(directory_, output.token)));
  put_frame(main_.buffer, output, {}, FrameKind::goes_on_in_own_file);
  own_.emplace(output.token, std::move(own));
  return {};
}

void LogWriter::remember(Status status) {
  if (!status && failure_) failure_ = std::move(status);
}

void LogWriter::append(const exec::Output& output) {
  std::int64_t& written = written_[output.token];
  written += static_cast<std::int64_t>(output.bytes.size());
  const bool much = written > kSmallOutput || begun_.contains(output.token);
  if (much && !own_.contains(output.token)) remember(open_own(output));
  if (const auto last = last_.find(output.token.value);
      last != last_.end() && output.number > 0 && output.number <= last->second)
    return;
  const auto own = own_.find(output.token);
  put(own == own_.end() ? main_.buffer : own->second.buffer, output);
}

std::int64_t LogWriter::end() const {
  return main_.size + static_cast<std::int64_t>(main_.buffer.size());
}

Status LogWriter::write_out(Sink& sink) {
  if (sink.buffer.empty()) return {};
  if (auto status = env_->write_all(sink.file, sink.buffer); !status) {
    remember(env_->truncate(sink.file, sink.size));  // a part may be there
    return status;
  }
  sink.size += static_cast<std::int64_t>(sink.buffer.size());
  sink.buffer.clear();
  return {};
}

Status LogWriter::flush() {
  BERTH_TRY(failure_);
  // Killed in between, what is told again follows a part of its beginning, and none of its middle.
  BERTH_TRY(write_out(main_));
  for (auto& [token, own] : own_) BERTH_TRY(write_out(own));
  std::erase_if(own_, [](const auto& each) { return each.second.closed; });
  return {};
}

void LogWriter::close(Token token) {
  written_.erase(token);
  if (const auto own = own_.find(token); own != own_.end()) own->second.closed = true;
}

Result<LogReader> LogReader::open(os::Env& env, std::string directory) {
  LogReader reader(env, std::move(directory));
  BERTH_ASSIGN(reader.file_, env.open_read(output_log(reader.directory_)));
  return reader;
}

Status LogReader::read(Token token, const std::function<void(LogFrame)>& show) {
  BERTH_TRY(read_file(file_, offset_, token, show));
  for (auto& [own, own_offset] : own_offsets_) {
    if (token.value != 0 && own != token) continue;
    const auto file = env_->open_read(own_file(directory_, own));
    if (file) BERTH_TRY(read_file(*file, own_offset, own, show));
  }
  return {};
}

Result<std::string> LogReader::last(Token token, exec::Stream stream, std::size_t most) {
  std::string last;
  bool goes_on = false;  // in a file of its own
  BERTH_TRY(find_last(file_, offset_, token, stream, most, last, goes_on));
  if (goes_on)
    if (const auto own = env_->open_read(own_file(directory_, token))) {
      std::string rest;
      BERTH_TRY(find_last(*own, 0, token, stream, most, rest, goes_on));
      last += rest;
    }
  if (last.size() > most) last.erase(0, last.size() - most);
  return last;
}

/// Reads the heads of all frames, and the bytes of the last ones.
Status LogReader::find_last(const os::Fd& file, std::int64_t offset, Token token,
                            exec::Stream stream, std::size_t most, std::string& last,
                            bool& goes_on) {
  std::deque<std::pair<std::int64_t, std::size_t>> places;
  std::size_t held = 0;
  for (;;) {
    BERTH_ASSIGN(const std::string bytes, env_->read_at(file, offset, kHeadSize));
    const auto head = head_of(bytes);
    if (!head) break;
    offset += kHeadSize;
    if (Token{head->token} == token) {
      if (static_cast<FrameKind>(head->kind) == FrameKind::goes_on_in_own_file) goes_on = true;
      if (static_cast<FrameKind>(head->kind) == FrameKind::bytes &&
          static_cast<exec::Stream>(head->stream) == stream) {
        places.emplace_back(offset, head->length);
        held += head->length;
      }
      while (!places.empty() && held - places.front().second >= most) {
        held -= places.front().second;
        places.pop_front();
      }
    }
    offset += head->length;
  }
  for (const auto& [at, length] : places) {
    BERTH_ASSIGN(const std::string bytes, env_->read_at(file, at, length));
    last += bytes;
  }
  return {};
}

Status LogReader::read_file(const os::Fd& file, std::int64_t& offset, Token token,
                            const std::function<void(LogFrame)>& show) {
  for (;;) {
    BERTH_ASSIGN(std::string bytes, env_->read_at(file, offset, kReadStep));
    std::string_view rest = bytes;
    if (const auto head = head_of(rest); head && head->length + kHeadSize > rest.size()) {
      BERTH_ASSIGN(bytes, env_->read_at(file, offset, head->length + kHeadSize));
      rest = bytes;
    }
    const std::size_t before = rest.size();
    while (const auto head = head_of(rest)) {
      if (rest.size() < kHeadSize + head->length) break;
      const Token of{head->token};
      if (static_cast<FrameKind>(head->kind) == FrameKind::goes_on_in_own_file)
        own_offsets_.try_emplace(of, 0);
      else if (token.value == 0 || of == token)
        show({{head->task},
              of,
              static_cast<exec::Stream>(head->stream),
              std::string(rest.substr(kHeadSize, head->length))});
      rest.remove_prefix(kHeadSize + head->length);
    }
    offset += static_cast<std::int64_t>(before - rest.size());
    if (before == rest.size()) return {};
  }
}

}  // namespace berth::run
