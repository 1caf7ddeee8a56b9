#include "berth/fleet/branch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "berth/fleet/relaxation.h"

namespace berth::fleet {
namespace {

constexpr double kWhole = 1e-6;              // a bound so much above a whole number is no better
constexpr std::size_t kWorthShrinking = 64;  // options
constexpr std::size_t kTogether = 4;         // options that a hasty search takes at once

/// Where all that may still use a row takes a multiple of the same number, so does the row.
void cut_limits(Choices& choices) {
  std::vector<std::int64_t> divisors(choices.limits.size(), 0);
  for (const Option& o : choices.options)
    if (o.row >= 0) {
      std::int64_t& divisor = divisors[static_cast<std::size_t>(o.row)];
      divisor = std::gcd(divisor, std::llround(o.amount));
    }
  for (std::size_t r = 0; r < divisors.size(); ++r) {
    if (divisors[r] <= 1) continue;
    const auto divisor = static_cast<double>(divisors[r]);
    choices.limits[r] = divisor * std::floor((choices.limits[r] + kFeasibilityTolerance) / divisor);
  }
}

class Search {
 public:
  Search(Node node, Hunt& hunt) : node_(std::move(node)), hunt_(hunt), lp_(node_.open) {}
  Search(Node node, Hunt& hunt, const Relaxation::Place& place) : Search(std::move(node), hunt) {
    lp_.go_to(place);
  }
  void forbid(std::uint32_t option) {
    lp_.forbid(option);
    forbidden_.push_back(option);
  }

  void descend() {
    const std::size_t before = forbidden_.size();
    while (!is_closed()) {
      std::vector<Relaxation::Part> parts = lp_.parts();
      if (parts.empty()) {
        offer(lp_.mostly());
        // The relaxation's costs are a little off, so that another choice may be less yet.
        if (!hunt_.is_too_dear(node_.open, base_)) leave_open();
        break;
      }
      if (worth_shrinking()) {
        shrink();
        break;
      }
      const Relaxation::Place place = lp_.place();
      std::vector<Relaxation::Part> chosen;
      if (hunt_.branching != Branching::by_trial)
        chosen = weightiest(std::move(parts));
      else if (const auto part = most_telling(parts, place))
        chosen = {*part};
      if (chosen.empty()) continue;
      take_all(chosen, 0, place);
      forbid(chosen[0].option);
    }
    --hunt_.turns_left;
    allow_since(before);
  }

 private:
  /// Whether nothing more is to be found here; else the relaxation is at its optimum, and only
  /// options are allowed that may be part of what is below the cutoff.
  bool is_closed() {
    if (hunt_.branching == Branching::hasty && hunt_.turns_left < 0) return true;
    auto outcome =
        lp_.solve(hunt_.cutoff - node_.cost + 1e-6 * std::abs(hunt_.cutoff) + 1e-3, hunt_.budget);
    if (outcome == Relaxation::Outcome::infeasible) return true;
    base_ = node_.cost + lp_.bound(hunt_.budget);
    if (hunt_.is_too_dear(node_.open, base_)) return true;
    if (outcome == Relaxation::Outcome::enough) {
      outcome = lp_.solve(HUGE_VAL, hunt_.budget);
      if (outcome == Relaxation::Outcome::infeasible) return true;
      base_ = node_.cost + lp_.bound(hunt_.budget);
    }
    if (outcome != Relaxation::Outcome::optimal) {
      leave_open();
      return true;
    }
    for (std::uint32_t o = 0; o < node_.open.options.size(); ++o)
      if (lp_.allowed(o) && hunt_.is_too_dear(node_.open, base_ + lp_.reduced_cost(o))) forbid(o);
    return false;
  }

  void take(const Relaxation::Part& part) {
    for (std::size_t o = node_.open.begin[part.group]; o < node_.open.begin[part.group + 1]; ++o)
      if (o != part.option && lp_.allowed(static_cast<std::uint32_t>(o)))
        forbid(static_cast<std::uint32_t>(o));
  }

  /// By how much the relaxation is dearer without what was forbidden since it stood at the place.
  double dearer_since(std::size_t count, const Relaxation::Place& place) {
    const auto outcome = lp_.solve(HUGE_VAL, hunt_.budget);
    double dearer = HUGE_VAL;
    if (outcome != Relaxation::Outcome::infeasible)
      dearer = std::max(0.0, node_.cost + lp_.bound(hunt_.budget) - base_);
    allow_since(count);
    lp_.go_to(place);
    return dearer;
  }

  /// The option to take or to forbid which makes the relaxation dearer either way. None: one was
  /// taken or forbidden for good, as the other way there is nothing below the cutoff.
  std::optional<Relaxation::Part> most_telling(const std::vector<Relaxation::Part>& parts,
                                               const Relaxation::Place& place) {
    std::optional<Relaxation::Part> best;
    double most = -1;
    const std::size_t here = forbidden_.size();
    for (const Relaxation::Part& part : parts) {
      if (hunt_.budget.spent()) break;
      take(part);
      const double taken = dearer_since(here, place);
      if (hunt_.is_too_dear(node_.open, base_ + taken)) {
        forbid(part.option);
        return std::nullopt;
      }
      forbid(part.option);
      const double forbidden = dearer_since(here, place);
      if (hunt_.is_too_dear(node_.open, base_ + forbidden)) {
        take(part);
        return std::nullopt;
      }
      const double telling = std::max(taken, 1e-6) * std::max(forbidden, 1e-6);
      if (telling > most) most = telling, best = part;
    }
    return best ? best : parts.front();
  }

