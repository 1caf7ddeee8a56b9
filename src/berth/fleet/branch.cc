#include <algorithm>
#include <cmath>
#include <numeric>

#include "berth/base/result.h"
#include "berth/base/rng.h"
#include "berth/fleet/choices.h"

namespace berth::fleet {
namespace {

constexpr double kSlack = 1e-9;
constexpr double kFine = 1e-7;           // smoothing of the root's prices
constexpr double kNodeFine = 1e-5;       // and of those below it
constexpr std::size_t kMostExact = 150;  // groups that are searched as a whole

double tolerance_of(double cost) {
  return 1e-9 * std::max(1.0, std::abs(cost));
}

double priced(const Option& o, const std::vector<double>& by_row) {
  return o.row < 0 ? o.cost : o.cost + by_row[static_cast<std::size_t>(o.row)] * o.amount;
}

double least_priced(std::span<const Option> options, const std::vector<double>& by_row) {
  double least = HUGE_VAL;
  for (const Option& o : options) least = std::min(least, priced(o, by_row));
  return least;
}

/// A part of the problem: the options taken so far, by tag, and what is left to choose.
struct Node {
  Choices open;
  std::vector<std::uint32_t> taken;
  double cost = 0;  // of what is taken

  bool take(const Option& o) {
    taken.push_back(o.tag);
    cost += o.cost;
    if (o.row < 0) return true;
    double& limit = open.limits[static_cast<std::size_t>(o.row)];
    limit -= o.amount;
    return limit >= -kSlack;
  }
};

/// Depth first over what may beat the best, which is cut off by bounds and by reduced costs.
class Search {
 public:
  Search(Budget& budget, double best) : budget_(budget), best_(best) {}

  void run(Node node, const Prices& prices, double known_bound, double precise) {
    if (budget_.spent()) {
      unfinished_ = std::min(unfinished_, known_bound);
      return;
    }
    if (!drop_what_never_fits(node)) return;
    if (node.open.groups() == 0) return offer(node, {});
    const double enough = best_ - node.cost;  // any bound beyond the best will do
    const Prices at = best_prices(node.open, prices, enough, precise, budget_);
    const double base = node.cost + at.bound;  // to which reduced costs add
    const double bound = whole(node.open, base);
    if (bound >= best_ - tolerance_of(best_)) return;
    Chosen rounded;
    if (round_at(node.open, at, rounded, budget_)) offer(node, rounded);
    if (bound >= best_ - tolerance_of(best_)) return;
    if (!drop_what_is_too_dear(node, at, base)) return;
    if (node.open.groups() == 0) return offer(node, {});
    branch(node, at, base);
  }

  double best() const { return best_; }
  double unfinished() const { return unfinished_; }
  const std::vector<std::uint32_t>& taken() const { return taken_; }

 private:
  static double whole(const Choices& choices, double bound) {
    return choices.whole_costs ? std::ceil(bound - 1e-6) : bound;
  }

  void offer(const Node& node, const Chosen& chosen) {
    const double cost = node.cost + cost_of(node.open, chosen);
    if (cost >= best_ - tolerance_of(best_)) return;
    best_ = cost;
    taken_ = node.taken;
    for (const std::uint32_t o : chosen) taken_.push_back(node.open.options[o].tag);
  }

  /// Keeps what `keeps` says; groups with one option left are taken. False: nothing is left of one.
  template <class Keeps>
  static bool filter(Node& node, const Keeps& keeps) {
    Choices kept;
    kept.limits = node.open.limits;
    kept.whole_costs = node.open.whole_costs;
    std::vector<Option> single;
    for (std::size_t g = 0; g < node.open.groups(); ++g) {
      for (const Option& o : node.open.of(g))
        if (keeps(g, o)) kept.options.push_back(o);
      const std::size_t count = kept.options.size() - kept.begin.back();
      if (count == 0) return false;
      if (count > 1) {
        kept.end_group();
        continue;
      }
      single.push_back(kept.options.back());
      kept.options.pop_back();
    }
    node.open = std::move(kept);
    return std::ranges::all_of(single, [&](const Option& o) { return node.take(o); });
  }

  static bool drop_what_never_fits(Node& node) {
    return filter(node, [&](std::size_t, const Option& o) {
      return o.row < 0 || o.amount <= node.open.limits[static_cast<std::size_t>(o.row)] + kSlack;
    });
  }

