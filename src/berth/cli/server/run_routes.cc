#include "berth/cli/server/run_routes.h"

#include <malloc.h>

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/cli/server/own_command.h"
#include "berth/engine/context.h"
#include "berth/engine/queries/queries.h"
#include "berth/engine/queries/run_json.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/queries/task_explanation.h"
#include "berth/engine/runs/detach.h"
#include "berth/engine/runs/request_json.h"
#include "berth/os/wake.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

using api::Role;

constexpr std::size_t kMostNames = 16, kLongestName = 512;
constexpr std::size_t kMostFreeMemory = 16U << 20;  // bytes that the allocator may keep
constexpr std::string_view kRuns = "runs";

/// What one request works on. Requests are answered on several threads, and a Context belongs to
/// one.
struct Work {
  os::StopSource stop = {};  // stop() counts as a stop signal, which is for this request alone
  std::unique_ptr<os::Env> env = os::posix_env(stop);
  engine::Context context = {};
  std::vector<std::pair<std::string, std::string>> query = {};
  const api::Request* request = nullptr;
  std::vector<std::string> notes = {};

  const std::string& name() const { return request->parts.front(); }
  engine::Note note() {
    return [this](const std::string& text) { notes.push_back(text); };
  }
  std::string value(std::string_view key) const {
    const auto at = std::ranges::find(query, key, &std::pair<std::string, std::string>::first);
    return at == query.end() ? "" : at->second;
  }
};

using Answer = Result<std::string>(Work&);

Result<std::string> list(Work& work) {
  BERTH_ASSIGN(const auto runs, engine::list_runs(work.context, true));
  return engine::runs_json(runs);
}

/// The explanation of a run, or of a task such as "digits-3/17".
Result<std::string> why(Work& work) {
  const auto path = engine::parse_task_path(work.name());
  BERTH_ASSIGN(const auto run, engine::details_of(work.context, path.run, {.tasks = false}));
  if (path.task.empty()) {
    BERTH_ASSIGN(const auto explained, engine::explain_run(work.context, run.shown.record));
    return engine::why_run_json(explained);
  }
  BERTH_ASSIGN(const auto task, engine::explain_task(work.context, run.shown.record, path.task));
  return engine::why_json(task.run, task.task, task.attempts, task.why, task.because, task.report);
}

Result<std::string> show_run(Work& work, bool is_summary) {
  if (!engine::parse_task_path(work.name()).task.empty()) return why(work);
  BERTH_ASSIGN(const auto run,
               engine::details_of(work.context, work.name(),
                                  {.tasks = !is_summary, .most_failures = render::kMostRows}));
  const auto all = engine::in_turn(run.tasks);
  return engine::show_json(run.shown, is_summary ? engine::Order() : all, &all);
}

Result<std::string> show(Work& work) {
  return show_run(work, false);
}

Result<std::string> summary(Work& work) {
  return show_run(work, true);
}

Result<std::string> best(Work& work) {
  BERTH_ASSIGN(const auto best, engine::best_of(work.context, work.name()));
  return engine::task_json(best.record, best.task, best.program);
}

Result<std::string> compare(Work& work) {
  std::vector<std::string> runs;
  for (const auto& [key, value] : work.query)
    if (key == "run") runs.push_back(value);
  BERTH_TRY(check_names(*work.request, runs));
  if (runs.size() < 2) return fail(ErrorKind::usage, "run: expected two runs or more");
  const std::string direction = work.value("direction");
  if (!direction.empty() && direction != "max" && direction != "min")
    return fail(ErrorKind::usage, "direction: expected max or min, got '{}'", clip(direction));
  const auto maximize = direction.empty() ? std::nullopt : std::optional(direction == "max");
  BERTH_ASSIGN(const auto comparison,
               engine::compare(work.context, runs, work.value("metric"), maximize));
  return engine::compare_json(comparison);
}

std::string said_json(const Work& work) {
  return JsonWriter().object().add("said", join(work.notes, "\n")).end().take() + "\n";
}

/// A run that a runner has just taken over.
Result<std::string> begun_json(Work& work, const std::string& name) {
  BERTH_ASSIGN(const auto run, engine::details_of(work.context, name, {}));
  return engine::show_json(run.shown, run.tasks);
}

Result<std::string> submit(Work& work) {
  BERTH_ASSIGN(const auto request, engine::read_request(work.request->body));
  BERTH_ASSIGN(const auto record, engine::start(work.context, request, work.note()));
  BERTH_ASSIGN(const std::string begun, begun_json(work, record.name));
  JsonWriter json;
  std::string text =
      json.object().add("name", record.name).key("notes").list(work.notes).end().take();
  text.back() = ',';
  return text + begun.substr(1);
}

