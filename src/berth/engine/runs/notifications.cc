#include "berth/engine/runs/notifications.h"

#include <algorithm>
#include <utility>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/queries/trials.h"
#include "berth/engine/runs/detach.h"
#include "berth/engine/runs/on_end.h"
#include "berth/os/spawn.h"
#include "berth/remote/transfer/fetch_text.h"
#include "berth/run/drive/workload.h"
#include "berth/run/state/find_run.h"
#include "berth/run/state/layout.h"
#include "berth/run/state/run_labels.h"

namespace berth::engine {
namespace {

using Event = exec::Notify::Event;

constexpr std::size_t kMostSecret = 4096;
/// Pauses before the tries. After the last one the target is given up.
constexpr Duration kPauses[] = {Duration{}, std::chrono::seconds(2), std::chrono::seconds(15),
                                std::chrono::minutes(1), std::chrono::minutes(5)};

std::string directory_of(run::Context& context, const store::RunRecord& record) {
  return run::run_directory(context, record.name) + "/notified";
}

/// The content of a target's mark file after it was notified; for an end, the epoch says which one.
std::string mark_of(const store::RunRecord& record, Event event) {
  return event == Event::end ? fmt::format("{}\n", record.epoch) : "told\n";
}

std::string mark_file(const std::string& directory, Event event, std::size_t number) {
  return fmt::format("{}/{}-{}", directory, exec::Notify::kEventNames.name(event), number);
}

bool was_notified(os::Env& env, const std::string& file, const std::string& mark) {
  const auto found = env.read_file(file, 64);
  return found && *found == mark;
}

/// What a notification says.
struct Notification {
  Event event;
  std::string task;  // "" if it is about the run
  std::string text;  // one line
};

Result<Notification> notification_of(run::Context& context, const store::RunRecord& record,
                                     Event event, const std::string& task) {
  Notification notification{event, task, {}};
  const std::string counts = counts_text(record.counts);
  BERTH_ASSIGN(const auto program, program_of(record));
  switch (event) {
    case Event::end: {
      BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
      const std::string best = best_text(record, tasks, program);
      notification.text = fmt::format(
          "{} is {}: {}{}", record.name, state_now(*context.env, record, context.state_directory),
          counts_and_error(record), best.empty() ? "" : "; " + std::string(trim(best)));
      break;
    }
    case Event::failure:
    case Event::first_result: {
      BERTH_ASSIGN(const auto found, run::find_task(context, record, task));
      const auto score = score_of(found, program);
      notification.text =
          event == Event::failure
              ? fmt::format("{}/{} failed: {}; berth why {}/{}", record.name, task,
                            cause_text(found), record.name, task)
              : fmt::format("{}/{} is the first that is done{}", record.name, task,
                            score ? fmt::format(": {} {:.6g}", program.goal->metric, *score)
                                  : std::string());
      break;
    }
    case Event::stalled:
      notification.text =
          fmt::format("{} is stalled: {}; see berth why {}", record.name, counts, record.name);
  }
  return notification;
}

std::string body_of(const run::Context& context, const store::RunRecord& record,
                    const Notification& notification) {
  JsonWriter json;
  json.object().add("version", 1).add("event", exec::Notify::kEventNames.name(notification.event));
  json.add("run", record.name)
      .add("kind", record.kind)
      .add("state", state_now(*context.env, record, context.state_directory));
  json.add("text", notification.text);
  if (!notification.task.empty()) json.add("task", record.name + "/" + notification.task);
  json.key("counts").object();
  json.add("waiting", record.counts.waiting).add("running", record.counts.running);
  json.add("done", record.counts.done).add("cached", record.counts.cached);
  json.add("failed", record.counts.failed).add("stopped", record.counts.stopped);
  return json.end().end().take();
}

/// Only the status of the server's reply counts.
Status post(run::Context& context, const store::RunRecord& record, const exec::Notify& notify,
            const Notification& notification) {
  os::Env& env = *context.env;
  BERTH_ASSIGN(const auto* cloud, remote::load_cloud(env));
  remote::HttpRequest request{.method = "POST", .url = notify.webhook};
  request.body = body_of(context, record, notification);
  request.headers = {
      "Content-Type: application/json",
      fmt::format("Berth-Event: {}", exec::Notify::kEventNames.name(notification.event))};
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

Status run_sender(os::Env& env, const os::SpawnSpec& spec, std::string_view what,
                  const Print& print) {
  BERTH_ASSIGN(const auto ended, run_process(env, spec, print));
  if (!ended.empty()) return fail(ErrorKind::io, "{}: {}", what, ended);
  return {};
}

Status send_mail(os::Env& env, const std::string& prefix, const store::RunRecord& record,
                 const exec::Notify& notify, const Notification& notification, const Print& print) {
  const std::string file = prefix + ".mail";
  BERTH_TRY(env.replace_file(
      file,
      fmt::format("To: {}\nSubject: {}: {}\nMIME-Version: 1.0\nContent-Type: text/plain; "
                  "charset=utf-8\n\n{}\n\n  berth show {}\n",
                  notify.mail, record.name, exec::Notify::kEventNames.name(notification.event),
                  notification.text, record.name),
      0600));
  os::SpawnSpec spec;
  spec.argv = {"/bin/sh", "-c", "exec sendmail -oi -t < \"$1\"", "sh", file};
  spec.environment = env.environment();
  exec::set(spec.environment, "PATH",
            env.variable("PATH").value_or("/usr/bin:/bin") + ":/usr/sbin");
  spec.directory = "/";
  return run_sender(env, spec, "sendmail", print);
}

Status run_command(run::Context& context, const std::string& prefix, const store::RunRecord& record,
                   const exec::Notify& notify, const Notification& notification,
                   const Print& print) {
  os::Env& env = *context.env;
  const std::string file = prefix + ".json";
  BERTH_TRY(write_run_json(context, record, file));
  os::SpawnSpec spec;
  spec.argv = exec::command_line(notify.run, [](auto) { return std::nullopt; });
  spec.environment = run::inherited_environment(env);
  spec.directory = record.directory;
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"BERTH_RUN", record.name},
        {"BERTH_EVENT", std::string(exec::Notify::kEventNames.name(notification.event))},
        {"BERTH_RUN_STATE", state_now(env, record, context.state_directory)},
        {"BERTH_TASK", notification.task.empty() ? "" : record.name + "/" + notification.task},
        {"BERTH_TEXT", notification.text},
        {"BERTH_RUN_JSON", file}})
    run::set(spec.environment, name, value);
  return run_sender(env, spec, "the command", print);
}

