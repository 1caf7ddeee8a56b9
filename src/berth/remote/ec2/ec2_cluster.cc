#include "berth/remote/ec2/ec2_cluster.h"

#include <algorithm>

#include "berth/machine/machine.h"
#include "berth/remote/ssh/ssh.h"

namespace berth::remote {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLease = 30s;          // of an alloc, until it is asked after again
constexpr Duration kCommandMost = 30s;    // a command at an instance takes at most so long
constexpr Duration kProbeInterval = 10s;  // at an instance that nobody of ours is on
constexpr Duration kDeaf = 1min;          // so long an instance that answered is waited for
constexpr Duration kAnswer = 10s;         // to what was asked of an instance
constexpr Duration kEnd = 20s;
constexpr Duration kSoonestRetry = 20ms;

}  // namespace

Result<std::unique_ptr<Ec2Cluster>> Ec2Cluster::open(os::Env& env, Ec2Settings settings,
                                                     Ec2Use use) {
  BERTH_ASSIGN(const Cloud* cloud, load_cloud(env));
  BERTH_ASSIGN(Credentials credentials, find_credentials(env, settings.profile));
  auto http = cloud->open(
      {.url = settings.endpoint, .region = settings.region, .credentials = std::move(credentials)});
  std::unique_ptr<Ec2Cluster> opened(
      new Ec2Cluster(env, *cloud, std::move(http), std::move(settings), std::move(use)));
  BERTH_TRY(opened->instances_.open());
  return opened;
}

Ec2Cluster::Ec2Cluster(os::Env& env, const Cloud& cloud, std::unique_ptr<HttpCalls> http,
                       Ec2Settings settings, Ec2Use use)
    : env_(env),
      settings_(std::move(settings)),
      use_(std::move(use)),
      api_(env, cloud, std::move(http), settings_.endpoint),
      instances_(env, api_, settings_, use_.owner, use_.directory + "/ec2-" + settings_.name,
                 [this](const Ec2Machine& machine, Duration lease) { renew(machine, lease); }) {
  api_.on_news([this] { changed(); });
}

Ec2Cluster::~Ec2Cluster() {
  on_change(nullptr);
  members_.clear();
  instances_.end_all();
  for (const Mono until = env_.now() + kEnd; !instances_.over() && env_.now() < until;) {
    instances_.step();
    (void)env_.loop().turn(std::min(instances_.next(), until));
  }
}

/// Its host key is its own, whatever other instance had the address before.
Transport Ec2Cluster::transport(const Ec2Machine& machine) const {
  const std::string hosts = use_.directory + "/ec2-hosts";
  Transport transport = ssh_transport(
      {.host = machine.address,
       .user = settings_.user,
       .port = static_cast<int>(settings_.port),
       .key = settings_.key_file},
      {.options = {"-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + hosts,
                   "-o", "HostKeyAlias=" + machine.id}},
      env_.variable("HOME").value_or(""), ssh_sockets(env_));
  transport.name = machine.id;
  return transport;
}

void Ec2Cluster::renew(const Ec2Machine& machine, Duration lease) {
  auto command = renewal_command(lease);
  if (machine.named)  // nobody gave it a guard at its start
    // The script has newlines, which csh as login shell would not accept in a word.
    command[2] = fmt::format("sudo -n /bin/sh -c \"$(echo {} | base64 -d)\" && {}",
                             base64(guard_script(lease, false)), command[2]);
  const auto member = members_.find(machine.id);
  if (member == members_.end()) return instances_.renewed(machine.id, false);
  member->second.renewal =
      std::make_unique<Command>(env_, through(transport(machine), command), env_.environment(),
                                kCommandMost, [this] { changed(); });
}

/// What came of the renewal, once it is known.
void Ec2Cluster::on_renewal(const std::string& id, Member& member) {
  const auto ended = member.renewal ? member.renewal->take() : std::nullopt;
  if (!ended) return;
  member.renewal.reset();
  instances_.renewed(id, ended->good());
}

void Ec2Cluster::look(const Ec2Machine& machine, Member& member) {
  if (env_.now() < member.look_at) return;
  const auto offer = member.host->look();
  if (!offer) {
    member.look_at = std::max(env_.now() + kSoonestRetry, member.host->retry_at());
    return;
  }
  member.answered = env_.now();
  member.look_at = env_.now() + kProbeInterval;
  instances_.ready(machine.id);
  // An earlier runner's agents may still hold some of it.
  instances_.use(machine.id, member.asked || !member.allocs.empty() || offer->free != offer->total);
}

std::optional<Mono> Ec2Cluster::tend() {
  instances_.step();
  std::erase_if(members_, [&](const auto& each) {
    return std::ranges::none_of(instances_.machines(), [&](const Ec2Machine& machine) {
      return machine.id == each.first && machine.phase == Ec2Machine::Phase::up &&
             machine.address == each.second.address;
    });
  });
  const std::vector<Ec2Machine> machines(instances_.machines().begin(),
                                         instances_.machines().end());
  for (const Ec2Machine& machine : machines) {
    if (machine.phase != Ec2Machine::Phase::up || machine.address.empty()) continue;
    Member& member = members_[machine.id];
    if (!member.host) {
      member.address = machine.address;
      member.host = std::make_unique<Host>(env_, transport(machine), use_.agent, use_.host);
      member.host->on_change([this, &member] { look_again(member); });
    }
    on_renewal(machine.id, member);
    if (machine.draining.empty())
      look(machine, member);
    else  // whatever an agent there still holds goes with it
      instances_.use(machine.id, !member.allocs.empty());
  }
  return retry_at();
}