Result<std::string> stop(Work& work) {
  BERTH_ASSIGN(const auto unreachable, engine::stop(work.context, work.name(), work.note()));
  if (unreachable.empty()) return said_json(work);
  for (const auto& one : unreachable) work.notes.push_back(run::to_text(one, work.name()));
  return fail(ErrorKind::busy, "{}", join(work.notes, "\n"));
}

Result<std::string> resume(Work& work) {
  BERTH_ASSIGN(const bool begun,
               engine::resume_detached(work.context, work.name(), {}, work.note()));
  return begun ? begun_json(work, work.name()) : said_json(work);
}

Result<std::string> retry(Work& work) {
  BERTH_ASSIGN(const bool begun,
               engine::retry_detached(work.context, work.name(), engine::RetryScope::failed, {},
                                      work.note()));
  return begun ? begun_json(work, work.name()) : said_json(work);
}

struct RunCall {
  api::Call call;
  Answer* answer;
};
constexpr RunCall kCalls[] = {
    {{"GET", "/v1/runs", Role::read, kRuns, "all runs, the oldest first", "Runs"}, list},
    {{"POST", "/v1/runs", Role::control, kRuns,
      "start a command, an experiment or a flow; a runner in the background drives it", "Submitted",
      "RunRequest", "", 201},
     submit},
    {{"GET", "/v1/runs/{run}", Role::read, kRuns, "a run with all of its tasks", "Show"}, show},
    {{"GET", "/v1/runs/{run}/summary", Role::read, kRuns, "a run without its tasks", "Summary"},
     summary},
    {{"GET", "/v1/runs/{run}/best", Role::read, kRuns, "the best trial", "Best"}, best},
    {{"GET", "/v1/runs/{run}/why", Role::read, kRuns,
      "the tasks that a run waits for, the causes of failures, and its end", "WhyRun"},
     why},
    {{"GET", "/v1/tasks/{task}/why", Role::read, kRuns, "why a task waits, runs or failed", "Why"},
     why},
    {{"GET", "/v1/compare", Role::read, kRuns, "compare runs", "Comparison", "",
      "run metric direction"},
     compare},
    {{"POST", "/v1/runs/{run}/stop", Role::control, kRuns, "stop a run", "Said"}, stop},
    {{"POST", "/v1/runs/{run}/resume", Role::control, kRuns, "resume a run", "WentOn"}, resume},
    {{"POST", "/v1/runs/{run}/retry", Role::control, kRuns, "retry the failed tasks", "WentOn"},
     retry},
};

Result<std::string> answer_to(const RunCall& own, const std::string& berth,
                              const api::Request& request) {
  BERTH_TRY(check_names(request, request.parts));
  Work work;
  work.request = &request;
  BERTH_ASSIGN(work.query, api::read_query(request.query, own.call.query));
  BERTH_ASSIGN(work.context, engine::open_context(*work.env));
  work.context.program = berth;
  return own.answer(work);
}

/// The decisions of berth autoscale, as a task: "autoscale/chat".
bool is_of_autoscale(const RunCall& own, const api::Request& request) {
  return own.answer == why && request.parts.front().starts_with("autoscale/");
}

}  // namespace

Status check_names(const api::Request& request, std::span<const std::string> names) {
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.size() <= kLongestName && !name.starts_with('-') &&
           std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  };
  if (names.size() <= kMostNames && std::ranges::all_of(names, is_name)) return {};
  return fail(ErrorKind::usage, "{}: expected names of runs and tasks", clip(request.path));
}

std::vector<api::Route> run_routes(const std::string& berth) {
  std::vector<api::Route> routes;
  for (const RunCall& own : kCalls)
    routes.push_back({own.call, [&own, berth](const api::Request& request) {
                        auto answer = answer_to(own, berth, request);
                        // The allocator keeps the memory of 100,000 tasks otherwise.
                        if (::mallinfo2().fordblks >= kMostFreeMemory) ::malloc_trim(0);
                        if (!answer && answer.error().kind == ErrorKind::not_found &&
                            is_of_autoscale(own, request))
                          return answer_of({.program = berth,
                                            .words = {"why", request.parts.front(), "--json"},
                                            .is_abandoned = request.is_abandoned});
                        if (!answer) return api::failed(answer.error());
                        api::Reply reply{.status = own.call.status, .body = *std::move(answer)};
                        reply.ends_line = false;
                        return reply;
                      }});
  return routes;
}

}  // namespace berth::cli