  bool drop_what_is_too_dear(Node& node, const Prices& prices, double base) const {
    std::vector<double> least(node.open.groups());
    for (std::size_t g = 0; g < least.size(); ++g)
      least[g] = least_priced(node.open.of(g), prices.by_row);
    return filter(node, [&](std::size_t g, const Option& o) {
      return whole(node.open, base + priced(o, prices.by_row) - least[g]) <
             best_ - tolerance_of(best_);
    });
  }

  void branch(const Node& node, const Prices& prices, double base) {
    const std::size_t group = group_to_part(node.open, prices);
    const auto options = node.open.of(group);
    std::vector<std::size_t> order(options.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {},
                             [&](std::size_t i) { return priced(options[i], prices.by_row); });
    const double least = priced(options[order[0]], prices.by_row);
    for (const std::size_t i : order) {
      const double child_bound = whole(node.open, base + priced(options[i], prices.by_row) - least);
      if (child_bound >= best_ - tolerance_of(best_)) break;
      Node child;
      child.taken = node.taken;
      child.cost = node.cost;
      child.open.limits = node.open.limits;
      child.open.whole_costs = node.open.whole_costs;
      for (std::size_t g = 0; g < node.open.groups(); ++g) {
        if (g == group) continue;
        child.open.options.insert(child.open.options.end(), node.open.of(g).begin(),
                                  node.open.of(g).end());
        child.open.end_group();
      }
      if (child.take(options[i])) run(std::move(child), prices, child_bound, kNodeFine);
    }
  }

  /// The one of whose option the most hangs: to decide the large first leaves small gaps to fill.
  static std::size_t group_to_part(const Choices& open, const Prices& prices) {
    std::size_t best = 0;
    double most = -HUGE_VAL;
    for (std::size_t g = 0; g < open.groups(); ++g) {
      double worth = 0;  // at the prices, of what it may take
      for (const Option& o : open.of(g)) worth = std::max(worth, priced(o, prices.by_row) - o.cost);
      if (worth > most) most = worth, best = g;
    }
    return best;
  }

  Budget& budget_;
  double best_;
  double unfinished_ = HUGE_VAL;  // the least bound of what was not looked at
  std::vector<std::uint32_t> taken_;
};

Choices tagged(const Choices& choices) {
  Choices result = choices;
  for (std::uint32_t o = 0; o < result.options.size(); ++o) result.options[o].tag = o;
  return result;
}

void take_over(const Choices& choices, const std::vector<std::uint32_t>& taken, Answer& answer) {
  BERTH_ASSERT(taken.size() == choices.groups());
  answer.chosen = taken;
  std::ranges::sort(answer.chosen);  // options stand by group
  answer.cost = cost_of(choices, answer.chosen);
}

/// Frees some groups at a time, holds the others, and searches among the free ones: mostly such as
/// are undecided at the prices, as the others stand where they should.
class Neighbourhoods {
 public:
  Neighbourhoods(const Choices& choices, const Prices& prices, Budget& budget)
      : choices_(choices), prices_(prices), budget_(budget) {
    for (std::size_t g = 0; g < choices.groups(); ++g) {
      double first = HUGE_VAL, second = HUGE_VAL;
      std::size_t cheapest = choices.begin[g];
      for (std::size_t o = choices.begin[g]; o < choices.begin[g + 1]; ++o) {
        const double cost = priced(choices.options[o], prices.by_row);
        if (cost < first)
          cheapest = o, second = std::exchange(first, cost);
        else
          second = std::min(second, cost);
      }
      cheapest_.push_back(static_cast<std::uint32_t>(cheapest));
      undecided_.emplace_back(second - first, g);
    }
    std::ranges::sort(undecided_);
  }

  template <class IsDone>
  void search(Answer& answer, const IsDone& is_done) {
    Rng rng(1);
    int in_vain = 0;
    while (in_vain < kInVain && !budget_.spent() && !is_done()) {
      const double before = answer.cost;
      free_some(rng, kFree, answer);
      in_vain = answer.cost < before ? 0 : in_vain + 1;
    }
  }

 private:
  static constexpr int kInVain = 1000;
  static constexpr std::size_t kFree = 20;               // groups at a time
  static constexpr std::int64_t kLooksAtOnce = 100'000;  // options

