#include "berth/cli/notify.h"

#include <algorithm>
#include <utility>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/cli/detach.h"
#include "berth/cli/on_end.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/shared_options.h"
#include "berth/cli/trials_view.h"
#include "berth/remote/fetch_text.h"
#include "berth/run/find_run.h"
#include "berth/run/layout.h"
#include "berth/run/run_labels.h"
#include "berth/run/workload.h"

namespace berth::cli {
namespace {

using Event = exec::Notify::Event;

constexpr std::size_t kMostSecret = 4096;
/// Before each try. After the last one it is given up.
constexpr Duration kPauses[] = {Duration{}, std::chrono::seconds(2), std::chrono::seconds(15),
                                std::chrono::minutes(1), std::chrono::minutes(5)};

std::string directory_of(run::Context& context, const store::RunRecord& record) {
  return run::run_directory(context, record.name) + "/notified";
}

/// What stands in the file once somebody has been told: of an end, which one.
std::string mark_of(const store::RunRecord& record, Event event) {
  return event == Event::end ? fmt::format("{}\n", record.epoch) : "told\n";
}

std::string mark_file(const std::string& directory, Event event, std::size_t number) {
  return fmt::format("{}/{}-{}", directory, exec::Notify::kEventNames.name(event), number);
}

bool was_told(os::Env& env, const std::string& file, const std::string& mark) {
  const auto found = env.read_file(file, 64);
  return found && *found == mark;
}

struct News {
  Event event;
  std::string task;  // "" where it is about the run
  std::string text;  // a line
};

Result<News> news_of(run::Context& context, const store::RunRecord& record, Event event,
                     const std::string& task) {
  News news{event, task, {}};
  const std::string counts = counts_text(record.counts);
  BERTH_ASSIGN(const auto program, program_of(record));
  switch (event) {
    case Event::end: {
      BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
      const std::string best = best_text(record, tasks, program);
      news.text =
          fmt::format("{} is {}: {}{}", record.name, state_now(*context.env, record),
                      counts_and_error(record), best.empty() ? "" : "; " + std::string(trim(best)));
      break;
    }
    case Event::failure:
    case Event::first_result: {
      BERTH_ASSIGN(const auto found, find_task(context, record, task));
      const auto score = score_of(found, program);
      news.text = event == Event::failure
                      ? fmt::format("{}/{} failed: {}; berth why {}/{}", record.name, task,
                                    cause_text(found), record.name, task)
                      : fmt::format("{}/{} is the first that is done{}", record.name, task,
                                    score ? fmt::format(": {} {:.6g}", program.goal->metric, *score)
                                          : std::string());
      break;
    }
    case Event::stalled:
      news.text =
          fmt::format("{} is stalled: {}; see berth why {}", record.name, counts, record.name);
  }
  return news;
}

std::string body_of(const store::RunRecord& record, const News& news, os::Env& env) {
  JsonWriter json;
  json.object().add("version", 1).add("event", exec::Notify::kEventNames.name(news.event));
  json.add("run", record.name).add("kind", record.kind).add("state", state_now(env, record));
  json.add("text", news.text);
  if (!news.task.empty()) json.add("task", record.name + "/" + news.task);
  json.key("counts").object();
  json.add("waiting", record.counts.waiting).add("running", record.counts.running);
  json.add("done", record.counts.done).add("cached", record.counts.cached);
  json.add("failed", record.counts.failed).add("stopped", record.counts.stopped);
  return json.end().end().take();
}

/// The reply of the server is looked at for its status alone.
Status post(os::Env& env, const store::RunRecord& record, const exec::Notify& notify,
            const News& news) {
  BERTH_ASSIGN(const auto* cloud, remote::load_cloud(env));
  remote::HttpRequest request{.method = "POST", .url = notify.webhook};
  request.body = body_of(record, news, env);
  request.headers = {"Content-Type: application/json",
                     fmt::format("Berth-Event: {}", exec::Notify::kEventNames.name(news.event))};
  if (!notify.secret_file.empty()) {
    const bool absolute = notify.secret_file.front() == '/';
    const std::string file =
        absolute ? notify.secret_file : record.directory + "/" + notify.secret_file;
    BERTH_ASSIGN(const auto secret, env.read_file(file, kMostSecret));
    request.headers.push_back("Berth-Signature: " + exec::signature(trim(secret), request.body));
  }
  const auto session = cloud->open_session();
  BERTH_ASSIGN(const auto reply, remote::fetch_text(env, *session, std::move(request)));
  if (reply.status / 100 == 2) return {};
  return fail(ErrorKind::io, "{} answers {}: {}", shown(notify.webhook), reply.status,
              clip(reply.body, 200));
}

Status run_it(os::Env& env, os::SpawnSpec spec, std::string_view what) {
  BERTH_ASSIGN(const auto ended, run_to_its_end(env, spec));
  if (!ended.empty()) return fail(ErrorKind::io, "{}: {}", what, ended);
  return {};
}

Status send_mail(os::Env& env, const std::string& own, const store::RunRecord& record,
                 const exec::Notify& notify, const News& news) {
  const std::string file = own + ".mail";
  BERTH_TRY(env.replace_file(
      file,
      fmt::format("To: {}\nSubject: {}: {}\nMIME-Version: 1.0\nContent-Type: text/plain; "
                  "charset=utf-8\n\n{}\n\n  berth show {}\n",
                  notify.mail, record.name, exec::Notify::kEventNames.name(news.event), news.text,
                  record.name),
      0600));
  os::SpawnSpec spec;
  spec.argv = {"/bin/sh", "-c", "exec sendmail -oi -t < \"$1\"", "sh", file};
  spec.environment = env.environment();
  exec::set(spec.environment, "PATH",
            env.variable("PATH").value_or("/usr/bin:/bin") + ":/usr/sbin");
  spec.directory = "/";
  return run_it(env, std::move(spec), "sendmail");
}

Status start_command(os::Env& env, run::Context& context, const std::string& own,
                     const store::RunRecord& record, const exec::Notify& notify, const News& news) {
  const std::string file = own + ".json";
  BERTH_TRY(write_run_json(env, context, record, file));
  os::SpawnSpec spec;
  spec.argv = exec::command_line(notify.run, [](auto) { return std::nullopt; });
  spec.environment = run::inherited_environment(env);
  spec.directory = record.directory;
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"BERTH_RUN", record.name},
        {"BERTH_EVENT", std::string(exec::Notify::kEventNames.name(news.event))},
        {"BERTH_RUN_STATE", state_now(env, record)},
        {"BERTH_TASK", news.task.empty() ? "" : record.name + "/" + news.task},
        {"BERTH_TEXT", news.text},
        {"BERTH_RUN_JSON", file}})
    run::set(spec.environment, name, value);
  return run_it(env, std::move(spec), "the command");
}

