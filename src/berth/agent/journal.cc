#include "berth/agent/journal.h"

#include <algorithm>

#include "berth/agent/layout.h"
#include "berth/agent/protocol/protocol.h"
#include "berth/base/units.h"
#include "berth/os/failpoint.h"

namespace berth::agent {
namespace {

constexpr std::int64_t kFileEnough = 1 << 20;
constexpr std::size_t kFileMost = std::size_t{1} << 30;
constexpr std::string_view kName = "journal.";

}  // namespace

void Journal::append(const exec::FromWorker& message) {
  unwritten_ += encode(++last_, message);
  unwritten_ += '\n';
}

Status Journal::acknowledge(std::int64_t up_to) {
  if (up_to > last_)
    return fail(ErrorKind::invalid, "message {} was acknowledged, but the last one is {}", up_to,
                last_);
  if (up_to <= acknowledged_) return {};
  acknowledged_ = up_to;
  unwritten_ += encode(Call(Acknowledge{up_to}));
  unwritten_ += '\n';
  return {};
}

bool Journal::begin_file() {
  std::string path = fmt::format("{}/{}{}", directory_, kName, made_ + 1);
  auto fd = env_->open_append(path, 0600);
  if (!fd) return false;
  ++made_;
  const std::int64_t begin = end_written();
  files_.push_back({std::move(path), *std::move(fd), begin, 0, last_});
  return true;
}

void Journal::write() {
  if (unwritten_.empty()) return;
  if (!put_unwritten()) {
    if (acknowledged_ == last_) forget();
    return;
  }
  os::failpoint("agent journal written");
  files_.back().size += static_cast<std::int64_t>(unwritten_.size());
  files_.back().last = last_;
  unwritten_.clear();
  drop_acknowledged();
}

bool Journal::put_unwritten() {
  const bool full = files_.empty() || torn_ || files_.back().size >= kFileEnough;
  if (full && !begin_file()) return false;
  torn_ = false;
  const File& file = files_.back();
  if (env_->write_all(file.fd, unwritten_)) return true;
  torn_ = !env_->truncate(file.fd, file.size);
  return false;
}

/// Otherwise messages that nobody asks for any more would wait for room that they take themselves.
void Journal::forget() {
  gone_ = end();
  remove();
  unwritten_.clear();
}

void Journal::drop_acknowledged() {
  while (files_.size() > 1 && files_.front().last <= acknowledged_) {
    gone_ = files_.front().begin + files_.front().size;
    (void)env_->remove_file(files_.front().path);
    files_.pop_front();
  }
}

Result<std::string> Journal::read_lines(std::int64_t position, std::size_t enough) const {
  for (;; enough *= 2) {
    BERTH_ASSIGN(std::string text, read(position, enough));
    if (text.empty()) return text;
    const auto end = text.rfind('\n');
    if (end == std::string::npos) continue;  // one long line
    text.resize(end + 1);
    return text;
  }
}

/// At most `most` bytes, up to a file's end, which is a line's end too.
Result<std::string> Journal::read(std::int64_t position, std::size_t most) const {
  if (position >= end_written())
    return unwritten_.substr(static_cast<std::size_t>(position - end_written()), most);
  const auto after = std::ranges::upper_bound(files_, position, {}, &File::begin);
  BERTH_ASSERT(after != files_.begin());
  const File& file = *(after - 1);
  const std::int64_t offset = position - file.begin;
  return env_->read_at(file.fd, offset,
                       std::min(most, static_cast<std::size_t>(file.size - offset)));
}

void Journal::remove() {
  for (const auto& file : files_) (void)env_->remove_file(file.path);
  files_.clear();
}

Result<UnacknowledgedJournal> read_journal(os::Env& env, const std::string& directory) {
  BERTH_ASSIGN(const auto names, env.list(directory));
  BERTH_ASSIGN(const os::Fd lock, env.lock(lock_file(directory), false));
  std::vector<std::int64_t> files;
  for (const auto& name : names)
    if (name.starts_with(kName))
      if (const auto number = parse_integer(std::string_view(name).substr(kName.size())))
        files.push_back(*number);
  std::ranges::sort(files);
  UnacknowledgedJournal unacknowledged;
  std::int64_t last = 0, acknowledged = 0;
  for (const auto number : files) {
    BERTH_ASSIGN(const std::string text,
                 env.read_file(fmt::format("{}/{}{}", directory, kName, number), kFileMost));
    std::string_view rest = text;
    for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      auto answer = decode_answer(rest.substr(0, end));
      rest.remove_prefix(end + 1);
      if (!answer) {
        ++unacknowledged.unreadable;
      } else if (auto* numbered = std::get_if<Numbered>(&*answer)) {
        if (numbered->number <= last) continue;  // written again after a failure
        last = numbered->number;
        unacknowledged.messages.push_back(std::move(*numbered));
      } else if (const auto* all = std::get_if<Acknowledge>(&*answer)) {
        acknowledged = std::max(acknowledged, all->up_to);
      }
    }
  }
  std::erase_if(unacknowledged.messages,
                [&](const Numbered& one) { return one.number <= acknowledged; });
  return unacknowledged;
}

}  // namespace berth::agent
