#include "berth/fleet/packing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

constexpr int kRoundings = 20;
constexpr double kNoise = 0.3;                   // of the prices in the last of them
constexpr std::size_t kMostSearchedWhole = 150;  // groups that are searched as a whole
constexpr std::int64_t kAllLooks = 25'000'000;   // ways looked at then
constexpr int kInVain = 2000;                    // neighbourhoods
constexpr std::size_t kFewest = 4, kMost = 14;   // groups of one
constexpr std::int64_t kNearLooks = 30000;       // ways looked at in one

bool fits(const Way& way, const std::vector<double>& left) {
  return std::ranges::all_of(way.uses, [&](const Use& use) {
    return use.row < 0 ||
           use.amount <= left[static_cast<std::size_t>(use.row)] + kFeasibilityTolerance;
  });
}

void use(const Way& way, double times, std::vector<double>& left) {
  for (const Use& use : way.uses)
    if (use.row >= 0) left[static_cast<std::size_t>(use.row)] -= times * use.amount;
}

double worth(const std::vector<double>& prices, const std::vector<double>& amounts) {
  return std::inner_product(prices.begin(), prices.end(), amounts.begin(), 0.0);
}

class Packer {
 public:
  Packer(const Packing& packing, const Chosen& start, Budget& budget)
      : p_(packing), budget_(budget), chosen_(start), left_(packing.limits) {
    for (const std::uint32_t w : chosen_) {
      cost_ += p_.ways[w].cost;
      use(p_.ways[w], 1, left_);
    }
  }

  Packed pack(const std::vector<double>& from) {
    peak_ = best_prices(p_, from, cost_, budget_);
    bound_ = p_.whole_costs ? std::ceil(peak_.bound - 1e-6) : peak_.bound;
    keep_the_cheap();
    for (int i = 0; i < kRoundings && !is_done() && !budget_.spent(); ++i)
      round(kNoise * i * i / (kRoundings * kRoundings));
    move_alone();
    if (p_.groups() <= kMostSearchedWhole && cost_ - bound_ > tolerance_of(cost_)) search_all();
    if (!is_done()) search_near();
    cost_ = 0;  // without the rounding of all the steps
    for (const std::uint32_t w : chosen_) cost_ += p_.ways[w].cost;
    return {chosen_, cost_, std::min(bound_, cost_), peak_.prices};
  }

 private:
  struct Cheap {
    double above = 0;  // the cheapest of its group at the prices
    std::uint32_t way = 0;
  };

  bool is_done() const { return cost_ - bound_ <= std::max(p_.close_enough, tolerance_of(cost_)); }
  /// Beyond this a choice is no better than one of this cost.
  double most_below(double cost) const {
    return p_.whole_costs ? cost - 1 + 1e-6 : cost - tolerance_of(cost);
  }

  /// Of each group, by rising cost at the prices, what may be in a better choice.
  void keep_the_cheap() {
    const double gap = std::max(0.0, cost_ - peak_.bound) + tolerance_of(cost_);
    for (std::size_t g = 0; g < p_.groups(); ++g) {
      double least = HUGE_VAL;
      for (std::size_t w = p_.begin[g]; w < p_.begin[g + 1]; ++w)
        least = std::min(least, priced(p_.ways[w], peak_.prices));
      least_.push_back(least);
      auto& cheap = cheap_.emplace_back();
      for (std::size_t w = p_.begin[g]; w < p_.begin[g + 1]; ++w)
        if (const double above = priced(p_.ways[w], peak_.prices) - least; above <= gap)
          cheap.push_back({above, static_cast<std::uint32_t>(w)});
      std::ranges::stable_sort(cheap, {}, &Cheap::above);
    }
  }