std::string in_words(const exec::Notify& notify) {
  if (!notify.webhook.empty()) return shown(notify.webhook);
  if (!notify.mail.empty()) return notify.mail;
  return notify.run.words.empty() ? notify.run.text : join(notify.run.words, " ");
}

/// Notifies one target once. The names of its files begin with `prefix`, because other targets are
/// notified at the same time.
Status send(run::Context& context, const std::string& prefix, const store::RunRecord& record,
            const exec::Notify& notify, const Notification& notification, const Print& print) {
  if (!notify.webhook.empty()) return post(context, record, notify, notification);
  if (!notify.mail.empty())
    return send_mail(*context.env, prefix, record, notify, notification, print);
  return run_command(context, prefix, record, notify, notification, print);
}

/// Notifies one target, and retries after a failure.
Status send_with_retries(run::Context& context, const store::RunRecord& record,
                         const exec::Notify& notify, const Notification& notification,
                         const std::string& file, bool retries, const Print& print) {
  os::Env& env = *context.env;
  Status sent;
  for (const Duration pause : kPauses) {
    const Mono until = env.now() + pause;
    while (env.now() < until && env.stop_signals() == 0) BERTH_TRY(env.wait({}, until));
    if (env.stop_signals() > 0) return fail(ErrorKind::interrupted, "stopped");
    sent = send(context, file, record, notify, notification, print);
    print(fmt::format("{} {}: notifying {}: {}\n", format_utc(env.wall()),
                      exec::Notify::kEventNames.name(notification.event), in_words(notify),
                      sent ? "done" : sent.error().message));
    if (sent) return env.replace_file(file, mark_of(record, notification.event), 0600);
    if (!retries) break;
  }
  return sent;
}

}  // namespace

