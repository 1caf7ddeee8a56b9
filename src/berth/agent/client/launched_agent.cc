#include "berth/agent/client/launched_agent.h"

#include <array>
#include <csignal>

#include "berth/agent/startup.h"
#include "berth/base/text.h"
#include "berth/os/spawn.h"

namespace berth::agent {
namespace {

constexpr std::size_t kSaidMost = 64 << 10;  // bytes of what a launcher prints

/// What there is to read.
std::string drain(os::Env& env, os::Fd& fd) {
  std::string text;
  std::array<char, 4096> buffer;
  while (fd) {
    const auto got = env.read_some(fd, buffer);
    if (!got || !*got || **got == 0) break;
    if (text.size() < kSaidMost) text.append(buffer.data(), **got);
  }
  return text;
}

}  // namespace

LaunchedAgent::LaunchedAgent(os::Env& env, StartOptions options, const RunnerSide& side)
    : AttachedAgent(env, options.directory, side),
      options_(std::move(options)),
      has_alloc_(options_.alloc.value == 0) {
  os::SpawnSpec spec;
  spec.argv = {options_.program,
               "start",
               options_.directory,
               "--block",
               machine::write_block(options_.block),
               "--lease-ms",
               fmt::format("{}", to_ms(options_.lease))};
  if (options_.outlive) spec.argv.emplace_back("--outlive");
  if (options_.alloc.value != 0)
    spec.argv.insert(spec.argv.end(), {"--ledger", options_.ledger_directory, "--alloc",
                                       fmt::format("{}", options_.alloc.value)});
  spec.environment = env.environment();
  spec.directory = "/";
  auto child = env.spawn(spec);
  if (!child) {
    lose(within("start an agent", child.error()));
    return;
  }
  launcher_ = *std::move(child);
  launched_.watch(launcher_->exited.number());
  arm();
}

std::unique_ptr<LaunchedAgent> LaunchedAgent::start(os::Env& env, StartOptions options,
                                                    const RunnerSide& side) {
  return std::unique_ptr<LaunchedAgent>(new LaunchedAgent(env, std::move(options), side));
}

void LaunchedAgent::on_launched() {
  const std::string said = drain(env_, launcher_->out);
  const std::string complained = drain(env_, launcher_->err);
  launched_.stop();
  (void)env_.reap(*launcher_);
  launcher_.reset();
  if (said.empty())
    return lose(
        {ErrorKind::io, fmt::format("the agent did not start: {}", clip(trim(complained), 400))});
  if (const auto status = begin(trim(said)); !status)
    lose(within("start an agent", status.error()));
}

/// Hands the alloc over to the agent that is ready, and connects.
Status LaunchedAgent::begin(std::string_view said) {
  BERTH_ASSIGN(const auto agent, parse_ready(said));
  if (options_.alloc.value != 0) {
    BERTH_ASSIGN(auto ledger, machine::Ledger::open(env_, options_.ledger_directory));
    BERTH_TRY(ledger.hand_over(options_.alloc, agent));
    has_alloc_ = true;
  }
  return connect();
}

void LaunchedAgent::lose(Error because) {
  launched_.stop();
  if (launcher_) (void)env_.signal_group(launcher_->pid, SIGKILL);
  launcher_.reset();
  AttachedAgent::lose(std::move(because));
}

}  // namespace berth::agent