std::string in_words(const exec::Notify& notify) {
  if (!notify.webhook.empty()) return shown(notify.webhook);
  if (!notify.mail.empty()) return notify.mail;
  return notify.run.words.empty() ? notify.run.text : join(notify.run.words, " ");
}

/// `own` begins the names of its files: others are told at the same time.
Status tell_one(os::Env& env, run::Context& context, const std::string& own,
                const store::RunRecord& record, const exec::Notify& notify, const News& news) {
  if (!notify.webhook.empty()) return post(env, record, notify, news);
  if (!notify.mail.empty()) return send_mail(env, own, record, notify, news);
  return start_command(env, context, own, record, notify, news);
}

struct NotifyOptions {
  std::string run, event = "end", task;
  int only = 0;

  void add_to(Options& options) {
    add_run(options, run);
    options.value("--event", event, "Send this event (default: end)")
        .named("EVENT")
        .one_of({"end", "failure", "first_result", "stalled"});
    options.value("--task", task, "Report this task, such as 17").named("TASK");
    options.value("--only", only, "Notify only the Nth target (default: all)")
        .between(0, static_cast<int>(exec::kMostNotify));
    options.example("berth notify digits-3");
  }
};

/// Tells one of them, again and again where that fails.
Status tell_patiently(os::Env& env, run::Context& context, const store::RunRecord& record,
                      const exec::Notify& notify, const News& news, const std::string& file) {
  Status told;
  for (const Duration pause : kPauses) {
    const Mono until = env.now() + pause;
    while (env.now() < until && env.stop_signals() == 0) BERTH_TRY(env.wait({}, until));
    if (env.stop_signals() > 0) return fail(ErrorKind::interrupted, "stopped");
    told = tell_one(env, context, file, record, notify, news);
    print_error(fmt::format("{} {}: notifying {}: {}\n", format_utc(env.wall()),
                            exec::Notify::kEventNames.name(news.event), in_words(notify),
                            told ? "done" : told.error().message));
    if (told) return env.replace_file(file, mark_of(record, news.event), 0600);
  }
  return told;
}

