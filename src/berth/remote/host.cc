#include "berth/remote/host.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/remote/ssh.h"

namespace berth::remote {
namespace {

constexpr Duration kLookAgain = std::chrono::seconds(2);
constexpr Duration kUpFirst = std::chrono::seconds(1);
constexpr Duration kUpMost = std::chrono::minutes(1);
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

Host::Host(os::Env& env, Door door, AgentFile agent, HostOptions options)
    : env_(env),
      door_(std::move(door)),
      agent_(std::move(agent)),
      options_(options),
      stream_(env, [this](Status status) {
        stream_status_ = std::move(status);
        wake();
      }) {}

/// What was leased and nobody has is given back; what somebody has lives by its own connection.
Host::~Host() {
  const Mono until = env_.now() + std::chrono::seconds(2);
  // An alloc may be on its way.
  while (asked_ && std::holds_alternative<agent::AskLease>(*asked_) && env_.now() < until) {
    (void)env_.loop().turn(until);
  }
  if (granted_)
    if (const auto* leased = std::get_if<agent::Leased>(&*granted_)) let_go(leased->directory);
  for (const auto& [id, held] : held_)
    if (!held.staffed) let_go(held.directory);
  agent::settle(env_, leaving_, until);
  for (const auto& link : leaving_) link->finish();
}

/// A machine that failed goes on failing until it answers.
std::unexpected<Error> Host::no_answer_yet() const {
  if (const auto failed = failure()) return std::unexpected(within(door_.name, *failed));
  return fail(ErrorKind::busy, "{}: it is being asked", door_.name);
}

/// Up, and not waiting for an answer. busy, or why it failed.
Status Host::ready() {
  if (!line_ && up_at_ && env_.now() < *up_at_) return no_answer_yet();
  if (!line_) {
    const std::vector<std::string> words{"pool"};
    line_ = std::make_unique<agent::Line>(
        env_,
        agent::LineOptions{.command = through(door_, agent_command(agent_, words)),
                           .agent_file = agent_.path},
        [this] { wake(); });
    stream_.reset();
    stream_status_ = {};
    wake();
  }
  if (!line_ || !stream_.is_open() || asked_) return no_answer_yet();
  return {};
}

void Host::step() {
  std::erase_if(leaving_, [](const auto& link) {
    if (link->ready()) link->finish();
    return link->ready() || link->lost();
  });
  if (granted_at_ && env_.now() - *granted_at_ >= kGrantWaits) {
    granted_at_.reset();
    wanted_.reset();
    const auto answer = *std::exchange(granted_, std::nullopt);
    if (const auto* leased = std::get_if<agent::Leased>(&answer)) let_go(leased->directory);
  }
  if (line_) step_connection();
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
  if (line_ && stream_.is_open() && stream_.ended()) first = env_.now();
  due_.no_later_than(first);
}

/// For an answer.
Duration Host::timeout() const {
  return std::clamp(options_.lease / 2, kAnswersLeast, kAnswersMost);
}

void Host::step_connection() {
  if (line_->lost()) return fall(*line_->lost());
  if (!stream_.is_open()) {
    if (line_->here()) stream_.open(line_->take());
    if (stream_.is_open()) changed();
    return;
  }
  const auto status = std::exchange(stream_status_, Status{});
  while (const auto text = stream_.next()) {
    auto answer = agent::decode_pool_answer(*text);
    if (!answer) return fall(answer.error());
    falls_ = 0;
    hear(*std::move(answer));
    changed();
    if (!line_) return;  // it answered that it cannot
  }
  if (asked_ && env_.now() - asked_at_ >= timeout())
    return fall(
        {ErrorKind::io, fmt::format("it did not answer within {}", format_duration(timeout()))});
  if (!status || stream_.ended())
    fall(line_->because(status ? Error{ErrorKind::io, "the connection ended"} : status.error()));
}

void Host::fall(Error because) {
  // To whoever asks, busy is an answer, and this is none.
  if (because.kind == ErrorKind::busy) because.kind = ErrorKind::io;
  down_ = explain_ssh(door_, std::move(because));
  line_.reset();
  stream_.close();
  asked_.reset();
  offer_.reset();
  offered_at_.reset();
  const Duration pause = std::min(kUpMost, kUpFirst * (1 << std::min(falls_++, 6)));
  const auto jitter = static_cast<std::int64_t>(env_.random() % 512);  // 75 % to 125 %
  up_at_ = env_.now() + pause * (768 + jitter) / 1024;
  changed();
}

void Host::ask(const agent::PoolCall& call) {
  asked_ = call;
  asked_at_ = env_.now();
  stream_.send_line(agent::encode(call));
  arm();
}

void Host::hear(agent::PoolAnswer answer) {
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
      {.machine = door_.name, .free = offer.free, .total = offer.total, .links = {}}};
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
      const auto answer = *std::exchange(granted_, std::nullopt);
      wanted_.reset();
      granted_at_.reset();
      if (const auto* leased = std::get_if<agent::Leased>(&answer))
        return inspect(keep(*leased, labels_));
      if (const auto* error = std::get_if<Error>(&answer))
        return std::unexpected(within(door_.name, *error));
      return fail(ErrorKind::io, "{}: it answered something else", door_.name);
    }
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

cluster::AllocId Host::keep(agent::Leased leased, const cluster::Labels& labels) {
  const cluster::AllocId id{static_cast<std::int64_t>(env_.random() >> 1)};
  held_.emplace(id, Held{.alloc = {.id = id,
                                   .machine = door_.name,
                                   .block = std::move(leased.block),
                                   .labels = labels},
                         .directory = std::move(leased.directory)});
  return id;
}

Mono Host::retry_at() {
  if (!line_ && up_at_) return *up_at_;
  const bool answered = line_ && stream_.is_open() && !asked_;
  return env_.now() + (answered ? kLookAgain : kAnswersMost);
}

Result<std::optional<Mono>> Host::keepalive(cluster::AllocId id) {
  BERTH_TRY(inspect(id));
  return std::optional<Mono>{};
}

Result<cluster::Alloc> Host::inspect(cluster::AllocId id) {
  const auto held = held_.find(id);
  if (held == held_.end()) return fail(ErrorKind::stale, "no alloc {:x} of ours", id.value);
  return held->second.alloc;
}

Result<Place> Host::place(cluster::AllocId id) {
  const auto held = held_.find(id);
  if (held == held_.end()) return fail(ErrorKind::stale, "no alloc {:x} of ours", id.value);
  held->second.staffed = true;
  return Place{door_, held->second.directory};
}

Status Host::free(cluster::AllocId id) {
  const auto held = held_.find(id);
  if (held == held_.end()) return fail(ErrorKind::stale, "no alloc {:x} of ours", id.value);
  if (!held->second.staffed) let_go(held->second.directory);
  held_.erase(held);
  offered_at_.reset();
  return {};
}

/// Tells an agent that nobody works with to end. Where that does not reach it, its lease ends.
void Host::let_go(const std::string& directory) {
  const std::vector<std::string> words{"stdio", directory + "/agent"};
  leaving_.push_back(agent::Link::through(
      env_, {.command = through(door_, agent_command(agent_, words)), .agent_file = agent_.path},
      options_.lease, options_.lease, {.epoch = 0, .environment = {}}));
  leaving_.back()->on_messages([this] { wake(); });
}

}  // namespace berth::remote
