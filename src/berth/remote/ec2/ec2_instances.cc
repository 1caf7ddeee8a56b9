#include "berth/remote/ec2/ec2_instances.h"

#include <algorithm>
#include <array>

#include "berth/base/backoff.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/failpoint.h"
#include "berth/os/log.h"

namespace berth::remote {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDescribeInterval = 2s, kQuietDescribeInterval = 15s;
constexpr Duration kBillingStep = 60s;  // the least that an instance costs
constexpr Duration kLeastLease = 120s;  // less is not worth starting an instance for
constexpr Duration kDrain = 90s;        // before the lease ends for good
constexpr Duration kUnseen = 5min;      // then EC2 has surely not started it, or forgotten it
constexpr Duration kAgain = 5s;         // after a call that failed
constexpr Duration kLeastIdle = 5s;     // for who waits to ask for it
constexpr Backoff kCapacityAgain{15s, 10min};
constexpr int kMostFailures = 3;

constexpr double kMsPerHour = 3'600'000;

}  // namespace

Ec2Instances::Ec2Instances(os::Env& env, Ec2Api& api, Ec2Settings settings, Owner owner,
                           std::string book, Renew renew)
    : env_(env),
      api_(api),
      settings_(std::move(settings)),
      owner_(std::move(owner)),
      book_(std::move(book)),
      renew_(std::move(renew)) {}

Ec2Machine* Ec2Instances::find(const std::string& key) {
  const auto found = std::ranges::find_if(machines_, [&](const Ec2Machine& machine) {
    return machine.token == key || machine.id == key;
  });
  return found == machines_.end() ? nullptr : &*found;
}

double Ec2Instances::cost(const Ec2Machine& machine, Wall until) const {
  if (machine.kept) return 0;  // it would cost that without us
  const Duration ran = std::max<Duration>(until - machine.since, kBillingStep);
  return static_cast<double>(machine.type.price) * static_cast<double>(to_ms(ran)) / kMsPerHour;
}

/// What is neither spent nor promised to a lease, without what `but` has.
double Ec2Instances::available(const Ec2Machine* but) {
  if (!settings_.budget) return 1e300;
  double left = static_cast<double>(*settings_.budget) * 1000 - closed_;
  for (const Ec2Machine& machine : machines_)
    left -= cost(machine, &machine == but ? env_.wall() : std::max(env_.wall(), machine.allowed));
  return left;
}

void Ec2Instances::close(const std::string& token, Wall until) {
  Ec2Machine* machine = find(token);
  closed_ += cost(*machine, until);
  os::log_event(env_, "ec2_ended", {{"instance", json_quote(machine->id)}});
  forget(token);
}

void Ec2Instances::forget(const std::string& token) {
  std::erase_if(machines_, [&](const Ec2Machine& machine) { return machine.token == token; });
  (void)save();  // an entry too many is found out again
}

// What EC2 tells.

void Ec2Instances::describe() {
  if (describing_ || env_.now() < describe_at_) return;
  describing_ = true;
  describe_page("", {});
}

