#include "berth/api/calls/run_calls.h"

#include "berth/api/calls/body.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/engine/cache.h"
#include "berth/engine/fleets/autoscale.h"
#include "berth/engine/new_file.h"
#include "berth/engine/queries/flow_steps.h"
#include "berth/engine/queries/queries.h"
#include "berth/engine/queries/run_json.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/queries/trace.h"
#include "berth/engine/runs/detach.h"
#include "berth/engine/runs/notifications.h"
#include "berth/engine/runs/removal.h"
#include "berth/engine/runs/request_json.h"
#include "berth/engine/runs/run_plan.h"
#include "berth/engine/studies/outside_trials.h"
#include "berth/render/fleets/autoscale.h"
#include "berth/render/new_file.h"
#include "berth/render/runs/analysis.h"
#include "berth/render/runs/cache.h"
#include "berth/render/runs/explanation.h"
#include "berth/render/runs/flow_graph.h"
#include "berth/render/runs/outside_trials.h"
#include "berth/render/runs/removal.h"
#include "berth/render/runs/run_plan.h"
#include "berth/render/runs/run_report.h"
#include "berth/render/runs/runs.h"
#include "berth/render/runs/task_output.h"
#include "berth/render/runs/trials.h"

namespace berth::api {

struct TrialResult {
  std::string result;
};
struct Points {
  std::vector<std::string> points;
};
struct RetryRequest {
  engine::RetryScope scope = engine::RetryScope::failed;
};
struct CacheCollection {
  std::string unused_for = "30d";
};

constexpr auto kScopeNames = names<engine::RetryScope>({{engine::RetryScope::failed, "failed"},
                                                        {engine::RetryScope::all, "all"},
                                                        {engine::RetryScope::file, "file"}});
constexpr std::string_view kFileKinds[] = {"experiment", "flow", "fleet"};

}  // namespace berth::api

namespace berth {

template <>
inline constexpr const auto& kNamesOf<engine::RetryScope> = api::kScopeNames;
template <>
inline constexpr const auto& kNamesOf<exec::Notify::Event> = exec::Notify::kEventNames;

template <>
inline constexpr auto kRecordOf<api::TrialResult> = Record{
    "TrialResult", "The result of a trial: a score, NAME=VALUE pairs, or 'failed' and a reason.",
    key("result", &api::TrialResult::result)};
template <>
inline constexpr auto kRecordOf<api::Points> = Record{
    "Points", "Points such as \"lr=0.1 net=deep\"; the search proposes parameters that one omits.",
    key("points", &api::Points::points)};
template <>
inline constexpr auto kRecordOf<engine::ResumeRequest> =
    Record{"ResumeRequest", "How a run continues.",
           optional_key("overwrite", &engine::ResumeRequest::overwrite,
                        "of a flow: replace outputs that are protected or were edited"),
           optional_key("send_large", &engine::ResumeRequest::send_large,
                        "send the experiment's folder although it is large"),
           optional_key("env_of_submission", &engine::ResumeRequest::env_of_submission,
                        "use the environment variables of the submission")};
template <>
inline constexpr auto kRecordOf<api::RetryRequest> =
    Record{"RetryRequest", "Which tasks run again, and how.",
           optional_key("scope", &api::RetryRequest::scope,
                        "failed tasks (default), all tasks, or all tasks of a flow as its file is "
                        "now")};
template <>
inline constexpr auto kRecordOf<engine::NotificationRequest> = Record{
    "NotificationRequest", "Which notification to send.",
    optional_key("event", &engine::NotificationRequest::event, "the event (default: end)"),
    optional_key("task", &engine::NotificationRequest::task,
                 "the task that the event is about, such as 17"),
    optional_key("only", &engine::NotificationRequest::only,
                 "the number of the only target to notify, from 1 (default: 0, all targets)")};
template <>
inline constexpr auto kRecordOf<engine::NewFileRequest> =
    Record{"NewFileRequest",
           "Which file to write.",
           optional_key("kind", &engine::NewFileRequest::kind, api::kFileKinds,
                        "the kind (default: according to the folder)"),
           optional_key("script", &engine::NewFileRequest::script,
                        "the script of an experiment (default: the first one in the folder)"),
           optional_key("file", &engine::NewFileRequest::file,
                        "the file to write (default: sweep.yaml, flow.yaml or fleet.json)"),
           optional_key("directory", &engine::NewFileRequest::directory,
                        "the folder to which relative paths refer (default: the server's working "
                        "directory)")};
template <>
inline constexpr auto kRecordOf<api::CacheCollection> = Record{
    "CacheCollection", "Which entries to remove.",
    optional_key("unused_for", &api::CacheCollection::unused_for,
                 "remove results that were unused for this long, such as 7d (default: 30d)")};

}  // namespace berth

