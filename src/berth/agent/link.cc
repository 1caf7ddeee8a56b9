#include "berth/agent/link.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/agent/journal.h"
#include "berth/agent/startup.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/loop.h"

namespace berth::agent {
namespace {

constexpr Duration kStartsWithin = std::chrono::seconds(20);
constexpr std::size_t kSaidMost = 64 << 10;  // bytes of what a launcher prints
/// Notices that a later one replaces wait while so much is unsent: the agent is frozen.
constexpr std::size_t kUnsentMost = 16 << 10;
constexpr Duration kConnectAgain = std::chrono::milliseconds(5);
/// Between the end of an agent's lease and that of what it ran.
constexpr Duration kOnItsWay = std::chrono::seconds(2);

/// Reads what there is.
void drain(os::Env& env, os::Fd& fd, std::string& text) {
  std::array<char, 4096> buffer;
  while (fd) {
    const auto got = env.read_some(fd, buffer);
    if (got && !*got) return;
    if (!got || **got == 0) return fd.reset();
    if (text.size() < kSaidMost) text.append(buffer.data(), **got);
  }
}

}  // namespace

Link::Link(os::Env& env, RunnerSide side)
    : env_(&env),
      side_(std::move(side)),
      stream_(env,
              [this](Status status) {
                stream_status_ = std::move(status);
                wake();
              }),
      heard_at_(env.boot_clock()),
      keepalive_at_(heard_at_),
      give_up_at_(heard_at_ + kStartsWithin) {
  greet();
}

void Link::greet() {
  Hello hello;
  hello.epoch = side_.epoch;
  hello.environment = side_.environment;
  hello.beside = side_.beside;
  stream_.send_line(encode(Call(std::move(hello))));
}

std::unique_ptr<Link> Link::start(os::Env& env, StartOptions options, RunnerSide side) {
  auto link = std::unique_ptr<Link>(new Link(env, std::move(side)));
  link->options_ = std::move(options);
  const StartOptions& wanted = link->options_;
  link->has_alloc_ = wanted.alloc.value == 0;
  os::SpawnSpec spec;
  spec.argv = {wanted.program,
               "start",
               wanted.directory,
               "--block",
               machine::write_block(wanted.block),
               "--lease-ms",
               fmt::format("{}", to_ms(wanted.lease))};
  if (wanted.outlive) spec.argv.emplace_back("--outlive");
  if (wanted.alloc.value != 0)
    spec.argv.insert(spec.argv.end(), {"--ledger", wanted.ledger_directory, "--alloc",
                                       fmt::format("{}", wanted.alloc.value)});
  spec.environment = env.environment();
  spec.directory = "/";
  auto child = env.spawn(spec);
  if (!child) {
    link->lose(within("start an agent", child.error()));
    return link;
  }
  link->launcher_ = *std::move(child);
  link->launched_.watch(link->launcher_->exited.number());
  link->arm();
  return link;
}

std::unique_ptr<Link> Link::attach(os::Env& env, const std::string& directory, RunnerSide side) {
  auto link = std::unique_ptr<Link>(new Link(env, std::move(side)));
  link->options_.directory = directory;
  auto status = link->connect();
  if (!status && status.error().kind == ErrorKind::not_found && env.status(directory + "/lock")) {
    const auto lock = env.lock(directory + "/lock", false);
    if (!lock && lock.error().kind == ErrorKind::busy)
      status = fail(ErrorKind::busy, "{}: an agent that does not listen", directory);
  }
  if (!status) link->lose(status.error());
  link->arm();
  return link;
}

/// At once, or again later when too many wait before us.
Status Link::connect() {
  connect_at_.reset();
  auto fd = env_->connect_local(options_.directory + "/socket");
  if (fd)
    stream_.open(*std::move(fd));
  else if (fd.error().kind == ErrorKind::full)
    connect_at_ = env_->boot_clock() + kConnectAgain;
  else
    return std::unexpected(fd.error());
  return {};
}

void Link::tell(const exec::ToWorker& message) {
  if (lost_) return;
  if (const auto* wanted = std::get_if<exec::Launch>(&message)) {
    launch(*wanted);
  } else if (const auto* cancel = std::get_if<exec::Cancel>(&message)) {
    if (outstanding_.contains(cancel->token)) cancelled_.insert(cancel->token);
    say(encode(Call(*cancel)));
  } else {
    abandoned_ = true;
    say(encode(Call(exec::Abandon{})));
  }
  arm();
  if (!received_.empty() && !wake_) wake();
}

/// Now, or with the next welcome.
void Link::say(std::string line) {
  if (welcomed_) stream_.send_line(line);
}

void Link::launch(exec::Launch launch) {
  outstanding_.insert(launch.token);
  launch.behind = unbegun_.resolve(launch.behind);
  Sent sent{launch.task, revision_for(launch.request.selection), encode(Call(launch))};
  if (sent.line.size() > kMessageMost) unbegun_.add(launch.token, launch.behind);
  if (sent.line.size() > kMessageMost)
    return refuse(launch.task, launch.token, "its command and environment are too long");
  if (!welcomed_ || (say_launch(launch.token, sent) && door_))
    launches_.emplace(launch.token, std::move(sent));
}

/// Not where the agent would pass over a part of it: then it has ended.
bool Link::say_launch(Token token, const Sent& launch) {
  const bool understood = launch.revision <= welcome_->revision;
  if (understood)
    stream_.send_line(launch.line);
  else
    refuse(
        launch.task, token,
        "its berth-agent is of an older Berth, which cannot choose GPUs as the task asks: use the "
        "one of this version");
  return understood;
}

void Link::refuse(TaskNumber task, Token token, std::string detail) {
  received_.emplace_back(exec::Ended{.task = task,
                                     .token = token,
                                     .cause = exec::Cause::cannot_start,
                                     .exit_code = {},
                                     .detail = std::move(detail)});
}

void Link::acknowledge() {
  std::int64_t up_to = handed_out_;
  for (const auto& [token, number] : held_) up_to = std::min(up_to, number - 1);
  acknowledged_ = std::max(acknowledged_, up_to);
  std::erase_if(ends_, [&](const auto& end) { return end.second <= acknowledged_; });
}

void Link::finish() {
  say_last(Finish{});
}

void Link::retain(Duration time) {
  say_last(Retain{time});
}

void Link::say_last(const Call& call) {
  if (lost_) return;
  last_ = call;
  send_due();
  say(encode(call));
  note_words();
  (void)stream_.write();
  arm();
}

std::vector<schedule::Earlier> Attached::earlier() const {
  std::vector<schedule::Earlier> attempts;
  if (!ready()) return attempts;
  for (const auto& [task, token] : agent().attempts)
    attempts.push_back({.task = task, .token = token});
  return attempts;
}

void Link::set_reading(bool reads_output) {
  if (lost_) return;
  output_wanted_ = reads_output;
  send_due();
  arm();
}

/// What the loop waits for, as it is now.
void Link::arm() {
  due_.no_later_than(next_step());
  if (wake_ && (!received_.empty() || lost_)) wake_();
}

std::optional<Mono> Link::next_step() const {
  if (lost_) return std::nullopt;
  if (stream_.is_open() && stream_.ended()) return env_->now();
  std::optional<Mono> first = dial_at_;
  const auto consider = [&](Mono at) { first = first ? std::min(*first, at) : at; };
  if (connect_at_) consider(*connect_at_);
  if (!door_ && !welcome_) consider(give_up_at_);
  // What cannot be sent now is not waited for.
  if (welcomed_ && stream_.unsent() <= kUnsentMost) consider(keepalive_at_);
  if (const auto at = lost_at()) consider(*at);
  if (const auto most = patience(); most && line_ && stream_.is_open())
    consider(std::max(heard_at_, opened_at_) + *most / kSilencesALease);
  if (line_ && (line_->lost() || (line_->here() && !stream_.is_open()))) return env_->now();
  if (!first) return std::nullopt;
  return env_->now() + std::max(Duration(0), *first - env_->boot_clock());
}

void Link::take_messages(std::vector<exec::FromWorker>& messages) {
  for (const auto& message : received_)
    if (const auto* ended = std::get_if<exec::Ended>(&message)) outstanding_.erase(ended->token);
  std::ranges::move(received_, std::back_inserter(messages));
  received_.clear();
  handed_out_ = next_ - 1;
  arm();
}

void Link::step() {
  if (lost_) return arm();
  const Mono now = env_->boot_clock();
  if (connect_at_) {
    if (now >= *connect_at_)
      if (const auto status = connect(); !status) lose(status.error());
  } else if (door_) {
    step_line();
  } else if (!launcher_) {
    step_stream();
  }
  if (!lost_ && !door_ && !welcome_ && now >= give_up_at_)
    lose({ErrorKind::io,
          fmt::format("no agent answered within {}", format_duration(kStartsWithin))});
  if (const auto at = lost_at(); !lost_ && at && now >= *at)
    lose({ErrorKind::stale,
          fmt::format("the agent was silent for {}{}{}{}", format_duration(now - heard_at_),
                      welcome_ && !welcome_->outlive ? fmt::format(", and its lease of {} is over",
                                                                   format_duration(welcome_->lease))
                                                     : "",
                      cut_ ? ": " : "", cut_ ? cut_->message : "")});
  if (!lost_) send_due();
  arm();
}

/// How long the agent may be silent; none: for ever.
std::optional<Duration> Link::patience() const {
  if (welcome_ && !welcome_->outlive) return welcome_->lease;
  return door_ ? std::optional(patience_) : std::nullopt;
}

/// When an agent that stays silent cannot run anything any more; none: never. Whatever it was told
/// on a line renews its lease, if it is read there, though no answer comes: what was long on its
/// way does so until the lease has ended.
std::optional<Mono> Link::lost_at() const {
  const auto most = patience();
  if (!most) return std::nullopt;
  const Mono silent_until = heard_at_ + *most;
  if (!said_at_ || *said_at_ < heard_at_) return silent_until;
  const Duration lease = welcome_ ? welcome_->lease : lease_;
  return std::max(silent_until, std::max(heard_at_ + lease, *said_at_) + lease + kOnItsWay);
}

void Link::step_stream() {
  note_contact();
  note_words();
  auto status = std::exchange(stream_status_, Status{});
  if (status) status = stream_.write();
  // What came before it broke is heard all the same.
  if (auto heard = hear_all(); !heard) return lose(heard.error());
  if (lost_ || (status && !stream_.ended())) return;
  const Error because = status ? Error{ErrorKind::io, "the agent has ended"} : status.error();
  door_ ? redial(because) : lose(because);
}

Status Link::hear_all() {
  while (!lost_) {
    const auto line = stream_.next();
    if (!line) break;
    heard_at_ = env_->boot_clock();
    BERTH_ASSIGN(auto answer, decode_answer(*line));
    BERTH_TRY(hear(std::move(answer)));
  }
  return {};
}

Status Link::hear(Answer answer) {
  if (const auto* refusal = std::get_if<Refusal>(&answer))
    return std::unexpected(within("the agent", refusal->error));
  if (auto* again = std::get_if<Welcome>(&answer)) return welcome(std::move(*again));
  if (!welcome_) return fail(ErrorKind::invalid, "the agent's first word is its welcome");
  auto* numbered = std::get_if<Numbered>(&answer);
  if (numbered == nullptr || numbered->number < next_) return {};
  if (numbered->number > next_)
    return fail(ErrorKind::corrupt, "the agent sent message {} after {}", numbered->number,
                next_ - 1);
  ++next_;
  if (const auto* ended = std::get_if<exec::Ended>(&numbered->message)) {
    ends_[ended->token] = numbered->number;
    launches_.erase(ended->token);
    cancelled_.erase(ended->token);
  }
  received_.push_back(std::move(numbered->message));
  return {};
}

Status Link::welcome(Welcome welcome) {
  if (welcomed_ || welcome.version != kProtocolVersion)
    return fail(ErrorKind::invalid, "the agent's welcome is of version {}, or came twice",
                welcome.version);
  if (welcome_ && welcome.first > next_)
    return fail(ErrorKind::corrupt, "the agent has forgotten what nobody acknowledged");
  if (!welcome_) {
    for (const auto& attempt : welcome.attempts) outstanding_.insert(attempt.token);
    next_ = welcome.first;
    handed_out_ = acknowledged_ = next_ - 1;
  }
  acknowledged_sent_ = welcome.first - 1;
  output_wished_ = true;
  welcome_ = std::move(welcome);
  welcomed_ = true;
  say_again();
  if (wake_) wake_();
  return {};
}

void Link::on_launched() {
  drain(*env_, launcher_->out, said_);
  drain(*env_, launcher_->err, complained_);
  launched_.stop();
  (void)env_->reap(*launcher_);
  launcher_.reset();
  if (said_.empty())
    return lose(
        {ErrorKind::io, fmt::format("the agent did not start: {}", clip(trim(complained_), 400))});
  if (const auto status = begin(trim(said_)); !status)
    lose(within("start an agent", status.error()));
}

/// Hands the alloc over to the agent that is ready, and connects.
Status Link::begin(std::string_view line) {
  BERTH_ASSIGN(const auto agent, parse_ready(line));
  if (options_.alloc.value != 0) {
    BERTH_ASSIGN(auto ledger, machine::Ledger::open(*env_, options_.ledger_directory));
    BERTH_TRY(ledger.hand_over(options_.alloc, agent));
    has_alloc_ = true;
  }
  return connect();
}

void Link::send_due() {
  if (!welcomed_ || stream_.unsent() > kUnsentMost) return;
  note_contact();
  const Mono now = env_->boot_clock();
  if (acknowledged_ > acknowledged_sent_) {
    stream_.send_line(encode(Call(Acknowledge{acknowledged_})));
    acknowledged_sent_ = acknowledged_;
  }
  if (output_wanted_ != output_wished_) {
    stream_.send_line(encode(Call(WantOutput{output_wanted_})));
    output_wished_ = output_wanted_;
  }
  if (now >= keepalive_at_) {
    stream_.send_line(encode(Call(Keepalive{})));
    keepalive_at_ = now + welcome_->lease / kKeepalivesALease;
  }
  note_words();
  if (const auto status = stream_.write(); !status)
    door_ ? redial(status.error()) : lose(status.error());
}

void Link::lose(Error because) {
  lost_ = std::move(because);
  stream_.close();
  line_.reset();
  launched_.stop();
  if (launcher_) (void)env_->signal_group(launcher_->pid, SIGKILL);
  launcher_.reset();
  arm();
  if (!wake_) wake();
}

bool settle_round(os::Env& env, std::span<Attached* const> links, Mono until) {
  const auto open = [](const Attached* link) { return !link->lost() && !link->ready(); };
  if (std::ranges::none_of(links, open)) return false;
  (void)env.loop().turn(until);
  return std::ranges::any_of(links, open);
}

void settle(os::Env& env, std::span<Attached* const> links, Mono until) {
  while (settle_round(env, links, until))
    if (env.now() >= until) break;
  for (auto* link : links)
    if (!link->lost() && !link->ready())
      link->lose({ErrorKind::busy, "the agent did not answer in time"});
}

void settle(os::Env& env, std::span<const std::unique_ptr<Link>> links, Mono until) {
  std::vector<Attached*> all;
  for (const auto& link : links) all.push_back(link.get());
  settle(env, all, until);
}

Result<std::string> agent_program(os::Env& env) {
  BERTH_ASSIGN(const std::string self, env.real_path("/proc/self/exe"));
  std::string program = self.substr(0, self.rfind('/')) + "/berth-agent";
  BERTH_TRY(env.status(program));
  return program;
}

Status forget_agent(os::Env& env, const std::string& directory) {
  BERTH_ASSIGN(const os::Fd lock, env.lock(directory + "/lock", false));
  BERTH_ASSIGN(const auto names, env.list(directory));
  for (const auto& name : names) BERTH_TRY(env.remove_file(directory + "/" + name));
  return env.remove_directory(directory);
}

}  // namespace berth::agent
