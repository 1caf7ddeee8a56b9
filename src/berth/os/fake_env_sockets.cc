// The descriptors of FakeEnv that have another end: Unix sockets, and when anything is ready.
#include <algorithm>

#include "berth/os/fake_env.h"

namespace berth::os {

Result<Fd> FakeEnv::listen_local(const std::string& path) {
  BERTH_TRY(ask("listen_local"));
  files_[path] = "";
  return add({Open::Kind::listener, path, 0});
}

Result<Fd> FakeEnv::connect_local(const std::string& path) {
  BERTH_TRY(ask("connect_local"));
  const auto listener = std::ranges::find_if(open_, [&](const auto& entry) {
    return entry.second.kind == Open::Kind::listener && entry.second.path == path;
  });
  if (listener == open_.end() || !files_.contains(path))
    return fail(ErrorKind::not_found, "{}: nobody listens", path);
  const int theirs = next_fd_++;
  Fd ours = add({Open::Kind::socket, path, 0, theirs});
  open_.emplace(theirs, Open{Open::Kind::socket, path, 0, ours.number()});
  listener->second.waits.push_back(theirs);
  return ours;
}

Result<std::optional<Fd>> FakeEnv::accept_local(const Fd& listener) {
  BERTH_TRY(ask("accept_local"));
  auto& waits = open_.at(listener.number()).waits;
  if (waits.empty()) return std::nullopt;
  Fd first(*this, waits.front());
  waits.erase(waits.begin());
  return first;
}

Result<std::optional<std::size_t>> FakeEnv::write_some(const Fd& fd, std::string_view bytes) {
  BERTH_TRY(ask("write_some"));
  const auto peer = open_.find(open_.at(fd.number()).peer);
  if (peer == open_.end()) return fail(ErrorKind::io, "write: the other end is closed");
  std::string& unread = peer->second.unread;
  if (unread.size() >= socket_room) return std::nullopt;
  const std::size_t count = std::min(bytes.size(), socket_room - unread.size());
  unread += bytes.substr(0, count);
  return count;
}

std::optional<std::size_t> FakeEnv::read_socket(Open& open, std::span<char> buffer) {
  const std::size_t count = std::min(buffer.size(), open.unread.size());
  if (count == 0 && open.peer >= 0) return std::nullopt;
  std::copy_n(open.unread.begin(), count, buffer.begin());
  open.unread.erase(0, count);
  return count;
}

void FakeEnv::close(int fd) noexcept {
  const auto found = open_.find(fd);
  BERTH_ASSERT(found != open_.end());
  const Open gone = std::move(found->second);
  open_.erase(found);
  if (gone.kind == Open::Kind::lock) locked_.erase(gone.path);
  if (const auto peer = open_.find(gone.peer); peer != open_.end()) peer->second.peer = -1;
  for (const int waits : gone.waits) close(waits);
}

bool FakeEnv::ready(const Open& open, bool readable) const {
  switch (open.kind) {
    case Open::Kind::listener: return !open.waits.empty();
    case Open::Kind::socket: {
      const auto peer = open_.find(open.peer);
      if (peer == open_.end()) return true;
      return readable ? !open.unread.empty() : peer->second.unread.size() < socket_room;
    }
    case Open::Kind::aside: return !open.due.empty() && open.due.front() <= now_;
    default: return open.pid != 0 && processes_.at(open.pid).over;
  }
}

}  // namespace berth::os
