#include "berth/os/fake_env.h"

#include <algorithm>
#include <csignal>

#include "berth/os/loop.h"

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

FakeEnv::FakeEnv(std::uint64_t seed)
    : owned_world_(std::make_shared<World>(seed)),
      owned_machine_(std::make_shared<Machine>()),
      world_(*owned_world_),
      machine_(*owned_machine_) {}

FakeEnv::FakeEnv(FakeEnv& first, On machine, ProcessIdentity process)
    : identity(process),
      owned_machine_(machine == On::the_same_machine ? nullptr : std::make_shared<Machine>()),
      world_(first.world_),
      machine_(owned_machine_ ? *owned_machine_ : first.machine_) {
  world_.further.push_back(this);
}

FakeEnv::~FakeEnv() {
  std::erase(world_.further, this);
}

void FakeEnv::put(const std::string& path, std::string text) {
  machine_.files[path] = std::move(text);
}

const std::string* FakeEnv::find(const std::string& path) const {
  const auto found = machine_.files.find(path);
  return found == machine_.files.end() ? nullptr : &found->second;
}

std::size_t FakeEnv::processes_alive() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      world_.processes, [](const auto& entry) { return !entry.second.over; }));
}

Status FakeEnv::ask(std::string_view call) {
  if (fault)
    if (auto error = fault(call)) return std::unexpected(*std::move(error));
  return {};
}

Fd FakeEnv::add(Open open) {
  const int number = world_.next_fd++;
  world_.open.emplace(number, std::move(open));
  return Fd(*this, number);
}