namespace berth::api {
namespace {

constexpr std::string_view kRuns = "runs";
constexpr std::string_view kText = "text/plain; charset=utf-8", kCsv = "text/csv; charset=utf-8",
                           kHtml = "text/html; charset=utf-8",
                           kMarkdown = "text/markdown; charset=utf-8";
constexpr std::int64_t kMostAttempts = 1'000'000;

Result<std::string> list(Work& work) {
  BERTH_ASSIGN(const auto runs, engine::list_runs(work.context, true));
  return engine::runs_json(runs);
}

/// The explanation of a run, of a task such as "digits-3/17", or of the decisions of
/// `berth autoscale` for a server: "autoscale/chat".
Result<std::string> why(Work& work) {
  const auto path = engine::parse_task_path(work.name());
  auto run = engine::find_run(work.context, path.run);
  if (!run && run.error().kind == ErrorKind::not_found && path.run == "autoscale" &&
      !path.task.empty())
    return json_of(engine::autoscale_history(*work.env, work.context.state_directory, path.task));
  BERTH_TRY(run);
  if (path.task.empty()) return json_of(engine::explain_run(work.context, *run));
  return json_of(engine::explain_task(work.context, *run, path.task));
}

Result<std::string> show_run(Work& work, bool is_summary) {
  if (!engine::parse_task_path(work.name()).task.empty()) return why(work);
  BERTH_ASSIGN(const auto run,
               engine::details_of(work.context, work.name(),
                                  {.tasks = !is_summary, .most_failures = render::kMostRows}));
  auto all = engine::in_turn(run.tasks);
  if (const auto column = work.value("sort"); !column.empty()) {
    BERTH_ASSIGN(all, engine::sorted_trials(run.tasks, run.program, column));
  }
  return engine::show_json(run.shown, is_summary ? engine::Order() : all, &all);
}

Result<std::string> show(Work& work) {
  return show_run(work, false);
}

Result<std::string> summary(Work& work) {
  return show_run(work, true);
}

/// The learning curves of the trials.
Result<std::string> curves(Work& work) {
  BERTH_ASSIGN(const auto run, engine::details_of(work.context, work.name(), {}));
  BERTH_ASSIGN(const auto curves, engine::curves_of(work.context, run));
  return visible_json(render::curves_json(run.program, curves));
}

Result<std::string> graph(Work& work) {
  BERTH_ASSIGN(const auto run, engine::details_of(work.context, work.name(), {}));
  const auto& record = run.shown.record;
  if (record.kind != "flow")
    return fail(ErrorKind::usage, "{} is not a flow: it has no graph", record.name);
  BERTH_ASSIGN(const auto flow, engine::flow_of(record));
  const auto steps = engine::step_counts(flow, record, run.tasks);
  return visible_json(render::to_json(render::FlowGraph{flow, steps, run.tasks}));
}

Result<std::string> trials_csv(Work& work) {
  BERTH_ASSIGN(const auto run, engine::details_of(work.context, work.name(), {}));
  auto order = engine::in_turn(run.tasks);
  if (const auto text = work.value("changed-since"); !text.empty()) {
    BERTH_ASSIGN(const Wall since, parse_utc(text));
    engine::remove_ended_before(order, since);
  }
  return visible_text(render::trials_csv(run.shown.record, order, false));
}

Result<std::string> trace(Work& work) {
  BERTH_ASSIGN(const auto text, engine::trace_of(work.context, work.name()));
  return visible_json(text);
}

/// The output of a run or a task, both streams in one, as far as it was printed.
struct OutputStream {
  engine::OutputReader reader;
  std::function<bool()> is_abandoned;
  std::string part = {};
  render::OutputText text;
  bool has_more = true;

