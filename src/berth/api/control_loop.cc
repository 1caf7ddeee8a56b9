#include "berth/api/control_loop.h"

#include <algorithm>

#include "berth/api/vllm_metrics.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/visible.h"
#include "berth/remote/command.h"

namespace berth::api {
namespace {

using fleet::Decision;
using fleet::Live;

constexpr int kMostFailed = 2;  // queries in a row: then it is Prometheus, and not the query
constexpr Duration kHookWithin = std::chrono::seconds(60);

/// Blanks between quotes are part of a value; others mean nothing.
std::string without_blanks(std::string_view selector) {
  std::string text;
  bool is_quoted = false;
  for (std::size_t i = 0; i < selector.size(); ++i) {
    const bool is_escaped = i > 0 && selector[i - 1] == '\\';
    if (selector[i] == '"' && !is_escaped) is_quoted = !is_quoted;
    if (is_quoted || selector[i] != ' ') text += selector[i];
  }
  return text;
}

Duration seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

}  // namespace

std::string selector_of(const LoopOptions& options, const std::string& name,
                        const fleet::Server& server) {
  const auto own = options.selectors.find(name);
  return own != options.selectors.end() ? own->second : selector_of(server.model);
}

Status check(const LoopOptions& options, const fleet::System& system) {
  BERTH_TRY(fleet::check(options.autoscaler));
  if (!(options.window_s > 0))
    return fail(ErrorKind::invalid, "the window: expected more than 0 s, got {}", options.window_s);
  BERTH_TRY(fleet::check_scalable(system));
  std::map<std::string, std::string> servers;
  for (const auto& [name, server] : system.servers) {
    const std::string selector = selector_of(options, name, server);
    const auto [other, is_new] = servers.emplace(without_blanks(selector), name);
    if (!is_new)
      return fail(ErrorKind::invalid,
                  "{} and {} would be measured by the same metrics, {{{}}}: distinguish them with "
                  "--select {}='LABEL=\"VALUE\"'",
                  other->second, name, selector, name);
  }
  for (const auto& [name, selector] : options.selectors)
    if (!system.servers.contains(name))
      return fail(ErrorKind::invalid, "--select: no server '{}' is known", clip(name));
  return {};
}

std::string decision_json(const Decision& d, const Live& live, Wall at, bool applies) {
  JsonWriter json;
  json.object().add("at", format_utc(at)).add("server", d.server).add("accelerator", d.accelerator);
  json.add("action", fleet::kActionNames.name(d.action)).add("applied", applies);
  json.add("current", d.current).add("desired", d.desired).add("needed", d.needed);
  json.add("reason", d.reason).add("plannedRate", d.planned_per_min).add("drift", d.drift);
  json.key("measured").object();
  for (const auto& [name, value] : {std::pair("arrivalRate", live.arrivals_per_min),
                                    {"servedRate", live.served_per_min},
                                    {"avgInTokens", live.in_tokens},
                                    {"avgOutTokens", live.out_tokens},
                                    {"ttft", live.ttft_ms},
                                    {"itl", live.itl_ms},
                                    {"running", live.running},
                                    {"waiting", live.waiting},
                                    {"replicas", live.replicas}})
    if (value) json.add(name, *value);
  json.end().end();
  return json.take();
}

ControlLoop::ControlLoop(os::Env& env, const remote::Cloud& cloud, const fleet::System& system,
                         LoopOptions options, fleet::Execution execution, Told told)
    : env_(env),
      options_(std::move(options)),
      execution_(std::move(execution)),
      told_(std::move(told)),
      prometheus_(env, cloud, options_.prometheus, options_.token),
      autoscaler_(system, options_.autoscaler, execution_),
      published_{options_.autoscaler.applies,
                 options_.old_names,
                 options_.name_space,
                 0,
                 options_.autoscaler.interval_s,
                 {{"hook", 0}, {"prometheus", 0}, {"record", 0}}} {
  BERTH_ASSERT(check(options_, system));
  execution_.stop = [this] { return env_.stop_signals() > 0; };
  for (const auto& [name, server] : system.servers)
    queries_[name] = live_query(selector_of(options_, name, server), options_.window_s);
  publish({}, {});
}

std::map<std::string, Live> ControlLoop::ask() {
  std::map<std::string, Live> live;
  int failed = 0;    // in a row
  std::string down;  // where that happens twice, the others are not asked in turn
  for (const auto& [name, query] : queries_) {
    Live& figures = live[name];
    if (!down.empty()) {
      figures.trouble = down;
      continue;
    }
    const auto samples = prometheus_.query(query);
    if (!samples) {
      if (env_.stop_signals() > 0) break;
      complain("prometheus", samples.error().message);
      figures.trouble = samples.error().message;
      if (samples.error().kind == ErrorKind::io && ++failed == kMostFailed) down = figures.trouble;
      continue;
    }
    failed = 0;
    figures = live_of(*samples);
    if (samples->empty())
      figures.trouble =
          "Prometheus knows no metrics of it: is it scraped, and are its labels as --select says?";
    else if (!figures.arrivals_per_min)
      figures.trouble =
          fmt::format("no rate over the last {} s: two scrapes or more have to be within --window",
                      format_number(options_.window_s));
  }
  return live;
}

Status ControlLoop::call_hook(const Decision& d, int before) {
  exec::Environment environment = env_.environment();
  for (const auto& [name, value] : {std::pair<std::string, std::string>("BERTH_SERVER", d.server),
                                    {"BERTH_ACCELERATOR", d.accelerator},
                                    {"BERTH_NAMESPACE", options_.name_space},
                                    {"BERTH_REPLICAS", fmt::format("{}", d.desired)},
                                    {"BERTH_REPLICAS_BEFORE", fmt::format("{}", before)},
                                    {"BERTH_REASON", d.reason}})
    environment.emplace_back(name, value);
  bool over = false;
  remote::Command command(env_, {"/bin/sh", "-c", options_.hook}, environment, kHookWithin,
                          [&] { over = true; });
  std::optional<remote::CommandEnd> end;
  while (!(end = command.take())) {
    if (env_.stop_signals() > 0) return fail(ErrorKind::interrupted, "stopped");
    BERTH_TRY(env_.loop().turn(env_.now() + std::chrono::milliseconds(200)));
  }
  if (end->error) return fail(end->error->kind, "{}", end->error->message);
  if (end->exit_code != 0)
    return fail(ErrorKind::io, "{} to {}: it ended with {}: {}", d.server, d.desired,
                end->exit_code, clip(trim(end->err), 300));
  return {};
}

/// The hook hears of a server whose replicas are not what it heard last; one that fails hears of it
/// again at the next interval.
Status ControlLoop::hand_over(const std::vector<Decision>& decisions) {
  if (options_.hook.empty() || !options_.autoscaler.applies) return {};
  for (const Decision& d : decisions) {
    if (!d.is_known) continue;
    int& heard = handed_over_.try_emplace(d.server, d.current).first->second;
    if (d.desired == heard) continue;
    if (auto called = call_hook(d, heard); called)
      heard = d.desired;
    else if (called.error().kind == ErrorKind::interrupted)
      return called;
    else
      complain("hook", called.error().message);
  }
  return {};
}

/// False: a process that was killed has left half a line.
Result<bool> ControlLoop::ends_with_a_line() const {
  const auto status = env_.status(options_.record);
  if (!status || status->size == 0) return true;
  BERTH_ASSIGN(const os::Fd file, env_.open_read(options_.record));
  BERTH_ASSIGN(const std::string last, env_.read_at(file, status->size - 1, 1));
  return last == "\n";
}

void ControlLoop::record(const std::vector<Decision>& decisions,
                         const std::map<std::string, Live>& live) {
  if (options_.record.empty()) return;
  std::string lines;
  for (const Decision& d : decisions)
    lines += decision_json(d, live.at(d.server), env_.wall(), options_.autoscaler.applies) + "\n";
  const auto append = [&]() -> Status {
    if (const auto status = env_.status(options_.record); status && status->size > kMostRecord)
      BERTH_TRY(env_.rename(options_.record, options_.record + ".1"));
    BERTH_ASSIGN(const bool is_whole, ends_with_a_line());
    BERTH_ASSIGN(const os::Fd file, env_.open_append(options_.record, 0600));
    return env_.write_all(file, (is_whole ? "" : "\n") + lines);
  };
  if (const auto appended = append(); !appended)
    complain("record", fmt::format("{}: {}", options_.record, appended.error().message));
}

void ControlLoop::publish(const std::vector<Decision>& decisions,
                          const std::map<std::string, Live>& live) {
  JsonWriter json;
  json.object().key("decisions").array();
  for (const Decision& d : decisions)
    json.raw(decision_json(d, live.at(d.server), env_.wall(), options_.autoscaler.applies));
  json.end().end();
  std::string text = autoscale_metrics(decisions, live, scalings_, published_);
  const std::lock_guard lock(mutex_);
  metrics_ = std::move(text);
  decisions_ = json.take();
}

/// Tells of a failure on standard error when it is another than before; each one counts.
void ControlLoop::complain(const std::string& what, std::string message) {
  ++published_.failures[what];
  if (complaints_[what] == message) return;
  std::fputs(visible_text(fmt::format("berth: {}: {}\n", what, message)).c_str(), stderr);
  complaints_[what] = std::move(message);
}

Status ControlLoop::turn() {
  const auto live = ask();
  if (env_.stop_signals() > 0) return {};
  const double now_s = std::chrono::duration<double>(env_.now().time_since_epoch()).count();
  const auto decisions = autoscaler_.decide(now_s, live, execution_);
  if (env_.stop_signals() > 0) return {};  // they may be incomplete
  for (const Decision& d : decisions) scalings_.add(d);
  published_.decided_at_s = std::chrono::duration<double>(env_.wall().time_since_epoch()).count();
  record(decisions, live);
  publish(decisions, live);  // before the hook, which may take a minute
  told_(decisions, live);
  if (const auto handed = hand_over(decisions);
      !handed && handed.error().kind != ErrorKind::interrupted)
    return handed;
  return {};
}

Status ControlLoop::run() {
  Mono next = env_.now();
  while (env_.stop_signals() == 0) {
    BERTH_TRY(turn());
    next += seconds(options_.autoscaler.interval_s);
    next = std::max(next, env_.now());  // what was missed is not made up for
    while (env_.stop_signals() == 0 && env_.now() < next) BERTH_TRY(env_.wait({}, next));
  }
  return {};
}

std::int64_t ControlLoop::failures() const {
  std::int64_t sum = 0;
  for (const auto& [what, count] : published_.failures) sum += count;
  return sum;
}

std::string ControlLoop::metrics() const {
  const std::lock_guard lock(mutex_);
  return metrics_;
}

std::string ControlLoop::decisions_json() const {
  const std::lock_guard lock(mutex_);
  return decisions_;
}

}  // namespace berth::api
