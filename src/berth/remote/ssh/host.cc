#include "berth/remote/ssh/host.h"

#include <algorithm>

#include "berth/agent/client/remote_agent.h"
#include "berth/agent/layout.h"
#include "berth/base/backoff.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/remote/ssh/ssh.h"

namespace berth::remote {
namespace {

constexpr Duration kLookAgain = std::chrono::seconds(2);
constexpr Backoff kUpAgain{std::chrono::seconds(1), std::chrono::minutes(1)};
constexpr Duration kAnswersLeast = std::chrono::seconds(2);
constexpr Duration kAnswersMost = std::chrono::seconds(20);  // its drivers may take seconds
/// How long a grant waits for whoever asked before it is given back.
constexpr Duration kGrantWaits = std::chrono::seconds(10);

bool same(const agent::AskLease& a, const machine::AllocRequest& b) {
  return a.ask.resources == b.resources && a.ask.selection == b.selection;
}

}  // namespace

Resources part_of(const cluster::Offer& offer, const std::optional<machine::Request>& part,
                  const Resources& least) {
  if (part) return part->resources;
  Resources all = offer.free.resources;  // whole devices are counted, not what is within them
  all.set(Known::gpu_mem, 0);
  all.set(Known::gpu_slots, 0);
  // What is free of a disk is less by the time that it is asked for.
  const auto disk = least.get(Known::disk);
  all.set(Known::disk, disk == 0 ? 0 : std::max(disk, all.get(Known::disk) / 100 * 95));
  return all;
}

Host::Host(os::Env& env, Transport transport, AgentFile agent, HostOptions options)
    : env_(env),
      transport_(std::move(transport)),
      agent_(std::move(agent)),
      options_(options),
      stream_(env, [this](Status status) {
        stream_status_ = std::move(status);
        wake();
      }) {}

/// An alloc that no worker attached to is given back; that of a worker lives by the worker's own
/// connection.
Host::~Host() {
  on_change(nullptr);
  const Mono until = env_.now() + std::chrono::seconds(2);
  // An alloc may be on its way.
  while (asked_ && std::holds_alternative<agent::AskLease>(*asked_) && env_.now() < until) {
    (void)env_.loop().turn(until);
  }
  if (granted_)
    if (const auto* leased = std::get_if<agent::Leased>(&*granted_)) let_go(leased->directory);
  for (const auto& [id, held] : held_)
    if (!held.attached) let_go(held.directory);
  agent::settle(env_, leaving_, until);
  for (const auto& client : leaving_) client->finish();
}

/// A machine that failed goes on failing until it answers.
std::unexpected<Error> Host::no_answer_yet() const {
  if (const auto failed = failure()) return std::unexpected(within(transport_.name, *failed));
  return fail(ErrorKind::busy, "{}: waiting for its answer", transport_.name);
}

/// Whether the connection stands and no answer is awaited. Failure: busy, or why the host failed.
Status Host::ready() {
  if (!connection_ && up_at_ && env_.now() < *up_at_) return no_answer_yet();
  if (!connection_) {
    const std::vector<std::string> words{"pool"};
    connection_ = std::make_unique<agent::Connection>(
        env_,
        agent::ConnectionOptions{.command = through(transport_, agent_command(agent_, words)),
                                 .agent_file = agent_.path},
        [this] { wake(); });
    stream_.reset();
    stream_status_ = {};
    wake();
  }
  if (!connection_ || !stream_.is_open() || asked_) return no_answer_yet();
  return {};
}

void Host::step() {
  std::erase_if(leaving_, [](const auto& client) {
    if (client->ready()) client->finish();
    return client->ready() || client->lost();
  });
  if (granted_at_ && env_.now() - *granted_at_ >= kGrantWaits) {
    const auto answer = forget_grant();
    if (const auto* leased = std::get_if<agent::Leased>(&answer)) let_go(leased->directory);
    changed();
  }
  if (connection_) step_connection();
  arm();
}

/// What the loop waits for, as it is now.
void Host::arm() {
  std::optional<Mono> first;
  if (granted_at_) first = *granted_at_ + kGrantWaits;
  if (asked_) {
    const Mono given_up = asked_at_ + timeout();
    first = std::min(first.value_or(given_up), given_up);
  }
  if (connection_ && stream_.is_open() && stream_.ended()) first = env_.now();
  due_.no_later_than(first);
}

/// How long an answer may take.
Duration Host::timeout() const {
  return std::clamp(options_.lease / 2, kAnswersLeast, kAnswersMost);
}

void Host::step_connection() {
  if (connection_->lost()) return fall(*connection_->lost());
  if (!stream_.is_open()) {
    if (connection_->here()) stream_.open(connection_->take());
    if (stream_.is_open()) changed();
    return;
  }
  const auto status = std::exchange(stream_status_, Status{});
  while (const auto text = stream_.next()) {
    auto answer = agent::decode_pool_answer(*text);
    if (!answer) return fall(answer.error());
    falls_ = 0;
    on_answer(*std::move(answer));
    changed();
    if (!connection_) return;  // it answered that it cannot
  }
  if (asked_ && env_.now() - asked_at_ >= timeout())
    return fall(
        {ErrorKind::io, fmt::format("it did not answer within {}", format_duration(timeout()))});
  if (!status || stream_.ended())
    fall(connection_->because(status ? Error{ErrorKind::io, "the connection ended"}
                                     : status.error()));
}

void Host::fall(Error because) {
  // To whoever asks, busy is an answer, and this is none.
  if (because.kind == ErrorKind::busy) because.kind = ErrorKind::io;
  down_ = explain_ssh(transport_, std::move(because));
  connection_.reset();
  stream_.close();
  asked_.reset();
  offer_.reset();
  offered_at_.reset();
  up_at_ = env_.now() + kUpAgain.pause(++falls_, env_.random());
  changed();
}

void Host::ask(const agent::PoolCall& call) {
  asked_ = call;
  asked_at_ = env_.now();
  stream_.send_line(agent::encode(call));
  arm();
}

void Host::on_answer(agent::PoolAnswer answer) {
  const auto of = std::exchange(asked_, std::nullopt);
  if (!of) return;
  if (std::holds_alternative<agent::AskLease>(*of)) {
    granted_ = std::move(answer);
    granted_at_ = env_.now();
    offered_at_.reset();
  } else if (auto* offer = std::get_if<agent::MachineOffer>(&answer)) {
    offer_ = std::move(*offer);
    offered_at_ = env_.now();
  } else if (const auto* error = std::get_if<Error>(&answer)) {
    fall(*error);
  }
}

Result<agent::MachineOffer> Host::look() {
  const bool fresh = offered_at_ && env_.now() - *offered_at_ < kLookAgain;
  if (fresh) return *offer_;
  BERTH_TRY(ready());
  ask(agent::AskOffer{});
  if (offer_ && offered_at_) return *offer_;
  return no_answer_yet();
}

Result<std::vector<cluster::Offer>> Host::offers() {
  BERTH_ASSIGN(const auto offer, look());
  return std::vector<cluster::Offer>{
      {.machine = transport_.name, .free = offer.free, .total = offer.total, .links = {}}};
}

Result<cluster::Alloc> Host::accept(const cluster::Offer& offer,
                                    const std::optional<machine::Request>& part,
                                    const cluster::Labels& labels) {
  cluster::Wish wish{.requirements = {part_of(offer, part, {}), 1}, .labels = labels};
  if (part) wish.selection = part->selection;
  return allocate(wish);
}

Result<cluster::Alloc> Host::allocate(const cluster::Wish& wish) {
  const machine::AllocRequest ask_for{wish.requirements.min, cluster::name_of(wish.labels),
                                      wish.priority, wish.selection};
  for (int round = 0; round < 2; ++round) {
    if (granted_ && wanted_ && same(*wanted_, ask_for)) {
      const auto answer = forget_grant();
      if (const auto* leased = std::get_if<agent::Leased>(&answer))
        return inspect(keep(*leased, labels_));
      if (const auto* error = std::get_if<Error>(&answer))
        return std::unexpected(within(transport_.name, *error));
      return fail(ErrorKind::io, "{}: unexpected answer", transport_.name);
    }
    // What was granted to another request waits for it a while, and is not asked for again: it
    // would wait for ever.
    if (granted_ && std::holds_alternative<agent::Leased>(*granted_)) return no_answer_yet();
    if (granted_) forget_grant();
    BERTH_TRY(ready());
    if (wanted_) {  // a connection that broke took the answer along: the same id, the same alloc
      ask(*wanted_);
      return no_answer_yet();
    }
    labels_ = wish.labels;
    wanted_ = agent::AskLease{.id = fmt::format("{:016x}", env_.random()),
                              .ask = ask_for,
                              .lease = options_.lease,
                              .outlive = options_.outlive,
                              .waits = false};
    ask(*wanted_);
  }
  return no_answer_yet();
}

/// The answer to the request for a lease, which is over with it.
agent::PoolAnswer Host::forget_grant() {
  wanted_.reset();
  granted_at_.reset();
  return *std::exchange(granted_, std::nullopt);
}

cluster::AllocId Host::keep(agent::Leased leased, const cluster::Labels& labels) {
  const cluster::AllocId id{static_cast<std::int64_t>(env_.random() >> 1)};
  held_.emplace(id, Held{.alloc = {.id = id,
                                   .machine = transport_.name,
                                   .block = std::move(leased.block),
                                   .labels = labels},
                         .directory = std::move(leased.directory)});
  return id;
}

Mono Host::retry_at() {
  if (!connection_ && up_at_) return *up_at_;
  const bool answered = connection_ && stream_.is_open() && !asked_;
  return env_.now() + (answered ? kLookAgain : kAnswersMost);
}

Result<std::optional<Mono>> Host::keepalive(cluster::AllocId id) {
  BERTH_TRY(inspect(id));
  return std::optional<Mono>{};
}

Result<cluster::Alloc> Host::inspect(cluster::AllocId id) {
  const auto held = held_.find(id);
  if (held == held_.end())
    return fail(ErrorKind::stale, "no allocation {:x} of this process", id.value);
  return held->second.alloc;
}

Result<LeaseDirectory> Host::lease_directory(cluster::AllocId id) {
  const auto held = held_.find(id);
  if (held == held_.end())
    return fail(ErrorKind::stale, "no allocation {:x} of this process", id.value);
  held->second.attached = true;
  return LeaseDirectory{transport_, held->second.directory};
}

Status Host::free(cluster::AllocId id) {
  const auto held = held_.find(id);
  if (held == held_.end())
    return fail(ErrorKind::stale, "no allocation {:x} of this process", id.value);
  if (!held->second.attached) let_go(held->second.directory);
  held_.erase(held);
  offered_at_.reset();
  return {};
}

/// Tells an agent that nobody works with to end. Where that does not reach it, its lease ends.
void Host::let_go(const std::string& directory) {
  const std::vector<std::string> words{"stdio", agent::agent_directory(directory)};
  leaving_.push_back(agent::RemoteAgent::through(
      env_,
      {.command = through(transport_, agent_command(agent_, words)), .agent_file = agent_.path},
      options_.lease, options_.lease, {.epoch = 0, .environment = {}}));
  leaving_.back()->on_messages([this] { wake(); });
}

}  // namespace berth::remote
