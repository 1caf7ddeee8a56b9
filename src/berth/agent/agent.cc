#include "berth/agent/agent.h"

#include <algorithm>

#include "berth/agent/layout.h"
#include "berth/agent/startup.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/environment.h"
#include "berth/fileset/fileset.h"
#include "berth/os/failpoint.h"

namespace berth::agent {
namespace {

/// How far a runner may lag behind before output waits for it.
constexpr std::int64_t kBehindMost = 1 << 20;
/// How much may stay in memory because it cannot be written.
constexpr std::size_t kUnwrittenMost = 4 << 20;
constexpr std::size_t kSentAhead = 256 << 10;
constexpr std::size_t kAnswersMost = 1 << 20;  // bytes that a runner leaves unread
constexpr std::size_t kSessionsMost = 8;
constexpr Duration kTryAgain = std::chrono::seconds(1);
/// How long a Started message waits for others to be sent with it: the messages of a task that
/// takes no time then travel together, which saves both processes a third of their work on it. An
/// Ended message waits as long where the agent has something else to do.
constexpr Duration kWordWaits = std::chrono::milliseconds(3);
/// How long after SIGTERM a runner may take to hear how its tasks ended.
constexpr Duration kTerminationGrace = std::chrono::seconds(5);
/// How often an agent that no runner has greeted yet looks whether its alloc still exists, and how
/// often one that runs something looks whether its lease has ended.
constexpr Duration kLooksEvery = std::chrono::seconds(1);
/// The first lease is short, for the runner that asked for the agent comes soon or never.
constexpr Duration kUnmetMost = std::chrono::seconds(60);
constexpr Duration kKeepsWhatItHasToTell = std::chrono::hours(24);

}  // namespace

Result<std::unique_ptr<Agent>> Agent::open(os::Env& env, AgentOptions options) {
  const std::string& directory = options.directory;
  BERTH_TRY(env.make_directory(directory, 0700));
  BERTH_ASSIGN(os::Fd lock, env.lock(lock_file(directory), false));
  if (env.status(agent_file(directory)))
    return fail(ErrorKind::exists, "{}: was used by an earlier agent", directory);
  std::string ledger_directory = options.ledger_directory;
  if (options.alloc.value == 0) ledger_directory = directory;  // never asked
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, std::move(ledger_directory)));
  if (options.alloc.value != 0) BERTH_TRY(ledger.keep());
  BERTH_ASSIGN(os::Fd listener, env.listen_local(socket_file(directory)));
  BERTH_TRY(env.replace_file(agent_file(directory),
                             to_json(AgentFile{env.self(), env.boot_id(), kProtocolVersion,
                                               options.block, options.alloc, env.host_name()}) +
                                 "\n",
                             0600));
  return std::unique_ptr<Agent>(
      new Agent(env, std::move(options), std::move(ledger), std::move(lock), std::move(listener)));
}

Agent::Agent(os::Env& env, AgentOptions options, machine::Ledger ledger, os::Fd lock,
             os::Fd listener)
    : env_(&env),
      options_(std::move(options)),
      ledger_(std::move(ledger)),
      lock_(std::move(lock)),
      listener_(std::move(listener)),
      machine_(options_.block),
      groups_(env, options_.groups),
      worker_(std::make_unique<exec::ProcessWorker>(env, machine_, groups_, exec::Environment{},
                                                    options_.ask_drivers)),
      journal_(env, options_.directory),
      lease_ends_(env.boot_clock() + std::min(options_.lease, kUnmetMost)) {
  if (options_.alloc.value != 0) looks_at_ = env.now() + kLooksEvery;
  worker_->end_unmarked(options_.unmarked_orphans);
  worker_->on_messages([this] { wake(); });
  worker_->keep_files_in(commands_directory(options_.directory));
  // What waits for the end of another must not start before this agent has looked at its lease.
  worker_->ask_first([this] {
    if (options_.outlive || !lease_over()) return true;
    wake();
    return false;
  });
  called_.watch(listener_.number());
  arm();
}

Agent::~Agent() {
  worker_.reset();
  if (options_.alloc.value != 0) (void)ledger_.release(options_.alloc);
  const std::string& directory = options_.directory;
  (void)env_->remove_file(socket_file(directory));
  (void)env_->remove_directory(commands_directory(directory));
  // A runner on another machine could not read what is left. Whoever looks for a file meanwhile is
  // told by this that it may have been there.
  if (over_ && !options_.with.empty()) {
    (void)env_->remove_file(agent_file(directory));
    (void)fileset::remove_all(*env_, options_.with);
  }
  if (!over_ || !options_.with.empty() || journal_.acknowledged() + 1 != journal_.next()) return;
  journal_.remove();
  (void)env_->remove_file(agent_file(directory));
  (void)env_->remove_file(lock_file(directory));
  const auto log = env_->status(log_file(directory));
  if (log && log->size == 0) (void)env_->remove_file(log_file(directory));
  (void)env_->remove_directory(directory);  // unless the log has something to say
}