void Ec2Instances::describe_page(std::string token, std::vector<Ec2Instance> so_far) {
  Ec2Parameters parameters;
  auto filter = [&, n = 0](const std::string& name, std::span<const std::string> values) mutable {
    parameters.emplace_back(fmt::format("Filter.{}.Name", ++n), name);
    for (std::size_t i = 0; i < values.size(); ++i)
      parameters.emplace_back(fmt::format("Filter.{}.Value.{}", n, i + 1), values[i]);
  };
  if (!settings_.instances.empty()) {
    filter("instance-id", settings_.instances);
  } else {
    filter("tag:berth-cluster", std::array<std::string, 1>{settings_.name});
    filter("tag:berth-run", std::array<std::string, 1>{owner_.run});
    filter("tag:berth-home", std::array<std::string, 1>{owner_.home});
  }
  parameters.emplace_back("MaxResults", "500");
  if (!token.empty()) parameters.emplace_back("NextToken", std::move(token));
  api_.call(
      "DescribeInstances", std::move(parameters),
      [this, so_far = std::move(so_far)](const Result<Xml>& answer) mutable {
        auto page = answer ? read_instances(*answer) : std::unexpected(answer.error());
        if (!page) {
          trouble_ = page.error().message;
          if (page.error().kind == ErrorKind::denied || page.error().kind == ErrorKind::invalid)
            refusal_ = page.error();
          describing_ = false;
          describe_at_ = env_.now() + kAgain;
          return;
        }
        std::ranges::move(page->instances, std::back_inserter(so_far));
        if (!page->next.empty() && so_far.size() < 10'000)
          return describe_page(std::move(page->next), std::move(so_far));
        describing_ = false;
        describe_at_ = env_.now() + kDescribeInterval;
        on_instances(so_far);
      });
}

void Ec2Instances::on_instances(const std::vector<Ec2Instance>& reported) {
  described_ = true;
  for (const Ec2Instance& each : reported) on_instance(each);
  std::vector<std::string> lost;
  for (Ec2Machine& machine : machines_)
    if (machine.phase != Phase::asked && !machine.calling && env_.wall() - machine.seen > kUnseen)
      lost.push_back(machine.token);
  for (const std::string& token : lost) {
    const Ec2Machine& machine = *find(token);
    // Asked for, and never seen: it was not started. Seen once, it ran at most until its lease
    // ended.
    if (machine.id.empty())
      forget(token);
    else
      close(token, std::min(env_.wall(), machine.allowed));
  }
  const bool moving = std::ranges::any_of(machines_, [](const Ec2Machine& machine) {
    return machine.phase != Phase::up || !machine.ready;
  });
  if (!moving) describe_at_ = env_.now() + kQuietDescribeInterval;
}

void Ec2Instances::on_instance(const Ec2Instance& reported) {
  using enum Ec2Instance::State;
  if (!settings_.instances.empty()) named_[reported.id] = reported.state;
  Ec2Machine* machine = find(reported.id);
  if (machine == nullptr && !reported.client_token.empty()) machine = find(reported.client_token);
  const bool runs = reported.state == pending || reported.state == running;
  if (machine == nullptr) {
    if (settings_.instances.empty() && runs) adopt(reported);
    return;
  }
  machine->seen = env_.wall();
  if (runs) {
    const bool is_new = machine->id != reported.id;
    machine->id = reported.id;
    machine->address = reported.address;
    machine->spot = reported.spot;
    const auto type = std::ranges::find(settings_.types, reported.type, &Ec2Type::name);
    if (type != settings_.types.end()) machine->type = *type;
    const auto phase = reported.state == running ? Phase::up : Phase::starting;
    if (machine->phase != Phase::ending) machine->phase = phase;
    if (is_new) (void)save();
    return;
  }
  // A named one that was asked to start may be told as it was before.
  if (machine->named && machine->phase == Phase::asked) return;
  if (machine->phase != Phase::ending && !reported.reason.empty())
    trouble_ = fmt::format("{} ended: {}", reported.id, reported.reason);
  close(machine->token, env_.wall());
}

/// It carries our tags, and is in no book: it is taken for one of ours that is up.
void Ec2Instances::adopt(const Ec2Instance& reported) {
  Ec2Machine machine{.token = reported.client_token.empty() ? reported.id : reported.client_token,
                     .id = reported.id};
  machine.since = machine.seen = machine.unused_since = machine.patient_since = env_.wall();
  machine.allowed = env_.wall();  // how much it was given is not known: it is renewed first
  machine.phase = ending_ ? Phase::ending : Phase::starting;
  machines_.push_back(std::move(machine));
  (void)save();
  on_instance(reported);
}

void Ec2Instances::ask_for_interruptions() {
  if (env_.now() < interruptions_at_) return;
  interruptions_at_ = env_.now() + kQuietDescribeInterval;
  Ec2Parameters parameters{{"Filter.1.Name", "instance-id"}};
  for (const Ec2Machine& machine : machines_)
    if (machine.spot && machine.phase == Phase::up)
      parameters.emplace_back(fmt::format("Filter.1.Value.{}", parameters.size()), machine.id);
  if (parameters.size() == 1) return;
  api_.call("DescribeSpotInstanceRequests", std::move(parameters),
            [this](const Result<Xml>& answer) {
              if (!answer) return;  // then its end comes without a warning
              for (const std::string& id : read_interrupted(*answer)) drain(id, "EC2 reclaims it");
            });
}

// What we do.

void Ec2Instances::step() {
  api_.step();
  describe();
  ask_for_interruptions();
  std::vector<std::string> tokens;
  for (const Ec2Machine& machine : machines_) tokens.push_back(machine.token);
  for (const std::string& token : tokens)
    if (Ec2Machine* machine = find(token)) look_after(*machine);
  api_.step();  // sends what that has come to
}

void Ec2Instances::look_after(Ec2Machine& machine) {
  const Wall now = env_.wall();
  if (ending_ && machine.phase != Phase::ending) machine.phase = Phase::ending;
  if (machine.phase == Phase::asked) return ask(machine);
  if (machine.phase == Phase::ending) return end(machine);
  if (machine.ready && !machine.in_use && !machine.kept) {
    const Duration idle = std::max(settings_.idle, kLeastIdle);
    const bool done = !machine.draining.empty() || now - machine.unused_since >= idle;
    if (done) machine.phase = Phase::ending;
  }
  if (!machine.ready && now - machine.patient_since > settings_.timeout) {
    trouble_ = fmt::format("{} ({}) has not answered by ssh for {}", machine.id, machine.address,
                           format_duration(settings_.timeout));
    if (++failures_ >= kMostFailures) refusal_ = Error{ErrorKind::io, trouble_};
    machine.phase = Phase::ending;
  }
  if (machine.ready) renew(machine);
  if (now > machine.allowed + kBillingStep && !machine.kept) machine.phase = Phase::ending;
  if (machine.phase == Phase::ending) return (void)save(), end(machine);
}

/// Once a third of the lease is gone: it gets what the budget has for it.
void Ec2Instances::renew(Ec2Machine& machine) {
  const Wall now = env_.wall();
  if (!renew_ || machine.calling || machine.kept || env_.now() < machine.call_again) return;
  if (now - machine.renewed < settings_.lease / 3) return;
  Duration lease = settings_.lease;
  if (settings_.budget && machine.type.price > 0) {
    const double ms = available(&machine) * kMsPerHour / static_cast<double>(machine.type.price);
    lease = std::min(lease, from_ms(static_cast<std::int64_t>(std::clamp(ms, 0.0, 1e10))));
    if (now + lease <= machine.allowed + 1s) {  // nothing is gained
      if (machine.allowed - now < kDrain) drain(machine.token, "the budget is used up");
      return;
    }
  }
  // What has failed may have been done all the same.
  machine.allowed = std::max(machine.allowed, now + lease);
  machine.renewing = now;
  machine.calling = true;
  (void)save();
  renew_(machine, lease);
}

void Ec2Instances::renewed(const std::string& id, bool done) {
  Ec2Machine* machine = find(id);
  if (machine == nullptr) return;
  machine->calling = false;
  if (done) machine->renewed = machine->renewing;
  machine->call_again = env_.now() + (done ? Duration{} : kAgain);
}

namespace {

Ec2Parameters run_parameters(const Ec2Settings& settings, const Ec2Instances::Owner& owner,
                             const Ec2Machine& machine) {
  Ec2Parameters parameters{{"ImageId", settings.image},
                           {"InstanceType", machine.type.name},
                           {"MinCount", "1"},
                           {"MaxCount", "1"},
                           {"ClientToken", machine.token},
                           {"InstanceInitiatedShutdownBehavior",
                            settings.end() == Ec2Settings::AtEnd::stop ? "stop" : "terminate"},
                           {"UserData", base64(guard_script(machine.lease, true))},
                           {"TagSpecification.1.ResourceType", "instance"}};
  std::vector<std::pair<std::string, std::string>> tags{{"Name", "berth " + owner.run},
                                                        {"berth-cluster", settings.name},
                                                        {"berth-run", owner.run},
                                                        {"berth-home", owner.home}};
  for (const auto& [label, value] : owner.labels) tags.emplace_back("berth:label:" + label, value);
  for (int i = 1; const auto& [name, value] : tags) {
    parameters.emplace_back(fmt::format("TagSpecification.1.Tag.{}.Key", i), name);
    parameters.emplace_back(fmt::format("TagSpecification.1.Tag.{}.Value", i++), value);
  }
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) parameters.emplace_back(name, value);
  };
  add("KeyName", settings.key_name);
  add("SubnetId", settings.subnet);
  add("IamInstanceProfile.Name", settings.instance_profile);
  for (std::size_t i = 0; i < settings.security_groups.size(); ++i)
    parameters.emplace_back(fmt::format("SecurityGroupId.{}", i + 1), settings.security_groups[i]);
  if (settings.spot) parameters.emplace_back("InstanceMarketOptions.MarketType", "spot");
  return parameters;
}

}  // namespace