Status notify(run::Context& context, const store::RunRecord& record,
              const NotificationRequest& request, const Print& print) {
  const Event event = request.event;
  const auto targets = run::notify_of(record);
  if (targets.empty())
    return fail(ErrorKind::invalid, "{} has no one to notify: add 'notify:' to its file",
                record.name);
  const bool needs_task = event == Event::failure || event == Event::first_result;
  if (needs_task && request.task.empty())
    return fail(ErrorKind::invalid, "--event {}: name the task with --task",
                exec::Notify::kEventNames.name(event));
  BERTH_ASSIGN(const auto notification, notification_of(context, record, event, request.task));
  const std::string directory = directory_of(context, record);
  BERTH_TRY(context.env->make_directory(directory, 0700));
  Status first;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (request.only > 0 && request.only != i + 1) continue;
    auto sent = send_with_retries(context, record, targets[i], notification,
                                  mark_file(directory, event, i), request.retries, print);
    if (!sent && first) first = std::move(sent);
  }
  return first;
}

void start_notifying(run::Context& context, const store::RunRecord& record, Event event,
                     const std::string& task, Duration still, const Print& print) {
  const auto targets = run::notify_of(record);
  const std::string directory = directory_of(context, record);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (std::ranges::find(targets[i].on, event) == targets[i].on.end() ||
        (event == Event::stalled && still < targets[i].stalled_after) ||
        was_notified(*context.env, mark_file(directory, event, i), mark_of(record, event)))
      continue;
    std::vector<std::string> arguments{
        "notify",  record.name,
        "--event", std::string(exec::Notify::kEventNames.name(event)),
        "--only",  fmt::format("{}", i + 1)};
    if (!task.empty()) arguments.insert(arguments.end(), {"--task", task});
    Status status = context.env->make_directory(directory, 0700);
    if (status)
      if (const auto started = start_berth(context, arguments, directory + "/log"); !started)
        status = std::unexpected(started.error());
    if (!status)
      print(fmt::format("{}: {} is not notified: {}\n", record.name, in_words(targets[i]),
                        status.error().message));
  }
}

Notifier::Notifier(run::Context& context, const store::RunRecord& record, run::Observer& next,
                   const Print& print)
    : context_(context),
      record_(record),
      next_(next),
      print_(print),
      targets_(run::notify_of(record)),
      moved_(context.env->now()) {}

void Notifier::notify_once(Event event, const std::string& task) {
  if (targets_.empty() || std::ranges::find(sent_, event) != sent_.end()) return;
  sent_.push_back(event);
  start_notifying(context_, record_, event, task, {}, print_);
}

void Notifier::on_progress(const run::Progress& progress, Mono now) {
  next_.on_progress(progress, now);
  const bool moved = !(progress.counts == counts_);
  const Duration before = std::exchange(still_, moved ? Duration{} : now - moved_);
  if (moved) {
    counts_ = progress.counts;
    moved_ = now;
  }
  const bool waits = counts_.waiting + counts_.running > 0;
  const bool longer = std::ranges::any_of(targets_, [&](const exec::Notify& target) {
    return before < target.stalled_after && still_ >= target.stalled_after;
  });
  if (waits && longer) start_notifying(context_, record_, Event::stalled, "", still_, print_);
}

void Notifier::on_task_end(const run::TaskEnd& end) {
  next_.on_task_end(end);
  if (end.state == store::TaskState::failed && !end.again) notify_once(Event::failure, end.label);
  if (end.state == store::TaskState::done) notify_once(Event::first_result, end.label);
}

}  // namespace berth::engine
