#include "berth/run/drive/passive_worker.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/command.h"
#include "berth/exec/metrics.h"

namespace berth::run {
namespace {

constexpr std::size_t kLongestAnswer = 4096;
constexpr std::string_view kFailed = "failed", kAuptimizersMark = "#Auptimizer:";
/// How often answers are looked for: by a program that answers at once, and by a person.
constexpr Duration kSoon = std::chrono::milliseconds(10), kLater = std::chrono::milliseconds(200);
constexpr Duration kLively = std::chrono::seconds(2);

std::string answer_file(const std::string& directory, TaskNumber task) {
  return fmt::format("{}/{}", directory, task.value);
}

/// After "failed": why, or nothing.
std::string_view reason_of(std::string_view text) {
  text.remove_prefix(kFailed.size());
  return trim(text.starts_with(':') ? text.substr(1) : text);
}

bool says_failed(std::string_view text) {
  return text == kFailed || text.starts_with("failed ") || text.starts_with("failed:");
}

std::string as_printed(std::string_view words) {
  return fmt::format("::berth {}\n", words);
}

/// As a person would type it in a shell.
std::string as_typed(const std::vector<std::string>& argv) {
  if (auto text = exec::text_for_shell(argv)) return *std::move(text);
  std::string line;
  for (const auto& word : argv) line += (line.empty() ? "" : " ") + shell_quote(word);
  return line;
}

}  // namespace

Result<std::string> read_answer(std::string_view told, const std::vector<std::string>& goals) {
  told = trim(told);
  const auto wanted = [&](std::string_view why) {
    return fail(ErrorKind::invalid, "{}: expected {}, NAME=VALUE …, or failed, got '{}'", why,
                join(goals, " "), clip(told));
  };
  if (told.size() > kLongestAnswer) return wanted("too long");
  if (says_failed(told))
    return fmt::format("{}: {}\n", kFailed, clip(reason_of(told), kLongestAnswer));
  const bool pasted = told.starts_with(kAuptimizersMark);  // with whatever more its script found
  std::string text(pasted ? told.substr(kAuptimizersMark.size()) : told);
  std::ranges::replace(text, ',', ' ');
  std::string line;
  std::size_t bare = 0;
  for (const auto word : words(text)) {
    const bool named = word.find('=') != std::string_view::npos;
    if (!named && !pasted && bare == goals.size()) return wanted("more values than goals");
    std::string name;
    if (!named)
      name = (bare < goals.size() ? goals[bare] : fmt::format("score_{}", bare + 1)) + "=";
    bare += named ? 0 : 1;
    line += fmt::format("{}{}{}", line.empty() ? "" : " ", name, word);
  }
  const auto reading = exec::MetricReader().feed(as_printed(line));
  if (line.empty() || !reading.unreadable.empty()) return wanted("not a number");
  const auto& metrics = reading.metrics;
  if (std::ranges::find(metrics, goals.front(), &std::pair<std::string, double>::first) ==
      metrics.end())
    return wanted("the goal is missing");
  return as_printed(line);
}

Status leave_answer(os::Env& env, const std::string& directory, TaskNumber task,
                    std::string_view text) {
  BERTH_TRY(env.make_directory(directory, 0700));
  const std::string file = answer_file(directory, task);
  BERTH_TRY(env.replace_file(file, text, 0600));
  BERTH_TRY(env.sync(file));
  return env.sync(directory);
}

std::vector<TaskNumber> answered(os::Env& env, const std::string& directory) {
  std::vector<TaskNumber> tasks;
  const auto names = env.list(directory);
  if (!names) return tasks;
  for (const auto& name : *names)
    if (const auto number = parse_integer(name)) tasks.push_back({*number});
  return tasks;
}

std::vector<std::string> asked_of(const experiment::Program& program) {
  std::vector<std::string> metrics;
  if (program.goal) metrics.push_back(program.goal->metric);
  for (const auto& goal : program.further_goals) metrics.push_back(goal.metric);
  for (const auto& constraint : program.constraints)
    if (std::ranges::find(metrics, constraint.metric) == metrics.end())
      metrics.push_back(constraint.metric);
  metrics.insert(metrics.end(), program.score_labels.begin(), program.score_labels.end());
  return metrics;
}

Question question_of(os::Env& env, const std::string& run_directory, const store::TaskRecord& task,
                     const exec::Launch& launch, const std::vector<std::string>& metrics) {
  Question question{.label = task.label,
                    .command = as_typed(launch.argv),
                    .directory = launch.directory,
                    .metrics = metrics,
                    .answer = [&env, run_directory, number = task.number,
                               metrics](std::string_view told) -> Status {
                      BERTH_ASSIGN(const auto answer, read_answer(told, metrics));
                      return leave_answer(env, answers_directory(run_directory), number, answer);
                    }};
  if (launch.argv.empty())
    for (const auto& [name, value] : task.params)
      question.command += fmt::format("{}{}={}", question.command.empty() ? "" : " ", name, value);
  return question;
}

void PassiveWorker::send(const exec::ToWorker& message) {
  const auto stop = [&](const Open& open) {
    end(open, exec::Cause::stopped, {});
    return true;
  };
  if (const auto* launch = std::get_if<exec::Launch>(&message)) {
    Open open{launch->task, launch->token, std::nullopt};
    if (launch->timeout > Duration(0)) open.limit = env_.now() + launch->timeout;
    pending_.emplace_back(exec::Started{launch->task, launch->token, {}, {}});
    open_.push_back(open);
    lively_until_ = env_.now() + kLively;
    if (!env_.status(answer_file(directory_, launch->task))) ask_(*launch);
  } else if (const auto* cancel = std::get_if<exec::Cancel>(&message)) {
    std::erase_if(open_,
                  [&](const Open& open) { return open.token == cancel->token && stop(open); });
  } else {
    std::erase_if(open_, stop);
  }
  looks_.no_later_than(env_.now());
}

void PassiveWorker::look_at_all() {
  const Mono now = env_.now();
  for (const auto& open : std::vector(open_)) look(open, now);
  if (!open_.empty()) looks_.set(now + (now < lively_until_ ? kSoon : kLater));
}

void PassiveWorker::take_messages(std::vector<exec::FromWorker>& messages) {
  std::ranges::move(std::exchange(pending_, {}), std::back_inserter(messages));
  std::ranges::move(std::exchange(read_, {}), std::back_inserter(taken_));
}

void PassiveWorker::look(const Open& open, Mono now) {
  const auto text = env_.read_file(answer_file(directory_, open.task), kLongestAnswer + 64);
  const bool late = open.limit && now >= *open.limit;
  if (!text && text.error().kind == ErrorKind::not_found && !late) return;
  std::erase_if(open_, [&](const Open& other) { return other.token == open.token; });
  lively_until_ = now + kLively;
  if (!text && late)
    return end(open, exec::Cause::time_limit, "its score was not reported in time");
  if (!text) return end(open, exec::Cause::exit_code, text.error().message);
  read_.push_back(open.task);
  pending_.emplace_back(exec::Output{open.task, open.token, exec::Stream::out, *text});
  if (says_failed(*text)) return end(open, exec::Cause::exit_code, std::string(reason_of(*text)));
  auto reading = exec::MetricReader().feed(*text);
  for (auto& [name, value] : reading.metrics)
    pending_.emplace_back(exec::Metric{open.task, open.token, std::move(name), value});
  end(open, exec::Cause::ok, std::move(reading.missing));
}

void PassiveWorker::end(const Open& open, exec::Cause cause, std::string detail) {
  auto ended = exec::ended_as(cause, open.task, open.token, std::move(detail));
  if (cause == exec::Cause::ok) ended.exit_code = 0;
  if (cause == exec::Cause::exit_code) ended.exit_code = 1;
  pending_.emplace_back(std::move(ended));
}

void PassiveWorker::acknowledge() {
  for (const auto task : taken_) (void)env_.remove_file(answer_file(directory_, task));
  taken_.clear();
}

}  // namespace berth::run
