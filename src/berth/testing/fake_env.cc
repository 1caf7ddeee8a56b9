#include "berth/testing/fake_env.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/os/loop.h"

namespace berth::os {
FakeEnv::FakeEnv(std::uint64_t seed)
    : owned_world_(std::make_shared<World>(seed)),
      owned_machine_(std::make_shared<Machine>()),
      world_(*owned_world_),
      machine_(*owned_machine_) {}

FakeEnv::FakeEnv(FakeEnv& first, On machine, ProcessIdentity process)
    : identity(process),
      owned_machine_(machine == On::the_same_machine ? first.owned_machine_
                                                     : std::make_shared<Machine>()),
      world_(first.world_),
      machine_(*owned_machine_) {
  world_.further.push_back(this);
}

FakeEnv::FakeEnv(FakeEnv& first, FakeEnv& beside, ProcessIdentity process)
    : identity(process),
      owned_machine_(beside.owned_machine_),
      world_(first.world_),
      machine_(*owned_machine_) {
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
  open.owner = this;
  world_.open.emplace(number, std::move(open));
  return Fd(*this, number);
}

Wall FakeEnv::wall() {
  constexpr auto kStart = std::chrono::seconds(1'800'000'000);
  return Wall(kStart + world_.now.time_since_epoch() + wall_skew);
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

Result<Fd> FakeEnv::lock(const std::string& path, bool wait) {
  BERTH_TRY(ask("lock"));
  BERTH_ASSERT(!wait || !machine_.locked.contains(path));  // one thread: it would wait for itself
  if (!machine_.locked.emplace(path, -1).second) return fail(ErrorKind::busy, "{}: locked", path);
  return add({.kind = Open::Kind::lock, .path = path});
}

Result<Fd> FakeEnv::lock_shared(const std::string& path) {
  BERTH_TRY(ask("lock"));
  int& holders = machine_.locked[path];
  BERTH_ASSERT(holders >= 0);  // as above
  ++holders;
  return add({.kind = Open::Kind::lock, .path = path});
}

Result<Fd> FakeEnv::lock_existing(const std::string& path) {
  BERTH_TRY(ask("lock"));
  if (free_place(path)) return fail(ErrorKind::not_found, "{}: nothing is there", path);
  return lock(path, false);
}

Status FakeEnv::write_all(const Fd& fd, std::string_view bytes) {
  BERTH_TRY(ask("write_all"));
  if (at(fd.number()).kind == Open::Kind::file) {
    machine_.files[at(fd.number()).path] += bytes;
    return {};
  }
  while (!bytes.empty()) {
    BERTH_ASSIGN(const auto written, write_some(fd, bytes));
    bytes.remove_prefix(written.value_or(0));
    std::array<Watch, 1> room{Watch{.fd = fd.number(), .readable = false}};
    if (!written) BERTH_TRY(wait(room, std::nullopt));
  }
  return {};
}

Result<std::optional<std::size_t>> FakeEnv::read_some(const Fd& fd, std::span<char> buffer) {
  BERTH_TRY(ask("read_some"));
  Open& open = at(fd.number());
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
    watch.ready = watch.fd >= 0 && ready(at(watch.fd), watch.readable);
    any = any || watch.ready;
  }
  return any;
}

/// Turns the loop of one further process that has something to do, if there is any.
bool FakeEnv::turn_further() {
  std::vector<FakeEnv*> able;
  for (FakeEnv* each : world_.further) {
    if (!each->frozen && each->has_turn()) able.push_back(each);
  }
  if (able.empty()) return false;
  able[world_.rng.below(able.size())]->take_turn();
  if (on_event) on_event();
  return true;
}

bool FakeEnv::has_turn() {
  const auto timer = loop().next_timer();
  return (timer && *timer <= world_.now) || mark_ready(loop().watches());
}

void FakeEnv::take_turn() {
  BERTH_ASSERT(loop().turn(world_.now).has_value());
}

std::optional<Mono> FakeEnv::next_turn() {
  return loop().next_timer();
}

/// To the next moment at which something happens, at most `until`.
void FakeEnv::pass_time(std::optional<Mono> until) {
  const auto consider = [&](std::optional<Mono> at) {
    if (at && (!until || *at < *until)) until = at;
  };
  for (const auto& [pid, process] : world_.processes)
    if (!process.over && !process.parent->frozen) consider(process.ends);
  for (const auto& [fd, open] : world_.open)
    if (!open.due.empty()) consider(open.due.front());
  for (FakeEnv* each : world_.further)
    if (!each->frozen) consider(each->next_turn());
  consider(stop_at);
  BERTH_ASSERT(until.has_value());  // else it would sleep for ever
  world_.now = std::max(world_.now, *until);
  if (stop_at && world_.now >= *stop_at) {
    ++stops;
    stop_at.reset();
  }
  for (auto& [pid, process] : world_.processes) {
    if (process.over || process.parent->frozen || process.ends > world_.now) continue;
    end(process, process.program.signal);
    if (process.program.at_end) process.program.at_end();
  }
  if (on_event) on_event();
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
  if (!process.log.empty())
    process.parent->machine_.files[process.log] += process.program.out + process.program.err;
  if (signal != 0 && process.program.at_kill) process.program.at_kill();
}

Result<Child> FakeEnv::spawn(const SpawnSpec& spec) {
  BERTH_TRY(ask("spawn"));
  const pid_t pid = world_.next_pid++;
  Process process{.program = program(spec),
                  .parent = this,
                  .ends = {},
                  .log = spec.log,
                  .is_detached = spec.is_detached};
  process.ends = world_.now + process.program.duration;
  world_.processes.emplace(pid, std::move(process));
  ++world_.spawned;
  world_.most_alive = std::max(world_.most_alive, processes_alive());
  if (!spec.log.empty()) return Child{pid, add({.kind = Open::Kind::exited, .pid = pid}), {}, {}};
  Child child{pid, add({.kind = Open::Kind::exited, .pid = pid}),
              add({.kind = Open::Kind::out, .pid = pid}),
              add({.kind = Open::Kind::err, .pid = pid})};
  if (!spec.talks) return child;
  const auto [ours, theirs] = join(*this);
  child.out = Fd(*this, ours);
  if (Fd other(*this, theirs); talk) talk(spec, std::move(other));
  return child;
}

Result<std::optional<ExitStatus>> FakeEnv::reap(const Child& child) {
  BERTH_TRY(ask("reap"));
  const Process& process = world_.processes.at(child.pid);
  if (process.is_detached) return fail(ErrorKind::io, "wait for a process: No child processes");
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

bool FakeEnv::alive(const ProcessIdentity& process) {
  return !dead.contains(process.pid) && !world_.ended.contains(process.pid);
}

void FakeEnv::end_scripts_of(const FakeEnv& parent) {
  for (auto& [pid, process] : world_.processes)
    if (process.parent == &parent && !process.is_detached && !process.over) end(process, SIGKILL);
}

bool FakeEnv::group_alive(pid_t group) {
  const auto found = world_.processes.find(group);
  return found != world_.processes.end() && !found->second.over;
}

Status FakeEnv::signal_process(const ProcessIdentity& process, int signal) {
  return signal_pid(process.pid, signal);
}

std::string FakeEnv::boot_id() {
  return machine_.boots == 0 ? "boot" : fmt::format("boot-{}", machine_.boots);
}

std::optional<std::string> FakeEnv::variable(const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::pair<std::string, std::string>> FakeEnv::environment() {
  return {variables.begin(), variables.end()};
}

}  // namespace berth::os
