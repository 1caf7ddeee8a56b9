#include "berth/run/log_file.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>
#include <optional>

namespace berth::run {
namespace {

constexpr std::uint32_t kMagic = 0x4c545242;  // "BRTL"
constexpr std::size_t kHeadSize = 32;
constexpr std::size_t kLargestFrame = 16U << 20;
constexpr std::int64_t kSmallOutput = 1 << 20;  // an attempt that prints more gets its own file
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
  std::uint8_t unused[10] = {};
};
static_assert(sizeof(Head) == kHeadSize);

void put(std::string& buffer, const exec::Output& output, FrameKind kind) {
  Head head;
  head.length = static_cast<std::uint32_t>(output.bytes.size());
  head.token = output.token.value;
  head.task = static_cast<std::uint32_t>(output.task.value);
  head.stream = static_cast<std::uint8_t>(output.stream);
  head.kind = static_cast<std::uint8_t>(kind);
  buffer.append(reinterpret_cast<const char*>(&head), kHeadSize);
  buffer += output.bytes;
}

/// The head at the front of `bytes`; nullopt where none stands whole and sound.
std::optional<Head> head_of(std::string_view bytes) {
  Head head;
  if (bytes.size() < kHeadSize) return std::nullopt;
  std::memcpy(&head, bytes.data(), kHeadSize);
  if (head.magic != kMagic || head.length > kLargestFrame) return std::nullopt;
  return head;
}

std::string main_file(const std::string& directory) {
  return directory + "/output.log";
}

std::string own_file(const std::string& directory, Token token) {
  return fmt::format("{}/output-{}.log", directory, token.value);
}

/// The offset after the last whole frame.
Result<std::int64_t> sound_end(os::Env& env, const os::Fd& file, std::int64_t size) {
  std::int64_t offset = 0;
  while (offset < size) {
    BERTH_ASSIGN(const std::string bytes, env.read_at(file, offset, kHeadSize));
    const auto head = head_of(bytes);
    const std::int64_t next =
        head ? offset + static_cast<std::int64_t>(kHeadSize + head->length) : size + 1;
    if (next > size) break;
    offset = next;
  }
  return offset;
}

}  // namespace

Result<LogWriter> LogWriter::open(os::Env& env, std::string directory) {
  LogWriter writer(env, std::move(directory));
  const std::string path = main_file(writer.directory_);
  BERTH_ASSIGN(writer.file_, env.open_append(path, 0600));
  BERTH_ASSIGN(const os::FileStatus status, env.status(path));
  BERTH_ASSIGN(writer.end_, sound_end(env, writer.file_, status.size));
  if (writer.end_ < status.size) BERTH_TRY(env.truncate(writer.file_, writer.end_));
  return writer;
}

Status LogWriter::open_own(const exec::Output& output) {
  exec::Output pointer = output;
  pointer.bytes.clear();
  put(buffer_, pointer, FrameKind::goes_on_in_own_file);
  end_ += static_cast<std::int64_t>(kHeadSize);
  BERTH_ASSIGN(os::Fd file, env_->open_append(own_file(directory_, output.token), 0600));
  own_.emplace(output.token, Own{std::move(file), {}});
  return {};
}

void LogWriter::append(const exec::Output& output) {
  std::int64_t& written = written_[output.token];
  written += static_cast<std::int64_t>(output.bytes.size());
  if (written > kSmallOutput && !own_.contains(output.token))
    if (auto status = open_own(output); !status && failure_) failure_ = status;
  if (const auto own = own_.find(output.token); own != own_.end()) {
    put(own->second.buffer, output, FrameKind::bytes);
  } else {
    put(buffer_, output, FrameKind::bytes);
    end_ += static_cast<std::int64_t>(kHeadSize + output.bytes.size());
  }
}

Status LogWriter::flush() {
  BERTH_TRY(failure_);
  for (auto& [token, own] : own_) {
    if (own.buffer.empty()) continue;
    BERTH_TRY(env_->write_all(own.file, own.buffer));
    own.buffer.clear();
  }
  if (buffer_.empty()) return {};
  BERTH_TRY(env_->write_all(file_, buffer_));
  buffer_.clear();
  return {};
}

void LogWriter::close(Token token) {
  written_.erase(token);
  if (const auto own = own_.find(token); own != own_.end()) {
    if (auto status = env_->write_all(own->second.file, own->second.buffer); !status && failure_)
      failure_ = status;
    own_.erase(own);
  }
}

Result<LogReader> LogReader::open(os::Env& env, std::string directory) {
  LogReader reader(env, std::move(directory));
  BERTH_ASSIGN(reader.file_, env.open_read(main_file(reader.directory_)));
  return reader;
}

Result<std::vector<LogFrame>> LogReader::read(Token token) {
  return read_file(file_, offset_, token);
}

Result<std::vector<LogFrame>> LogReader::read_file(const os::Fd& file, std::int64_t& offset,
                                                   Token token) {
  std::vector<LogFrame> frames;
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
        frames.push_back({{head->task},
                          of,
                          static_cast<exec::Stream>(head->stream),
                          std::string(rest.substr(kHeadSize, head->length))});
      rest.remove_prefix(kHeadSize + head->length);
    }
    offset += static_cast<std::int64_t>(before - rest.size());
    if (before == rest.size()) break;
  }
  if (&offset != &offset_) return frames;
  for (auto& [own, own_offset] : own_offsets_) {
    if (token.value != 0 && own != token) continue;
    const auto own_fd = env_->open_read(own_file(directory_, own));
    if (!own_fd) continue;
    BERTH_ASSIGN(auto more, read_file(*own_fd, own_offset, own));
    std::ranges::move(more, std::back_inserter(frames));
  }
  return frames;
}

}  // namespace berth::run
