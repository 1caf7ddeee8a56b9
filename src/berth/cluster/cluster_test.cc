// The contract of cluster.h on every implementation; the choice of an offer against brute force;
// what each implementation adds.
#include "berth/cluster/cluster.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "berth/base/json.h"
#include "berth/base/rng.h"
#include "berth/cluster/local.h"
#include "berth/cluster/tracing.h"
#include "berth/testing/fake_cluster.h"
#include "berth/testing/fake_env.h"

namespace berth::cluster {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kGiB = 1LL << 30;

Wish wish(std::int64_t cores, std::int64_t width = 1, std::int64_t mem = 0) {
  Wish wish{.requirements = {{}, width}, .labels = {{"run", "digits-3"}, {"lr", "0.1"}}};
  wish.requirements.min.set(Known::cpu, cores * 1000);
  if (mem > 0) wish.requirements.min.set(Known::mem, mem);
  return wish;
}

std::int64_t cores(const Alloc& alloc) {
  return alloc.block.resources.get(Known::cpu) / 1000;
}

/// Four cores and 8 GiB, in a cluster of each kind.
struct World {
  explicit World(const std::string& kind) {
    (void)env.make_directory("/ledger", 0700);
    const auto local = [this] {
      return std::make_unique<LocalCluster>(env, *machine::Ledger::open(env, "/ledger"), [] {
        return Result<machine::Host>({.total = block_of(4, 8 * kGiB)});
      });
    };
    if (kind == "local") cluster = local();
    if (kind == "traced") cluster = tracing(env, local(), "/trace.json");
    if (kind == "pool") {
      auto pool = std::make_unique<FakePool>(env, FakePool::Options{});
      pool->add(block_of(4, 8 * kGiB));
      cluster = std::move(pool);
    }
  }
  os::FakeEnv env{1};
  std::unique_ptr<Cluster> cluster;
};

class ClusterTest : public testing::TestWithParam<const char*> {
 protected:
  World world_{GetParam()};
  Cluster& cluster_ = *world_.cluster;
};
INSTANTIATE_TEST_SUITE_P(Contract, ClusterTest, testing::Values("local", "traced", "pool"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(ClusterTest, GivesWhatIsThereAndNoMore) {
  const auto first = cluster_.allocate(wish(3));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(cores(*first), 3);
  EXPECT_EQ(first->labels.size(), 2U);
  const auto second = cluster_.allocate(wish(2));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::busy);
  EXPECT_GT(cluster_.retry_at(), world_.env.now());
  EXPECT_TRUE(cluster_.allocate(wish(1)));
  ASSERT_TRUE(cluster_.free(first->id));
  EXPECT_TRUE(cluster_.allocate(wish(3)));
}

TEST_P(ClusterTest, WhatNeverFitsIsImpossible) {
  EXPECT_EQ(cluster_.allocate(wish(5)).error().kind, ErrorKind::impossible);
  EXPECT_EQ(cluster_.allocate(wish(1, 1, 9 * kGiB)).error().kind, ErrorKind::impossible);
  ASSERT_TRUE(cluster_.allocate(wish(4)));
  EXPECT_EQ(cluster_.allocate(wish(5)).error().kind, ErrorKind::impossible);
}

TEST_P(ClusterTest, AnAllocIsInspectedKeptAndFreedOnce) {
  const auto alloc = cluster_.allocate(wish(2));
  ASSERT_TRUE(alloc);
  EXPECT_EQ(cluster_.inspect(alloc->id)->block, alloc->block);
  EXPECT_TRUE(cluster_.keepalive(alloc->id));
  ASSERT_TRUE(cluster_.free(alloc->id));
  EXPECT_EQ(cluster_.free(alloc->id).error().kind, ErrorKind::stale);
  EXPECT_EQ(cluster_.inspect(alloc->id).error().kind, ErrorKind::stale);
  EXPECT_EQ(cluster_.keepalive(alloc->id).error().kind, ErrorKind::stale);
}

TEST_P(ClusterTest, AnOfferIsWhatIsFree) {
  ASSERT_TRUE(cluster_.allocate(wish(1)));
  const auto offers = cluster_.offers();
  ASSERT_EQ(offers->size(), 1U);
  EXPECT_EQ(offers->front().free.resources.get(Known::cpu), 3000);
  EXPECT_EQ(offers->front().total.resources.get(Known::cpu), 4000);
  const auto all = cluster_.accept(offers->front(), std::nullopt, {});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(cores(*all), 3);
  EXPECT_EQ(cluster_.accept(offers->front(), std::nullopt, {}).error().kind, ErrorKind::busy);
}

TEST_P(ClusterTest, NothingIsLentTwiceWhateverIsAsked) {
  Rng rng(7);
  std::vector<Alloc> held;
  for (int i = 0; i < 300; ++i) {
    if (rng.below(2) == 0 || held.empty()) {
      auto alloc = cluster_.allocate(wish(1 + static_cast<std::int64_t>(rng.below(3)),
                                          1 + static_cast<std::int64_t>(rng.below(3))));
      if (alloc) held.push_back(*std::move(alloc));
    } else {
      const auto at = rng.below(held.size());
      ASSERT_TRUE(cluster_.free(held[at].id));
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    }
    std::set<int> used;
    for (const auto& alloc : held)
      for (const auto& share : alloc.block.cores)
        EXPECT_TRUE(used.insert(share.core).second) << "core " << share.core;
    for (const auto& alloc : held) EXPECT_TRUE(cluster_.keepalive(alloc.id));
  }
}

TEST(Closest, LeavesTheLeastBehind) {
  std::vector<Offer> offers;
  for (const std::int64_t n : {8, 3, 5})
    offers.push_back({fmt::format("m{}", n), block_of(n, 8 * kGiB), block_of(8, 8 * kGiB)});
  EXPECT_EQ(closest(offers, wish(2))->offer, 1U);
  EXPECT_EQ(closest(offers, wish(4))->offer, 2U);
  EXPECT_EQ(closest(offers, wish(6))->offer, 0U);
  EXPECT_EQ(closest(offers, wish(9)).error().kind, ErrorKind::impossible);
  EXPECT_EQ(closest({}, wish(1)).error().kind, ErrorKind::busy);
}

TEST(Closest, TakesAllWhenTheRestIsOfNoUse) {
  std::vector<Offer> offers{{"m", block_of(4, 8 * kGiB), block_of(4, 8 * kGiB)}};
  ASSERT_TRUE(closest(offers, wish(3))->part);
  EXPECT_FALSE(closest(offers, wish(4, 1, kGiB))->part) << "no core is left";
  EXPECT_FALSE(closest(offers, wish(1, 1, 8 * kGiB))->part) << "no memory is left";
  const auto wide = closest(offers, wish(1, 3));
  EXPECT_EQ(wide->part->resources.get(Known::cpu), 3000);
  EXPECT_FALSE(closest(offers, wish(1, 9))->part);
}

TEST(Closest, AgainstBruteForce) {
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    std::vector<Offer> offers;
    for (auto n = rng.below(5) + 1; n > 0; --n) {
      const auto total = static_cast<std::int64_t>(rng.below(8)) + 1;
      const auto free = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(total) + 1));
      offers.push_back({"m", block_of(free, free * kGiB), block_of(total, total * kGiB)});
    }
    const auto least = static_cast<std::int64_t>(rng.below(6)) + 1;
    const auto width = static_cast<std::int64_t>(rng.below(4)) + 1;
    const auto choice = closest(offers, wish(least, width, least * kGiB));
    std::int64_t often = 0;
    double left = 1e9;
    for (const auto& offer : offers) {
      const auto free = offer.free.resources.get(Known::cpu) / 1000;
      const auto total = offer.total.resources.get(Known::cpu) / 1000;
      const auto fits = std::min(free / least, width);
      const double rest =
          2.0 * static_cast<double>(free - fits * least) / static_cast<double>(total);
      if (fits > often || (fits == often && fits > 0 && rest < left)) {
        often = fits;
        left = rest;
      }
    }
    ASSERT_EQ(choice.has_value(), often > 0);
    if (!choice) continue;
    const Offer& taken = offers[choice->offer];
    const auto free = taken.free.resources.get(Known::cpu) / 1000;
    const auto total = taken.total.resources.get(Known::cpu) / 1000;
    EXPECT_EQ(std::min(free / least, width), often);
    EXPECT_NEAR(2.0 * static_cast<double>(free - often * least) / static_cast<double>(total), left,
                1e-9);
    EXPECT_EQ(choice->part.has_value(), free > often * least);
  }
}