Wall FakeEnv::wall() {
  constexpr auto kStart = std::chrono::seconds(1'800'000'000);
  return Wall(kStart + world_.now.time_since_epoch() + wall_skew);
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
  machine_.files[path] = text;
  return {};
}

Status FakeEnv::write_into(const std::string& path, std::string_view text) {
  BERTH_TRY(ask("write_into"));
  if (!machine_.files.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  machine_.files[path] = text;
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
  for (const auto& [path, text] : machine_.files) gather(path);
  for (const auto& path : machine_.directories) gather(path);
  for (const auto& [path, target] : machine_.links) gather(path);
  return std::vector<std::string>(names.begin(), names.end());
}

Result<FileStatus> FakeEnv::status(const std::string& path) {
  BERTH_TRY(ask("status"));
  FileStatus status;
  if (const std::string* text = find(path)) {
    status.kind = FileStatus::Kind::file;
    status.size = static_cast<std::int64_t>(text->size());
    const auto stamp = machine_.stamps.find(path);
    if (stamp != machine_.stamps.end()) status.modified = stamp->second.modified;
    status.mode = stamp == machine_.stamps.end() ? Stamp{}.mode : stamp->second.mode;
    status.executable = (status.mode & 0111U) != 0;
    return status;
  }
  if (!machine_.directories.contains(path))
    return fail(ErrorKind::not_found, "{}: no such file", path);
  status.kind = FileStatus::Kind::directory;
  status.owner = uid;
  status.mode = 0755;
  return status;
}

Status FakeEnv::make_directory(const std::string& path, mode_t) {
  BERTH_TRY(ask("make_directory"));
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    machine_.directories.insert(path.substr(0, at));
  machine_.directories.insert(path);
  return {};
}

Status FakeEnv::remove_file(const std::string& path) {
  BERTH_TRY(ask("remove_file"));
  if (machine_.directories.contains(path)) return fail(ErrorKind::invalid, "{}: a directory", path);
  machine_.stamps.erase(path);
  if (machine_.files.erase(path) + machine_.links.erase(path) == 0)
    return fail(ErrorKind::not_found, "{}: no such file", path);
  return {};
}

Status FakeEnv::remove_directory(const std::string& path) {
  BERTH_TRY(ask("remove_directory"));
  const auto inside = machine_.files.lower_bound(path + "/");
  if (inside != machine_.files.end() && inside->first.starts_with(path + "/"))
    return fail(ErrorKind::io, "{}: not empty", path);
  if (machine_.directories.erase(path) == 0)
    return fail(ErrorKind::not_found, "{}: no such file", path);
  return {};
}

Result<std::vector<TreeEntry>> FakeEnv::tree(const std::string& directory, std::size_t most) {
  BERTH_TRY(ask("tree"));
  if (!machine_.directories.contains(directory))
    return fail(ErrorKind::not_found, "{}: no such directory", directory);
  std::map<std::string, TreeEntry> found;  // by path: a directory stands before what it holds
  const auto add_entry = [&](const std::string& path, TreeEntry entry) {
    if (!path.starts_with(directory + "/")) return;
    entry.path = path.substr(directory.size() + 1);
    found.emplace(entry.path, std::move(entry));
  };
  for (const auto& path : machine_.directories)
    add_entry(path, {.path = {}, .kind = TreeEntry::Kind::directory, .target = {}});
  for (const auto& [path, target] : machine_.links)
    add_entry(path, {.path = {}, .kind = TreeEntry::Kind::link, .target = target});
  for (const auto& [path, text] : machine_.files) {
    const auto stamp = machine_.stamps.find(path);
    const mode_t mode = stamp == machine_.stamps.end() ? Stamp{}.mode : stamp->second.mode;
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
  BERTH_ASSIGN(auto found, tree(directory, machine_.files.size() + machine_.links.size() +
                                               machine_.directories.size()));
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
  erase(machine_.files);
  erase(machine_.stamps);
  erase(machine_.links);
  std::erase_if(machine_.directories, within);
  return {};
}

Status FakeEnv::free_place(const std::string& path) {
  if (machine_.files.contains(path) || machine_.links.contains(path) ||
      machine_.directories.contains(path))
    return fail(ErrorKind::exists, "{}: is there already", path);
  return {};
}

Result<std::optional<Content>> FakeEnv::copy_file(const std::string& from, const std::string& to,
                                                  mode_t mode) {
  BERTH_TRY(ask("copy_file"));
  if (!machine_.files.contains(from)) return fail(ErrorKind::not_found, "{}: no such file", from);
  BERTH_TRY(free_place(to));
  const std::string& text = machine_.files[to] = machine_.files.at(from);
  machine_.stamps[to].mode = mode;
  return Content{sha256(text), static_cast<std::int64_t>(text.size())};
}

Status FakeEnv::hard_link(const std::string& from, const std::string& to) {
  BERTH_TRY(ask("hard_link"));
  if (!machine_.files.contains(from)) return fail(ErrorKind::not_found, "{}: no such file", from);
  BERTH_TRY(free_place(to));
  machine_.files[to] = machine_.files.at(from);
  machine_.stamps[to] = machine_.stamps[from];
  return {};
}

Status FakeEnv::symbolic_link(const std::string& target, const std::string& path) {
  BERTH_TRY(ask("symbolic_link"));
  BERTH_TRY(free_place(path));
  machine_.links[path] = target;
  return {};
}

void FakeEnv::move(const std::string& from, const std::string& to) {
  move_keys(machine_.files, from, to);
  move_keys(machine_.stamps, from, to);
  move_keys(machine_.links, from, to);
  std::set<std::string> moved;
  for (const auto& path : machine_.directories)
    moved.insert(path == from || path.starts_with(from + "/") ? to + path.substr(from.size())
                                                              : path);
  machine_.directories = std::move(moved);
}

Status FakeEnv::rename(const std::string& from, const std::string& to) {
  BERTH_TRY(ask("rename"));
  if (free_place(from)) return fail(ErrorKind::not_found, "{}: no such file", from);
  if (machine_.directories.contains(from) != machine_.directories.contains(to) && !free_place(to))
    return fail(ErrorKind::invalid, "{}: a directory is no file", to);
  if (machine_.directories.contains(to) && !list(to)->empty())
    return fail(ErrorKind::io, "{}: not empty", to);
  machine_.files.erase(to);
  machine_.stamps.erase(to);
  machine_.links.erase(to);
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
  if (!machine_.files.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  machine_.stamps[path] = {mode, modified};
  return {};
}

bool FakeEnv::may_write(const std::string& path) {
  return !read_only.contains(path) &&
         (machine_.files.contains(path) || machine_.directories.contains(path));
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
  machine_.files.try_emplace(path);
  return add({Open::Kind::file, path, 0});
}

Result<Fd> FakeEnv::open_read(const std::string& path) {
  BERTH_TRY(ask("open_read"));
  if (!machine_.files.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  return add({Open::Kind::file, path, 0});
}

Result<Fd> FakeEnv::open_write(const std::string& path) {
  return open_read(path);
}

Result<std::string> FakeEnv::read_at(const Fd& fd, std::int64_t offset, std::size_t most) {
  BERTH_TRY(ask("read_at"));
  const std::string& text = machine_.files.at(world_.open.at(fd.number()).path);
  if (offset >= static_cast<std::int64_t>(text.size())) return std::string();
  return text.substr(static_cast<std::size_t>(offset), most);
}

Status FakeEnv::truncate(const Fd& fd, std::int64_t size) {
  BERTH_TRY(ask("truncate"));
  machine_.files.at(world_.open.at(fd.number()).path).resize(static_cast<std::size_t>(size));
  return {};
}

Result<Fd> FakeEnv::lock(const std::string& path, bool wait) {
  BERTH_TRY(ask("lock"));
  BERTH_ASSERT(!wait || !machine_.locked.contains(path));  // one thread: it would wait for itself
  if (!machine_.locked.insert(path).second) return fail(ErrorKind::busy, "{}: locked", path);
  return add({Open::Kind::lock, path, 0});
}

Result<Fd> FakeEnv::lock_there(const std::string& path) {
  BERTH_TRY(ask("lock"));
  if (free_place(path)) return fail(ErrorKind::not_found, "{}: nothing is there", path);
  return lock(path, false);
}

Status FakeEnv::write_all(const Fd& fd, std::string_view bytes) {
  BERTH_TRY(ask("write_all"));
  machine_.files[world_.open.at(fd.number()).path] += bytes;
  return {};
}

Result<std::optional<std::size_t>> FakeEnv::read_some(const Fd& fd, std::span<char> buffer) {
  BERTH_TRY(ask("read_some"));
  Open& open = world_.open.at(fd.number());
  if (open.kind == Open::Kind::socket) return read_socket(open, buffer);
  Process& process = world_.processes.at(open.pid);
  if (!process.over) return std::nullopt;
  const bool out = open.kind == Open::Kind::out;
  const std::string& text = out ? process.program.out : process.program.err;
  std::size_t& read = out ? process.out_read : process.err_read;
  const std::size_t count = std::min(buffer.size(), text.size() - read);
  std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(read), count, buffer.begin());
  read += count;
  return count;
}

bool FakeEnv::mark_ready(std::span<Watch> watches) const {
  bool any = false;
  for (auto& watch : watches) {
    watch.ready = watch.fd >= 0 && ready(world_.open.at(watch.fd), watch.readable);
    any = any || watch.ready;
  }
  return any;
}

/// Turns the loop of one further process that has something to do, if there is any.
bool FakeEnv::turn_further() {
  std::vector<FakeEnv*> able;
  for (FakeEnv* each : world_.further) {
    const auto timer = each->loop().next_timer();
    const bool due = (timer && *timer <= world_.now) || each->mark_ready(each->loop().watches());
    if (due && !each->frozen) able.push_back(each);
  }
  if (able.empty()) return false;
  BERTH_ASSERT(able[world_.rng.below(able.size())]->loop().turn(world_.now).has_value());
  return true;
}

/// To the next moment at which something happens, at most `until`.
void FakeEnv::pass_time(std::optional<Mono> until) {
  const auto consider = [&](std::optional<Mono> at) {
    if (at && (!until || *at < *until)) until = at;
  };
  for (const auto& [pid, process] : world_.processes)
    if (!process.over) consider(process.ends);
  for (const auto& [fd, open] : world_.open)
    if (!open.due.empty()) consider(open.due.front());
  for (FakeEnv* each : world_.further)
    if (!each->frozen) consider(each->loop().next_timer());
  consider(stop_at);
  BERTH_ASSERT(until.has_value());  // else it would sleep for ever
  world_.now = std::max(world_.now, *until);
  if (stop_at && world_.now >= *stop_at) {
    ++stops;
    stop_at.reset();
  }
  for (auto& [pid, process] : world_.processes)
    if (!process.over && process.ends <= world_.now) end(process, process.program.signal);
}

Status FakeEnv::wait(std::span<Watch> watches, std::optional<Mono> until) {
  BERTH_TRY(ask("wait"));
  if (!owned_world_) {
    BERTH_ASSERT(until && *until <= world_.now);  // its loop is turned when there is something
    mark_ready(watches);
    return {};
  }
  if (!world_.further.empty() && world_.rng.below(2) == 0) turn_further();
  const int stops_before = stops;
  while (!mark_ready(watches) && (!until || world_.now < *until) && stops == stops_before) {
    if (turn_further()) continue;
    pass_time(until);
    // As ever: the caller is woken by whatever happens in a world of its own.
    if (world_.further.empty()) break;
  }
  mark_ready(watches);
  return {};
}

void FakeEnv::end(Process& process, int signal) {
  process.over = true;
  process.program.signal = signal;
}

Result<Child> FakeEnv::spawn(const SpawnSpec& spec) {
  BERTH_TRY(ask("spawn"));
  const pid_t pid = world_.next_pid++;
  Process process{.program = program(spec), .ends = {}};
  process.ends = world_.now + process.program.duration;
  world_.processes.emplace(pid, std::move(process));
  ++world_.spawned;
  world_.most_alive = std::max(world_.most_alive, processes_alive());
  Child child{pid, add({Open::Kind::exited, "", pid}), add({Open::Kind::out, "", pid}),
              add({Open::Kind::err, "", pid})};
  if (!spec.talks) return child;
  const int theirs = world_.next_fd++;
  child.out = add({Open::Kind::socket, "", 0, theirs});
  world_.open.emplace(theirs, Open{Open::Kind::socket, "", 0, child.out.number()});
  if (Fd other(*this, theirs); talk) talk(spec, std::move(other));
  return child;
}

Result<std::optional<ExitStatus>> FakeEnv::reap(const Child& child) {
  BERTH_TRY(ask("reap"));
  const Process& process = world_.processes.at(child.pid);
  if (!process.over) return std::nullopt;
  return ExitStatus{process.program.signal != 0 ? 0 : process.program.exit_code,
                    process.program.signal, process.program.duration, 1 << 20};
}

Status FakeEnv::signal_group(pid_t group, int signal) {
  return signal_pid(group, signal);
}

Status FakeEnv::signal_pid(pid_t pid, int signal) {
  BERTH_TRY(ask("signal"));
  const auto found = world_.processes.find(pid);
  if (found == world_.processes.end() || found->second.over)
    return fail(ErrorKind::not_found, "no such process");
  if (signal == SIGKILL || (signal == SIGTERM && !found->second.program.ignores_term))
    end(found->second, signal);
  return {};
}

bool FakeEnv::group_alive(pid_t group) {
  const auto found = world_.processes.find(group);
  return found != world_.processes.end() && !found->second.over;
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
