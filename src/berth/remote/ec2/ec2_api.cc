#include "berth/remote/ec2/ec2_api.h"

#include <algorithm>
#include <array>

#include "berth/base/backoff.h"
#include "berth/base/text.h"

namespace berth::remote {
namespace {

constexpr Duration kDeadline = std::chrono::minutes(2);  // of a call with all its tries
constexpr Backoff kCallAgain{std::chrono::milliseconds(600), std::chrono::seconds(12)};
constexpr std::size_t kMostMessage = 300, kMostInstances = 10'000;

std::string encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string to;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
        c == '_' || c == '.' || c == '~') {
      to += c;
    } else {
      to += '%';
      to += kDigits[byte >> 4];
      to += kDigits[byte & 15];
    }
  }
  return to;
}

/// What an error code of EC2 is to us.
struct Meaning {
  std::string_view code;  // or the beginning of it
  ErrorKind kind;
  bool again = false;
};
constexpr std::array kMeanings{
    Meaning{"RequestLimitExceeded", ErrorKind::io, true},
    Meaning{"Throttling", ErrorKind::io, true},
    Meaning{"RequestThrottled", ErrorKind::io, true},
    Meaning{"EC2ThrottledException", ErrorKind::io, true},
    Meaning{"Unavailable", ErrorKind::io, true},
    Meaning{"ServiceUnavailable", ErrorKind::io, true},
    Meaning{"Internal", ErrorKind::io, true},
    Meaning{"InsufficientInstanceCapacity", ErrorKind::busy},
    Meaning{"InsufficientHostCapacity", ErrorKind::busy},
    Meaning{"InsufficientCapacity", ErrorKind::busy},
    Meaning{"InsufficientFreeAddresses", ErrorKind::busy},
    Meaning{"SpotMaxPriceTooLow", ErrorKind::busy},
    Meaning{"MaxSpotInstanceCountExceeded", ErrorKind::busy},
    Meaning{"InstanceLimitExceeded", ErrorKind::busy},
    Meaning{"VcpuLimitExceeded", ErrorKind::busy},
    Meaning{"IncorrectInstanceState", ErrorKind::busy},
    Meaning{"IncorrectState", ErrorKind::busy},
    Meaning{"Unsupported", ErrorKind::busy},  // the type, in this zone
    Meaning{"InvalidInstanceID", ErrorKind::not_found},
    Meaning{"AuthFailure", ErrorKind::denied},
    Meaning{"UnauthorizedOperation", ErrorKind::denied},
    Meaning{"SignatureDoesNotMatch", ErrorKind::denied},
    Meaning{"InvalidClientTokenId", ErrorKind::denied},
    Meaning{"MissingAuthenticationToken", ErrorKind::denied},
    Meaning{"IncompleteSignature", ErrorKind::denied},
    Meaning{"RequestExpired", ErrorKind::denied},
    Meaning{"ExpiredToken", ErrorKind::denied},
    Meaning{"OptInRequired", ErrorKind::denied},
    Meaning{"PendingVerification", ErrorKind::denied},
    Meaning{"Blocked", ErrorKind::denied},
};

Meaning meaning_of(std::string_view code, int status) {
  for (const Meaning& meaning : kMeanings)
    if (code.starts_with(meaning.code)) return meaning;
  if (status >= 500) return {code, ErrorKind::io, true};
  return {code, status == 401 || status == 403 ? ErrorKind::denied : ErrorKind::invalid};
}

/// What a person can do about it.
std::string_view advice(std::string_view code) {
  if (code == "AuthFailure" || code == "InvalidClientTokenId" || code == "SignatureDoesNotMatch")
    return " (are key and secret right?)";
  if (code == "RequestExpired") return " (is this machine's clock right?)";
  if (code == "ExpiredToken") return " (the session token has to be renewed)";
  if (code.starts_with("InvalidAMIID"))
    return " (`image` in clusters.yaml: aws ec2 describe-images lists those of its region)";
  return "";
}

}  // namespace

void Ec2Api::call(std::string action, Ec2Parameters parameters, Done done) {
  std::string body = "Action=" + action + "&Version=2016-11-15";
  for (const auto& [name, value] : parameters) body += "&" + encoded(name) + "=" + encoded(value);
  const Mono now = env_.now();
  calls_.push_back({.action = std::move(action),
                    .body = std::move(body),
                    .done = std::move(done),
                    .deadline = now + kDeadline,
                    .again = now});
  due_.no_later_than(now);
}

Ec2Api::Verdict Ec2Api::judge(const Call& call, const HttpAnswer& answer) const {
  if (answer.status == 0)
    return {fail(ErrorKind::io, "EC2 does not answer at {}: {}", endpoint_,
                 clip(answer.body, kMostMessage)),
            !answer.lasting};
  auto xml = cloud_.read_xml(answer.body);
  if (answer.status == 200) {
    if (xml) return {std::move(xml)};
    return {
        fail(ErrorKind::io, "{} answers {} with {}", endpoint_, call.action, xml.error().message)};
  }
  const Xml* errors = xml ? xml->find("Errors") : nullptr;
  const Xml* error = errors != nullptr ? errors->find("Error") : nullptr;
  if (error == nullptr)
    return {
        fail(ErrorKind::io, "{} answers {} with HTTP {}", endpoint_, call.action, answer.status),
        answer.status >= 500 || answer.status == 429};
  const auto code = error->text_of("Code");
  if (code == "DryRunOperation") return {std::move(xml)};
  const Meaning meaning = meaning_of(code, answer.status);
  return {fail(meaning.kind, "EC2 refuses {}: {}: {}{}", call.action, clip(code),
               clip(error->text_of("Message"), kMostMessage), advice(code)),
          meaning.again};
}

