#include "berth/testing/fake_process.h"

#include <csignal>
#include <vector>

namespace berth::os {
namespace {

/// Who makes so many calls after its death waits for something that a process that dies has to give
/// up.
constexpr int kCallsWhenDeadMost = 1'000'000;

}  // namespace

FakeProcess::FakeProcess(FakeEnv& first, FakeEnv& beside, ProcessIdentity process)
    : FakeEnv(first, beside, process) {}

FakeProcess::~FakeProcess() {
  if (!over_) kill();
}

void FakeProcess::start(std::function<int()> main) {
  over_ = false;
  until_ = now();
  may_go_on_ = [] { return true; };
  fiber_.emplace([this, main = std::move(main)] { exit_code_ = main(); });
}

void FakeProcess::talk_by(Fd fd) {
  const int number = adopt(std::move(fd)).give();
  standard_ = {number, number};
}

std::pair<Fd, Fd> FakeProcess::connect_to(FakeProcess& other) {
  const auto [ours, theirs] = join(other);
  return {Fd(*this, ours), Fd(other, theirs)};
}

void FakeProcess::end_script(pid_t pid, FakeProgram as) {
  const auto found = world_.processes.find(pid);
  if (found == world_.processes.end() || found->second.over) return;
  found->second.program = std::move(as);
  FakeEnv::end(found->second, 0);
}

/// What the kernel does when a process has ended, however it did.
void FakeProcess::end() {
  std::vector<int> open;
  for (const auto& [number, each] : world_.open)
    if (each.owner == this) open.push_back(number);
  for (const int number : open)
    if (world_.open.contains(number)) FakeEnv::close(number);
  standard_ = {-1, -1};
  end_scripts_of(*this);
  world_.ended.insert(identity.pid);
  std::erase(world_.further, this);
  over_ = true;
}

void FakeProcess::kill() {
  if (over_) return;
  killed_ = true;
  end();
  if (inside_) return;  // by itself: it unwinds from here on
  // It unwinds at once, if it has begun: nothing of what it does has an effect.
  if (fiber_ && !fiber_->ended()) fiber_->resume();
  BERTH_ASSERT(fiber_->ended());
}

void FakeProcess::give_way(std::optional<Mono> until, std::function<bool()> may_go_on) {
  until_ = until;
  may_go_on_ = std::move(may_go_on);
  inside_ = false;
  fiber_->block();
  inside_ = true;
}

bool FakeProcess::has_turn() {
  return !over_ && fiber_ && ((until_ && *until_ <= now()) || may_go_on_());
}

void FakeProcess::take_turn() {
  inside_ = true;
  fiber_->resume();
  inside_ = false;
  if (fiber_->ended() && !over_) end();
}

Status FakeProcess::ask(std::string_view call) {
  if (!killed_ && inside_ && gives_way != 0 && world_.rng.below(gives_way) == 0)
    give_way(now(), [] { return true; });
  if (killed_) {
    BERTH_ASSERT(++calls_when_dead_ < kCallsWhenDeadMost);
    return fail(ErrorKind::io, "{}: this process was killed", call);
  }
  return FakeEnv::ask(call);
}

Status FakeProcess::wait(std::span<Watch> watches, std::optional<Mono> until) {
  BERTH_TRY(ask("wait"));
  const int stops_before = stops;
  give_way(until,
           [this, watches, stops_before] { return stops != stops_before || mark_ready(watches); });
  if (killed_) return fail(ErrorKind::io, "this process was killed");
  mark_ready(watches);
  return {};
}

Result<Fd> FakeProcess::lock(const std::string& path, bool wait) {
  if (wait && inside_ && !killed_ && machine_.locked.contains(path))
    give_way(std::nullopt, [this, path] { return !machine_.locked.contains(path); });
  return FakeEnv::lock(path, false);
}

Result<Fd> FakeProcess::lock_shared(const std::string& path) {
  const auto free = [this, path] {
    const auto lock = machine_.locked.find(path);
    return lock == machine_.locked.end() || lock->second > 0;
  };
  if (inside_ && !killed_ && !free()) give_way(std::nullopt, free);
  if (!free()) return fail(ErrorKind::busy, "{}: locked", path);
  return FakeEnv::lock_shared(path);
}

void FakeProcess::close(int fd) noexcept {
  // 0 and 1 stay open until its end: who reads them makes an Fd of them more than once.
  if (!over_ && fd > 1) FakeEnv::close(fd);
}

Status FakeProcess::write_all(const Fd& fd, std::string_view bytes) {
  auto status = FakeEnv::write_all(fd, bytes);
  if (!status && !killed_ && at(fd.number()).kind == Open::Kind::file)
    machine_.files[at(fd.number()).path] += bytes.substr(0, world_.rng.below(bytes.size() + 1));
  return status;
}

Status FakeProcess::signal_pid(pid_t pid, int signal) {
  const auto found = world_.processes.find(pid);
  const bool ends = signal == SIGTERM && ends_within > Duration(0) &&
                    found != world_.processes.end() && !found->second.over &&
                    !found->second.program.ignores_term;
  if (!ends) return FakeEnv::signal_pid(pid, signal);
  BERTH_TRY(ask("signal"));
  Process& process = found->second;
  if (process.program.signal != 0) return {};  // it is about to end
  const auto most = static_cast<std::uint64_t>(ends_within.count());
  const Mono by = now() + Duration(static_cast<std::int64_t>(world_.rng.below(most)));
  if (by >= process.ends) return {};  // by itself
  process.ends = by;
  process.program.signal = SIGTERM;
  process.program.at_end = nullptr;
  return {};
}

Status FakeProcess::signal_process(const ProcessIdentity& process, int signal) {
  BERTH_TRY(ask("signal"));
  for (FakeEnv* each : world_.further) {
    auto* const other = dynamic_cast<FakeProcess*>(each);
    if (other == nullptr || other->identity != process || other->over()) continue;
    if (signal == SIGKILL) other->kill();
    if (signal == SIGTERM || signal == SIGINT) ++other->stops;
    return {};
  }
  return FakeEnv::signal_process(process, signal);
}

}  // namespace berth::os