/// Asks for it, with the same token and parameters until there is an answer: what is asked twice is
/// started once.
void Ec2Instances::ask(Ec2Machine& machine) {
  if (machine.calling || !machine.id.empty() || env_.now() < machine.call_again) return;
  machine.calling = true;
  machine.seen = env_.wall();
  const auto done = [this, token = machine.token](Result<Xml> answer) {
    run_answered(token, std::move(answer));
  };
  if (machine.named) return api_.call("StartInstances", {{"InstanceId.1", machine.token}}, done);
  api_.call("RunInstances", run_parameters(settings_, owner_, machine), done);
}

void Ec2Instances::run_answered(const std::string& token, Result<Xml> answer) {
  Ec2Machine* machine = find(token);
  if (machine == nullptr) return;
  machine->calling = false;
  machine->seen = env_.wall();
  machine->call_again = env_.now() + kAgain;
  describe_at_ = std::min(describe_at_, env_.now() + kDescribeInterval);
  if (answer) {
    refusals_ = 0;
    if (machine->named) {
      machine->id = machine->token;
      if (machine->phase == Phase::asked) machine->phase = Phase::starting;
    } else if (const auto page = read_instances(*answer)) {
      for (const Ec2Instance& each : page->instances) on_instance(each);
    }
    machine = find(token);
    if (machine != nullptr && !machine->id.empty()) machine->call_again = {};  // it may end at once
    return;
  }
  trouble_ = answer.error().message;
  os::log_event(env_, "ec2_refused", {{"why", json_quote(trouble_)}});
  const auto kind = answer.error().kind;
  if (kind == ErrorKind::io || !machine->id.empty()) return;  // whether it started is not known
  if (kind == ErrorKind::busy && !machine->others.empty() && machine->phase == Phase::asked) {
    std::vector<Ec2Type> others = std::move(machine->others);
    forget(token);
    (void)start_one(std::move(others));
    return;
  }
  if (kind == ErrorKind::busy) {
    blocked_until_ = env_.now() + kCapacityAgain.pause(++refusals_, env_.random());
    blocked_by_ = trouble_;
  } else {
    refusal_ = answer.error();
  }
  forget(token);
}

