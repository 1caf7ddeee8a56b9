// The bound and the best choice are brought together from both sides. The cutoff of a search begins
// a little above the relaxation's bound and moves away from it: what is found below it is nearly
// the best, and that nothing is below it is a bound. A near cutoff leaves few options to look at,
// as all that are dearer at the relaxation's prices by more than it leaves cannot be part of what
// is below it. Beside that, searches in the neighbourhood of the best choice so far.
#include "berth/fleet/choices.h"

#include <algorithm>
#include <cmath>

#include "berth/base/result.h"
#include "berth/base/rng.h"
#include "berth/fleet/branch.h"
#include "berth/fleet/relaxation.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostExact = 200;  // groups
constexpr double kFirstReach = 1e-4;     // of the cost: how far the first cutoff is from the bound

/// A problem: its relaxation, and what is known of it so far.
class Inquiry {
 public:
  Inquiry(const Choices& choices, const Chosen& start, Budget& budget)
      : choices_(choices),
        budget_(budget),
        root_(choices),
        enough_(choices.groups() > kMostExact ? choices.close_enough : 0) {
    root_.solve(HUGE_VAL, budget);
    answer_.relaxed = root_.bound(budget);
    answer_.bound = whole(choices, answer_.relaxed);
    answer_.prices = root_.prices();
    answer_.prices.resize(choices.limits.size());
    answer_.chosen = start;
    answer_.cost = cost_of(choices, start);
    all_.open = choices;
    for (std::uint32_t o = 0; o < choices.options.size(); ++o) all_.open.options[o].tag = o;
  }

  Answer answer(double useful) {
    if (answer_.bound <= useful && !is_done()) {
      if (Chosen rounded = root_.mostly(); repair(choices_, answer_.prices, rounded, budget_))
        offer(std::move(rounded));
      look_around();
      close_in(useful);
      if (!is_done()) {
        Chosen better = answer_.chosen;
        improve(choices_, better, budget_);
        offer(std::move(better));
      }
    }
    answer_.bound = std::min(answer_.bound, answer_.cost);
    return std::move(answer_);
  }

 private:
  static constexpr std::int64_t kGlance = 1500;       // passes over the options of a search
  static constexpr std::int64_t kFirstPasses = 8000;  // and when it is in earnest
  static constexpr std::int64_t kMostOptions = 2500;  // of which so many passes are made
  static constexpr double kLeastFree = 0.05, kMostFree = 0.2;  // of the groups

  double gap() const { return answer_.cost - answer_.bound; }
  bool is_done() const { return gap() <= std::max(enough_, tolerance_of(answer_.cost)); }

  void offer(Chosen chosen) {
    const double cost = cost_of(choices_, chosen);
    if (cost >= answer_.cost) return;
    answer_.chosen = std::move(chosen);
    answer_.cost = cost;
  }

  /// Cutoffs further and further from the bound, until something is found; then between the two.
  void close_in(double useful) {
    double reach =
        choices_.whole_costs ? 1 : std::max(enough_, kFirstReach * std::abs(answer_.cost));
    std::int64_t passes = kFirstPasses;
    double part = 1;
    while (!is_done() && answer_.bound <= useful && !budget_.spent()) {
      double step = part * gap();
      const bool is_far = reach < step;
      if (is_far) step = reach;
      if (choices_.whole_costs) step = std::max(1.0, std::floor(step));
      if (step > gap() - enough_) step = gap();
      reach *= 2;
      const double before = gap(), cost = answer_.cost;
      const double used = look_below(answer_.bound + step, is_far ? 0 : passes);
      if (!is_far || answer_.cost < cost) look_around();
      if (is_far) continue;
      const bool was_easy = gap() < before && 4 * used < static_cast<double>(passes);
      if (!was_easy && (part < 1 || choices_.whole_costs)) passes *= 4;
      part = was_easy || part == 1 ? 0.5 : 1;
    }
  }

  /// Looks for what costs less than `cutoff`, in one way after another. How many passes the one
  /// that got somewhere took.
  double look_below(double cutoff, std::int64_t passes) {
    const double before = gap();
    double used = 0;
    if (passes <= kFirstPasses) used = look_below(cutoff, branching_, kGlance);
    if (passes <= kFirstPasses && gap() == before)
      used = look_below(cutoff, Branching::hasty, kGlance);
    for (int i = 0; i < 2 && gap() == before && passes > kGlance; ++i) {
      used = look_below(cutoff, branching_, passes);
      if (gap() == before)
        branching_ = branching_ == Branching::by_worth ? Branching::by_trial : Branching::by_worth;
    }
    return used;
  }

