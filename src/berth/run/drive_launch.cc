// From a task to the process that runs it.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/exec/command.h"
#include "berth/os/failpoint.h"
#include "berth/os/log.h"
#include "berth/run/drive.h"
#include "berth/run/passive.h"

namespace berth::run {
namespace {

/// How much work waits at a worker behind what runs there, of tasks that are over before the next
/// could be sent: enough for a machine that is an ocean away.
constexpr Duration kWorkAhead = std::chrono::milliseconds(100);
constexpr std::int64_t kMostAhead = 16;
/// After that it is given back: what it stands behind is not brief after all.
constexpr Duration kWaitsMost = std::chrono::milliseconds(500);

/// As a person would type it in a shell.
std::string as_typed(const std::vector<std::string>& argv) {
  if (auto text = exec::text_for_shell(argv)) return *std::move(text);
  std::string line;
  for (const auto& word : argv) line += (line.empty() ? "" : " ") + shell_quote(word);
  return line;
}

}  // namespace

std::string uuids_json(std::span<const machine::DeviceShare> devices) {
  std::vector<std::string> uuids;
  for (const auto& device : devices) uuids.push_back(json_quote(device.uuid));
  return uuids.empty() ? "" : "[" + join(uuids, ",") + "]";
}

exec::Cause cause_of(const Error& error, exec::Cause otherwise) {
  switch (error.kind) {
    case ErrorKind::full:
    case ErrorKind::busy: return exec::Cause::short_of_means;
    case ErrorKind::interrupted: return exec::Cause::stopped;
    default: return otherwise;
  }
}

/// Of a trial that somebody else carries out.
void Drive::ask(const exec::Launch& launch) {
  Question question{.label = task(launch.task).label,
                    .command = as_typed(launch.argv),
                    .directory = launch.directory,
                    .metrics = manner_.asked,
                    .answer = [this, number = launch.task](std::string_view told) -> Status {
                      BERTH_ASSIGN(const auto answer, read_answer(told, manner_.asked));
                      return leave_answer(env_, answers_directory(directory_), number, answer);
                    }};
  if (launch.argv.empty())
    for (const auto& [name, value] : task(launch.task).params)
      question.command += fmt::format("{}{}={}", question.command.empty() ? "" : " ", name, value);
  observer_.on_question(question);
}

/// Brief tasks, to workers that would idle while they wait to hear of the next. A search that
/// learns is asked as late as can be.
void Drive::send_ahead() {
  if (!brief_.are_any() || manner_.learns) return;
  const Mono now = env_.now();
  const schedule::Scheduler::AheadPolicy policy{
      .most = [&](TaskNumber number) -> std::size_t {
        const Duration typical = brief_.typical(name_of(number));
        if (typical == Duration(0)) return 0;
        return static_cast<std::size_t>(
            std::clamp<std::int64_t>(kWorkAhead / typical, 1, kMostAhead));
      },
      .ends_soon =
          [&](TaskNumber number, Token token) {
            return brief_.typical(name_of(number)) > Duration(0) && !brief_.overdue(token, now);
          }};
  std::vector<schedule::Effect> effects;
  for (const auto& berthed : berthed_)
    if (berthed->worker->queues()) scheduler_->send_ahead(berthed->id, policy, effects);
  for (const auto& effect : effects) launch(std::get<schedule::StartAttempt>(effect));
}

void Drive::launch(const schedule::StartAttempt& start) {
  store::TaskRecord& of = task(start.task);
  of.metrics.clear();
  auto launch = workload_->launch(of, start.token);
  const Wants wants = workload_->wants(of);
  const machine::Request request{wants.resources, name_of(start.task), wants.selection};
  if (os::logging())
    os::log_event(
        env_, "launch",
        {{"token", fmt::format("{}", start.token.value)}, {"request", machine::to_json(request)}});
  const auto on = std::ranges::find(berthed_, start.worker, [](const auto& b) { return b->id; });
  BERTH_ASSERT(on != berthed_.end());
  const bool ahead = start.behind.value > 0;
  const auto placed =
      ahead ? Result<machine::Block>(machine::Block{}) : (*on)->machine->dry_run(request);
  const std::string devices = placed ? uuids_json(placed->devices) : "";
  live_.emplace(start.token.value, Live{.worker = start.worker,
                                        .task = start.task,
                                        .log_begin = log_.end(),
                                        .devices = devices,
                                        .ahead = ahead});
  batch_.emplace_back(store::AttemptStarted{start.task, start.token, env_.wall(),
                                            to_json(wants.resources), (*on)->alloc.machine,
                                            devices});
  if (!ahead) count(start.task, store::TaskState::running);
  if (launch) {
    launch->behind = unbegun_.resolve(start.behind);
    launch->waits_most = kWaitsMost;
    (*on)->worker->tell(*std::move(launch));
    return os::failpoint("after launch");
  }
  if (ahead) unbegun_.add(start.token, start.behind);
  unstarted_.push_back({.task = start.task,
                        .token = start.token,
                        .cause = cause_of(launch.error(), exec::Cause::cannot_start),
                        .exit_code = {},
                        .detail = launch.error().message});
}

}  // namespace berth::run
