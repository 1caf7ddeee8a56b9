#include "berth/library/own_worker.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "berth/base/guarded.h"
#include "berth/base/units.h"
#include "berth/exec/environment.h"
#include "berth/library/convert.h"

namespace berth {
namespace {

constexpr std::size_t kMostTold = 64U << 20;  // bytes of output that are not taken yet
constexpr std::string_view kForgotten = "the cluster released it without reporting its end";

Attempt attempt_of(const exec::Launch& launch) {
  Attempt attempt{.id = launch.token.value,
                  .task = launch.request.holder,
                  .argv = launch.argv,
                  .directory = launch.directory,
                  .environment = launch.environment,
                  .resources = launch.request.resources,
                  .grace = std::chrono::duration_cast<std::chrono::milliseconds>(launch.grace),
                  .inputs = launch.stage_in_once,
                  .outputs = launch.stage_out};
  attempt.inputs.insert(attempt.inputs.end(), launch.stage_in.begin(), launch.stage_in.end());
  return attempt;
}

exec::Cause cause_of(const AttemptEnd& end) {
  if (end.lost) return exec::Cause::worker_lost;
  if (end.out_of_memory) return exec::Cause::out_of_memory;
  if (end.signal != 0) return exec::Cause::signal;
  return end.exit_code != 0 ? exec::Cause::exit_code : exec::Cause::ok;
}

exec::Cause refusal_cause(const Error& error) {
  return retryable(error.kind) ? exec::Cause::short_of_means : exec::Cause::cannot_start;
}

}  // namespace

struct OwnWorker::Told {
  struct Printed {
    exec::Stream stream;
    std::string bytes;
  };
  Token token;
  std::variant<Printed, AttemptEnd> what;
};

class OwnWorker::Inbox {
 public:
  const os::Wake& wake() const { return wake_; }

