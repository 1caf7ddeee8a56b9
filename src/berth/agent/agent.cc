#include "berth/agent/agent.h"

#include <algorithm>

#include "berth/agent/startup.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/environment.h"
#include "berth/fileset/fileset.h"
#include "berth/os/failpoint.h"

namespace berth::agent {
namespace {

/// Kept for a later runner; output beyond it is dropped while nobody listens, and left in the
/// tasks' pipes while somebody does.
constexpr std::int64_t kKeptMost = 64 << 20;
/// How far a runner may lag behind before output waits for it.
constexpr std::int64_t kBehindMost = 1 << 20;
/// How much may stay in memory because it cannot be written.
constexpr std::size_t kUnwrittenMost = 4 << 20;
constexpr std::size_t kSentAhead = 256 << 10;
constexpr std::size_t kAnswersMost = 1 << 20;  // bytes that a runner leaves unread
constexpr std::size_t kGuestsMost = 8;
constexpr Duration kTryAgain = std::chrono::seconds(1);
/// How long the word that a task has started waits for company: one of no time is told in one go,
/// which spares both processes a third of their work on it. So does that of its end, where there is
/// something else to do here.
constexpr Duration kWordWaits = std::chrono::milliseconds(3);
/// How long after SIGTERM a runner may take to hear how its tasks ended.
constexpr Duration kTerminationGrace = std::chrono::seconds(5);
/// How often one that nobody has spoken to yet asks whether its alloc is still anybody's, and one
/// that runs something whether its lease has ended.
constexpr Duration kLooksEvery = std::chrono::seconds(1);
/// The first lease: whoever asked for it comes soon or never.
constexpr Duration kUnmetMost = std::chrono::seconds(60);
constexpr Duration kKeepsWhatItHasToTell = std::chrono::hours(24);

}  // namespace

Result<std::unique_ptr<Agent>> Agent::open(os::Env& env, AgentOptions options) {
  const std::string& directory = options.directory;
  BERTH_TRY(env.make_directory(directory, 0700));
  BERTH_ASSIGN(os::Fd lock, env.lock(directory + "/lock", false));
  if (env.status(directory + "/agent.json"))
    return fail(ErrorKind::exists, "{}: an agent has lived here", directory);
  std::string ledger_directory = options.ledger_directory;
  if (options.alloc.value == 0) ledger_directory = directory;  // never asked
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, std::move(ledger_directory)));
  BERTH_ASSIGN(os::Fd listener, env.listen_local(directory + "/socket"));
  BERTH_TRY(env.replace_file(directory + "/agent.json",
                             to_json(AgentFile{env.self(), env.boot_id(), kProtocolVersion,
                                               options.block, options.alloc}) +
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
      worker_(std::make_unique<exec::Worker>(env, machine_, groups_, exec::Environment{},
                                             options_.ask_drivers)),
      journal_(env, options_.directory),
      lease_ends_(env.boot_clock() + std::min(options_.lease, kUnmetMost)) {
  if (options_.alloc.value != 0) looks_at_ = env.now() + kLooksEvery;
  worker_->on_messages([this] { wake(); });
  called_.watch(listener_.number());
  arm();
}

Agent::~Agent() {
  worker_.reset();
  if (options_.alloc.value != 0) (void)ledger_.release(options_.alloc);
  const auto file = [&](const char* name) { return options_.directory + "/" + name; };
  (void)env_->remove_file(file("socket"));
  // What is left of one elsewhere nobody could read.
  if (over_ && !options_.with.empty()) (void)fileset::remove_all(*env_, options_.with);
  if (!over_ || !options_.with.empty() || journal_.acknowledged() + 1 != journal_.next()) return;
  journal_.remove();
  (void)env_->remove_file(file("agent.json"));
  (void)env_->remove_file(file("lock"));
  const auto log = env_->status(file("log"));
  if (log && log->size == 0) (void)env_->remove_file(file("log"));
  (void)env_->remove_directory(options_.directory);  // unless the log has something to say
}

bool Agent::lease_over() const {
  return env_->boot_clock() >= lease_ends_;
}

bool Agent::takes_output() const {
  if (!heard()) return true;
  return wants_output_ && journal_.end() - sent_to_ < kBehindMost &&
         journal_.end() - journal_.begin() < kKeptMost && journal_.unwritten() < kUnwrittenMost;
}

std::optional<Mono> Agent::next_step() const {
  const Mono now = env_->now();
  std::optional<Mono> first;
  const auto consider = [&](Mono at) {
    if (!first || at < *first) first = at;
  };
  // The loop's clock stands still while the machine sleeps, and the lease's does not.
  const bool watched = !options_.outlive && !worker_->idle();
  if (!lease_over())
    consider(now + std::min(lease_ends_ - env_->boot_clock(), watched ? kLooksEvery : kUnmetMost));
  if (ends_by_) consider(*ends_by_);
  if (looks_at_) consider(*looks_at_);
  if (keeps_until_) consider(now + (*keeps_until_ - env_->boot_clock()));
  for (const auto& guest : guests_)
    if (guest->stream.ended()) consider(now);
  if (tell_by_)
    consider(*tell_by_);
  else if (runner_ != nullptr && sent_to_ < journal_.end() && runner_->stream.unsent() == 0)
    consider(now);  // the socket took all it was handed: nothing else would wake us for the rest
  else if (journal_.unwritten() > 0)
    consider(now + kTryAgain);
  return first;
}

/// What the loop waits for, as it is now.
void Agent::arm() {
  if (over_) return due_.set(std::nullopt);
  worker_->set_reading(takes_output());
  for (auto& guest : guests_) guest->stream.set_reading(guest->stream.unsent() < kAnswersMost);
  due_.no_later_than(next_step());
}

void Agent::step() {
  if (over_) return;
  // First: what a stopped agent finds when it goes on is not to be believed any more.
  if (lease_over() && !options_.outlive) return give_up();
  heed_stop_signals();
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    Guest& guest = *guests_[i];
    listen_to(guest);  // to what came before it broke, too
    if (!guest.status && !guest.cut) cut(guest, guest.status.error());
  }
  messages_.clear();
  worker_->take_messages(messages_);
  for (const auto& message : messages_) publish(message);
  if (!tell_by_ || env_->now() >= *tell_by_) {
    tell_by_.reset();
    send();
    if (over_) return;
    journal_.write();
  }
  std::erase_if(guests_, [](const auto& guest) { return guest->cut; });
  consider_end();
  arm();
}

void Agent::accept() {
  for (;;) {
    auto fd = env_->accept_local(listener_);
    if (!fd || !*fd) return;
    if (guests_.size() >= kGuestsMost) {
      const auto idle =
          std::ranges::find_if(guests_, [&](const auto& guest) { return guest.get() != runner_; });
      guests_.erase(idle);  // whoever has waited longest without a word
    }
    auto& guest = guests_.emplace_back(std::make_unique<Guest>(*env_, [this] { wake(); }));
    guest->stream.open(**std::move(fd));
  }
}

void Agent::listen_to(Guest& guest) {
  while (!guest.cut) {
    const auto line = guest.stream.next();
    if (!line) break;
    auto call = decode_call(*line);
    if (call)
      if (auto status = handle(guest, *std::move(call)); !status)
        call = std::unexpected(status.error());
    if (!call) cut(guest, call.error());
  }
  if (!guest.cut && guest.stream.ended()) {
    guest.cut = true;
    if (runner_ == &guest) runner_ = nullptr;
  }
}

Status Agent::handle(Guest& guest, Call call) {
  if (runner_ != &guest) {
    auto* hello = std::get_if<Hello>(&call);
    return hello != nullptr ? welcome(guest, std::move(*hello))
                            : fail(ErrorKind::invalid, "the first word is hello");
  }
  lease_ends_ = env_->boot_clock() + options_.lease;
  if (auto* one = std::get_if<exec::Launch>(&call)) {
    start(std::move(*one));
  } else if (const auto* cancel = std::get_if<exec::Cancel>(&call)) {
    worker_->tell(*cancel);
  } else if (std::holds_alternative<exec::Abandon>(call)) {
    worker_->tell(exec::Abandon{});
  } else if (const auto* all = std::get_if<Acknowledge>(&call)) {
    BERTH_TRY(journal_.acknowledge(all->up_to));
    std::erase_if(known_, [&](const auto& known) {
      return known.second.end_number > 0 && known.second.end_number <= all->up_to;
    });
  } else if (const auto* want = std::get_if<WantOutput>(&call)) {
    wants_output_ = want->wanted;
  } else if (std::holds_alternative<Keepalive>(call)) {
    guest.stream.send_line(encode(Answer(Alive{})));
  } else if (std::holds_alternative<Finish>(call)) {
    finishing_ = true;
  } else if (const auto* retain = std::get_if<Retain>(&call)) {
    lease_ends_ = env_->boot_clock() + retain->time;
    retained_ = true;
  } else {
    return fail(ErrorKind::invalid, "hello was said before");
  }
  return {};
}

Status Agent::welcome(Guest& guest, Hello hello) {
  if (hello.version != kProtocolVersion)
    return fail(ErrorKind::invalid, "the agent speaks version {}, the runner {}", kProtocolVersion,
                hello.version);
  if (hello.epoch < epoch_)
    return fail(ErrorKind::stale, "a later runner was here: epoch {}, not {}", epoch_, hello.epoch);
  if (ends_by_ || finishing_) return fail(ErrorKind::stale, "the agent is about to end");
  if (options_.alloc.value != 0 && !keeps_until_) {
    BERTH_ASSIGN(const bool ours, ledger_.holds(options_.alloc));
    if (!ours) {  // who started it died before it was handed over, say
      has_alloc_ = false;
      return fail(ErrorKind::stale, "the agent's alloc is not its own");
    }
  }
  if (runner_ != nullptr)
    cut(*runner_,
        {ErrorKind::stale, fmt::format("displaced by the runner of epoch {}", hello.epoch)});
  looks_at_.reset();
  retained_ = false;
  runner_ = &guest;
  epoch_ = hello.epoch;
  environment_ = std::move(hello.environment);
  if (hello.beside) {
    auto own = exec::inherited_environment(*env_);
    exec::set(own, environment_);
    environment_ = std::move(own);
  }
  wants_output_ = true;
  lease_ends_ = env_->boot_clock() + options_.lease;
  sent_to_ = journal_.begin();
  Welcome answer;
  answer.id = options_.directory.substr(options_.directory.rfind('/') + 1);
  answer.block = machine_.total();
  answer.alloc = options_.alloc;
  answer.lease = options_.lease;
  answer.outlive = options_.outlive;
  for (const auto& [token, known] : known_) answer.attempts.push_back({known.task, token});
  answer.first = journal_.acknowledged() + 1;
  guest.stream.send_line(encode(Answer(std::move(answer))));
  return {};
}

void Agent::start(exec::Launch launch) {
  if (!known_.try_emplace(launch.token, Known{launch.task}).second) return;
  if (keeps_until_)
    return publish(exec::Ended{.task = launch.task,
                               .token = launch.token,
                               .cause = exec::Cause::worker_lost,
                               .exit_code = {},
                               .detail = "the lease of its worker had ended"});
  exec::Environment environment = environment_;
  exec::set(environment, launch.environment);
  launch.environment = std::move(environment);
  worker_->tell(std::move(launch));
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
  tell_by_ = tell_by_ ? std::min(*tell_by_, by) : by;
  const auto* output = std::get_if<exec::Output>(&message);
  const bool full =
      journal_.end() - journal_.begin() >= kKeptMost || journal_.unwritten() >= kUnwrittenMost;
  if (output != nullptr && full && !heard()) {
    if (!deaf_.insert(output->token).second) return;
    exec::Output missing = *output;
    missing.bytes = "\nberth: output is missing here: nobody listened, and no more could be kept\n";
    return journal_.append(missing);
  }
  if (const auto* ended = std::get_if<exec::Ended>(&message)) {
    deaf_.erase(ended->token);
    known_[ended->token].end_number = journal_.next();
  } else if (output != nullptr) {
    deaf_.erase(output->token);
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

void Agent::cut(Guest& guest, const Error& because) {
  note(because.message);
  guest.stream.send_line(encode(Answer(Refusal{because})));
  (void)guest.stream.write();
  guest.cut = true;
  if (runner_ == &guest) runner_ = nullptr;
}

void Agent::heed_stop_signals() {
  if (ends_by_ || env_->stop_signals() == 0) return;
  note("asked to end");
  ends_by_ = env_->now() + kTerminationGrace;
  worker_->tell(exec::Abandon{});
}

void Agent::give_up() {
  note("its lease has ended, and nobody renewed it");
  worker_.reset();
  guests_.clear();
  runner_ = nullptr;
  over_ = true;
}

/// Whoever started us may have ended, and its alloc with it, before it handed that over.
void Agent::look_for_alloc() {
  if (!looks_at_ || env_->now() < *looks_at_) return;
  looks_at_ = env_->now() + kLooksEvery;
  const auto entries = ledger_.entries();
  if (!entries) return;
  const auto ours = std::ranges::find(*entries, options_.alloc, &machine::LedgerEntry::id);
  if (ours != entries->end()) return;
  note("its alloc is nobody's any more");
  has_alloc_ = false;
}

void Agent::consider_end() {
  look_for_alloc();
  if (!has_alloc_) {
    over_ = true;
    return;
  }
  if (!worker_->idle() || tell_by_) return;
  const bool told =
      runner_ == nullptr || (sent_to_ == journal_.end() && runner_->stream.unsent() == 0);
  const bool acknowledged = journal_.acknowledged() + 1 == journal_.next();
  if (ends_by_)
    over_ = told || env_->now() >= *ends_by_;
  else if (keeps_until_)
    over_ = acknowledged || env_->boot_clock() >= *keeps_until_;
  else if (finishing_)
    over_ = acknowledged || runner_ == nullptr;
  else if (runner_ == nullptr && (lease_over() || !is_of_use()))
    acknowledged || options_.with.empty() ? void(over_ = true) : retire();
}

/// Whether its lease matters when its runner has gone and nothing runs: a later runner may be on
/// its way, and could find out otherwise by the journal alone. Where the directory was removed or
/// replaced none will find it.
bool Agent::is_of_use() const {
  const bool met = options_.alloc.value != 0 && !looks_at_;
  if (!options_.with.empty()) return true;
  if (met && !retained_ && journal_.unwritten() == 0) return false;
  const auto there = env_->status(options_.directory + "/agent.json");
  return there || there.error().kind != ErrorKind::not_found;
}

void Agent::retire() {
  note("its lease has ended: it stays to tell what came of its tasks");
  keeps_until_ = env_->boot_clock() + kKeepsWhatItHasToTell;
  if (options_.alloc.value != 0) (void)ledger_.release(options_.alloc);
}

void Agent::note(std::string_view text) {
  const auto log = env_->open_append(options_.directory + "/log", 0600);
  if (log)
    (void)env_->write_all(*log, fmt::format("{} {}\n", format_utc(env_->wall()), clip(text, 400)));
}

}  // namespace berth::agent