  OutputStream(engine::OutputReader from, std::optional<render::Tail> tail,
               std::function<bool()> abandoned)
      : reader(std::move(from)),
        is_abandoned(std::move(abandoned)),
        text(reader.source(), tail,
             [this](exec::Stream, std::string_view bytes) { part += bytes; }) {}

  Result<std::optional<std::string>> next() {
    if (!has_more) return std::nullopt;
    if (is_abandoned && is_abandoned())
      return fail(ErrorKind::interrupted, "the client has left, or the server ends");
    BERTH_ASSIGN(has_more, reader.read_some([&](const auto& one) { text.add(one); }));
    if (!has_more) text.finish();
    return std::exchange(part, {});
  }
};

Result<std::string> log(Work& work) {
  engine::OutputRequest request{.path = work.name()};
  if (const auto text = work.value("attempt"); !text.empty()) {
    const auto attempt = parse_integer(text);
    if (!attempt || *attempt < 1 || *attempt > kMostAttempts)
      return fail(ErrorKind::usage, "--attempt: expected a whole number from 1 to {}, got '{}'",
                  kMostAttempts, clip(text));
    request.attempt = static_cast<int>(*attempt);
  }
  BERTH_ASSIGN(const auto tail, render::parse_tail(work.value("tail")));
  BERTH_ASSIGN(auto reader, engine::OutputReader::open(work.context, request));
  const auto stream =
      std::make_shared<OutputStream>(std::move(reader), tail, work.request->is_abandoned);
  work.more = [stream] { return stream->next(); };
  BERTH_ASSIGN(auto first, stream->next());  // before the status is sent
  return first.value_or("");
}

Result<std::string> compare(Work& work) {
  const auto runs = work.values("run");
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
  std::string named = JsonWriter().object().add("name", record.name).end().take();
  named.back() = ',';
  return named + with_notes(work, begun).substr(1);
}

/// What a run would do.
Result<std::string> plan(Work& work) {
  BERTH_ASSIGN(const auto request, engine::read_request(work.request->body));
  BERTH_ASSIGN(auto submission, engine::read_submission(*work.env, request));
  BERTH_TRY(engine::check(work.context, submission, work.note()));
  return json_of(engine::plan_of(work.context, submission));
}

/// {"kind": "experiment", "script": "train.py", "file": "lr.yaml", "directory": "/home/alice/work"}
Result<std::string> write_file(Work& work) {
  engine::NewFileRequest request;
  BERTH_TRY(read_body(work.request->body, request));
  return json_of(engine::write_new_file(*work.env, request));
}

/// Removes a run that no process uses any more.
Result<std::string> remove(Work& work) {
  BERTH_ASSIGN(const auto living, engine::check_removable(work.context, work.name()));
  if (!living.empty()) return fail(ErrorKind::busy, "{}", join(living, "\n"));
  BERTH_TRY(engine::remove_runs(work.context, {work.name()}));
  return render::to_json(render::Removed{{work.name()}});
}

/// {"result": "accuracy=0.93 loss=0.2"}, of a trial that is evaluated outside.
Result<std::string> tell(Work& work) {
  TrialResult result;
  BERTH_TRY(read_body(work.request->body, result));
  return json_of(engine::store_result(work.context, work.name(), result.result));
}

/// {"points": ["lr=0.1 net=deep"]}, which the search evaluates next.
Result<std::string> enqueue(Work& work) {
  Points points;
  BERTH_TRY(read_body(work.request->body, points));
  return json_of(engine::enqueue(work.context, work.name(), points.points, "points"));
}

Result<std::string> stop(Work& work) {
  BERTH_ASSIGN(const auto unreachable, engine::stop(work.context, work.name(), work.note()));
  if (unreachable.empty()) return said_json(work);
  for (const auto& one : unreachable) work.notes.push_back(run::to_text(one, work.name()));
  return fail(ErrorKind::busy, "{}", join(work.notes, "\n"));
}

Result<std::string> resume(Work& work) {
  engine::ResumeRequest request;
  BERTH_TRY(read_body(work.request->body, request));
  BERTH_ASSIGN(const bool begun,
               engine::resume_detached(work.context, work.name(), request, work.note()));
  return begun ? begun_json(work, work.name()) : said_json(work);
}

/// As resume(), with the tasks that run again: {"scope": "all"}.
Result<std::string> retry(Work& work) {
  RetryRequest retry;
  engine::ResumeRequest request;
  BERTH_TRY(read_body(work.request->body, retry, request));
  BERTH_ASSIGN(const bool begun, engine::retry_detached(work.context, work.name(), retry.scope,
                                                        request, work.note()));
  return begun ? begun_json(work, work.name()) : said_json(work);
}

/// {"event": "failure", "task": "17", "only": 2}. A client may send it again after a failure.
Result<std::string> notify(Work& work) {
  engine::NotificationRequest request{.retries = false};
  BERTH_TRY(read_body(work.request->body, request));
  if (request.only > exec::kMostNotify)
    return fail(ErrorKind::invalid, "request: only: expected 0 to {}", exec::kMostNotify);
  BERTH_ASSIGN(const auto record, engine::find_run(work.context, work.name()));
  BERTH_TRY(engine::notify(work.context, record, request,
                           [&](std::string_view line) { work.notes.emplace_back(trim(line)); }));
  return said_json(work);
}

Result<std::string> collect(Work& work) {
  CacheCollection request;
  BERTH_TRY(read_body(work.request->body, request));
  BERTH_ASSIGN(const Duration unused_for, read_age("unused_for", request.unused_for));
  return json_of(engine::examine_cache(work.context, false, unused_for));
}

Result<render::Document> report_of(Work& work) {
  BERTH_ASSIGN(const auto record, engine::find_run(work.context, work.name()));
  return render::report_of_run(work.context, record);
}

Result<std::string> report_html(Work& work) {
  BERTH_ASSIGN(const auto report, report_of(work));
  return visible_text(render::to_html(report));
}

Result<std::string> report_markdown(Work& work) {
  BERTH_ASSIGN(const auto report, report_of(work));
  return visible_text(render::to_markdown(report));
}

constexpr WorkCall kRunCalls[] = {
    {{"GET", "/v1/runs", Role::read, kRuns, "all runs, the oldest first", "Runs"}, list},
    {{"POST", "/v1/runs", Role::control, kRuns,
      "start a command, an experiment or a flow; a runner in the background drives it", "Submitted",
      "RunRequest", "", 201},
     submit},
    {{"GET", "/v1/runs/{run}", Role::read, kRuns, "a run with all of its tasks", "Show", "",
      "sort"},
     show},
    {{"GET", "/v1/runs/{run}/summary", Role::read, kRuns, "a run without its tasks", "Summary"},
     summary},
    {{"GET", "/v1/runs/{run}/best", Role::read, kRuns, "the best trial", "Best"},
     [](Work& work) { return json_of(engine::best_of(work.context, work.name())); }},
    {{"GET", "/v1/runs/{run}/why", Role::read, kRuns,
      "the tasks that a run waits for, the causes of failures, and its end", "WhyRun"},
     why},
    {{"GET", "/v1/tasks/{task}/why", Role::read, kRuns, "why a task waits, runs or failed", "Why"},
     why},
    {{"GET", "/v1/runs/{run}/curves", Role::read, kRuns, "learning curves of the trials", "Curves"},
     curves},
    {{"GET", "/v1/runs/{run}/graph", Role::read, kRuns, "the steps of a flow", "Graph"}, graph},
    {{"GET", "/v1/runs/{run}/trials.csv", Role::read, kRuns, "tasks as a table", kCsv, "",
      "changed-since"},
     trials_csv},
    {{"GET", "/v1/runs/{run}/importance", Role::read, kRuns,
      "the importance of the parameters for a metric", "Importance", "", "metric"},
     [](Work& work) {
       return json_of(engine::importance_of(work.context, work.name(), work.value("metric")));
     }},
    {{"GET", "/v1/runs/{run}/advice", Role::read, kRuns,
      "the resources that its steps or trials should request", "Advice"},
     [](Work& work) { return json_of(engine::advice_for(work.context, work.name())); }},
    {{"GET", "/v1/runs/{run}/log", Role::read, kRuns, "the output of its tasks", kText, "", "tail"},
     log},
    {{"GET", "/v1/runs/{run}/report", Role::read, kRuns, "the run as one page", kHtml},
     report_html},
    {{"GET", "/v1/runs/{run}/report.md", Role::read, kRuns, "the run as one page", kMarkdown},
     report_markdown},
    {{"GET", "/v1/runs/{run}/trace", Role::read, kRuns,
      "the timeline of the tasks, for trace viewers", "Trace"},
     trace},
    {{"GET", "/v1/tasks/{task}/log", Role::read, kRuns, "the output of a task", kText, "",
      "tail attempt"},
     log},
    {{"GET", "/v1/compare", Role::read, kRuns, "compare runs", "Comparison", "",
      "run metric direction"},
     compare},
    {{"POST", "/v1/run-plan", Role::control, kRuns, "what a run would do", "RunPlan", "RunRequest"},
     plan},
    {{"POST", "/v1/files", Role::control, kRuns,
      "write a commented first file: an experiment, a flow or a fleet", "NewFile", "NewFileRequest",
      "", 201},
     write_file,
     false},
    {{"GET", "/v1/cache", Role::read, kRuns, "what the cache of flows contains", "Cache"},
     [](Work& work) { return json_of(engine::examine_cache(work.context, false, std::nullopt)); }},
    {{"POST", "/v1/cache/verify", Role::control, kRuns,
      "read all entries of the cache, and set damaged ones aside", "Cache"},
     [](Work& work) { return json_of(engine::examine_cache(work.context, true, std::nullopt)); }},
    {{"POST", "/v1/cache/collect", Role::control, kRuns,
      "remove entries of the cache that no recent run needs", "Cache", "CacheCollection"},
     collect},
    {{"DELETE", "/v1/runs/{run}", Role::control, kRuns,
      "remove a run that has ended, with its output", "Removed"},
     remove},
    {{"GET", "/v1/runs/{run}/waiting", Role::read, kRuns,
      "the trials of a passive run that wait for a result", "Show"},
     [](Work& work) { return json_of(engine::waiting_trials(work.context, work.name(), false)); }},
    {{"POST", "/v1/tasks/{task}/result", Role::control, kRuns,
      "record the result of a trial that is evaluated outside", "Recorded", "TrialResult"},
     tell},
    {{"POST", "/v1/runs/{run}/points", Role::control, kRuns,
      "points that the search evaluates next", "Enqueued", "Points"},
     enqueue},
    {{"POST", "/v1/runs/{run}/stop", Role::control, kRuns, "stop a run", "Said"}, stop},
    {{"POST", "/v1/runs/{run}/resume", Role::control, kRuns, "resume a run", "WentOn",
      "ResumeRequest"},
     resume},
    {{"POST", "/v1/runs/{run}/retry", Role::control, kRuns,
      "retry the failed tasks, or those of a scope", "WentOn", "RetryRequest"},
     retry},
    {{"POST", "/v1/runs/{run}/notify", Role::control, kRuns,
      "send the notifications of a run, each in one attempt", "Said", "NotificationRequest"},
     notify},
};

}  // namespace

void add_run_request_schemas(JsonWriter& json) {
  add_schemas<TrialResult, Points, engine::ResumeRequest, engine::NotificationRequest,
              engine::NewFileRequest, CacheCollection>(json);
  add_schema<RetryRequest, engine::ResumeRequest>(json);
}

std::vector<Route> run_routes(const Home& home) {
  return routes_of(kRunCalls, home);
}

}  // namespace berth::api