  void free_some(Rng& rng, std::size_t size, Answer& answer) {
    // Of a few rows: those who are there, and those who would rather be. Only among such can one
    // make room for another.
    std::vector<bool> is_free(choices_.groups()), is_open(choices_.limits.size() + 1);
    for (int i = 0; i < 3; ++i) is_open[rng.below(is_open.size())] = true;
    const auto open = [&](std::uint32_t o) {
      const auto row = choices_.options[o].row;
      return is_open[row < 0 ? choices_.limits.size() : static_cast<std::size_t>(row)];
    };
    std::vector<std::size_t> pool;  // the undecided first
    for (const auto& [by, g] : undecided_)
      if (open(answer.chosen[g]) || (answer.chosen[g] != cheapest_[g] && open(cheapest_[g])))
        pool.push_back(g);
    if (pool.empty()) return;
    for (std::size_t i = 0; i < size; ++i) {
      const double skewed =
          i % 2 == 0 ? rng.uniform() : rng.uniform() * rng.uniform() * rng.uniform();
      is_free[pool[static_cast<std::size_t>(skewed * static_cast<double>(pool.size()))]] = true;
    }
    Node node;
    node.open.limits = choices_.limits;
    node.open.whole_costs = choices_.whole_costs;
    for (std::size_t g = 0; g < choices_.groups(); ++g) {
      for (std::size_t o = choices_.begin[g]; o < choices_.begin[g + 1]; ++o) {
        Option option = choices_.options[o];
        option.tag = static_cast<std::uint32_t>(o);
        if (is_free[g])
          node.open.options.push_back(option);
        else if (o == answer.chosen[g])
          node.take(option);
      }
      if (is_free[g]) node.open.end_group();
    }
    Budget part = budget_;
    part.options = std::min(budget_.options, kLooksAtOnce);
    const std::int64_t given = part.options;
    Search search(part, answer.cost);
    search.run(std::move(node), prices_, -HUGE_VAL, kNodeFine);
    budget_.options -= given - part.options + static_cast<std::int64_t>(choices_.groups());
    budget_.stopped = part.stopped;
    if (!search.taken().empty()) take_over(choices_, search.taken(), answer);
  }

  const Choices& choices_;
  const Prices& prices_;
  Budget& budget_;
  std::vector<std::uint32_t> cheapest_;  // option, by group
  std::vector<std::pair<double, std::size_t>> undecided_;
};

/// Of many groups: roundings at the prices, then neighbourhood after neighbourhood, until the cost
/// is near enough to the bound.
void search_many(const Choices& choices, const Prices& root, Budget& budget, Answer& answer) {
  const double enough = std::max(choices.close_enough, tolerance_of(answer.cost));
  const auto is_done = [&](double cost) { return cost - answer.bound <= enough; };
  if (Chosen rounded; round_at(choices, root, rounded, budget)) {
    if (cost_of(choices, rounded) < answer.cost) {
      answer.chosen = std::move(rounded);
      answer.cost = cost_of(choices, answer.chosen);
    }
  }
  if (!is_done(answer.cost))
    Neighbourhoods(choices, root, budget).search(answer, [&] { return is_done(answer.cost); });
}

}  // namespace

Answer solve(const Choices& choices, const Chosen& start, Budget& budget) {
  Answer answer;
  answer.chosen = start;
  answer.cost = cost_of(choices, start);
  if (choices.groups() == 0) return answer;
  const Prices root = best_prices(choices, {}, HUGE_VAL, kFine, budget);
  answer.prices = root.by_row;
  improve(choices, answer.chosen, budget);
  answer.cost = cost_of(choices, answer.chosen);
  answer.bound = choices.whole_costs ? std::ceil(root.bound - 1e-6) : root.bound;
  if (choices.groups() > kMostExact) {
    search_many(choices, root, budget, answer);
  } else if (answer.cost - answer.bound > tolerance_of(answer.cost)) {
    Node node;
    node.open = tagged(choices);
    Search search(budget, answer.cost);
    search.run(std::move(node), root, answer.bound, kFine);
    if (!search.taken().empty()) take_over(choices, search.taken(), answer);
    answer.bound = std::max(answer.bound, std::min(search.unfinished(), answer.cost));
  }

  answer.bound = std::min(answer.bound, answer.cost);
  return answer;
}

}  // namespace berth::fleet
