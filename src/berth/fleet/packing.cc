#include "berth/fleet/packing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

constexpr int kRoundings = 20;
constexpr double kNoise = 0.3;                          // of the prices in the last of them
constexpr std::size_t kMostSearchedWhole = 150;         // groups; fewer are searched as a whole
constexpr std::int64_t kWholeSearchNodes = 25'000'000;  // items visited then
constexpr int kMostWithoutGain = 2000;                  // neighbourhoods in a row
constexpr std::size_t kFewest = 4, kMost = 14;          // groups of a neighbourhood
constexpr std::int64_t kNeighbourhoodNodes = 30000;     // items visited in one neighbourhood

bool fits(const Item& item, const std::vector<double>& left) {
  return std::ranges::all_of(item.uses, [&](const Use& use) {
    return use.row < 0 ||
           use.amount <= left[static_cast<std::size_t>(use.row)] + kFeasibilityTolerance;
  });
}

void use(const Item& item, double times, std::vector<double>& left) {
  for (const Use& use : item.uses)
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
      cost_ += p_.items[w].cost;
      use(p_.items[w], 1, left_);
    }
  }

  Packed pack(const std::vector<double>& from) {
    dual_ = best_prices(p_, from, cost_, budget_);
    bound_ = p_.whole_costs ? std::ceil(dual_.bound - 1e-6) : dual_.bound;
    keep_cheap_items();
    for (int i = 0; i < kRoundings && !is_done() && !budget_.spent(); ++i)
      round(kNoise * i * i / (kRoundings * kRoundings));
    move_alone();
    if (p_.groups() <= kMostSearchedWhole && cost_ - bound_ > tolerance_of(cost_)) search_all();
    if (!is_done()) search_neighbourhoods();
    cost_ = 0;  // without the rounding of all the steps
    for (const std::uint32_t w : chosen_) cost_ += p_.items[w].cost;
    return {chosen_, cost_, std::min(bound_, cost_), dual_.prices};
  }

 private:
  struct PricedItem {
    double above = 0;  // the cheapest of its group at the prices
    std::uint32_t item = 0;
  };

  bool is_done() const { return cost_ - bound_ <= std::max(p_.close_enough, tolerance_of(cost_)); }
  /// A choice is better than one of this cost only below the result.
  double most_below(double cost) const {
    return p_.whole_costs ? cost - 1 + 1e-6 : cost - tolerance_of(cost);
  }

  /// Keeps the items of each group that may be part of a better choice, by rising cost at the
  /// prices.
  void keep_cheap_items() {
    const double gap = std::max(0.0, cost_ - dual_.bound) + tolerance_of(cost_);
    for (std::size_t g = 0; g < p_.groups(); ++g) {
      double least = HUGE_VAL;
      for (std::size_t w = p_.begin[g]; w < p_.begin[g + 1]; ++w)
        least = std::min(least, priced(p_.items[w], dual_.prices));
      least_.push_back(least);
      auto& priced_items = priced_items_.emplace_back();
      for (std::size_t w = p_.begin[g]; w < p_.begin[g + 1]; ++w)
        if (const double above = priced(p_.items[w], dual_.prices) - least; above <= gap)
          priced_items.push_back({above, static_cast<std::uint32_t>(w)});
      std::ranges::stable_sort(priced_items, {}, &PricedItem::above);
    }
  }

  /// Randomised rounding: at perturbed prices each group takes its cheapest item that fits. Groups
  /// whose second-best item is much dearer come first; the others lose little by taking what is
  /// left.
  void round(double noise) {
    const auto about_one = [&] { return 1 + noise * (2 * rng_.uniform() - 1); };
    std::vector<double> prices = dual_.prices;
    for (double& price : prices) price *= about_one();
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t g = 0; g < p_.groups(); ++g)
      order.emplace_back(
          priced_items_[g].size() > 1 ? -priced_items_[g][1].above * about_one() : -HUGE_VAL, g);
    std::ranges::sort(order);
    budget_.iterations -= static_cast<std::int64_t>(p_.items.size());
    Chosen chosen(p_.groups());
    std::vector<double> left = p_.limits;
    double cost = 0;
    for (const auto& [_, g] : order) {
      double least = HUGE_VAL;
      for (const PricedItem& c : priced_items_[g])
        if (const Item& item = p_.items[c.item]; fits(item, left) && priced(item, prices) < least)
          least = priced(item, prices), chosen[g] = c.item;
      if (least == HUGE_VAL) return;
      use(p_.items[chosen[g]], 1, left);
      cost += p_.items[chosen[g]].cost;
    }
    if (cost >= cost_) return;
    chosen_ = std::move(chosen);
    left_ = std::move(left);
    cost_ = cost;
  }

  void put(std::size_t g, std::uint32_t item) {
    const Item& from = p_.items[std::exchange(chosen_[g], item)];
    use(from, -1, left_);
    use(p_.items[item], 1, left_);
    cost_ += p_.items[item].cost - from.cost;
  }

  void move_alone() {
    for (bool any = true; any && !budget_.spent();) {
      any = false;
      for (std::size_t g = 0; g < p_.groups(); ++g) {
        const Item& from = p_.items[chosen_[g]];
        use(from, -1, left_);
        std::uint32_t best = chosen_[g];
        for (const PricedItem& c : priced_items_[g])
          if (p_.items[c.item].cost < most_below(p_.items[best].cost) + kFeasibilityTolerance &&
              fits(p_.items[c.item], left_))
            best = c.item;
        use(from, 1, left_);
        if (best == chosen_[g]) continue;
        put(g, best);
        any = true;
      }
      budget_.iterations -= static_cast<std::int64_t>(p_.items.size());
    }
  }

  /// The greatest worth of what an item of the group uses. Deciding large groups first leaves small
  /// gaps.
  double taken_of(std::size_t g) const {
    double most = 0;
    for (const PricedItem& c : priced_items_[g])
      most = std::max(most, priced(p_.items[c.item], dual_.prices) - p_.items[c.item].cost);
    return most;
  }

  // ---- Depth-first search among some groups while the others stay as they are.

  struct Tree {
    std::vector<std::size_t> groups;
    std::vector<double> left;
    double base = 0;          // the bound, to which reduced costs add
    double best = 0;          // cost of the groups
    double usage_weight = 0;  // the share of the worth of what is used that counts as cost
    std::vector<std::uint32_t> taken{}, best_taken{};
    std::int64_t nodes_left = 0;  // items that may still be visited
  };

  /// Leaves the groups at the best choice found. True if the search was complete.
  bool search(std::vector<std::size_t> groups, std::int64_t node_limit, double usage_weight) {
    Tree tree{.groups = std::move(groups), .left = left_};
    tree.usage_weight = usage_weight;
    tree.nodes_left = std::min(node_limit, budget_.iterations);
    const std::int64_t given = tree.nodes_left;
    std::vector<std::pair<double, std::size_t>> order;
    for (const std::size_t g : tree.groups) {
      order.emplace_back(-taken_of(g), g);
      use(p_.items[chosen_[g]], -1, tree.left);
      tree.best += cost_of(p_.items[chosen_[g]], usage_weight);
      tree.base += least_[g];
    }
    std::ranges::sort(order);
    for (std::size_t i = 0; i < order.size(); ++i) tree.groups[i] = order[i].second;
    tree.base -= (1 - usage_weight) * worth(dual_.prices, tree.left);
    tree.taken.resize(order.size());
    descend(tree, 0, tree.base, 0);
    budget_.iterations -= given - tree.nodes_left;
    for (std::size_t i = 0; i < tree.best_taken.size(); ++i)
      put(tree.groups[i], tree.best_taken[i]);
    return tree.nodes_left > 0;
  }

  double cost_of(const Item& item, double usage_weight) const {
    return usage_weight == 0
               ? item.cost
               : usage_weight * priced(item, dual_.prices) + (1 - usage_weight) * item.cost;
  }
  /// A choice of the groups improves only below this.
  double most_of(const Tree& tree) const {
    return tree.usage_weight == 0 ? most_below(tree.best) : tree.best - kFeasibilityTolerance;
  }

  void descend(Tree& tree, std::size_t depth, double bound, double cost) {
    if (depth == tree.groups.size()) {
      if (cost > most_of(tree)) return;
      tree.best = cost;
      tree.best_taken = tree.taken;
      return;
    }
    for (const PricedItem& c : priced_items_[tree.groups[depth]]) {
      if (--tree.nodes_left <= 0 || bound + c.above > most_of(tree)) return;
      const Item& item = p_.items[c.item];
      if (!fits(item, tree.left)) continue;
      tree.taken[depth] = c.item;
      use(item, 1, tree.left);
      descend(tree, depth + 1, bound + c.above, cost + cost_of(item, tree.usage_weight));
      use(item, -1, tree.left);
    }
  }

  void search_all() {
    std::vector<std::size_t> all(p_.groups());
    std::iota(all.begin(), all.end(), 0);
    if (search(std::move(all), kWholeSearchNodes, 0)) bound_ = cost_;
  }

  /// Large neighbourhood search: groups that use one of a few random rows, or whose cheapest item
  /// does, mostly those that are undecided at the prices. Only such groups can make room for each
  /// other.
  void search_neighbourhoods() {
    // With whole costs most moves change no cost. Moves that use less make room for one that does.
    const double usage_weight = p_.whole_costs ? 0.5 / (1 + worth(dual_.prices, p_.limits)) : 0;
    std::vector<std::pair<double, std::size_t>> undecided;
    for (std::size_t g = 0; g < p_.groups(); ++g)
      if (priced_items_[g].size() > 1) undecided.emplace_back(priced_items_[g][1].above, g);
    std::ranges::sort(undecided);
    for (int without_gain = 0; without_gain < kMostWithoutGain && !is_done() && !budget_.spent();
         ++without_gain) {
      std::vector<bool> open(p_.limits.size() + 1);
      for (int i = 0; i < 3; ++i) open[rng_.below(open.size())] = true;
      const auto is_open = [&](std::uint32_t w) {
        return std::ranges::any_of(p_.items[w].uses, [&](const Use& use) {
          return open[use.row < 0 ? p_.limits.size() : static_cast<std::size_t>(use.row)];
        });
      };
      std::vector<std::size_t> pool;
      for (const auto& [_, g] : undecided)
        if (is_open(chosen_[g]) || is_open(priced_items_[g][0].item)) pool.push_back(g);
      budget_.iterations -= static_cast<std::int64_t>(p_.groups());
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
      search(std::move(free), kNeighbourhoodNodes, usage_weight);
      if (cost_ < before - kFeasibilityTolerance) without_gain = 0;
    }
  }

  const Packing& p_;
  Budget& budget_;
  Rng rng_{1};
  Chosen chosen_;
  std::vector<double> left_;  // of the limits
  double cost_ = 0, bound_ = 0;
  DualSolution dual_;
  std::vector<double> least_;                          // by group, at the prices
  std::vector<std::vector<PricedItem>> priced_items_;  // by group
};

}  // namespace

Packed pack(const Packing& packing, const Chosen& start, const std::vector<double>& prices,
            Budget& budget) {
  return Packer(packing, start, budget).pack(prices);
}

}  // namespace berth::fleet