  double look_below(double cutoff, Branching branching, std::int64_t passes) {
    Hunt hunt = hunt_below(cutoff, branching);
    std::vector<bool> stays(choices_.options.size());
    for (std::uint32_t o = 0; o < stays.size(); ++o) stays[o] = may_be_part(hunt, o);
    const double used = look(hunt, stays, passes);
    const bool is_exact = choices_.whole_costs || enough_ == 0;
    const double closed = is_exact ? hunt.cutoff : hunt.cutoff - hunt.less;
    if (branching != Branching::hasty)
      answer_.bound = std::max(answer_.bound, std::min(hunt.unfinished, closed));
    return used;
  }

  /// Looks for choices that are much better and as the best one so far, wherever that is as the
  /// relaxation has it and but for some of the groups. More of them as long as that is in vain.
  void look_around() {
    for (double part = kLeastFree; part <= kMostFree && !is_done() && !budget_.spent();) {
      const double nearer = answer_.cost - ambition_ * gap();
      Hunt hunt =
          hunt_below(choices_.whole_costs ? std::ceil(nearer) : nearer, Branching::by_worth);
      std::vector<bool> stays(choices_.options.size()), is_free(choices_.groups());
      for (const Relaxation::Part& p : root_.parts()) is_free[p.group] = true;
      const Chosen mostly = root_.mostly();
      std::size_t apart = 0;
      for (std::size_t g = 0; g < choices_.groups(); ++g)
        apart += mostly[g] != answer_.chosen[g] ? 1 : 0;
      if (4 * apart > choices_.groups()) return;
      for (std::size_t g = 0; g < choices_.groups(); ++g) {
        stays[answer_.chosen[g]] = true;
        const bool is_chosen = rng_.uniform() < part;
        if (!is_free[g] && !is_chosen && mostly[g] == answer_.chosen[g]) continue;
        for (std::size_t o = choices_.begin[g]; o < choices_.begin[g + 1]; ++o)
          stays[o] = may_be_part(hunt, static_cast<std::uint32_t>(o));
      }
      const double before = answer_.cost;
      look(hunt, stays, kGlance);
      if (answer_.cost == before) part *= 2;
      if (answer_.cost == before && part > kMostFree) ambition_ /= 4;
    }
  }

  Hunt hunt_below(double cutoff, Branching branching) {
    return {.budget = budget_,
            .branching = branching,
            .cutoff = cutoff,
            .less = std::max(enough_ / 2, tolerance_of(cutoff))};
  }

  bool may_be_part(const Hunt& hunt, std::uint32_t option) const {
    return !hunt.is_too_dear(choices_, answer_.relaxed + root_.reduced_cost(option));
  }

  /// Among the options that stay. How many passes it took.
  double look(Hunt& hunt, const std::vector<bool>& stays, std::int64_t passes) {
    Node node;
    std::vector<std::uint32_t> kept;
    if (!narrow(all_, stays, node, kept)) return 0;
    const auto options = static_cast<std::int64_t>(std::max<std::size_t>(1, kept.size()));
    const std::int64_t before = budget_.options;
    const std::int64_t looks =
        std::max(passes * std::min(options, kMostOptions), std::min(passes, kGlance) * options);
    const std::int64_t spared = std::max<std::int64_t>(0, before - looks);
    budget_.options -= spared;
    search(std::move(node), hunt);
    budget_.options += spared;
    if (!hunt.found.empty()) {
      BERTH_ASSERT(hunt.found.size() == choices_.groups());
      std::ranges::sort(hunt.found);  // options stand by group
      offer(std::move(hunt.found));
    }
    return static_cast<double>(before - budget_.options) / static_cast<double>(options);
  }

  const Choices& choices_;
  Budget& budget_;
  Relaxation root_;
  const double enough_;
  Node all_;
  Answer answer_;
  Branching branching_ = Branching::by_worth;
  Rng rng_{1};
  double ambition_ = 0.25;  // how much of the gap a choice nearby is to close
};

}  // namespace

bool Budget::spent() {
  if (!stopped && stop != nullptr && *stop && (*stop)()) stopped = true;
  return stopped || options <= 0;
}

double cost_of(const Choices& choices, const Chosen& chosen) {
  double cost = 0;
  for (const std::uint32_t o : chosen) cost += choices.options[o].cost;
  return cost;
}

std::vector<double> left_of(const Choices& choices, const Chosen& chosen) {
  std::vector<double> left = choices.limits;
  for (const std::uint32_t o : chosen)
    if (const Option& option = choices.options[o]; option.row >= 0)
      left[static_cast<std::size_t>(option.row)] -= option.amount;
  return left;
}

Answer solve(const Choices& choices, const Chosen& start, Budget& budget, double useful) {
  if (choices.groups() == 0) return {};
  return Inquiry(choices, start, budget).answer(useful);
}

}  // namespace berth::fleet
