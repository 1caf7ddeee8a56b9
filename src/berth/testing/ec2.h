// For tests: EC2 in memory, on FakeEnv's clock, with faults by seed. It answers in XML as EC2 does;
// its instances end themselves as the guard on them would.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "berth/base/rng.h"
#include "berth/base/text.h"
#include "berth/remote/ec2/ec2_instances.h"
#include "berth/testing/fake_env.h"

namespace berth::remote {

using namespace std::chrono_literals;

/// `gpu_mem` in GiB.
inline cluster::Wish wish(std::int64_t cores, std::int64_t width = 1, std::int64_t gpus = 0,
                          std::int64_t gpu_mem = 0) {
  cluster::Wish wish{.requirements = {{}, width}};
  wish.requirements.min.set(Known::cpu, cores * 1000);
  if (gpus > 0) wish.requirements.min.set(Known::gpu, gpus);
  if (gpu_mem > 0) wish.requirements.min.set(Known::gpu_mem, gpu_mem << 30);
  return wish;
}

struct FakeInstance {
  std::string id, token, type, state = "pending", reason = {};
  std::string tags = {};  // as XML
  bool spot = false, interrupted = false, guarded = true;
  Wall changes{}, running_since{}, launched{};
  Wall until{};      // the guard ends it
  Duration lease{};  // from its user data
  std::string ends = "terminate";
  double ran_cents = 0;
};

/// The service: what is true of it outlives the connections to it.
class FakeEc2 {
 public:
  FakeEc2(os::FakeEnv& of, std::uint64_t seed) : env(of), rng(seed) {}

  os::FakeEnv& env;
  Rng rng;
  std::vector<FakeInstance> instances;
  std::map<std::string, std::int64_t> prices;  // thousandths of a cent an hour
  std::map<std::string, std::string> tokens;   // to the id
  std::set<std::string> no_capacity, denied;
  double throttled = 0, lost = 0, broken = 0;  // parts of all calls
  bool away = false;                           // the network
  Duration start = 20s, end = 10s, hidden{};
  int runs = 0, calls = 0;

  double cents() {
    double sum = 0;
    for (auto& each : instances) sum += each.ran_cents + running_cents(each);
    return sum;
  }
  std::ptrdiff_t alive() const {
    return std::ranges::count_if(instances, [](const FakeInstance& each) {
      return each.state == "pending" || each.state == "running";
    });
  }
  FakeInstance* find(const std::string& id) {
    const auto found = std::ranges::find(instances, id, &FakeInstance::id);
    return found == instances.end() ? nullptr : &*found;
  }
  void leave(FakeInstance& each, const std::string& to) {
    each.ran_cents += running_cents(each);
    each.state = to;
    each.changes = env.wall() + end;
  }
  void advance() {
    for (auto& each : instances) {
      if (each.state == "pending" && env.wall() >= each.changes) {
        each.state = "running";
        each.running_since = each.changes;
        each.until = each.changes + each.lease;
      }
      if (each.state == "running" && each.guarded && env.wall() >= each.until) {
        each.reason = "Client.InstanceInitiatedShutdown";
        leave(each, each.ends == "stop" ? "stopping" : "shutting-down");
      }
      if (env.wall() < each.changes) continue;
      if (each.state == "shutting-down") each.state = "terminated";
      if (each.state == "stopping") each.state = "stopped";
    }
  }
  /// Status and body.
  std::pair<int, std::string> answer(const std::string& body);

 private:
  double running_cents(const FakeInstance& each) {
    if (each.state != "running") return 0;
    const Wall ended = each.guarded ? std::min(env.wall(), each.until) : env.wall();
    const Duration ran = std::max<Duration>(ended - each.running_since, 60s);
    return static_cast<double>(prices[each.type]) / 1000 * static_cast<double>(to_ms(ran)) / 3.6e6;
  }
  std::string described(const FakeInstance& each) const;
  std::pair<int, std::string> run(std::map<std::string, std::string>& of);
};

/// What the guard in this user data waits for.
inline Duration lease_of(const std::string& user_data) {
  std::string script;
  std::uint32_t word = 0;
  int bits = 0;
  for (const char c : user_data) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto digit = kDigits.find(c);
    if (digit == kDigits.npos) break;
    word = word << 6 | static_cast<std::uint32_t>(digit);
    if ((bits += 6) < 8) continue;
    bits -= 8;
    script += static_cast<char>(word >> bits & 255);
  }
  const auto at = script.find("} + ");
  return at == script.npos ? Duration{} : std::chrono::seconds(std::stoi(script.substr(at + 4)));
}

inline std::pair<int, std::string> refused(int status, const std::string& code) {
  return {status, "<Response><Errors><Error><Code>" + code +
                      "</Code><Message>no</Message>"
                      "</Error></Errors></Response>"};
}

inline std::string FakeEc2::described(const FakeInstance& each) const {
  return fmt::format(
      "<item><instanceId>{}</instanceId><instanceState><name>{}</name></instanceState>"
      "<instanceType>{}</instanceType><clientToken>{}</clientToken><ipAddress>10.0.0.1</ipAddress>"
      "<stateReason><code>{}</code></stateReason>{}<tagSet>{}</tagSet></item>",
      each.id, each.state, each.type, each.token, each.reason,
      each.spot ? "<instanceLifecycle>spot</instanceLifecycle>" : "", each.tags);
}