TEST(Leases, ExpireUnlessTheyAreKept) {
  os::FakeEnv env(1);
  FakePool pool(env, {.lease = 10s});
  pool.add(block_of(4, 8 * kGiB));
  const auto kept = pool.allocate(wish(1)), left = pool.allocate(wish(1));
  const auto pass = [&](Duration time) { (void)env.wait({}, env.now() + time); };
  pass(6s);
  EXPECT_EQ(pool.keepalive(kept->id).value(), env.now() + 10s);
  pass(6s);
  EXPECT_TRUE(pool.inspect(kept->id));
  EXPECT_EQ(pool.inspect(left->id).error().kind, ErrorKind::stale);
  EXPECT_EQ(pool.keepalive(left->id).error().kind, ErrorKind::stale) << "it does not come back";
  EXPECT_EQ(pool.offers()->front().free.resources.get(Known::cpu), 3000);
}

TEST(Elastic, GrowsOnDemandAndLosesMachines) {
  os::FakeEnv env(1);
  FakePool pool(env, {.start = 30s, .most = 2});
  EXPECT_EQ(pool.allocate(wish(5)).error().kind, ErrorKind::busy) << "none is known yet";
  EXPECT_EQ(pool.machines(), 0U) << "none of its kind would do";
  EXPECT_EQ(pool.allocate(wish(4)).error().kind, ErrorKind::busy);
  EXPECT_EQ(pool.allocate(wish(4)).error().kind, ErrorKind::busy);
  EXPECT_EQ(pool.machines(), 1U) << "one is on its way";
  (void)env.wait({}, env.now() + 31s);
  const auto alloc = pool.allocate(wish(4));
  ASSERT_TRUE(alloc) << alloc.error().message;
  pool.lose(alloc->machine);
  EXPECT_EQ(pool.keepalive(alloc->id).error().kind, ErrorKind::stale);
}

