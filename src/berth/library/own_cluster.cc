#include "berth/library/own_cluster.h"

#include <algorithm>
#include <map>

#include "berth/base/backoff.h"
#include "berth/base/guarded.h"
#include "berth/library/own_worker.h"

namespace berth {

Cluster::~Cluster() = default;

StaticCluster::StaticCluster(std::vector<std::pair<std::string, Resources>> machines) {
  for (auto& [name, total] : machines) offers_.push_back({std::move(name), total, total});
}

Result<Alloc> StaticCluster::allocate(const Wish& wish) {
  const Resources& min = wish.requirements.min;
  Offer* most = nullptr;
  std::int64_t room = 0;
  bool fits_empty = false;
  const auto avoided = [&](const Offer& offer) {
    return std::ranges::find(wish.avoid, offer.machine) != wish.avoid.end();
  };
  for (Offer& offer : offers_) {
    if (avoided(offer)) continue;
    fits_empty = fits_empty || offer.total.covers(min);
    const std::int64_t fits =
        offer.free.fits(min, std::max<std::int64_t>(wish.requirements.width, 1));
    if (fits <= room) continue;
    most = &offer;
    room = fits;
  }
  if (!fits_empty)
    return fail(ErrorKind::impossible, "{}: no machine of the cluster has so much", to_string(min));
  if (most == nullptr) return fail(ErrorKind::busy, "{}: all machines are in use", to_string(min));
  BERTH_ASSIGN(Resources taken, min.times(room));
  BERTH_TRY(most->free.subtract(taken));
  return held_.emplace_back(fmt::format("{}", ++given_), most->machine, std::move(taken));
}

void StaticCluster::free(const Alloc& alloc) {
  const auto held = std::ranges::find(held_, alloc.id, &Alloc::id);
  if (held == held_.end()) return;
  const auto offer = std::ranges::find(offers_, held->machine, &Offer::machine);
  (void)offer->free.add(held->resources);  // it was taken of it
  held_.erase(held);
}

namespace library {
namespace {

constexpr Backoff kAskAgainOwn{std::chrono::milliseconds(50), std::chrono::seconds(1)};

class OwnCluster final : public cluster::Cluster {
 public:
  OwnCluster(os::Env& env, berth::Cluster& own) : env_(env), own_(own) {}
  OwnCluster(const OwnCluster&) = delete;
  OwnCluster& operator=(const OwnCluster&) = delete;
  ~OwnCluster() override {
    for (const auto& [_, alloc] : held_) give_back(alloc);
  }

  Result<std::vector<cluster::Offer>> offers() override { return std::vector<cluster::Offer>(); }
  Result<cluster::Alloc> accept(const cluster::Offer&, const std::optional<machine::Request>&,
                                const cluster::Labels&) override {
    return fail(ErrorKind::busy, "it makes no offers");
  }

  Result<cluster::Alloc> allocate(const cluster::Wish& wish) override {
    auto alloc = guarded("allocate() of the cluster", [&] {
      return own_.allocate({wish.requirements, wish.priority, wish.labels, wish.avoid});
    });
    if (alloc && !alloc->resources.covers(wish.requirements.min)) {
      give_back(*alloc);
      alloc = fail(ErrorKind::invalid, "allocate() of the cluster: wanted {}, got {} of {}",
                   to_string(wish.requirements.min), to_string(alloc->resources), alloc->machine);
    }
    if (!alloc) {
      ++refusals_;
      return std::unexpected(std::move(alloc).error());
    }
    refusals_ = 0;
    const machine::AllocId id{++given_};
    const auto expires = expiry(*alloc);
    held_.emplace(id, *alloc);
    return cluster::Alloc{.id = id,
                          .machine = alloc->machine,
                          .block = {alloc->resources, {}, {}},
                          .labels = wish.labels,
                          .expires = expires};
  }
  Mono retry_at() override { return env_.now() + kAskAgainOwn.pause(refusals_, env_.random()); }

  Result<std::optional<Mono>> keepalive(machine::AllocId id) override {
    const auto held = held_.find(id);
    if (held == held_.end()) return gone(id);
    BERTH_TRY(guarded("keepalive() of the cluster", [&] { return own_.keepalive(held->second); }));
    return expiry(held->second);
  }
  Result<cluster::Alloc> inspect(machine::AllocId id) override {
    const auto held = held_.find(id);
    if (held == held_.end()) return gone(id);
    return cluster::Alloc{
        .id = id, .machine = held->second.machine, .block = {held->second.resources, {}, {}}};
  }
  Status free(machine::AllocId id) override {
    const auto held = held_.extract(id);
    if (!held) return gone(id);
    if (const auto worker = workers_.extract(id)) worker.mapped()->let_go();
    give_back(held.mapped());
    changed();
    return {};
  }

  std::unique_ptr<exec::Worker> start_worker(machine::AllocId id) {
    auto worker = std::make_unique<OwnWorker>(env_, own_, held_.at(id), std::chrono::seconds(10),
                                              [this, id] { workers_.erase(id); });
    workers_.emplace(id, worker.get());
    return worker;
  }

 private:
  static std::unexpected<Error> gone(machine::AllocId id) {
    return fail(ErrorKind::stale, "no alloc {}", id.value);
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
  std::map<machine::AllocId, berth::Alloc> held_;
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