Result<int> notify(os::Env& env, const NotifyOptions& options) {
  os::install_stop_signals();
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
  const auto all = run::notify_of(record);
  if (all.empty())
    return fail(ErrorKind::invalid, "{} has no one to notify: add 'notify:' to its file",
                record.name);
  const Event event = *exec::Notify::kEventNames.value(options.event);
  const bool of_a_task = event == Event::failure || event == Event::first_result;
  if (of_a_task && options.task.empty())
    return fail(ErrorKind::usage, "--event {}: name the task with --task", options.event);
  BERTH_ASSIGN(const auto news, news_of(context, record, event, options.task));
  const std::string directory = directory_of(context, record);
  BERTH_TRY(env.make_directory(directory, 0700));
  Status first;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (options.only > 0 && static_cast<std::size_t>(options.only) != i + 1) continue;
    auto told = tell_patiently(env, context, record, all[i], news, mark_file(directory, event, i));
    if (!told && first) first = std::move(told);
  }
  if (!first) return std::unexpected(first.error());
  return 0;
}

}  // namespace

void start_telling(os::Env& env, run::Context& context, const store::RunRecord& record, Event event,
                   const std::string& task, Duration still) {
  const auto all = run::notify_of(record);
  const std::string directory = directory_of(context, record);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::ranges::find(all[i].on, event) == all[i].on.end() ||
        (event == Event::stalled && still < all[i].stalled_after) ||
        was_told(env, mark_file(directory, event, i), mark_of(record, event)))
      continue;
    std::vector<std::string> words{"notify",  record.name,
                                   "--event", std::string(exec::Notify::kEventNames.name(event)),
                                   "--only",  fmt::format("{}", i + 1)};
    if (!task.empty()) words.insert(words.end(), {"--task", task});
    Status status = env.make_directory(directory, 0700);
    if (status) status = start_apart(words, directory + "/log");
    if (!status)
      print_error(fmt::format("{}: {} is not notified: {}\n", record.name, in_words(all[i]),
                              status.error().message));
  }
}

Notifier::Notifier(os::Env& env, run::Context& context, const store::RunRecord& record,
                   run::Observer& shown)
    : env_(env),
      context_(context),
      record_(record),
      shown_(shown),
      notify_(run::notify_of(record)),
      moved_(env.now()) {}

void Notifier::tell_once(Event event, const std::string& task) {
  if (notify_.empty() || std::ranges::find(told_, event) != told_.end()) return;
  told_.push_back(event);
  start_telling(env_, context_, record_, event, task);
}

void Notifier::on_progress(const run::Progress& progress, Mono now) {
  shown_.on_progress(progress, now);
  const bool moved = !(progress.counts == counts_);
  const Duration before = std::exchange(still_, moved ? Duration{} : now - moved_);
  if (moved) {
    counts_ = progress.counts;
    moved_ = now;
  }
  const bool waits = counts_.waiting + counts_.running > 0;
  const bool longer = std::ranges::any_of(notify_, [&](const exec::Notify& notify) {
    return before < notify.stalled_after && still_ >= notify.stalled_after;
  });
  if (waits && longer) start_telling(env_, context_, record_, Event::stalled, "", still_);
}

void Notifier::on_task_end(const run::TaskEnd& end) {
  shown_.on_task_end(end);
  if (end.state == store::TaskState::failed && !end.again) tell_once(Event::failure, end.label);
  if (end.state == store::TaskState::done) tell_once(Event::first_result, end.label);
}

Command notify_command() {
  return command("notify", "Send a run's notifications again", notify);
}

}  // namespace berth::cli
