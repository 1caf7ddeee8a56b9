#include "berth/library/own_cluster.h"

#include <map>

#include "berth/base/backoff.h"
#include "berth/base/guarded.h"
#include "berth/library/convert.h"
#include "berth/library/own_worker.h"

namespace berth {

Cluster::~Cluster() = default;

namespace library {
namespace {

constexpr Backoff kAskAgainOwn{std::chrono::milliseconds(50), std::chrono::seconds(1)};

class OwnCluster final : public cluster::Cluster {
 public:
  OwnCluster(os::Env& env, berth::Cluster& own) : env_(env), own_(own) {}
  OwnCluster(const OwnCluster&) = delete;
  OwnCluster& operator=(const OwnCluster&) = delete;
  ~OwnCluster() override {
    for (const auto& [_, held] : held_) give_back(held.own);
  }

  Result<std::vector<cluster::Offer>> offers() override { return std::vector<cluster::Offer>(); }
  Result<cluster::Alloc> accept(const cluster::Offer&, const std::optional<machine::Request>&,
                                const cluster::Labels&) override {
    return fail(ErrorKind::busy, "it makes no offers");
  }

  Result<cluster::Alloc> allocate(const cluster::Wish& wish) override {
    auto own = guarded("allocate() of the cluster", [&] {
      return own_.allocate({wish.requirements, wish.priority, wish.labels, wish.avoid,
                            selection_of(wish.selection)});
    });
    if (!own) return refused(std::move(own).error());
    auto ours = leased(*own, wish);
    if (!ours) {
      give_back(*own);
      return refused(std::move(ours).error());
    }
    refusals_ = 0;
    held_.emplace(ours->id, Held{*std::move(own), *ours});
    return ours;
  }
  Mono retry_at() override { return env_.now() + kAskAgainOwn.pause(refusals_, env_.random()); }

  Result<std::optional<Mono>> keepalive(machine::AllocId id) override {
    const auto held = held_.find(id);
    if (held == held_.end()) return gone(id);
    const berth::Alloc& own = held->second.own;
    BERTH_TRY(guarded("keepalive() of the cluster", [&] { return own_.keepalive(own); }));
    return expiry(own);
  }
  Result<cluster::Alloc> inspect(machine::AllocId id) override {
    const auto held = held_.find(id);
    if (held == held_.end()) return gone(id);
    return held->second.ours;
  }
  Status free(machine::AllocId id) override {
    const auto held = held_.extract(id);
    if (!held) return gone(id);
    if (const auto worker = workers_.extract(id)) worker.mapped()->let_go();
    give_back(held.mapped().own);
    changed();
    return {};
  }

  std::unique_ptr<exec::Worker> start_worker(machine::AllocId id) {
    const Held& held = held_.at(id);
    auto worker =
        std::make_unique<OwnWorker>(env_, own_, held.own, devices_of(held.ours),
                                    std::chrono::seconds(10), [this, id] { workers_.erase(id); });
    workers_.emplace(id, worker.get());
    return worker;
  }

 private:
  struct Held {
    berth::Alloc own;
    cluster::Alloc ours;
  };

  std::unexpected<Error> refused(Error because) {
    ++refusals_;
    return std::unexpected(std::move(because));
  }
  /// As the runner knows it. Errors: invalid for less than was wished for.
  Result<cluster::Alloc> leased(const berth::Alloc& own, const cluster::Wish& wish) {
    cluster::Alloc ours{.id = {++given_},
                        .machine = own.machine,
                        .block = {own.resources, {}, {}},
                        .labels = wish.labels,
                        .expires = expiry(own)};
    BERTH_ASSIGN(ours.block.devices, shares_of(own.devices, own.topology.get()));
    if (!ours.block.devices.empty() && own.topology) {
      auto& links = links_[own.topology];
      if (!links) {
        BERTH_ASSIGN(links, machine::DeviceLinks::make(*own.topology));
      }
      ours.links = links;
    }
    const auto& min = wish.requirements.min;
    bool enough = own.resources.covers(min);
    if (const auto room = devices_of(ours)) {
      ours.block = room->total();
      enough = room->dry_run({min, "", wish.selection}).has_value();
    }
    if (enough) return ours;
    return fail(ErrorKind::invalid, "allocate() of the cluster: requested {}{}, got {} of {}",
                to_string(min), machine::text_of(wish.selection), to_string(own.resources),
                own.machine);
  }
  /// nullptr: it has none that is known.
  static std::unique_ptr<machine::Machine> devices_of(const cluster::Alloc& ours) {
    if (ours.block.devices.empty()) return nullptr;
    return std::make_unique<machine::Machine>(ours.block, ours.links);
  }
  static std::unexpected<Error> gone(machine::AllocId id) {
    return fail(ErrorKind::stale, "no allocation {}", id.value);
  }
  std::optional<Mono> expiry(const berth::Alloc& alloc) const {
    return alloc.lease > alloc.lease.zero() ? std::optional(env_.now() + alloc.lease)
                                            : std::nullopt;
  }
  void give_back(const berth::Alloc& alloc) {
    (void)guarded("free() of the cluster", [&] { own_.free(alloc); });
  }

  os::Env& env_;
  berth::Cluster& own_;
  std::map<machine::AllocId, Held> held_;
  std::map<std::shared_ptr<const topology::Topology>, std::shared_ptr<machine::DeviceLinks>> links_;
  std::map<machine::AllocId, OwnWorker*> workers_;  // on those that are held
  std::int64_t given_ = 0;
  int refusals_ = 0;
};

}  // namespace

run::Sources own_sources(os::Env& env, berth::Cluster& cluster) {
  auto own = std::make_unique<OwnCluster>(env, cluster);
  auto start_worker = [own = own.get()](const cluster::Alloc& alloc) {
    return own->start_worker(alloc.id);
  };
  return {.main = run::Source{.name = "the cluster",
                              .cluster = std::move(own),
                              .start_worker = std::move(start_worker)}};
}

}  // namespace library
}  // namespace berth