bool Agent::lease_over() const {
  return env_->boot_clock() >= lease_ends_;
}

bool Agent::takes_output() const {
  if (!has_runner()) return true;
  return wants_output_ && journal_.end() - sent_to_ < kBehindMost &&
         journal_.end() - journal_.begin() < options_.kept_most &&
         journal_.unwritten() < kUnwrittenMost;
}

std::optional<Mono> Agent::next_step() const {
  const Mono now = env_->now();
  std::optional<Mono> first;
  const auto consider = [&](Mono at) {
    if (!first || at < *first) first = at;
  };
  // The loop's clock stands still while the machine sleeps, and the lease's does not.
  const bool watched = !options_.outlive && !worker_->idle();
  // The end of a lease that came within this step is still to be heeded.
  if (lease_ends_ > stepped_at_)
    consider(now + std::clamp(lease_ends_ - env_->boot_clock(), Duration(0),
                              watched ? kLooksEvery : kUnmetMost));
  // Before, the message of the last end wakes it.
  if (ends_by_ && worker_->idle() && !send_by_) consider(*ends_by_);
  if (looks_at_) consider(*looks_at_);
  if (releases_) consider(now + kTryAgain);
  if (keeps_until_) consider(now + (*keeps_until_ - env_->boot_clock()));
  for (const auto& session : sessions_)
    if (session->stream.ended()) consider(now);
  if (send_by_)
    consider(*send_by_);
  else if (runner_ != nullptr && sent_to_ < journal_.end() && runner_->stream.unsent() == 0)
    consider(now);  // the socket took all it was handed: nothing else would wake us for the rest
  else if (journal_.unwritten() > 0)
    consider(now + kTryAgain);
  return first;
}

/// When the agent has something to do, as things stand; nullopt: only when something happens.
void Agent::arm() {
  if (over_) return due_.set(std::nullopt);
  worker_->set_reading(takes_output());
  for (auto& session : sessions_)
    session->stream.set_reading(session->stream.unsent() < kAnswersMost);
  due_.no_later_than(next_step());
}

void Agent::step() {
  if (over_) return;
  stepped_at_ = env_->boot_clock();
  // First: what a stopped agent finds when it goes on is not to be believed any more.
  if (lease_over() && !options_.outlive) return give_up();
  heed_stop_signals();
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    Session& session = *sessions_[i];
    listen_to(session);  // to what came before it broke, too
    if (!session.status && !session.cut) cut(session, session.status.error());
  }
  messages_.clear();
  worker_->take_messages(messages_);
  for (const auto& message : messages_) publish(message);
  if (!send_by_ || env_->now() >= *send_by_) {
    send_by_.reset();
    send();
    if (over_) return;
    journal_.write();
  }
  std::erase_if(sessions_, [](const auto& session) { return session->cut; });
  consider_end();
  arm();
}

void Agent::accept() {
  for (;;) {
    auto fd = env_->accept_local(listener_);
    if (!fd) {  // no descriptor is left, say; who calls stays in the queue, and the listener ready
      called_.stop();
      return accepts_again_.set(env_->now() + kTryAgain);
    }
    if (!*fd) return;
    if (sessions_.size() >= kSessionsMost) {
      const auto idle = std::ranges::find_if(
          sessions_, [&](const auto& session) { return session.get() != runner_; });
      sessions_.erase(idle);  // whoever has waited longest without a word
    }
    auto& session = sessions_.emplace_back(std::make_unique<Session>(*env_, [this] { wake(); }));
    session->stream.open(**std::move(fd));
  }
}

void Agent::listen_to(Session& session) {
  while (!session.cut) {
    const auto line = session.stream.next();
    if (!line) break;
    auto call = decode_call(*line);
    if (call)
      if (auto status = handle(session, *std::move(call)); !status)
        call = std::unexpected(status.error());
    if (!call) cut(session, call.error());
  }
  if (!session.cut && session.status && session.stream.ended()) {
    session.cut = true;
    if (runner_ == &session) runner_ = nullptr;
  }
}

