#include "berth/cli/on_end.h"

#include <array>
#include <csignal>

#include "berth/base/text.h"
#include "berth/cli/failures.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/json_output.h"
#include "berth/cli/notify.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/table.h"
#include "berth/run/workload.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostRead = 64;

/// Holds the epoch of the last end for which the command has run.
std::string done_file(const std::string& run_directory) {
  return run_directory + "/on_end.done";
}

Status run_once(os::Env& env, run::Context& context, const store::RunRecord& record) {
  if (record.kind != "flow" || store::is_open(record.state)) return {};
  BERTH_ASSIGN(const auto flow, flow_of(record));
  if (flow.on_end.text.empty() && flow.on_end.words.empty()) return {};
  const std::string directory = run::run_directory(context, record.name);
  const std::string epoch = fmt::format("{}\n", record.epoch);
  if (const auto done = env.read_file(done_file(directory), kMostRead); done && *done == epoch)
    return {};
  const std::string file = directory + "/on_end.json";
  BERTH_TRY(write_run_json(env, context, record, file));
  os::SpawnSpec spec;
  spec.argv = exec::command_line(flow.on_end, [](auto) { return std::nullopt; });
  spec.environment = run::inherited_environment(env);
  spec.directory = record.directory;
  run::set(spec.environment, "BERTH_RUN", record.name);
  run::set(spec.environment, "BERTH_RUN_DIR", directory);
  run::set(spec.environment, "BERTH_RUN_STATE", std::string(store::name(record.state)));
  run::set(spec.environment, "BERTH_RUN_JSON", file);
  const auto ended = run_to_its_end(env, spec);
  if (!ended) return std::unexpected(ended.error());
  BERTH_TRY(env.replace_file(done_file(directory), epoch, 0600));
  if (!ended->empty()) return fail(ErrorKind::io, "{}", *ended);
  return {};
}

}  // namespace

Status write_run_json(os::Env& env, run::Context& context, const store::RunRecord& record,
                      const std::string& file) {
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  BERTH_ASSIGN(auto used, context.store->usage(record.id));
  BERTH_ASSIGN(auto failures, failures_of(context, record, tasks, kMostRows));
  const std::string text = show_json(
      {record, std::string(store::name(record.state)), std::move(used), std::move(failures)},
      tasks);
  return env.replace_file(file, text, 0600);
}

Result<std::string> run_to_its_end(os::Env& env, const os::SpawnSpec& spec) {
  BERTH_ASSIGN(os::Child child, env.spawn(spec));
  const int stops = env.stop_signals();
  os::ReadBuffer buffer;
  const auto pass_on = [&](os::Fd& fd) {
    while (fd) {
      const auto got = env.read_some(fd, buffer);
      if (got && !*got) return;
      if (!got || **got == 0) return fd.reset();
      print_error(std::string(buffer.data(), **got));
    }
  };
  for (;;) {
    std::array watches{os::Watch{.fd = child.exited.number()}, os::Watch{.fd = child.out.number()},
                       os::Watch{.fd = child.err.number()}};
    const auto waited = env.wait(watches, std::nullopt);
    pass_on(child.out);
    pass_on(child.err);
    BERTH_ASSIGN(const auto status, env.reap(child));
    if (status && status->signal != 0) return fmt::format("ended by signal {}", status->signal);
    if (status) return status->code == 0 ? std::string() : fmt::format("exit {}", status->code);
    if (waited && env.stop_signals() == stops) continue;
    (void)env.signal_group(child.pid, SIGKILL);
    if (!waited) return std::unexpected(waited.error());
    return fail(ErrorKind::interrupted, "stopped");
  }
}

void after_end(os::Env& env, run::Context& context, const store::RunRecord& record) {
  const auto status = run_once(env, context, record);
  if (!status)
    print_error(fmt::format("{}: on_end failed: {}\n", record.name, status.error().message));
  if (!store::is_open(record.state)) start_telling(env, context, record, exec::Notify::Event::end);
}

}  // namespace berth::cli