void Ec2Instances::end(Ec2Machine& machine) {
  // Without an id it is not known whether it runs; EC2 tells by its token.
  if (machine.calling || machine.id.empty() || env_.now() < machine.call_again) return;
  if (machine.kept) return close(machine.token, env_.wall());
  const bool stop = settings_.end() == Ec2Settings::AtEnd::stop;
  machine.calling = true;
  api_.call(stop ? "StopInstances" : "TerminateInstances", {{"InstanceId.1", machine.id}},
            [this, token = machine.token](const Result<Xml>& answer) {
              Ec2Machine* ended = find(token);
              if (ended == nullptr) return;
              ended->calling = false;
              ended->call_again = env_.now() + (answer ? 30s : kAgain);
              describe_at_ = std::min(describe_at_, env_.now() + kDescribeInterval / 4);
              if (!answer) trouble_ = answer.error().message;
            });
}

void Ec2Instances::ready(const std::string& id) {
  Ec2Machine* machine = find(id);
  if (machine == nullptr || machine->ready) return;
  machine->ready = true;
  machine->unused_since = env_.wall();
  failures_ = 0;
}

void Ec2Instances::use(const std::string& id, bool in_use) {
  Ec2Machine* machine = find(id);
  if (machine == nullptr) return;
  if (machine->in_use && !in_use) machine->unused_since = env_.wall();
  machine->in_use = in_use;
}

void Ec2Instances::drain(const std::string& id, std::string why) {
  Ec2Machine* machine = find(id);
  if (machine != nullptr && machine->draining.empty()) machine->draining = std::move(why);
}

void Ec2Instances::end_all() {
  ending_ = true;
  describe_at_ = std::min(describe_at_, env_.now() + kDescribeInterval / 4);
}

/// Answers of EC2 come by themselves. What is due already, and was not done, is tried again soon.
Mono Ec2Instances::next() {
  const Mono now = env_.now();
  const Wall wall = env_.wall();
  Mono next = now + kQuietDescribeInterval;
  const auto consider = [&](Mono at) { next = std::min(next, at > now ? at : now + 2s); };
  if (!describing_) consider(describe_at_);
  if (blocked_until_ > now) consider(blocked_until_);
  for (const Ec2Machine& machine : machines_) {
    if (machine.calling) continue;
    if (machine.phase == Phase::asked) consider(std::max(machine.call_again, now + 1s));
    if (machine.phase == Phase::ending && !machine.id.empty())
      next = std::min(next, std::max(machine.call_again, now));
    if (!machine.ready) continue;
    consider(std::max(machine.call_again, now + (machine.renewed + settings_.lease / 3 - wall)));
    const Wall idle = machine.unused_since + std::max(settings_.idle, kLeastIdle);
    if (!machine.in_use) consider(machine.draining.empty() ? now + (idle - wall) : now);
  }
  return next;
}