void Ec2Api::step() {
  for (Call& call : calls_) {
    if (call.under_way != 0 || env_.now() < call.again) continue;
    ++call.tries;
    call.under_way = http_->post(call.body);
  }
  std::vector<std::pair<Done, Result<Xml>>> over;
  for (const HttpAnswer& answer : http_->ended()) {
    const auto call = std::ranges::find(calls_, answer.call, &Call::under_way);
    if (call == calls_.end()) continue;
    Verdict verdict = judge(*call, answer);
    const Duration pause = kCallAgain.pause(call->tries, env_.random());
    trouble_.reset();
    if (verdict.again) trouble_ = verdict.result.error();
    if (verdict.again && env_.now() + pause < call->deadline) {
      call->under_way = 0;
      call->again = env_.now() + pause;
      continue;
    }
    over.emplace_back(std::move(call->done), std::move(verdict.result));
    calls_.erase(call);
  }
  for (auto& [done, result] : over) done(std::move(result));  // each may make further calls
  arm();
}

/// What the loop waits for, as it is now.
void Ec2Api::arm() {
  const HttpWaits waits = http_->waits();
  while (sockets_.size() > waits.sockets.size()) sockets_.pop_back();
  while (sockets_.size() < waits.sockets.size())
    sockets_.emplace_back(env_.loop(), [this] { wake(); });
  for (std::size_t i = 0; i < sockets_.size(); ++i)
    sockets_[i].watch(waits.sockets[i].fd,
                      waits.sockets[i].readable ? os::Poll::For::reading : os::Poll::For::writing);
  due_.set(waits.most ? std::optional(env_.now() + *waits.most) : std::nullopt);
  for (const Call& call : calls_)
    if (call.under_way == 0) due_.no_later_than(call.again);
}

/// Nothing more until step(): what is ready stays so.
void Ec2Api::wake() {
  for (os::Poll& socket : sockets_) socket.stop();
  due_.set(std::nullopt);
  if (wake_) wake_();
}

bool Ec2Api::finish(Duration most) {
  for (const Mono end = env_.now() + most;;) {
    step();
    if (idle()) return true;
    if (env_.now() >= end || !env_.loop().turn(end)) return false;
  }
}

bool valid_instance_id(std::string_view id) {
  return id.starts_with("i-") && id.size() >= 10 && id.size() <= 19 &&
         id.find_first_not_of("0123456789abcdef", 2) == id.npos;
}

namespace {

std::optional<Ec2Instance::State> state_of(std::string_view name) {
  using enum Ec2Instance::State;
  if (name == "pending") return pending;
  if (name == "running") return running;
  if (name == "shutting-down") return shutting_down;
  if (name == "terminated") return terminated;
  if (name == "stopping") return stopping;
  if (name == "stopped") return stopped;
  return std::nullopt;
}

/// It becomes a word of ssh's command: no option, no user of its own.
bool valid_address(std::string_view text) {
  return !text.empty() && text.size() <= 255 && text[0] != '-' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == ':' || c == '-';
         });
}

Result<Ec2Instance> read_instance(const Xml& item) {
  Ec2Instance read{.id = std::string(item.text_of("instanceId")),
                   .type = std::string(item.text_of("instanceType")),
                   .client_token = std::string(item.text_of("clientToken")),
                   .reason = clip(item.text_of("stateReason/code")),
                   .spot = item.text_of("instanceLifecycle") == "spot"};
  if (!valid_instance_id(read.id))
    return fail(ErrorKind::invalid, "no instance id: {}", clip(read.id));
  const auto state = state_of(item.text_of("instanceState/name"));
  if (!state)
    return fail(ErrorKind::invalid, "{} is in no known state: {}", read.id,
                clip(item.text_of("instanceState/name")));
  read.state = *state;
  for (const char* name : {"dnsName", "ipAddress", "privateIpAddress"})
    if (read.address.empty() && valid_address(item.text_of(name)))
      read.address = std::string(item.text_of(name));
  if (const Xml* tags = item.find("tagSet"))
    for (const Xml& tag : tags->children)
      read.tags.emplace_back(tag.text_of("key"), tag.text_of("value"));
  return read;
}

Status read_set(const Xml* set, Ec2Page& to) {
  if (set == nullptr) return {};
  for (const Xml& item : set->children) {
    if (to.instances.size() == kMostInstances)
      return fail(ErrorKind::invalid, "more than {} instances", kMostInstances);
    BERTH_ASSIGN(to.instances.emplace_back(), read_instance(item));
  }
  return {};
}

}  // namespace

Result<Ec2Page> read_instances(const Xml& answer) {
  Ec2Page page{.next = std::string(answer.text_of("nextToken"))};
  if (const Xml* reservations = answer.find("reservationSet"))
    for (const Xml& reservation : reservations->children)
      BERTH_TRY(read_set(reservation.find("instancesSet"), page));
  BERTH_TRY(read_set(answer.find("instancesSet"), page));
  return page;
}

std::vector<std::string> read_interrupted(const Xml& answer) {
  constexpr std::array<std::string_view, 3> kEnds{"marked-for-termination", "marked-for-stop",
                                                  "marked-for-hibernation"};
  std::vector<std::string> found;
  if (const Xml* requests = answer.find("spotInstanceRequestSet"))
    for (const Xml& item : requests->children)
      if (std::ranges::find(kEnds, item.text_of("status/code")) != kEnds.end())
        found.emplace_back(item.text_of("instanceId"));
  return found;
}

}  // namespace berth::remote
