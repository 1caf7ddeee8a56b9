#include "berth/engine/runs/detach.h"

#include <array>

#include "berth/base/text.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/runs/drive.h"
#include "berth/exec/environment.h"
#include "berth/os/spawn.h"
#include "berth/run/drive/prepare.h"
#include "berth/run/state/find_run.h"

namespace berth::engine {
namespace {

/// The environment of this process, and the state directory if the environment names another one.
exec::Environment environment_for(const run::Context& context) {
  const auto usual = run::state_directory(*context.env);
  const bool is_usual = usual && *usual == context.state_directory;
  exec::Environment environment = context.env->environment();
  if (!is_usual) exec::set(environment, "BERTH_DB", context.state_directory);
  return environment;
}

/// The text that the runner has appended to its log after that size.
std::string log_since(os::Env& env, const std::string& log, std::int64_t size) {
  constexpr std::size_t kMostText = 4096;
  const auto file = env.open_read(log);
  const auto text = file ? env.read_at(*file, size, kMostText) : Result<std::string>("");
  return text && !text->empty() ? std::string(trim(*text)) : "see " + log;
}

}  // namespace

Result<os::Fd> start_berth(const run::Context& context, const std::vector<std::string>& arguments,
                           const std::string& log) {
  os::Env& env = *context.env;
  os::SpawnSpec spec{.argv = {"berth"},
                     .environment = environment_for(context),
                     .directory = env.real_path(".").value_or("/"),
                     .log = log,
                     .is_detached = true};
  BERTH_ASSIGN(spec.program, run::find_executable(env, context.program, "/"));
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  BERTH_ASSIGN(os::Child child, env.spawn(spec));
  return std::move(child.exited);
}

Result<store::RunRecord> start(run::Context& context, const RunRequest& request, const Note& note) {
  BERTH_TRY(run::check_executable(*context.env, context.program, "/"));
  BERTH_ASSIGN(auto submission, read_submission(*context.env, request));
  BERTH_TRY(check(context, submission, note));
  BERTH_ASSIGN(auto record, submit(context, submission, note));
  BERTH_TRY(start_detached(context, record));
  return record;
}

Result<bool> resume_detached(run::Context& context, const std::string& name,
                             const ResumeRequest& request, const Note& note) {
  BERTH_ASSIGN(const auto record, run::find_run(context, name));
  BERTH_ASSIGN(const bool is_open, prepare_resume(context, record, request, note));
  if (is_open) BERTH_TRY(start_detached(context, record));
  if (is_open) return true;
  conclude(context, record, [&](std::string_view text) { note(std::string(trim(text))); });
  note(fmt::format("{} is finished already: {}, {}", record.name, store::name(record.state),
                   counts_text(record.counts)));
  return false;
}

Result<bool> retry_detached(run::Context& context, const std::string& name, RetryScope scope,
                            const ResumeRequest& request, const Note& note) {
  BERTH_ASSIGN(const auto record, run::find_run(context, name));
  BERTH_TRY(check_resume(record, request));
  BERTH_ASSIGN(const auto reopened, reopen(context, name, scope));
  if (reopened.empty() && scope == RetryScope::failed)
    note(fmt::format("nothing of {} has failed", name));
  return resume_detached(context, name, request, note);
}

Status start_detached(run::Context& context, const store::RunRecord& record) {
  constexpr Duration kStartTimeout = std::chrono::seconds(10);
  os::Env& env = *context.env;
  const std::string directory = run::run_directory(context, record.name);
  BERTH_TRY(env.make_directory(directory, 0700));
  const std::string log = run::runner_log(directory);
  const auto before = env.status(log);
  const std::int64_t size_before = before ? before->size : 0;
  std::vector<std::string> arguments{"resume", record.name};
  if (context.task_environment) arguments.emplace_back("--env-of-submission");
  BERTH_ASSIGN(const os::Fd exited, start_berth(context, arguments, log));
  for (const Mono until = env.now() + kStartTimeout;;) {
    std::array watches{os::Watch{.fd = exited.number()}};
    BERTH_TRY(env.wait(watches, env.now()));
    const bool has_ended = watches[0].ready;
    BERTH_ASSIGN(const auto now, context.store->find_run(record.name));
    const bool taken_over = now.epoch > record.epoch;
    // Before the store says that it runs, a berth wait would take how it ended the last time.
    if (taken_over && (store::is_open(now.state) || now.ended != record.ended)) return {};
    if (has_ended || (!taken_over && env.now() >= until))
      return fail(ErrorKind::io, "the runner of {} did not start: {}", record.name,
                  log_since(env, log, size_before));
    BERTH_TRY(env.wait({}, env.now() + std::chrono::milliseconds(5)));
  }
}

}  // namespace berth::engine
