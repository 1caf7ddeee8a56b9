#include "berth/os/fake_env.h"

#include <algorithm>
#include <csignal>

namespace berth::os {
namespace {

/// A path, or one below it, seen from another place.
template <class Map>
void move_keys(Map& map, const std::string& from, const std::string& to) {
  for (auto at = map.lower_bound(from); at != map.end() && at->first.starts_with(from);) {
    auto node = map.extract(at++);
    if (node.key() == from || node.key()[from.size()] == '/')
      node.key() = to + node.key().substr(from.size());
    map.insert(std::move(node));
  }
}

}  // namespace

void FakeEnv::put(const std::string& path, std::string text) {
  files_[path] = std::move(text);
}

const std::string* FakeEnv::find(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

std::size_t FakeEnv::processes_alive() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(processes_, [](const auto& entry) { return !entry.second.over; }));
}

Status FakeEnv::ask(std::string_view call) {
  if (fault)
    if (auto error = fault(call)) return std::unexpected(*std::move(error));
  return {};
}

Fd FakeEnv::add(Open open) {
  const int number = next_fd_++;
  open_.emplace(number, std::move(open));
  return Fd(*this, number);
}

Wall FakeEnv::wall() {
  constexpr auto kStart = std::chrono::seconds(1'800'000'000);
  return Wall(kStart + now_.time_since_epoch() + wall_skew);
}

Result<std::string> FakeEnv::read_file(const std::string& path, std::size_t limit) {
  BERTH_TRY(ask("read_file"));
  const std::string* text = find(path);
  if (text == nullptr) return fail(ErrorKind::not_found, "{}: no such file", path);
  if (text->size() > limit) return fail(ErrorKind::invalid, "{}: too large", path);
  return *text;
}

Status FakeEnv::replace_file(const std::string& path, std::string_view text, mode_t) {
  BERTH_TRY(ask("replace_file"));
  files_[path] = text;
  return {};
}

Status FakeEnv::write_into(const std::string& path, std::string_view text) {
  BERTH_TRY(ask("write_into"));
  if (!files_.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  files_[path] = text;
  return {};
}

Result<std::vector<std::string>> FakeEnv::list(const std::string& directory) {
  BERTH_TRY(ask("list"));
  std::set<std::string> names;
  const std::string prefix = directory + "/";
  const auto gather = [&](const std::string& path) {
    if (path.starts_with(prefix))
      names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
  };
  for (const auto& [path, text] : files_) gather(path);
  for (const auto& path : directories_) gather(path);
  for (const auto& [path, target] : links_) gather(path);
  return std::vector<std::string>(names.begin(), names.end());
}

Result<FileStatus> FakeEnv::status(const std::string& path) {
  BERTH_TRY(ask("status"));
  FileStatus status;
  if (const std::string* text = find(path)) {
    status.kind = FileStatus::Kind::file;
    status.size = static_cast<std::int64_t>(text->size());
    const auto stamp = stamps_.find(path);
    if (stamp != stamps_.end()) status.modified = stamp->second.modified;
    status.mode = stamp == stamps_.end() ? Stamp{}.mode : stamp->second.mode;
    status.executable = (status.mode & 0111U) != 0;
    return status;
  }
  if (!directories_.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  status.kind = FileStatus::Kind::directory;
  status.owner = uid;
  status.mode = 0755;
  return status;
}

Status FakeEnv::make_directory(const std::string& path, mode_t) {
  BERTH_TRY(ask("make_directory"));
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    directories_.insert(path.substr(0, at));
  directories_.insert(path);
  return {};
}

Status FakeEnv::remove_file(const std::string& path) {
  BERTH_TRY(ask("remove_file"));
  if (directories_.contains(path)) return fail(ErrorKind::invalid, "{}: a directory", path);
  stamps_.erase(path);
  if (files_.erase(path) + links_.erase(path) == 0)
    return fail(ErrorKind::not_found, "{}: no such file", path);
  return {};
}

Status FakeEnv::remove_directory(const std::string& path) {
  BERTH_TRY(ask("remove_directory"));
  const auto inside = files_.lower_bound(path + "/");
  if (inside != files_.end() && inside->first.starts_with(path + "/"))
    return fail(ErrorKind::io, "{}: not empty", path);
  if (directories_.erase(path) == 0) return fail(ErrorKind::not_found, "{}: no such file", path);
  return {};
}

Result<std::vector<TreeEntry>> FakeEnv::tree(const std::string& directory, std::size_t most) {
  BERTH_TRY(ask("tree"));
  if (!directories_.contains(directory))
    return fail(ErrorKind::not_found, "{}: no such directory", directory);
  std::map<std::string, TreeEntry> found;  // by path: a directory stands before what it holds
  const auto add_entry = [&](const std::string& path, TreeEntry entry) {
    if (!path.starts_with(directory + "/")) return;
    entry.path = path.substr(directory.size() + 1);
    found.emplace(entry.path, std::move(entry));
  };
  for (const auto& path : directories_)
    add_entry(path, {.path = {}, .kind = TreeEntry::Kind::directory, .target = {}});
  for (const auto& [path, target] : links_)
    add_entry(path, {.path = {}, .kind = TreeEntry::Kind::link, .target = target});
  for (const auto& [path, text] : files_) {
    const auto stamp = stamps_.find(path);
    const mode_t mode = stamp == stamps_.end() ? Stamp{}.mode : stamp->second.mode;
    add_entry(path, {.path = {},
                     .kind = TreeEntry::Kind::file,
                     .size = static_cast<std::int64_t>(text.size()),
                     .executable = (mode & 0100U) != 0,
                     .target = {}});
  }
  if (found.size() > most) return fail(ErrorKind::full, "{}: more than {}", directory, most);
  std::vector<TreeEntry> entries;
  for (auto& [path, entry] : found) entries.push_back(std::move(entry));
  return entries;
}

Result<std::vector<TreeEntry>> FakeEnv::entries(const std::string& directory) {
  BERTH_ASSIGN(auto found, tree(directory, files_.size() + links_.size() + directories_.size()));
  std::erase_if(found, [](const TreeEntry& entry) { return entry.path.contains('/'); });
  return found;
}

Status FakeEnv::remove_tree(const std::string& path) {
  BERTH_TRY(ask("remove_tree"));
  const auto within = [&](const std::string& each) {
    return each == path || each.starts_with(path + "/");
  };
  const auto erase = [&](auto& all) {
    std::erase_if(all, [&](const auto& each) { return within(each.first); });
  };
  erase(files_);
  erase(stamps_);
  erase(links_);
  std::erase_if(directories_, within);
  return {};
}

Status FakeEnv::free_place(const std::string& path) {
  if (files_.contains(path) || links_.contains(path) || directories_.contains(path))
    return fail(ErrorKind::exists, "{}: is there already", path);
  return {};
}

Result<std::optional<Content>> FakeEnv::copy_file(const std::string& from, const std::string& to,
                                                  mode_t mode) {
  BERTH_TRY(ask("copy_file"));
  if (!files_.contains(from)) return fail(ErrorKind::not_found, "{}: no such file", from);
  BERTH_TRY(free_place(to));
  const std::string& text = files_[to] = files_.at(from);
  stamps_[to].mode = mode;
  return Content{sha256(text), static_cast<std::int64_t>(text.size())};
}

Status FakeEnv::hard_link(const std::string& from, const std::string& to) {
  BERTH_TRY(ask("hard_link"));
  if (!files_.contains(from)) return fail(ErrorKind::not_found, "{}: no such file", from);
  BERTH_TRY(free_place(to));
  files_[to] = files_.at(from);
  stamps_[to] = stamps_[from];
  return {};
}

Status FakeEnv::symbolic_link(const std::string& target, const std::string& path) {
  BERTH_TRY(ask("symbolic_link"));
  BERTH_TRY(free_place(path));
  links_[path] = target;
  return {};
}

void FakeEnv::move(const std::string& from, const std::string& to) {
  move_keys(files_, from, to);
  move_keys(stamps_, from, to);
  move_keys(links_, from, to);
  std::set<std::string> moved;
  for (const auto& path : directories_)
    moved.insert(path == from || path.starts_with(from + "/") ? to + path.substr(from.size())
                                                              : path);
  directories_ = std::move(moved);
}

Status FakeEnv::rename(const std::string& from, const std::string& to) {
  BERTH_TRY(ask("rename"));
  if (free_place(from)) return fail(ErrorKind::not_found, "{}: no such file", from);
  if (directories_.contains(from) != directories_.contains(to) && !free_place(to))
    return fail(ErrorKind::invalid, "{}: a directory is no file", to);
  if (directories_.contains(to) && !list(to)->empty())
    return fail(ErrorKind::io, "{}: not empty", to);
  files_.erase(to);
  stamps_.erase(to);
  links_.erase(to);
  move(from, to);
  return {};
}

Status FakeEnv::exchange(const std::string& a, const std::string& b) {
  BERTH_TRY(ask("exchange"));
  if (free_place(a) || free_place(b)) return fail(ErrorKind::not_found, "{}: no such file", b);
  move(a, a + ".exchanged");
  move(b, a);
  move(a + ".exchanged", b);
  return {};
}

Status FakeEnv::stamp(const std::string& path, mode_t mode, Wall modified) {
  BERTH_TRY(ask("stamp"));
  if (!files_.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  stamps_[path] = {mode, modified};
  return {};
}

bool FakeEnv::may_write(const std::string& path) {
  return !read_only.contains(path) && (files_.contains(path) || directories_.contains(path));
}

Result<std::string> FakeEnv::attribute(const std::string& path, const std::string& name) {
  BERTH_TRY(ask("attribute"));
  const auto found = attributes.find(path + " " + name);
  if (found == attributes.end()) return fail(ErrorKind::not_found, "{}: no {}", path, name);
  return found->second;
}

Status FakeEnv::enter_scope(const std::string& name, const std::string& part_of) {
  BERTH_TRY(ask("enter_scope"));
  if (!scope) return fail(ErrorKind::not_found, "there is no systemd here");
  return scope(name, part_of);
}

Result<VolumeSpace> FakeEnv::volume(const std::string&) {
  BERTH_TRY(ask("volume"));
  return VolumeSpace{1'000'000'000'000, 500'000'000'000, 1'000'000, 900'000};
}

Result<Fd> FakeEnv::open_append(const std::string& path, mode_t) {
  BERTH_TRY(ask("open_append"));
  files_.try_emplace(path);
  return add({Open::Kind::file, path, 0});
}

Result<Fd> FakeEnv::open_read(const std::string& path) {
  BERTH_TRY(ask("open_read"));
  if (!files_.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  return add({Open::Kind::file, path, 0});
}

Result<Fd> FakeEnv::open_write(const std::string& path) {
  return open_read(path);
}

Result<std::string> FakeEnv::read_at(const Fd& fd, std::int64_t offset, std::size_t most) {
  BERTH_TRY(ask("read_at"));
  const std::string& text = files_.at(open_.at(fd.number()).path);
  if (offset >= static_cast<std::int64_t>(text.size())) return std::string();
  return text.substr(static_cast<std::size_t>(offset), most);
}

Status FakeEnv::truncate(const Fd& fd, std::int64_t size) {
  BERTH_TRY(ask("truncate"));
  files_.at(open_.at(fd.number()).path).resize(static_cast<std::size_t>(size));
  return {};
}

Result<Fd> FakeEnv::lock(const std::string& path, bool wait) {
  BERTH_TRY(ask("lock"));
  BERTH_ASSERT(!wait || !locked_.contains(path));  // one thread: it would wait for itself
  if (!locked_.insert(path).second) return fail(ErrorKind::busy, "{}: locked", path);
  return add({Open::Kind::lock, path, 0});
}

Result<Fd> FakeEnv::lock_there(const std::string& path) {
  BERTH_TRY(ask("lock"));
  if (free_place(path)) return fail(ErrorKind::not_found, "{}: nothing is there", path);
  return lock(path, false);
}

Status FakeEnv::write_all(const Fd& fd, std::string_view bytes) {
  BERTH_TRY(ask("write_all"));
  files_[open_.at(fd.number()).path] += bytes;
  return {};
}

Result<std::optional<std::size_t>> FakeEnv::read_some(const Fd& fd, std::span<char> buffer) {
  BERTH_TRY(ask("read_some"));
  Open& open = open_.at(fd.number());
  if (open.kind == Open::Kind::socket) return read_socket(open, buffer);
  Process& process = processes_.at(open.pid);
  if (!process.over) return std::nullopt;
  const bool out = open.kind == Open::Kind::out;
  const std::string& text = out ? process.program.out : process.program.err;
  std::size_t& read = out ? process.out_read : process.err_read;
  const std::size_t count = std::min(buffer.size(), text.size() - read);
  std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(read), count, buffer.begin());
  read += count;
  return count;
}

Status FakeEnv::wait(std::span<Watch> watches, std::optional<Mono> until) {
  BERTH_TRY(ask("wait"));
  const auto any_ready = [&] {
    bool any = false;
    for (auto& watch : watches) {
      watch.ready = watch.fd >= 0 && ready(open_.at(watch.fd), watch.readable);
      any = any || watch.ready;
    }
    return any;
  };
  if (any_ready()) return {};
  std::optional<Mono> next = until;
  for (const auto& [pid, process] : processes_)
    if (!process.over && (!next || process.ends < *next)) next = process.ends;
  for (const auto& [fd, open] : open_)
    if (!open.due.empty() && (!next || open.due.front() < *next)) next = open.due.front();
  if (stop_at && (!next || *stop_at < *next)) next = stop_at;
  BERTH_ASSERT(next.has_value());  // else it would sleep for ever
  now_ = std::max(now_, *next);
  if (stop_at && now_ >= *stop_at) {
    ++stops;
    stop_at.reset();
  }
  for (auto& [pid, process] : processes_)
    if (!process.over && process.ends <= now_) end(process, process.program.signal);
  any_ready();
  return {};
}

void FakeEnv::end(Process& process, int signal) {
  process.over = true;
  process.program.signal = signal;
}

Result<Child> FakeEnv::spawn(const SpawnSpec& spec) {
  BERTH_TRY(ask("spawn"));
  const pid_t pid = next_pid_++;
  Process process{.program = program(spec), .ends = {}};
  process.ends = now_ + process.program.duration;
  processes_.emplace(pid, std::move(process));
  ++spawned_;
  most_alive_ = std::max(most_alive_, processes_alive());
  Child child{pid, add({Open::Kind::exited, "", pid}), add({Open::Kind::out, "", pid}),
              add({Open::Kind::err, "", pid})};
  if (!spec.talks) return child;
  const int theirs = next_fd_++;
  child.out = add({Open::Kind::socket, "", 0, theirs});
  open_.emplace(theirs, Open{Open::Kind::socket, "", 0, child.out.number()});
  if (Fd other(*this, theirs); talk) talk(spec, std::move(other));
  return child;
}

Result<std::optional<ExitStatus>> FakeEnv::reap(const Child& child) {
  BERTH_TRY(ask("reap"));
  const Process& process = processes_.at(child.pid);
  if (!process.over) return std::nullopt;
  return ExitStatus{process.program.signal != 0 ? 0 : process.program.exit_code,
                    process.program.signal, process.program.duration, 1 << 20};
}

Status FakeEnv::signal_group(pid_t group, int signal) {
  return signal_pid(group, signal);
}

Status FakeEnv::signal_pid(pid_t pid, int signal) {
  BERTH_TRY(ask("signal"));
  const auto found = processes_.find(pid);
  if (found == processes_.end() || found->second.over)
    return fail(ErrorKind::not_found, "no such process");
  if (signal == SIGKILL || (signal == SIGTERM && !found->second.program.ignores_term))
    end(found->second, signal);
  return {};
}

bool FakeEnv::group_alive(pid_t group) {
  const auto found = processes_.find(group);
  return found != processes_.end() && !found->second.over;
}

Status FakeEnv::signal_process(const ProcessIdentity& process, int signal) {
  return signal_pid(process.pid, signal);
}

std::optional<std::string> FakeEnv::variable(const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::pair<std::string, std::string>> FakeEnv::environment() {
  return {variables.begin(), variables.end()};
}

}  // namespace berth::os
