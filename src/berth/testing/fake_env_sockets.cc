// The descriptors of FakeEnv that have another end: Unix sockets, and when anything is ready.
#include <algorithm>

#include "berth/testing/fake_env.h"

namespace berth::os {

Result<Fd> FakeEnv::listen_local(const std::string& path) {
  BERTH_TRY(ask("listen_local"));
  machine_.files[path] = "";
  return add({.kind = Open::Kind::listener, .machine = &machine_, .path = path});
}

Result<Fd> FakeEnv::connect_local(const std::string& path) {
  BERTH_TRY(ask("connect_local"));
  const auto listener = std::ranges::find_if(world_.open, [&](const auto& entry) {
    return entry.second.kind == Open::Kind::listener && entry.second.machine == &machine_ &&
           entry.second.path == path;
  });
  if (listener == world_.open.end() || !machine_.files.contains(path))
    return fail(ErrorKind::not_found, "{}: no process listens", path);
  const auto [ours, theirs] = join(*listener->second.owner);
  listener->second.waits.push_back(theirs);
  return Fd(*this, ours);
}

std::pair<int, int> FakeEnv::join(FakeEnv& other) {
  const std::pair both{world_.next_fd, world_.next_fd + 1};
  world_.next_fd += 2;
  world_.open.emplace(both.first,
                      Open{.kind = Open::Kind::socket, .owner = this, .peer = both.second});
  world_.open.emplace(both.second,
                      Open{.kind = Open::Kind::socket, .owner = &other, .peer = both.first});
  return both;
}

Result<std::optional<Fd>> FakeEnv::accept_local(const Fd& listener) {
  BERTH_TRY(ask("accept_local"));
  auto& waits = at(listener.number()).waits;
  if (waits.empty()) return std::nullopt;
  Fd first(*this, waits.front());
  waits.erase(waits.begin());
  return first;
}

Result<std::optional<std::size_t>> FakeEnv::write_some(const Fd& fd, std::string_view bytes) {
  BERTH_TRY(ask("write_some"));
  const auto peer = world_.open.find(at(fd.number()).peer);
  if (peer == world_.open.end()) return fail(ErrorKind::io, "write: the other end is closed");
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
  const auto found = world_.open.find(fd);
  BERTH_ASSERT(found != world_.open.end());
  const Open gone = std::move(found->second);
  world_.open.erase(found);
  if (gone.kind == Open::Kind::lock)
    if (const auto lock = machine_.locked.find(gone.path);
        lock != machine_.locked.end() && --lock->second <= 0)
      machine_.locked.erase(lock);
  if (const auto peer = world_.open.find(gone.peer); peer != world_.open.end())
    peer->second.peer = -1;
  for (const int waits : gone.waits)
    if (world_.open.contains(waits)) close(waits);
}

bool FakeEnv::ready(const Open& open, bool readable) const {
  switch (open.kind) {
    case Open::Kind::listener: return !open.waits.empty();
    case Open::Kind::socket: {
      const auto peer = world_.open.find(open.peer);
      if (peer == world_.open.end()) return true;
      return readable ? !open.unread.empty() : peer->second.unread.size() < socket_room;
    }
    case Open::Kind::background: return !open.due.empty() && open.due.front() <= world_.now;
    default: return open.pid != 0 && world_.processes.at(open.pid).over;
  }
}

}  // namespace berth::os