/// Each offer that it makes is gone when it is accepted, so often.
class Contested final : public FakePool {
 public:
  using FakePool::FakePool;
  int quicker = 0;
  Result<Alloc> accept(const Offer& offer, const std::optional<machine::Request>& part,
                       const Labels& labels) override {
    if (quicker-- > 0) return fail(ErrorKind::busy, "another was quicker");
    return FakePool::accept(offer, part, labels);
  }
};

TEST(FakePool, TriesAgainWhenAnotherWasQuicker) {
  os::FakeEnv env(1);
  Contested pool(env, {});
  pool.add(block_of(4, 8 * kGiB));
  pool.quicker = 3;
  EXPECT_TRUE(pool.allocate(wish(1)));
  pool.quicker = 4;
  EXPECT_EQ(pool.allocate(wish(1)).error().message, "another was quicker");
}

TEST(Local, WaitsInTurn) {
  os::FakeEnv env(1);
  const auto host = [] { return Result<machine::Host>({.total = block_of(4, 8 * kGiB)}); };
  LocalCluster cluster(env, *machine::Ledger::open(env, "/ledger"), host);
  const auto all = cluster.allocate(wish(4));
  ASSERT_TRUE(all);
  Wish patient = wish(4);
  patient.waits = true;
  EXPECT_EQ(cluster.allocate(patient).error().kind, ErrorKind::busy);
  ASSERT_TRUE(cluster.free(all->id));
  EXPECT_EQ(cluster.allocate(wish(1)).error().kind, ErrorKind::busy) << "one waits before";
  EXPECT_TRUE(cluster.allocate(patient));
  EXPECT_EQ(cluster.allocate(patient).error().kind, ErrorKind::busy);
  cluster.stop_waiting();
  EXPECT_TRUE(machine::Ledger::open(env, "/ledger")->entries()->size() == 1);
}

TEST(Tracing, WritesWhatPerfettoReads) {
  os::FakeEnv env(1);
  {
    const auto host = [] { return Result<machine::Host>({.total = block_of(4, 8 * kGiB)}); };
    const auto cluster = tracing(
        env, std::make_unique<LocalCluster>(env, *machine::Ledger::open(env, "/ledger"), host),
        "/trace.json");
    const auto alloc = cluster->allocate(wish(4));
    EXPECT_FALSE(cluster->allocate(wish(1)));
    EXPECT_FALSE(cluster->allocate(wish(1)));
    (void)env.wait({}, env.now() + 2s);
    ASSERT_TRUE(cluster->free(alloc->id));
  }
  std::string text = env.read_file("/trace.json", 1 << 20).value();
  ASSERT_TRUE(text.starts_with("[\n") && text.ends_with("},\n"));
  text.replace(text.size() - 2, 2, "]\n");
  EXPECT_TRUE(parse_json(text)) << text;
  EXPECT_NE(text.find(R"("labels":{"run":"digits-3","lr":"0.1"})"), std::string::npos);
  EXPECT_NE(text.find("\"dur\":2000000"), std::string::npos) << text;
  const auto count = [&](std::string_view what) {
    std::size_t found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("\"allocate\""), 2U) << "a refusal is told once";
}

}  // namespace
}  // namespace berth::cluster