Status Agent::handle(Session& session, Call call) {
  if (runner_ != &session) {
    auto* hello = std::get_if<Hello>(&call);
    return hello != nullptr ? welcome(session, std::move(*hello))
                            : fail(ErrorKind::invalid, "the first message must be hello");
  }
  lease_ends_ = env_->boot_clock() + options_.lease;
  if (auto* one = std::get_if<exec::Launch>(&call)) {
    start(std::move(*one));
  } else if (const auto* cancel = std::get_if<exec::Cancel>(&call)) {
    worker_->send(*cancel);
  } else if (std::holds_alternative<exec::Abandon>(call)) {
    worker_->send(exec::Abandon{});
  } else if (const auto* all = std::get_if<Acknowledge>(&call)) {
    BERTH_TRY(journal_.acknowledge(all->up_to));
    std::erase_if(known_, [&](const auto& known) {
      return known.second.end_number > 0 && known.second.end_number <= all->up_to;
    });
  } else if (const auto* want = std::get_if<WantOutput>(&call)) {
    wants_output_ = want->wanted;
  } else if (std::holds_alternative<Keepalive>(call)) {
    session.stream.send_line(encode(Answer(Alive{})));
  } else if (std::holds_alternative<Finish>(call)) {
    finishing_ = true;
  } else if (const auto* retain = std::get_if<Retain>(&call)) {
    lease_ends_ = env_->boot_clock() + retain->time;
    retained_ = true;
  } else {
    return fail(ErrorKind::invalid, "hello was sent twice");
  }
  return {};
}

Status Agent::welcome(Session& session, Hello hello) {
  if (hello.version != kProtocolVersion)
    return fail(ErrorKind::invalid, "the agent speaks version {}, the runner {}", kProtocolVersion,
                hello.version);
  if (hello.epoch < epoch_)
    return fail(ErrorKind::stale, "a later runner has connected: epoch {}, not {}", epoch_,
                hello.epoch);
  if (ends_by_ || finishing_) return fail(ErrorKind::stale, "the agent is about to end");
  if (options_.alloc.value != 0 && !keeps_until_ && looks_at_) {
    BERTH_ASSIGN(const bool ours, ledger_.holds(options_.alloc));
    if (!ours) {  // who started it died before it was handed over, say
      has_alloc_ = false;
      return fail(ErrorKind::stale, "the agent's allocation belongs to another agent");
    }
  }
  // Its own greeting may have been long on its way, and come by a connection that it has left.
  const auto kind = hello.epoch > epoch_ ? ErrorKind::stale : ErrorKind::busy;
  if (runner_ != nullptr)
    cut(*runner_, {kind, fmt::format("displaced by the runner of epoch {}", hello.epoch)});
  looks_at_.reset();
  retained_ = false;
  runner_ = &session;
  epoch_ = hello.epoch;
  environment_ = std::move(hello.environment);
  if (hello.beside) {
    auto own = exec::inherited_environment(*env_);
    exec::set(own, environment_);
    environment_ = std::move(own);
  }
  wants_output_ = true;
  lease_ends_ = env_->boot_clock() + options_.lease;
  for (const auto& left_out : metrics_left_out_.take_all()) journal_.append(left_out);
  sent_to_ = journal_.begin();
  Welcome answer;
  answer.id = options_.directory.substr(options_.directory.rfind('/') + 1);
  answer.block = machine_.total();
  answer.alloc = options_.alloc;
  answer.lease = options_.lease;
  answer.outlive = options_.outlive;
  for (const auto& [token, known] : known_) answer.attempts.push_back({known.task, token});
  answer.first = journal_.acknowledged() + 1;
  session.stream.send_line(encode(Answer(std::move(answer))));
  return {};
}

void Agent::start(exec::Launch launch) {
  if (!known_.try_emplace(launch.token, Known{launch.task}).second) return;
  if (keeps_until_)
    return publish(exec::ended_as(exec::Cause::worker_lost, launch.task, launch.token,
                                  "the lease of its worker had ended"));
  launch.surroundings = environment_;
  worker_->send(std::move(launch));
  os::failpoint("agent launched");
}

void Agent::publish(exec::FromWorker message) {
  // Asked to end, we stop what nobody had asked to stop.
  if (auto* stopped = std::get_if<exec::Ended>(&message);
      stopped != nullptr && ends_by_ && stopped->cause == exec::Cause::stopped) {
    stopped->cause = exec::Cause::worker_lost;
    stopped->detail = "its agent was asked to end";
  }
  const bool waits = std::holds_alternative<exec::Started>(message) || worker_->has_waiting();
  const Mono by = env_->now() + (waits ? kWordWaits : Duration(0));
  send_by_ = send_by_ ? std::min(*send_by_, by) : by;
  const auto* output = std::get_if<exec::Output>(&message);
  const bool full = journal_.end() - journal_.begin() >= options_.kept_most ||
                    journal_.unwritten() >= kUnwrittenMost;
  if (output != nullptr && full && !has_runner()) {
    if (!output_dropped_.insert(output->token).second) return;
    exec::Output missing = *output;
    missing.bytes =
        "\nberth: output is missing here: no runner was connected, and the buffer was full\n";
    return journal_.append(missing);
  }
  if (auto* metric = std::get_if<exec::Metric>(&message);
      metric != nullptr && !has_runner() &&
      (journal_.end() - journal_.begin() >= 2 * options_.kept_most ||
       journal_.unwritten() >= kUnwrittenMost))
    return metrics_left_out_.add(std::move(*metric));
  if (const auto* ended = std::get_if<exec::Ended>(&message)) {
    for (const auto& left_out : metrics_left_out_.take(ended->token)) journal_.append(left_out);
    output_dropped_.erase(ended->token);
    known_[ended->token].end_number = journal_.next();
  } else if (output != nullptr) {
    output_dropped_.erase(output->token);
  }
  journal_.append(message);
}