Error Ec2Instances::want(const cluster::Wish& wish) {
  if (refusal_) return *refusal_;
  auto types = fitting(settings_.types, wish);
  if (!settings_.types.empty() && types.empty())
    return {ErrorKind::impossible, fmt::format("no instance type of {} has room for {}",
                                               settings_.name, to_string(wish.requirements.min))};
  const bool none_known =
      std::ranges::all_of(machines_, [](const Ec2Machine& machine) { return machine.id.empty(); });
  if (api_.trouble() && none_known) return *api_.trouble();
  if (!described_ || ending_)
    return trouble_.empty() ? Error{ErrorKind::busy, settings_.name + ": EC2 is being asked"}
                            : Error{ErrorKind::io, trouble_};
  const auto coming = [&] {
    return std::ranges::count_if(machines_, [](const Ec2Machine& machine) {
      return !machine.ready && machine.phase != Phase::ending && machine.draining.empty();
    });
  };
  const std::int64_t each = types.empty() ? 1 : how_often(types.front(), wish);
  const std::int64_t width = std::max<std::int64_t>(wish.requirements.width, 1);
  while (coming() < (width + each - 1) / each)
    if (auto started = start_one(types); !started) {
      if (coming() == 0) return started.error();
      break;
    }
  return {ErrorKind::busy, fmt::format("{}: {} starting", settings_.name,
                                       coming() == 1 ? "an instance is" : "instances are")};
}

/// One more, of the first of these types that EC2 has.
Status Ec2Instances::start_one(std::vector<Ec2Type> types) {
  if (env_.now() < blocked_until_) return fail(ErrorKind::busy, "{}", blocked_by_);
  if (machines_.size() >= settings_.most)
    return fail(ErrorKind::busy, "{} runs {} instances, at most {}", settings_.name,
                machines_.size(), settings_.most);
  const Wall now = env_.wall();
  Ec2Machine machine;
  machine.since = machine.seen = machine.unused_since = machine.patient_since = machine.renewed =
      now;
  if (settings_.instances.empty()) {
    machine.token = fmt::format("berth-{:016x}{:016x}", env_.random(), env_.random());
    machine.type = types.front();
    machine.others.assign(types.begin() + 1, types.end());
  } else {
    BERTH_TRY(name_one(machine));
    if (!types.empty()) machine.type = types.front();
  }
  Duration lease = std::max(settings_.lease, settings_.timeout);
  if (settings_.budget && !machine.kept) {
    const double ms = available() * kMsPerHour / static_cast<double>(machine.type.price);
    // It may start a while after it was asked for, and takes a while to shut down.
    if (ms < static_cast<double>(to_ms(kLeastLease + kBillingStep)))
      return fail(ErrorKind::impossible, "{}: the budget of {} cents is used up", settings_.name,
                  *settings_.budget);
    lease = std::min(lease, from_ms(static_cast<std::int64_t>(std::min(ms, 1e10))) - kBillingStep);
  }
  machine.lease = lease;
  machine.allowed = now + lease + kBillingStep;
  machines_.push_back(std::move(machine));
  if (auto saved = save(); !saved) {
    machines_.pop_back();
    return saved;
  }
  os::failpoint("ec2.asked");
  return {};
}

/// One of the person's that is free, as EC2 told of it last.
Status Ec2Instances::name_one(Ec2Machine& machine) {
  using enum Ec2Instance::State;
  for (const auto& [id, state] : named_) {
    if (find(id) != nullptr || state == terminated || state == shutting_down) continue;
    const bool runs = state == pending || state == running;
    machine.token = id;
    machine.named = true;
    machine.kept = runs || settings_.end() == Ec2Settings::AtEnd::keep;
    machine.phase = runs ? Phase::starting : Phase::asked;
    if (runs) machine.id = id;
    return {};
  }
  return fail(ErrorKind::busy, "none of the instances of {} is free", settings_.name);
}
}  // namespace berth::remote