Mono Ec2Cluster::retry_at() {
  const Mono now = env_.now();
  Mono next = instances_.next();
  for (const auto& [id, member] : members_) {
    if (member.asked)
      next = std::min(next, std::max(member.asked_at + kAnswer, now + kSoonestRetry));
    if (member.look_at > now) next = std::min(next, member.look_at);
  }
  return next;
}

void Ec2Cluster::look_again(Member& member) {
  member.look_at = env_.now();
  changed();
}

Result<std::vector<cluster::Offer>> Ec2Cluster::offers() {
  (void)tend();
  std::vector<cluster::Offer> offers;
  for (const Ec2Machine& machine : instances_.machines()) {
    const auto member = members_.find(machine.id);
    if (member == members_.end() || !machine.ready || !machine.draining.empty()) continue;
    if (auto offered = member->second.host->offers())
      std::ranges::move(*offered, std::back_inserter(offers));
  }
  return offers;
}

Result<cluster::Alloc> Ec2Cluster::accept(const cluster::Offer& offer,
                                          const std::optional<machine::Request>& part,
                                          const cluster::Labels& labels) {
  const auto member = members_.find(offer.machine);
  if (member == members_.end()) return fail(ErrorKind::busy, "{} is gone", offer.machine);
  BERTH_ASSIGN(cluster::Alloc alloc, member->second.host->accept(offer, part, labels));
  alloc.expires = env_.now() + kLease;
  member->second.allocs[alloc.id] = alloc;
  instances_.use(offer.machine, true);
  return alloc;
}

/// As much of the wish as there is room for, asked for until there is an answer.
Result<cluster::Alloc> Ec2Cluster::ask(Member& member, const cluster::Wish& wish,
                                       const cluster::Offer& offer) {
  const bool same = member.asked && member.asked->requirements.min == wish.requirements.min &&
                    member.asked->selection == wish.selection;
  if (member.asked && !same && env_.now() < member.asked_at + kAnswer)
    return fail(ErrorKind::busy, "{}: waiting for its answer", offer.machine);
  if (!same) {
    BERTH_ASSIGN(const auto choice, cluster::closest({&offer, 1}, wish));
    member.asked = wish;
    member.asked_at = env_.now();
    member.part =
        machine::Request{part_of(offer, choice.part, wish.requirements.min), "", wish.selection};
    instances_.use(offer.machine, true);
  }
  auto alloc = accept(offer, member.part, wish.labels);
  const bool waits = !alloc && alloc.error().kind == ErrorKind::busy && member.host->asking();
  if (!waits) member.asked.reset();
  if (!waits && !alloc) look_again(member);  // whether it is still of use
  return alloc;
}

Result<cluster::Alloc> Ec2Cluster::allocate(const cluster::Wish& wish) {
  (void)tend();
  std::optional<Error> undecided;
  const std::vector<Ec2Machine> machines(instances_.machines().begin(),
                                         instances_.machines().end());
  for (const Ec2Machine& machine : machines) {
    const auto member = members_.find(machine.id);
    if (member == members_.end() || !machine.ready || !machine.draining.empty()) continue;
    if (std::ranges::find(wish.avoid, machine.id) != wish.avoid.end()) continue;
    const auto offers = member->second.host->offers();
    if (!offers) {
      const bool waited_for = env_.now() - member->second.answered.value_or(Mono{}) < kDeaf;
      if (waited_for) undecided = offers.error();
      continue;
    }
    member->second.answered = env_.now();
    const machine::Machine free(offers->front().free);
    const bool asked = member->second.asked.has_value();
    if (!asked && !free.dry_run({wish.requirements.min, "", wish.selection})) continue;
    auto alloc = ask(member->second, wish, offers->front());
    if (alloc) return alloc;
    if (alloc.error().kind == ErrorKind::busy) undecided = alloc.error();
  }
  if (undecided) return fail(ErrorKind::busy, "{}", undecided->message);
  return std::unexpected(instances_.want(wish));
}

Ec2Cluster::Member* Ec2Cluster::holder(cluster::AllocId id) {
  const auto found = std::ranges::find_if(
      members_, [&](const auto& each) { return each.second.allocs.contains(id); });
  return found == members_.end() ? nullptr : &found->second;
}

Result<std::optional<Mono>> Ec2Cluster::keepalive(cluster::AllocId id) {
  (void)tend();
  Member* member = holder(id);
  if (member == nullptr) return fail(ErrorKind::stale, "its instance has ended");
  for (const Ec2Machine& machine : instances_.machines())
    if (machine.id == member->host->name() && !machine.draining.empty())
      return fail(ErrorKind::stale, "{}: {}", machine.id, machine.draining);
  member->allocs[id].expires = env_.now() + kLease;
  return member->allocs[id].expires;
}

Result<cluster::Alloc> Ec2Cluster::inspect(cluster::AllocId id) {
  Member* member = holder(id);
  if (member == nullptr)
    return fail(ErrorKind::stale, "no allocation {:x} of this process", id.value);
  return member->allocs[id];
}

Result<LeaseDirectory> Ec2Cluster::lease_directory(cluster::AllocId id) {
  Member* member = holder(id);
  if (member == nullptr)
    return fail(ErrorKind::stale, "no allocation {:x} of this process", id.value);
  return member->host->lease_directory(id);
}

Status Ec2Cluster::free(cluster::AllocId id) {
  Member* member = holder(id);
  if (member == nullptr)
    return fail(ErrorKind::stale, "no allocation {:x} of this process", id.value);
  member->allocs.erase(id);
  look_again(*member);  // the agent there may take a moment to end
  return member->host->free(id);
}

}  // namespace berth::remote