  void leave_open() { hunt_.unfinished = std::min(hunt_.unfinished, whole(node_.open, base_)); }

  void offer(const Chosen& chosen) {
    const double cost = node_.cost + cost_of(node_.open, chosen);
    for (const double left : left_of(node_.open, chosen))
      if (left < -kFeasibilityTolerance) return leave_open();
    if (hunt_.is_too_dear(node_.open, cost)) return;
    hunt_.cutoff = cost;
    hunt_.found = node_.taken;
    for (const std::uint32_t o : chosen) hunt_.found.push_back(node_.open.options[o].tag);
  }

  /// With all of the parts from `first` on taken; then, of those behind it, without the last, …
  void take_all(const std::vector<Relaxation::Part>& parts, std::size_t first,
                const Relaxation::Place& place) {
    const std::size_t here = forbidden_.size();
    take(parts[first]);
    if (first + 1 == parts.size()) {
      descend();
    } else {
      take_all(parts, first + 1, place);
      forbid(parts[first + 1].option);
      descend();
    }
    allow_since(here);
    lp_.go_to(place);
  }

  /// To decide what is worth much first leaves small gaps to fill.
  std::vector<Relaxation::Part> weightiest(std::vector<Relaxation::Part> parts) const {
    const auto weight = [&](const Relaxation::Part& part) {
      const Option& o = node_.open.options[part.option];
      const double worth = o.row < 0 ? 0 : lp_.prices()[static_cast<std::size_t>(o.row)] * o.amount;
      return std::tuple(-worth, -part.part, part.option);
    };
    std::ranges::sort(parts, {}, weight);
    std::vector<Relaxation::Part> chosen;
    for (const Relaxation::Part& part : parts) {
      if (chosen.size() >= (hunt_.branching == Branching::hasty ? kTogether : 1)) break;
      if (std::ranges::find(chosen, part.group, &Relaxation::Part::group) == chosen.end())
        chosen.push_back(part);
    }
    return chosen;
  }

  bool worth_shrinking() const {
    const std::size_t options = node_.open.options.size();
    return options > kWorthShrinking && 3 * forbidden_.size() > options;
  }

  /// Goes on in a problem of what is still allowed, from where the relaxation stands.
  void shrink() {
    const Relaxation::Place place = lp_.place();
    std::vector<bool> stays(node_.open.options.size());
    for (std::uint32_t o = 0; o < stays.size(); ++o) stays[o] = lp_.allowed(o);
    for (const std::uint32_t o : place.keys) stays[o] = true;
    for (const std::uint32_t o : place.basis)
      if (!Relaxation::is_row(o)) stays[o] = true;
    Node node;
    std::vector<std::uint32_t> kept, new_place(stays.size(), UINT32_MAX);
    if (!narrow(node_, stays, node, kept)) return;
    for (std::uint32_t i = 0; i < kept.size(); ++i) new_place[kept[i]] = i;
    Relaxation::Place there;
    for (const std::uint32_t o : place.keys)
      if (new_place[o] != UINT32_MAX) there.keys.push_back(new_place[o]);
    for (const std::uint32_t o : place.basis)
      there.basis.push_back(Relaxation::is_row(o) ? o : new_place[o]);
    Search search(std::move(node), hunt_, there);
    for (std::uint32_t i = 0; i < kept.size(); ++i)
      if (!lp_.allowed(kept[i])) search.forbid(i);
    search.descend();
  }

  void allow_since(std::size_t count) {
    for (; forbidden_.size() > count; forbidden_.pop_back()) lp_.allow(forbidden_.back());
  }

  const Node node_;
  Hunt& hunt_;
  Relaxation lp_;
  double base_ = 0;  // bound of what is allowed, to which reduced costs add
  std::vector<std::uint32_t> forbidden_;
};

}  // namespace

bool narrow(const Node& from, const std::vector<bool>& stays, Node& to,
            std::vector<std::uint32_t>& kept) {
  to = {};
  to.open.limits = from.open.limits;
  to.open.whole_costs = from.open.whole_costs;
  to.taken = from.taken;
  to.cost = from.cost;
  for (std::size_t g = 0; g < from.open.groups(); ++g) {
    const std::size_t before = kept.size();
    for (std::size_t o = from.open.begin[g]; o < from.open.begin[g + 1]; ++o)
      if (stays[o]) kept.push_back(static_cast<std::uint32_t>(o));
    if (kept.size() == before) return false;
    if (kept.size() == before + 1) {
      const Option& only = from.open.options[kept.back()];
      kept.pop_back();
      to.taken.push_back(only.tag);
      to.cost += only.cost;
      if (only.row >= 0) to.open.limits[static_cast<std::size_t>(only.row)] -= only.amount;
      continue;
    }
    for (std::size_t i = before; i < kept.size(); ++i)
      to.open.options.push_back(from.open.options[kept[i]]);
    to.open.end_group();
  }
  if (std::ranges::any_of(to.open.limits,
                          [](double limit) { return limit < -kFeasibilityTolerance; }))
    return false;
  cut_limits(to.open);
  return true;
}

double whole(const Choices& choices, double bound) {
  return choices.whole_costs ? std::ceil(bound - kWhole) : bound;
}

bool Hunt::is_too_dear(const Choices& choices, double bound) const {
  return whole(choices, bound) >= cutoff - (choices.whole_costs ? kWhole : less);
}

void search(Node node, Hunt& hunt) {
  Search(std::move(node), hunt).descend();
}

}  // namespace berth::fleet