  void add(Told told) {
    const std::scoped_lock lock(mutex_);
    if (const auto* printed = std::get_if<Told::Printed>(&told.what)) {
      if (bytes_ + printed->bytes.size() > kMostTold) return;
      bytes_ += printed->bytes.size();
    }
    told_.push_back(std::move(told));
    wake_.set();
    more_.notify_one();
  }
  std::deque<Told> take() {
    const std::scoped_lock lock(mutex_);
    wake_.clear();
    bytes_ = 0;
    return std::exchange(told_, {});
  }
  void wait(Duration most) {
    std::unique_lock lock(mutex_);
    more_.wait_for(lock, most, [&] { return !told_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Told> told_;
  std::size_t bytes_ = 0;
  os::Wake wake_;
};

struct Reporter::State {
  std::shared_ptr<OwnWorker::Inbox> inbox;
  Token token;
  std::atomic<bool> over = false;

  State(std::shared_ptr<OwnWorker::Inbox> to, Token of) : inbox(std::move(to)), token(of) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { end({.lost = true, .detail = std::string(kForgotten)}); }
  void end(const AttemptEnd& end) {
    if (!over.exchange(true)) inbox->add({token, end});
  }
};

Reporter::Reporter(std::shared_ptr<State> state) : state_(std::move(state)) {}

void Reporter::output(std::string_view bytes, bool is_error) const {
  if (state_->over || bytes.empty()) return;
  state_->inbox->add(
      {state_->token, OwnWorker::Told::Printed{is_error ? exec::Stream::err : exec::Stream::out,
                                               std::string(bytes)}});
}

void Reporter::ended(const AttemptEnd& end) const {
  state_->end(end);
}

OwnWorker::OwnWorker(os::Env& env, Cluster& cluster, Alloc alloc,
                     std::unique_ptr<machine::Machine> devices, Duration ends_within,
                     std::function<void()> gone)
    : env_(env),
      cluster_(cluster),
      alloc_(std::move(alloc)),
      devices_(std::move(devices)),
      ends_within_(ends_within),
      gone_(std::move(gone)),
      inbox_(std::make_shared<Inbox>()),
      told_(env.loop(), [this] { take_told(); }) {
  if (inbox_->wake().descriptor() < 0)
    lost_ =
        Error{ErrorKind::full, "no file descriptor is left for messages from " + alloc_.machine};
  told_.watch(inbox_->wake().descriptor());
}

OwnWorker::~OwnWorker() {
  for (auto at = running_.begin(); at != running_.end(); ++at) stop_at_once(at);
  for (const Mono until = env_.now() + ends_within_; !running_.empty() && env_.now() < until;) {
    inbox_->wait(until - env_.now());
    take_told();
  }
  gone_();
}

void OwnWorker::let_go() {
  for (auto at = running_.begin(); at != running_.end(); ++at) stop_at_once(at);
  running_.clear();
}

void OwnWorker::send(const exec::ToWorker& message) {
  if (const auto* wanted = std::get_if<exec::Launch>(&message)) {
    launch(*wanted);
  } else if (const auto* cancel = std::get_if<exec::Cancel>(&message)) {
    take_told();  // what it reported before, and its end, count
    if (const auto at = running_.find(cancel->token); at != running_.end())
      stop(at, exec::Cause::stopped);
  } else {
    for (auto at = running_.begin(); at != running_.end(); ++at) {
      if (at->second.verdict == exec::Cause::ok) at->second.verdict = exec::Cause::stopped;
      stop_at_once(at);
    }
  }
  arm();
}

void OwnWorker::launch(const exec::Launch& launch) {
  const auto refuse = [&](exec::Cause cause, std::string why) {
    pending_.emplace_back(exec::ended_as(cause, launch.task, launch.token, std::move(why)));
  };
  if (launch.container.isolated())
    return refuse(exec::Cause::cannot_start, "a user-defined cluster does not run containers");
  if (!launch.input.empty())
    return refuse(exec::Cause::cannot_start,
                  "a user-defined cluster does not support standard input (--stdin)");
  if (launch.enforce)
    return refuse(exec::Cause::cannot_start,
                  "enforce: required, but a user-defined cluster is not known to enforce limits");
  Running running{.launch = launch, .attempt = attempt_of(launch)};
  if (launch.timeout > Duration(0)) running.limit = env_.now() + launch.timeout;
  exec::decide(running.attempt.environment, "PYTHONUNBUFFERED", "1");
  machine::Block block{launch.request.resources, {}, {}};
  if (devices_) {
    auto part = devices_->reserve(launch.request);
    if (!part) return refuse(refusal_cause(part.error()), part.error().message);
    running.part = *std::move(part);
    block = running.part.block();
    running.attempt.devices = library::parts_of(block.devices);
    for (auto& [name, value] : machine::visibility(block.devices))
      exec::decide(running.attempt.environment, std::move(name), std::move(value),
                   !block.devices.empty());
  }
  const Reporter reporter(std::make_shared<Reporter::State>(inbox_, launch.token));
  const auto begun = guarded("start() of the cluster",
                             [&] { return cluster_.start(alloc_, running.attempt, reporter); });
  if (!begun) {
    reporter.state_->over = true;
    return refuse(refusal_cause(begun.error()), begun.error().message);
  }
  pending_.emplace_back(exec::Started{launch.task, launch.token, std::move(block), {}});
  running_.emplace(launch.token, std::move(running));
}

void OwnWorker::stop(Entry at, exec::Cause verdict) {
  Running& running = at->second;
  if (running.verdict == exec::Cause::ok) running.verdict = verdict;
  if (running.kill_at || running.give_up_at) return;
  running.limit.reset();
  running.kill_at = env_.now() + running.launch.grace;
  // One that cannot be stopped so is killed when its grace is over.
  (void)guarded("stop() of the cluster", [&] { cluster_.stop(alloc_, running.attempt, false); });
}

void OwnWorker::stop_at_once(Entry at) {
  Running& running = at->second;
  running.limit.reset();
  running.kill_at.reset();
  if (!running.give_up_at) running.give_up_at = env_.now() + ends_within_;
  (void)guarded("stop() of the cluster", [&] { cluster_.stop(alloc_, running.attempt, true); });
}

void OwnWorker::take_messages(std::vector<exec::FromWorker>& messages) {
  std::ranges::move(std::exchange(pending_, {}), std::back_inserter(messages));
}

void OwnWorker::take_told() {
  for (auto& [token, what] : inbox_->take()) {
    const auto at = running_.find(token);
    if (at == running_.end()) continue;  // given up before
    if (auto* printed = std::get_if<Told::Printed>(&what))
      take_output(at->second, printed->stream, std::move(printed->bytes));
    else
      end(at, std::get<AttemptEnd>(what));
  }
  arm();
  if (!pending_.empty() && wake_) wake_();
}

void OwnWorker::take_output(Running& running, exec::Stream stream, std::string bytes) {
  auto& reader = stream == exec::Stream::out ? running.out : running.err;
  auto reading = reader.feed(bytes);
  const auto& [task, token] = std::tie(running.launch.task, running.launch.token);
  pending_.emplace_back(exec::Output{task, token, stream, std::move(bytes)});
  take_metrics(running, std::move(reading));
}

void OwnWorker::take_metrics(Running& running, exec::MetricReader::Reading reading) {
  const bool asked_to_end = running.verdict == exec::Cause::stopped;
  for (auto& [name, value] : reading.metrics)
    pending_.emplace_back(exec::Metric{running.launch.task, running.launch.token, std::move(name),
                                       value, asked_to_end});
  running.notes.take(reading);
}

void OwnWorker::end(Entry at, const AttemptEnd& end) {
  Running& running = at->second;
  // What a killed process left of a line may be cut within a number.
  if (end.signal == 0 && running.verdict == exec::Cause::ok)
    for (auto* reader : {&running.out, &running.err}) take_metrics(running, reader->finish());
  const exec::Cause told = cause_of(end);
  const bool ours = running.verdict == exec::Cause::time_limit ||
                    (running.verdict == exec::Cause::stopped && told != exec::Cause::ok);
  auto ended = exec::ended_as(ours ? running.verdict : told, running.launch.task,
                              running.launch.token, end.detail);
  ended.signal = end.signal;
  if (end.signal == 0 && !end.lost) ended.exit_code = end.exit_code;
  ended.cpu = end.cpu;
  ended.peak_mem = end.peak_mem;
  if (running.verdict == exec::Cause::time_limit)
    ended.detail = fmt::format("it ran longer than {}", format_duration(running.launch.timeout));
  if (ended.detail.empty()) ended.detail = running.notes.text();
  ended.asked_to_end = running.verdict == exec::Cause::stopped;
  pending_.emplace_back(std::move(ended));
  running_.erase(at);
}

/// It may still run: its alloc gets nothing else.
void OwnWorker::give_up(Entry at) {
  const std::string why =
      fmt::format("{} did not end it within {}", alloc_.machine, format_duration(ends_within_));
  lost_ = Error{ErrorKind::io, at->second.attempt.task + ": " + why};
  const auto cause =
      at->second.verdict == exec::Cause::ok ? exec::Cause::stopped : at->second.verdict;
  pending_.emplace_back(
      exec::ended_as(cause, at->second.launch.task, at->second.launch.token, why));
  running_.erase(at);
}

void OwnWorker::look_at_times() {
  take_told();  // what has ended in time ends with its own result
  const Mono now = env_.now();
  const auto due = [&](std::optional<Mono> at) { return at && now >= *at; };
  for (auto at = running_.begin(); at != running_.end();) {
    const auto next = std::next(at);
    if (due(at->second.give_up_at))
      give_up(at);
    else if (due(at->second.kill_at))
      stop_at_once(at);
    else if (due(at->second.limit))
      stop(at, exec::Cause::time_limit);
    at = next;
  }
  arm();
  if (!pending_.empty() && wake_) wake_();
}

void OwnWorker::arm() {
  due_.set(std::nullopt);
  for (const auto& [_, running] : running_)
    for (const auto at : {running.limit, running.kill_at, running.give_up_at})
      due_.no_later_than(at);
  if (!pending_.empty() && !wake_) due_.no_later_than(env_.now());
}

}  // namespace berth