inline std::pair<int, std::string> FakeEc2::run(std::map<std::string, std::string>& of) {
  const std::string token = of["ClientToken"];
  if (!tokens.contains(token)) {  // else it answers as it did then, as EC2 does
    if (no_capacity.contains(of["InstanceType"]))
      return refused(500, "InsufficientInstanceCapacity");
    FakeInstance made{.id = fmt::format("i-{:017x}", rng.next() >> 4),
                      .token = token,
                      .type = of["InstanceType"]};
    made.spot = of["InstanceMarketOptions.MarketType"] == "spot";
    made.ends = of["InstanceInitiatedShutdownBehavior"];
    for (int i = 1; of.contains(fmt::format("TagSpecification.1.Tag.{}.Key", i)); ++i)
      made.tags += fmt::format("<item><key>{}</key><value>{}</value></item>",
                               of[fmt::format("TagSpecification.1.Tag.{}.Key", i)],
                               of[fmt::format("TagSpecification.1.Tag.{}.Value", i)]);
    made.lease = lease_of(of["UserData"]);
    made.launched = env.wall();
    made.changes = env.wall() + start;
    tokens[token] = made.id;
    instances.push_back(made);
    ++runs;
  }
  return {200, "<RunInstancesResponse><instancesSet>" + described(*find(tokens[token])) +
                   "</instancesSet></RunInstancesResponse>"};
}

inline std::pair<int, std::string> FakeEc2::answer(const std::string& body) {
  ++calls;
  advance();
  std::map<std::string, std::string> of;
  for (const auto pair : split(body, '&')) {
    std::string value;
    const auto raw = pair.substr(pair.find('=') + 1);
    for (std::size_t i = 0; i < raw.size(); ++i)
      value +=
          raw[i] != '%'
              ? raw[i]
              : static_cast<char>(std::stoi(std::string(raw.substr((i += 2) - 1, 2)), nullptr, 16));
    of.emplace(pair.substr(0, pair.find('=')), value);
  }
  const std::string action = of["Action"];
  if (rng.uniform() < throttled) return refused(503, "RequestLimitExceeded");
  if (denied.contains(action)) return refused(403, "UnauthorizedOperation");
  if (action == "RunInstances") return run(of);
  if (action == "DescribeInstances") {
    std::string items;
    for (const auto& each : instances) {
      bool wanted = env.wall() - each.launched >= hidden;
      if (of["Filter.1.Name"] == "instance-id") {
        wanted = false;
        for (const auto& [name, value] : of)
          wanted |= name.starts_with("Filter.1.Value.") && value == each.id;
      }
      if (wanted) items += "<item><instancesSet>" + described(each) + "</instancesSet></item>";
    }
    return {200, "<R><reservationSet>" + items + "</reservationSet></R>"};
  }
  if (action == "DescribeSpotInstanceRequests") {
    std::string items;
    for (const auto& each : instances)
      if (each.interrupted)
        items += "<item><instanceId>" + each.id +
                 "</instanceId><status><code>marked-for-termination</code></status></item>";
    return {200, "<R><spotInstanceRequestSet>" + items + "</spotInstanceRequestSet></R>"};
  }
  FakeInstance* one = find(of["InstanceId.1"]);
  if (one == nullptr || env.wall() - one->launched < hidden)
    return refused(400, "InvalidInstanceID.NotFound");
  const bool up = one->state == "pending" || one->state == "running";
  if (action == "TerminateInstances" && one->state != "terminated") leave(*one, "shutting-down");
  if (action == "StopInstances" && up) leave(*one, "stopping");
  if (action == "StartInstances") {
    if (one->state != "stopped") return refused(400, "IncorrectInstanceState");
    one->state = "pending";
    one->changes = env.wall() + start;
  }
  return {200, "<R/>"};
}

/// One runner's connection.
class FakeCalls final : public HttpCalls {
 public:
  explicit FakeCalls(FakeEc2& ec2) : ec2_(ec2) {}
  std::int64_t post(const std::string& body) override {
    HttpAnswer answer{.call = ++made_, .body = {}};
    const bool gone = ec2_.away || ec2_.rng.uniform() < ec2_.broken;
    if (!gone) std::tie(answer.status, answer.body) = ec2_.answer(body);
    if (gone || ec2_.rng.uniform() < ec2_.lost) answer = {.call = made_, .body = "no route"};
    waiting_.emplace_back(ec2_.env.now() + 1ms * ec2_.rng.below(1500), std::move(answer));
    return made_;
  }
  std::vector<HttpAnswer> ended() override {
    std::vector<HttpAnswer> over;
    std::erase_if(waiting_, [&](auto& each) {
      if (each.first > ec2_.env.now()) return false;
      over.push_back(std::move(each.second));
      return true;
    });
    return over;
  }
  HttpWaits waits() override {
    HttpWaits waits;
    for (const auto& [at, answer] : waiting_) {
      const Duration left = at - ec2_.env.now();
      waits.most = std::min(waits.most.value_or(left), left);
    }
    return waits;
  }

 private:
  FakeEc2& ec2_;
  std::int64_t made_ = 0;
  std::vector<std::pair<Mono, HttpAnswer>> waiting_;
};

}  // namespace berth::remote
