// Tests use a FakePool: a cluster of machines that exist on paper, with leases, which starts more
// of them on demand after some time.
#pragma once

#include <algorithm>
#include <map>

#include "berth/base/text.h"
#include "berth/cluster/cluster.h"
#include "berth/machine/machine.h"

namespace berth::cluster {

inline machine::Block block_of(std::int64_t cores, std::int64_t mem) {
  machine::Block block;
  block.resources.set(Known::cpu, cores * 1000);
  block.resources.set(Known::mem, mem);
  for (int core = 0; core < cores; ++core) block.cores.push_back({core, 0, 1000});
  return block;
}

/// Accepts the closest offer of a pool; if another process was quicker, it tries a few times more.
inline Result<Alloc> take_closest(Pool& pool, const Wish& wish) {
  constexpr int kTries = 4;
  Result<Alloc> taken = fail(ErrorKind::busy, "no machine offers resources");
  for (int i = 0; i < kTries; ++i) {
    BERTH_ASSIGN(const auto offers, pool.offers());
    BERTH_ASSIGN(const auto choice, closest(offers, wish));
    taken = pool.accept(offers[choice.offer], choice.part, wish.labels);
    if (taken || taken.error().kind != ErrorKind::busy) return taken;
  }
  return taken;
}

class FakePool : public Cluster {
 public:
  struct Options {
    Duration lease = std::chrono::seconds(10);
    Duration start{};      // until a new machine is there
    std::size_t most = 0;  // machines in all that it may start
    machine::Block type = block_of(4, 8LL << 30);
  };
  FakePool(os::Env& env, Options options) : env_(env), options_(options) {}

  void add(machine::Block total) {
    machines_.push_back(std::make_unique<Machine>(fmt::format("m{}", ++made_), total, env_.now()));
  }
  /// With all that is on it, from one moment to the next.
  void lose(const std::string& name) {
    std::erase_if(allocs_, [&](const auto& held) { return held.second.alloc.machine == name; });
    std::erase_if(machines_, [&](const auto& each) { return each->name == name; });
  }
  std::size_t machines() const { return machines_.size(); }

  Result<std::vector<Offer>> offers() override {
    expire();
    std::vector<Offer> offers;
    for (const auto& each : machines_)
      if (each->ready <= env_.now())
        offers.push_back({each->name, each->machine.free_block(), each->machine.total()});
    return offers;
  }

  Result<Alloc> accept(const Offer& offer, const std::optional<machine::Request>& part,
                       const Labels& labels) override {
    expire();
    for (const auto& each : machines_) {
      if (each->name != offer.machine) continue;
      auto place = each->machine.reserve(
          part.value_or(machine::Request{offer.free.resources, name_of(labels)}));
      if (!place) return std::unexpected(place.error());
      Held held{
          {AllocId{++given_}, each->name, place->block(), {}, labels, env_.now() + options_.lease},
          *std::move(place)};
      const auto id = held.alloc.id;
      return allocs_.emplace(id, std::move(held)).first->second.alloc;
    }
    return fail(ErrorKind::busy, "{} is gone", offer.machine);
  }

  Result<Alloc> allocate(const Wish& wish) override {
    auto alloc = take_closest(*this, wish);
    if (alloc || alloc.error().kind == ErrorKind::io) return alloc;
    const machine::Machine sample(options_.type);
    if (!sample.dry_run({wish.requirements.min, name_of(wish.labels), wish.selection}))
      return alloc;
    const bool coming =
        std::ranges::any_of(machines_, [&](const auto& each) { return each->ready > env_.now(); });
    if (!coming && machines_.size() < options_.most) {
      add(options_.type);
      machines_.back()->ready = env_.now() + options_.start;
    }
    return fail(ErrorKind::busy, "{}", alloc.error().message);
  }

  Result<std::optional<Mono>> keepalive(AllocId id) override {
    expire();
    const auto held = allocs_.find(id);
    if (held == allocs_.end()) return stale(id);
    held->second.alloc.expires = env_.now() + options_.lease;
    return held->second.alloc.expires;
  }
  Result<Alloc> inspect(AllocId id) override {
    expire();
    const auto held = allocs_.find(id);
    if (held == allocs_.end()) return stale(id);
    return held->second.alloc;
  }
  Status free(AllocId id) override {
    expire();
    if (allocs_.erase(id) == 0) return stale(id);
    return {};
  }
  Mono retry_at() override { return env_.now() + std::chrono::milliseconds(50); }

 private:
  struct Machine {
    Machine(std::string called, machine::Block total, Mono at)
        : name(std::move(called)), machine(std::move(total)), ready(at) {}
    std::string name;
    machine::Machine machine;
    Mono ready;
  };
  struct Held {
    Alloc alloc;
    machine::Reservation place;
  };

  void expire() {
    std::erase_if(allocs_,
                  [&](const auto& held) { return *held.second.alloc.expires <= env_.now(); });
  }
  static std::unexpected<Error> stale(AllocId id) {
    return fail(ErrorKind::stale, "no allocation {}", id.value);
  }

  os::Env& env_;
  Options options_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::map<AllocId, Held> allocs_;  // gone before the machines
  std::int64_t made_ = 0, given_ = 0;
};

}  // namespace berth::cluster
