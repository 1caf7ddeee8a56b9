// berth-agent is the worker process. `start` starts an agent, which belongs to nobody, and returns
// when the agent listens. `stdio` joins standard input and output to the agent of a directory, so
// that `ssh host berth-agent stdio DIR` is the same to a runner as the agent's socket. `pool`
// starts agents for runners on other machines, and `files` moves the files of their tasks. The
// program is linked with no shared library but libc and libm.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/agent/agent.h"
#include "berth/agent/clean.h"
#include "berth/agent/client/start_command.h"
#include "berth/agent/files/files.h"
#include "berth/agent/files/push.h"
#include "berth/agent/guard.h"
#include "berth/agent/pool.h"
#include "berth/agent/startup.h"
#include "berth/agent/stdio.h"
#include "berth/base/units.h"
#include "berth/error.h"
#include "berth/machine/devices/device_figures.h"
#include "berth/machine/devices/devices.h"
#include "berth/os/detach_posix.h"
#include "berth/os/loop.h"

namespace berth::agent {
namespace {

constexpr std::string_view kUsage =
    "berth-agent: a worker that outlives its runner; started by berth\n"
    "  berth-agent start DIR --block BLOCK --lease-ms N [--outlive] [--ledger DIR --alloc ID]\n"
    "                        [--with DIR] [--stay]\n"
    "  berth-agent stdio DIR    connects standard input and output to the agent of DIR\n"
    "  berth-agent pool         allocates parts of this machine; requests on standard input\n"
    "  berth-agent files DIR    receives and sends files below DIR\n"
    "  berth-agent push         sends objects to another machine; requests on standard input\n"
    "  berth-agent clean --older-than-ms N [--dry-run]  removes unused leases and objects\n"
    "  berth-agent anchor       keeps a login session open for its parent\n"
    "  berth-agent watch-figures  reports the GPU memory of processes until its output is closed\n"
    "  berth-agent guard PID STARTED COMMAND…  runs COMMAND when that process has ended\n"
    "  berth-agent --version\n";

using Words = std::span<const std::string_view>;

Status live(os::Env& env, Words words) {
  BERTH_ASSIGN(StartCommand options, parse_start_command(words));
  os::ignore_file_size_signal();
  BERTH_TRY(env.make_directory(options.directory, 0700));
  options.groups = {
      .may_move = true, .keep_in = options.stay, .anchor = {"/proc/self/exe", "anchor"}};
  options.ask_drivers = {"/proc/self/exe", "watch-figures"};
  options.unmarked_orphans = exec::Unmarked::ended;
  os::Fd parent;
  if (options.stay) {
    options.block = settle_in(env, std::move(options.block));
  } else {
    BERTH_ASSIGN(parent, os::detach(env, options.directory + "/log", kReady));
  }
  const bool awaited = !options.stay;
  os::install_stop_signals();
  auto agent = Agent::open(env, std::move(options));
  if (!agent) {
    if (!awaited) return std::unexpected(agent.error());
    (void)env.write_all(parent, agent.error().message);
    return {};
  }
  if (awaited) BERTH_TRY(env.write_all(parent, ready_line(env.self())));
  parent.reset();
  while (!(*agent)->over()) BERTH_TRY(env.loop().turn());
  return {};
}

Status guard(os::Env& env, Words words) {
  if (words.size() < 3) return fail(ErrorKind::usage, "expected PID STARTED COMMAND…");
  BERTH_ASSIGN(const auto pid, parse_integer(words[0]));
  BERTH_ASSIGN(const auto started, parse_integer(words[1]));
  BERTH_ASSIGN(os::Fd parent, os::detach(env, "/dev/null", kReady));
  os::install_stop_signals();
  BERTH_TRY(env.write_all(parent, fmt::format("{}\n", kReady)));
  parent.reset();
  return stand_guard(env, {static_cast<pid_t>(pid), started}, {words.begin() + 2, words.end()});
}

Status tell_figures(os::Env& env) {
  Duration every = std::chrono::seconds(1);
  if (const auto text = env.variable("BERTH_GPU_MEM_EVERY")) {
    const auto wanted = parse_duration(*text);
    if (wanted && *wanted > Duration(0)) every = *wanted;
  }
  os::install_stop_signals();
  const os::Fd out(env, STDOUT_FILENO);
  // Its end is that of the agent, which reads no more.
  (void)machine::watch_figures(env, machine::DeviceOptions().nvml_library, every, out);
  return {};
}

Status clean_up(os::Env& env, Words words) {
  CleanOptions options;
  options.dry_run = words.size() == 3 && words[2] == "--dry-run";
  if (words.size() != (options.dry_run ? 3 : 2) || words[0] != "--older-than-ms")
    return fail(ErrorKind::usage, "expected --older-than-ms N [--dry-run]");
  BERTH_ASSIGN(const auto older_than_ms, parse_integer(words[1]));
  if (older_than_ms < 0) return fail(ErrorKind::usage, "--older-than-ms: expected 0 or more");
  options.older_than = from_ms(older_than_ms);
  return serve_clean(env, options);
}

Status run(Words words) {
  const auto env = os::posix_env();
  const std::string_view command = words.empty() ? "" : words[0];
  if (command == "start") return live(*env, words.subspan(1));
  if (command == "guard") return guard(*env, words.subspan(1));
  if (command == "anchor") {
    while (true) ::pause();  // until its parent's death kills it
  }
  if (command == "watch-figures") return tell_figures(*env);
  if (command == "stdio") {
    if (words.size() != 2) return fail(ErrorKind::usage, "expected DIR");
    os::install_stop_signals();
    return serve_stdio(*env, std::string(words[1]));
  }
  if (command == "pool" || command == "files" || command == "clean" || command == "push") {
    os::ignore_file_size_signal();
    if (command == "clean") return clean_up(*env, words.subspan(1));
    if (command == "push") return serve_push(*env);
    BERTH_ASSIGN(const auto program, env->real_path("/proc/self/exe"));
    if (command == "pool") return serve_pool(*env, program);
    if (words.size() != 2) return fail(ErrorKind::usage, "expected DIR");
    return serve_files(*env, std::string(words[1]));
  }
  const bool help = command == "--help" || command == "-h";
  if (help) std::fputs(kUsage.data(), stdout);
  if (command == "--version") std::puts(fmt::format("berth-agent {}", version()).c_str());
  if (help || command == "--version") return {};
  return fail(ErrorKind::usage,
              "expected start, stdio, pool, files, push, clean or guard; see berth-agent --help");
}

}  // namespace
}  // namespace berth::agent

int main(int count, char** values) {
  std::vector<std::string_view> words(values + 1, values + count);
  if (!words.empty() && words[0] == "agent") words.erase(words.begin());  // berth agent …
  try {
    const auto status = berth::agent::run(words);
    if (status) return 0;
    fmt::print(stderr, "berth-agent: {}\n", status.error().message);
    return berth::exit_code(status.error().kind);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "berth-agent: %s\n", error.what());  // out of memory, say
    return 3;
  }
}