  /// Each group, the most decided first, to what is cheapest of what fits at prices a little off:
  /// whoever is undecided takes what is left at little cost.
  void round(double noise) {
    const auto about_one = [&] { return 1 + noise * (2 * rng_.uniform() - 1); };
    std::vector<double> prices = peak_.prices;
    for (double& price : prices) price *= about_one();
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t g = 0; g < p_.groups(); ++g)
      order.emplace_back(cheap_[g].size() > 1 ? -cheap_[g][1].above * about_one() : -HUGE_VAL, g);
    std::ranges::sort(order);
    budget_.options -= static_cast<std::int64_t>(p_.ways.size());
    Chosen chosen(p_.groups());
    std::vector<double> left = p_.limits;
    double cost = 0;
    for (const auto& [_, g] : order) {
      double least = HUGE_VAL;
      for (const Cheap& c : cheap_[g])
        if (const Way& way = p_.ways[c.way]; fits(way, left) && priced(way, prices) < least)
          least = priced(way, prices), chosen[g] = c.way;
      if (least == HUGE_VAL) return;
      use(p_.ways[chosen[g]], 1, left);
      cost += p_.ways[chosen[g]].cost;
    }
    if (cost >= cost_) return;
    chosen_ = std::move(chosen);
    left_ = std::move(left);
    cost_ = cost;
  }

  void put(std::size_t g, std::uint32_t way) {
    const Way& from = p_.ways[std::exchange(chosen_[g], way)];
    use(from, -1, left_);
    use(p_.ways[way], 1, left_);
    cost_ += p_.ways[way].cost - from.cost;
  }

  void move_alone() {
    for (bool any = true; any && !budget_.spent();) {
      any = false;
      for (std::size_t g = 0; g < p_.groups(); ++g) {
        const Way& from = p_.ways[chosen_[g]];
        use(from, -1, left_);
        std::uint32_t best = chosen_[g];
        for (const Cheap& c : cheap_[g])
          if (p_.ways[c.way].cost < most_below(p_.ways[best].cost) + kFeasibilityTolerance &&
              fits(p_.ways[c.way], left_))
            best = c.way;
        use(from, 1, left_);
        if (best == chosen_[g]) continue;
        put(g, best);
        any = true;
      }
      budget_.options -= static_cast<std::int64_t>(p_.ways.size());
    }
  }

  /// At the prices, of what the group's ways may take: the large decided first leave small gaps.
  double taken_of(std::size_t g) const {
    double most = 0;
    for (const Cheap& c : cheap_[g])
      most = std::max(most, priced(p_.ways[c.way], peak_.prices) - p_.ways[c.way].cost);
    return most;
  }

  // ---- Depth first among some groups, the others held.

  struct Tree {
    std::vector<std::size_t> groups;
    std::vector<double> left;
    double base = 0;    // the bound, to which what is above the cheapest adds
    double best = 0;    // cost of the groups
    double thrift = 0;  // part of what is used, at the prices, that counts as cost
    std::vector<std::uint32_t> taken{}, best_taken{};
    std::int64_t looks = 0;  // that may still be taken
  };

  /// Whether all was looked at; the groups then stand where it is best.
  bool search(std::vector<std::size_t> groups, std::int64_t looks, double thrift) {
    Tree tree{.groups = std::move(groups), .left = left_};
    tree.thrift = thrift;
    tree.looks = std::min(looks, budget_.options);
    const std::int64_t given = tree.looks;
    std::vector<std::pair<double, std::size_t>> order;
    for (const std::size_t g : tree.groups) {
      order.emplace_back(-taken_of(g), g);
      use(p_.ways[chosen_[g]], -1, tree.left);
      tree.best += cost_of(p_.ways[chosen_[g]], thrift);
      tree.base += least_[g];
    }
    std::ranges::sort(order);
    for (std::size_t i = 0; i < order.size(); ++i) tree.groups[i] = order[i].second;
    tree.base -= (1 - thrift) * worth(peak_.prices, tree.left);
    tree.taken.resize(order.size());
    descend(tree, 0, tree.base, 0);
    budget_.options -= given - tree.looks;
    for (std::size_t i = 0; i < tree.best_taken.size(); ++i)
      put(tree.groups[i], tree.best_taken[i]);
    return tree.looks > 0;
  }

  double cost_of(const Way& way, double thrift) const {
    return thrift == 0 ? way.cost : thrift * priced(way, peak_.prices) + (1 - thrift) * way.cost;
  }
  /// Beyond this the groups are no better than they are.
  double most_of(const Tree& tree) const {
    return tree.thrift == 0 ? most_below(tree.best) : tree.best - kFeasibilityTolerance;
  }

  void descend(Tree& tree, std::size_t depth, double bound, double cost) {
    if (depth == tree.groups.size()) {
      if (cost > most_of(tree)) return;
      tree.best = cost;
      tree.best_taken = tree.taken;
      return;
    }
    for (const Cheap& c : cheap_[tree.groups[depth]]) {
      if (--tree.looks <= 0 || bound + c.above > most_of(tree)) return;
      const Way& way = p_.ways[c.way];
      if (!fits(way, tree.left)) continue;
      tree.taken[depth] = c.way;
      use(way, 1, tree.left);
      descend(tree, depth + 1, bound + c.above, cost + cost_of(way, tree.thrift));
      use(way, -1, tree.left);
    }
  }

  void search_all() {
    std::vector<std::size_t> all(p_.groups());
    std::iota(all.begin(), all.end(), 0);
    if (search(std::move(all), kAllLooks, 0)) bound_ = cost_;
  }

  /// Of a few rows: those who are there, and those who would rather be; mostly such as are
  /// undecided at the prices. Only among such can one make room for another.
  void search_near() {
    // Where costs are whole most moves change none: those that use less make room for one that
    // does.
    const double thrift = p_.whole_costs ? 0.5 / (1 + worth(peak_.prices, p_.limits)) : 0;
    std::vector<std::pair<double, std::size_t>> undecided;
    for (std::size_t g = 0; g < p_.groups(); ++g)
      if (cheap_[g].size() > 1) undecided.emplace_back(cheap_[g][1].above, g);
    std::ranges::sort(undecided);
    for (int in_vain = 0; in_vain < kInVain && !is_done() && !budget_.spent(); ++in_vain) {
      std::vector<bool> open(p_.limits.size() + 1);
      for (int i = 0; i < 3; ++i) open[rng_.below(open.size())] = true;
      const auto is_open = [&](std::uint32_t w) {
        return std::ranges::any_of(p_.ways[w].uses, [&](const Use& use) {
          return open[use.row < 0 ? p_.limits.size() : static_cast<std::size_t>(use.row)];
        });
      };
      std::vector<std::size_t> pool;
      for (const auto& [_, g] : undecided)
        if (is_open(chosen_[g]) || is_open(cheap_[g][0].way)) pool.push_back(g);
      budget_.options -= static_cast<std::int64_t>(p_.groups());
      if (pool.empty()) continue;
      std::vector<std::size_t> free;
      const std::size_t size = kFewest + rng_.below(kMost - kFewest + 1);
      for (std::size_t i = 0; i < size; ++i) {
        const double u = rng_.uniform();
        const double skewed = i % 2 == 0 ? u : u * u * u;
        free.push_back(pool[static_cast<std::size_t>(skewed * static_cast<double>(pool.size()))]);
      }
      std::ranges::sort(free);
      free.erase(std::ranges::unique(free).begin(), free.end());
      const double before = cost_;
      search(std::move(free), kNearLooks, thrift);
      if (cost_ < before - kFeasibilityTolerance) in_vain = 0;
    }
  }

  const Packing& p_;
  Budget& budget_;
  Rng rng_{1};
  Chosen chosen_;
  std::vector<double> left_;  // of the limits
  double cost_ = 0, bound_ = 0;
  Peak peak_;
  std::vector<double> least_;              // by group, at the prices
  std::vector<std::vector<Cheap>> cheap_;  // by group
};

}  // namespace

Packed pack(const Packing& packing, const Chosen& start, const std::vector<double>& prices,
            Budget& budget) {
  return Packer(packing, start, budget).pack(prices);
}

}  // namespace berth::fleet