void Agent::send() {
  if (runner_ == nullptr) return;
  LineStream& stream = runner_->stream;
  sent_to_ = std::max(sent_to_, journal_.begin());
  while (sent_to_ < journal_.end() && stream.unsent() < kSentAhead) {
    const auto lines = journal_.read_lines(sent_to_, kSentAhead);
    if (!lines) return cut(*runner_, lines.error());
    stream.send(*lines);
    sent_to_ += static_cast<std::int64_t>(lines->size());
  }
  if (lease_over() && !options_.outlive) return give_up();
  if (const auto status = stream.write(); !status) cut(*runner_, status.error());
}

void Agent::cut(Session& session, const Error& because) {
  note(because.message);
  session.stream.send_line(encode(Answer(Refusal{because})));
  (void)session.stream.write();
  session.cut = true;
  if (runner_ == &session) runner_ = nullptr;
}

void Agent::heed_stop_signals() {
  if (ends_by_ || env_->stop_signals() == 0) return;
  note("asked to end");
  ends_by_ = env_->now() + kTerminationGrace;
  worker_->send(exec::Abandon{});
}

void Agent::give_up() {
  note("its lease has ended without a renewal");
  worker_.reset();
  sessions_.clear();
  runner_ = nullptr;
  over_ = true;
}

/// The runner that started the agent may have ended, and the alloc with it, before it handed the
/// alloc over.
void Agent::look_for_alloc() {
  if (!looks_at_ || env_->now() < *looks_at_) return;
  looks_at_ = env_->now() + kLooksEvery;
  const auto entries = ledger_.entries();
  if (!entries) return;
  const auto ours = std::ranges::find(*entries, options_.alloc, &machine::LedgerEntry::id);
  if (ours != entries->end()) return;
  note("its allocation was released");
  has_alloc_ = false;
}

void Agent::consider_end() {
  look_for_alloc();
  release_alloc();
  if (!has_alloc_) {
    over_ = true;
    return;
  }
  if (!worker_->idle() || send_by_) return;
  const bool reported =
      runner_ == nullptr || (sent_to_ == journal_.end() && runner_->stream.unsent() == 0);
  const bool acknowledged = journal_.acknowledged() + 1 == journal_.next();
  if (ends_by_)
    over_ = reported || env_->now() >= *ends_by_;
  else if (keeps_until_)
    over_ = acknowledged || env_->boot_clock() >= *keeps_until_;
  else if (finishing_)
    over_ = acknowledged || runner_ == nullptr;
  else if (runner_ == nullptr && (lease_over() || !is_of_use()))
    acknowledged || (options_.with.empty() && journal_.unwritten() == 0) ? void(over_ = true)
                                                                         : retire();
}

/// Whether the agent waits for its lease to end when its runner has gone and nothing runs, because
/// a later runner may come, which could otherwise only read the journal. None will find the agent
/// where the directory was removed or replaced.
bool Agent::is_of_use() const {
  const bool met = options_.alloc.value != 0 && !looks_at_;
  if (!options_.with.empty()) return true;
  if (met && !retained_ && journal_.unwritten() == 0) return false;
  const auto there = env_->status(agent_file(options_.directory));
  return there || there.error().kind != ErrorKind::not_found;
}

void Agent::retire() {
  note("its lease has ended: it stays to report the results of its tasks");
  keeps_until_ = env_->boot_clock() + kKeepsWhatItHasToTell;
  releases_ = options_.alloc.value != 0;
  release_alloc();
}

/// It lives on, so nobody else will ever count the alloc as free.
void Agent::release_alloc() {
  if (!releases_) return;
  const auto released = ledger_.release(options_.alloc);
  releases_ = !released && released.error().kind != ErrorKind::stale;
}

void Agent::note(std::string_view text) {
  const auto log = env_->open_append(log_file(options_.directory), 0600);
  if (log)
    (void)env_->write_all(*log, fmt::format("{} {}\n", format_utc(env_->wall()), clip(text, 400)));
}

}  // namespace berth::agent
