#include "berth/remote/slurm/slurm.h"

#include <algorithm>

#include "berth/base/backoff.h"
#include "berth/base/text.h"
#include "berth/os/log.h"
#include "berth/remote/slurm/slurm_commands.h"

namespace berth::remote {
namespace {

constexpr Duration kNodesAge = std::chrono::seconds(60);
constexpr Duration kNodesAgeInVain = std::chrono::seconds(5);  // while none of them would do
constexpr Duration kFirstLook = std::chrono::milliseconds(200);
constexpr Duration kLongestQueuePoll = std::chrono::seconds(10);  // between looks at the queue
constexpr Duration kLooksWhileHeld = std::chrono::seconds(5);
constexpr Duration kRenewal = std::chrono::seconds(45);
constexpr Duration kHandBack =
    std::chrono::seconds(5);  // before a job's end its tasks are given up
constexpr Duration kUnavoidableFor = std::chrono::minutes(5);  // then other nodes may have come
constexpr Backoff kPartitionAgain{std::chrono::seconds(5), std::chrono::hours(1)};
constexpr Backoff kControllerAgain{std::chrono::seconds(1), std::chrono::seconds(32)};
constexpr Duration kLastWait = std::chrono::seconds(3);  // for the last commands to be taken

std::string hex(std::uint64_t number) {
  return fmt::format("{:016x}", number);
}

}  // namespace

Slurm::Slurm(os::Env& env, SlurmOptions options)
    : env_(env),
      options_(std::move(options)),
      name_("berth-" + slurm_name(options_.name).substr(0, 40) + "-" + hex(env.random())),
      environment_(slurm_environment(env)) {}

Slurm::~Slurm() {
  on_change(nullptr);
  const Mono until = env_.now() + kLastWait;
  seeks_ = false;
  for (const auto& job : jobs_) job->unwanted = true;
  while ((command_ || !jobs_.empty()) && env_.now() < until) {
    std::erase_if(jobs_, [&](const auto& job) { return job->number == 0 && !command_; });
    progress();
    if (command_) (void)env_.loop().turn(until);
    if (silent_ > 0) break;  // the guard goes on
  }
}

// Commands, one at a time.

void Slurm::begin(std::vector<std::string> words, Then then) {
  then_ = then;
  command_ = std::make_unique<Command>(env_, std::move(words), environment_, kSlurmAnswersWithin,
                                       [this] { changed(); });
}

void Slurm::progress() {
  for (int i = 0; i < 4; ++i) {  // what is done at once may let the next begin
    if (command_) {
      const auto outcome = command_->take();
      if (!outcome) return;
      command_.reset();
      (this->*then_)(*outcome);
    }
    if (!begin_next()) return;
  }
}

bool Slurm::begin_next() {
  const Mono now = env_.now();
  if (now < quiet_until_) return false;
  std::vector<std::string> cancel{"scancel", "--quiet"};
  for (const auto& job : jobs_)
    if (job->unwanted && job->number > 0) {
      cancel.push_back(fmt::format("{}", job->number));
      job->cancelling = true;
    }
  for (const auto number : strays_) cancel.push_back(fmt::format("{}", number));
  if (cancel.size() > 2) {
    begin(std::move(cancel), &Slurm::after_cancel);
  } else if (Job* job = first(Job::State::wanted); job != nullptr && !guarded_) {
    guarded_ = true;
    const auto self = env_.self();
    begin({options_.program, "guard", fmt::format("{}", self.pid),
           fmt::format("{}", self.started_at), "scancel", "--quiet", "--state=PENDING",
           "--name=" + name_, fmt::format("--user={}", env_.user())},
          &Slurm::after_guard);
  } else if (job != nullptr) {
    concerns_ = job->alloc.id;
    begin(submission(*job), &Slurm::after_submit);
  } else if (seeks_ && (!nodes_at_ || now >= *nodes_at_ + nodes_age_)) {
    begin({"sinfo", "--noheader", "--exact", "--format=" + std::string(kSlurmNodesFormat)},
          &Slurm::after_nodes);
  } else if (Job* starting = first(Job::State::starts); starting != nullptr) {
    concerns_ = starting->alloc.id;
    begin(probe(*starting), &Slurm::after_probe);
  } else if (look_at_ && now >= *look_at_) {
    begin({"squeue", "--noheader", "--states=all", "--name=" + name_,
           fmt::format("--user={}", env_.user()), "--Format=" + std::string(kSlurmJobsFormat)},
          &Slurm::after_jobs);
  } else {
    return false;
  }
  return true;
}

/// When begin_next() has something to begin, but for what a call or a command's end leads to. Of a
/// job that works keepalive() asks.
std::optional<Mono> Slurm::next_command() const {
  if (command_) return std::nullopt;
  if (env_.now() < quiet_until_) return quiet_until_;
  std::optional<Mono> next;
  if (seeks_ && nodes_at_) next = *nodes_at_ + nodes_age_;
  const bool looks =
      seeks_ || std::ranges::any_of(jobs_, [](const auto& job) { return !job->taken; });
  if (looks && look_at_) next = std::min(next.value_or(*look_at_), *look_at_);
  return next;
}

std::optional<Mono> Slurm::tend() {
  progress();
  return next_command();
}

/// What a refused submission says of the next one.
ErrorKind kind_of(SlurmTrouble trouble) {
  switch (trouble) {
    case SlurmTrouble::refused: return ErrorKind::denied;
    case SlurmTrouble::not_now: return ErrorKind::busy;
    default: return ErrorKind::io;
  }
}

/// Whether the controller did; else it is left in peace for a growing while.
bool Slurm::answered(const CommandEnd& outcome) {
  const bool silent = (outcome.error && outcome.error->kind == ErrorKind::busy) ||
                      (!outcome.good() && trouble_of(outcome.err) == SlurmTrouble::unreachable);
  silent_ = silent ? silent_ + 1 : 0;
  if (silent) quiet_until_ = env_.now() + kControllerAgain.pause(silent_, env_.random());
  return !silent;
}

void Slurm::after_guard(const CommandEnd& outcome) {
  if (!outcome.good())
    os::log_event(env_, "no guard",
                  {{"because", json_quote(outcome.error ? outcome.error->message : outcome.err)}});
}

void Slurm::after_nodes(const CommandEnd& outcome) {
  if (!answered(outcome)) {
    nodes_error_ = Error{ErrorKind::io, slurm_error("sinfo", outcome).message};
    return;
  }
  nodes_at_ = env_.now();
  nodes_error_.reset();
  if (!outcome.good()) nodes_error_ = slurm_error("sinfo", outcome);
  nodes_age_ = kNodesAgeInVain;
  if (nodes_error_) return;
  auto nodes = read_slurm_nodes(outcome.out);
  if (nodes)
    nodes_ = *std::move(nodes);
  else
    nodes_error_ = nodes.error();
}

void Slurm::after_submit(const CommandEnd& outcome) {
  Job* job = find(concerns_);
  if (job == nullptr) return;
  look_pause_ = kFirstLook;
  look_at_ = env_.now() + look_pause_;  // or for a job that came to be although nobody said so
  const auto number = outcome.good() ? read_slurm_job_id(outcome.out)
                                     : Result<std::int64_t>(std::unexpected(Error{}));
  if (number) {
    (void)answered(outcome);
    job->number = *number;
    job->state = Job::State::waits;
    os::log_event(
        env_, "job asked for",
        {{"number", fmt::format("{}", *number)}, {"partition", json_quote(job->ask.partition)}});
    return;
  }
  const std::string why =
      outcome.good() ? number.error().message : slurm_error("sbatch", outcome).message;
  const ErrorKind kind = outcome.error ? outcome.error->kind : kind_of(trouble_of(outcome.err));
  // Without those nodes there is none that would do: the partition is not at fault.
  const bool without = !job->avoid.empty() && kind == ErrorKind::denied;
  if (without) unavoidable_[job->avoid] = {env_.now() + kUnavoidableFor, why};
  if (answered(outcome) && !without) rest(job->ask.partition, why, kind);
  std::erase_if(jobs_, [&](const auto& each) { return each.get() == job; });
}

void Slurm::after_cancel(const CommandEnd& outcome) {
  // A job that Slurm has forgotten needs no cancelling.
  if (!answered(outcome)) {
    for (const auto& job : jobs_) job->cancelling = false;
    return;
  }
  strays_.clear();
  std::erase_if(jobs_, [](const auto& job) { return job->cancelling; });
}

void Slurm::after_jobs(const CommandEnd& outcome) {
  look_pause_ = std::min<Duration>(look_pause_ * 5 / 4, kLongestQueuePoll);
  const bool waits = first(Job::State::waits) != nullptr;
  look_at_ = env_.now() + (waits ? look_pause_ : std::max(look_pause_, kLooksWhileHeld));
  if (!answered(outcome) || outcome.error) return;
  const bool none = trouble_of(outcome.err) == SlurmTrouble::no_such_job;
  if (outcome.exit_code != 0 && !none) return;
  const auto seen = read_slurm_jobs(outcome.out);
  if (!seen) return os::log_event(env_, "squeue", {{"error", json_quote(seen.error().message)}});
  for (const auto& job : jobs_) {
    if (job->number == 0 || job->state == Job::State::over) continue;
    const auto at = std::ranges::find(*seen, job->number, &SlurmJob::id);
    see(*job, at == seen->end() ? nullptr : &*at);
  }
  for (const auto& each : *seen) {
    const auto phase = phase_of(each);
    const bool lives = phase == SlurmPhase::waits || phase == SlurmPhase::runs;
    const bool known =
        std::ranges::any_of(jobs_, [&](const auto& job) { return job->number == each.id; });
    if (lives && !known) strays_.push_back(each.id);
  }
  std::erase_if(jobs_,
                [](const auto& job) { return job->state == Job::State::over && !job->taken; });
  if (jobs_.empty()) look_at_.reset();
}

void Slurm::see(Job& job, const SlurmJob* seen) {
  const auto over = [&](std::string why) {
    os::log_event(env_, "job over",
                  {{"number", fmt::format("{}", job.number)}, {"why", json_quote(why)}});
    job.reason = std::move(why);
    job.state = Job::State::over;
  };
  if (seen == nullptr) return over("Slurm has no record of it");
  const auto phase = phase_of(*seen);
  if (phase == SlurmPhase::over || phase == SlurmPhase::ending) {
    const auto why = ended_because(*seen);
    const bool fault =
        seen->state == "FAILED" || seen->state == "BOOT_FAIL" || seen->state == "NODE_FAIL";
    if (fault && !job.taken) rest(job.ask.partition, why);
    return over(std::string(why.empty() ? "it ended" : why));
  }
  if (phase == SlurmPhase::waits) {
    job.reason = seen->reason;
    if (job.state == Job::State::waits) return;
    job.unwanted = !job.taken;  // its agent is gone
    return over("Slurm requeued it");
  }
  if (seen->left) job.ends = env_.now() + *seen->left;
  if (job.state != Job::State::waits) return;
  job.alloc.machine = seen->node;
  nodes_of_jobs_.insert(seen->node);
  job.state = Job::State::starts;
}

void Slurm::after_probe(const CommandEnd& outcome) {
  Job* job = find(concerns_);
  if (job == nullptr || job->state != Job::State::starts || !answered(outcome)) return;
  if (outcome.good()) {
    job->state = Job::State::ready;
    rests_.erase(job->ask.partition);
    return;
  }
  look_at_ = env_.now();
  if (trouble_of(outcome.err) == SlurmTrouble::no_such_job) return;  // the queue tells why
  rest(job->ask.partition, fmt::format("berth-agent does not start on {}: {}", job->alloc.machine,
                                       slurm_error("srun", outcome).message));
  job->unwanted = true;
}

void Slurm::rest(const std::string& partition, std::string_view why, ErrorKind kind) {
  Rest& rest = rests_[partition];
  const int times = rest.times + 1;
  rest = {env_.now() + kPartitionAgain.pause(times, env_.random()), times, std::string(why), kind};
  nodes_at_.reset();  // it may have changed
  os::log_event(env_, "partition left alone",
                {{"partition", json_quote(partition)}, {"why", json_quote(why)}});
}

PausedPartitions Slurm::paused() const {
  PausedPartitions paused;
  for (const auto& [partition, rest] : rests_)
    if (env_.now() < rest.until) paused.emplace(partition, rest.why);
  return paused;
}

// Leasing.

Slurm::Job* Slurm::find(cluster::AllocId id) {
  const auto at = std::ranges::find(jobs_, id, [](const auto& job) { return job->alloc.id; });
  return at == jobs_.end() ? nullptr : at->get();
}

Slurm::Job* Slurm::first(Job::State state) {
  const auto at = std::ranges::find_if(
      jobs_, [&](const auto& job) { return job->state == state && !job->unwanted; });
  return at == jobs_.end() ? nullptr : at->get();
}

Result<std::vector<cluster::Offer>> Slurm::offers() {
  progress();
  std::vector<cluster::Offer> offers;
  for (const auto& job : jobs_)
    if (job->state == Job::State::ready && !job->taken && !job->unwanted)
      offers.push_back(
          {.machine = place_name(job->alloc.id), .free = job->ask.block, .total = job->ask.block});
  return offers;
}

Result<cluster::Alloc> Slurm::accept(const cluster::Offer& offer,
                                     const std::optional<machine::Request>& /*part*/,
                                     const cluster::Labels& labels) {
  for (const auto& job : jobs_)
    if (job->state == Job::State::ready && !job->taken && !job->unwanted &&
        place_name(job->alloc.id) == offer.machine)
      return take(*job, labels);
  return fail(ErrorKind::busy, "{} is gone", clip(offer.machine));
}

Result<cluster::Alloc> Slurm::take(Job& job, const cluster::Labels& labels) {
  job.taken = true;
  job.alloc.labels = labels;
  job.alloc.expires = env_.now() + kRenewal;
  if (job.ends) {
    const Duration left = *job.ends - env_.now();
    job.alloc.expires = std::min(*job.alloc.expires, *job.ends - kHandBack);
    job.alloc.closes = *job.ends - std::min(options_.drain, left / 2);
  }
  return job.alloc;
}

Result<cluster::Alloc> Slurm::allocate(const cluster::Wish& wish) {
  machine::DeviceSelection by_size = wish.selection;
  by_size.policy = {};
  by_size.objective = {};
  by_size.required.clear();
  if (by_size != wish.selection)
    return fail(ErrorKind::impossible,
                "gpu_require, gpu_policy and gpu_objective: not supported, because Slurm chooses "
                "the cards");
  seeks_ = true;
  progress();
  std::vector<std::string> avoid;  // of these nodes
  std::ranges::copy_if(wish.avoid, std::back_inserter(avoid),
                       [&](const auto& name) { return nodes_of_jobs_.contains(name); });
  for (const auto& job : jobs_)
    if (job->state == Job::State::ready && !job->taken && !job->unwanted && serves(*job, wish) &&
        avoids(*job, avoid))
      return take(*job, wish.labels);
  if (const auto found = unavoidable_.find(avoid);
      found != unavoidable_.end() && env_.now() < found->second.first)
    return fail(ErrorKind::impossible, "without {}: {}", join(avoid, ", "), found->second.second);
  if (nodes_error_ && jobs_.empty()) return std::unexpected(*nodes_error_);
  if (!nodes_at_ && nodes_.empty())
    return fail(ErrorKind::busy, "asking Slurm for its partitions and nodes");
  auto ask = match(wish, nodes_, options_.partitions, options_.time_limit, options_.gpus, paused());
  nodes_age_ = ask ? kNodesAge : kNodesAgeInVain;
  std::int64_t coming = 0;
  for (const auto& job : jobs_)
    if (!job->taken && !job->unwanted && job->state != Job::State::over && serves(*job, wish) &&
        avoids(*job, avoid))
      coming += job->ask.width;
  if (coming == 0 && !ask) return refusal(ask.error());
  if (ask && coming < std::max<std::int64_t>(wish.requirements.width, 1) &&
      jobs_.size() < options_.most) {
    auto job = std::make_unique<Job>();
    job->alloc = {.id = {static_cast<std::int64_t>(env_.random() >> 1)},
                  .machine = ask->partition,
                  .block = ask->block,
                  .labels = wish.labels};
    job->ask = *std::move(ask);
    job->avoid = avoid;
    jobs_.push_back(std::move(job));
    progress();
  }
  return fail(ErrorKind::busy, "{}", waiting_for());
}

bool Slurm::serves(const Job& job, const cluster::Wish& wish) {
  const machine::Machine machine(job.ask.block);
  return machine.dry_run({wish.requirements.min, "", wish.selection}).has_value();
}

/// Whether it is on none of these nodes; or was asked for so, and for no less.
bool Slurm::avoids(const Job& job, std::span<const std::string> nodes) {
  const bool placed = job.state == Job::State::starts || job.state == Job::State::ready;
  return placed ? std::ranges::find(nodes, job.alloc.machine) == nodes.end()
                : std::ranges::equal(job.avoid, nodes);
}

/// The error of match() with the kind that decides whether the run waits. `io` means that only
/// paused partitions are left: the mildest of the reasons for their pauses counts.
std::unexpected<Error> Slurm::refusal(Error error) const {
  bool busy = false, passing = false;
  for (const auto& [partition, rest] : rests_) {
    if (env_.now() >= rest.until) continue;
    busy = busy || rest.kind == ErrorKind::busy;
    passing = passing || retryable(rest.kind);
  }
  if (error.kind == ErrorKind::io)
    error.kind = busy ? ErrorKind::busy : passing ? ErrorKind::io : ErrorKind::denied;
  return std::unexpected(std::move(error));
}

std::string Slurm::waiting_for() const {
  std::vector<std::string> waiting;
  for (const auto& job : jobs_) {
    if (job->taken || job->state == Job::State::over) continue;
    const bool runs = job->state == Job::State::starts;
    const std::string number = job->number > 0 ? fmt::format(" {}", job->number) : "";
    waiting.push_back(fmt::format("Slurm job{} in {}{}", number, job->ask.partition,
                                  runs                  ? " starts"
                                  : job->reason.empty() ? ""
                                                        : ": " + job->reason));
  }
  if (nodes_error_) waiting.push_back(nodes_error_->message);
  return waiting.empty() ? fmt::format("all {} Slurm jobs of the cluster are in use", options_.most)
                         : join(waiting, ", ");
}

Result<std::optional<Mono>> Slurm::keepalive(cluster::AllocId id) {
  progress();
  Job* job = find(id);
  if (job == nullptr || !job->taken) return fail(ErrorKind::stale, "no allocation {:x}", id.value);
  if (job->state == Job::State::over)
    return fail(ErrorKind::stale, "Slurm job {}: {}", job->number, job->reason);
  Mono until = env_.now() + kRenewal;
  if (job->ends) until = std::min(until, *job->ends - kHandBack);
  if (until <= env_.now())
    return fail(ErrorKind::stale, "Slurm job {}: its time limit is near", job->number);
  job->alloc.expires = until;
  return std::optional(until);
}

Result<cluster::Alloc> Slurm::inspect(cluster::AllocId id) {
  const Job* job = find(id);
  if (job == nullptr || !job->taken) return fail(ErrorKind::stale, "no allocation {:x}", id.value);
  return job->alloc;
}

Status Slurm::free(cluster::AllocId id) {
  Job* job = find(id);
  if (job == nullptr || !job->taken) return fail(ErrorKind::stale, "no allocation {:x}", id.value);
  job->taken = false;
  job->unwanted = true;
  progress();
  return {};
}

void Slurm::stop_waiting() {
  seeks_ = false;
  for (const auto& job : jobs_)
    if (!job->taken) job->unwanted = true;
  std::erase_if(jobs_, [&](const auto& job) {
    return job->unwanted && job->number == 0 && !(command_ && concerns_ == job->alloc.id);
  });
  progress();
}

Mono Slurm::retry_at() {
  const Mono now = env_.now();
  Mono next = next_command().value_or(now + kNodesAge);
  const auto consider = [&](Mono until) {
    if (until > now) next = std::min(next, until);
  };
  for (const auto& [partition, rest] : rests_) consider(rest.until);
  for (const auto& [nodes, believed] : unavoidable_) consider(believed.first);
  return next;
}

Result<LeaseDirectory> Slurm::lease_directory(cluster::AllocId id) {
  const Job* job = find(id);
  if (job == nullptr || !job->taken) return fail(ErrorKind::stale, "no allocation {:x}", id.value);
  return LeaseDirectory{transport(*job), options_.directory + "/" + place_name(job->alloc.id)};
}

}  // namespace berth::remote
