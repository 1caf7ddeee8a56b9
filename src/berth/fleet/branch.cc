// Depth first over what may be better than a cutoff, with the linear relaxation as the bound. The
// cutoff begins a little above the relaxation's bound and moves away from it: what is found below
// it is nearly the best, and that nothing is below it is a bound. A near cutoff leaves few options
// to look at, as all that are dearer at the relaxation's prices by more than it leaves cannot be
// part of what is below it.
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "berth/base/result.h"
#include "berth/fleet/choices.h"
#include "berth/fleet/relaxation.h"

namespace berth::fleet {
namespace {

constexpr double kSlack = 1e-9;              // limits and amounts are whole numbers
constexpr double kWhole = 1e-6;              // a bound so much above a whole number is no better
constexpr std::size_t kWorthShrinking = 64;  // options
constexpr std::size_t kTogether = 4;         // options that a hasty search takes at once
constexpr std::size_t kMostExact = 200;      // groups
constexpr int kTurns = 100;
constexpr double kFirstReach = 1e-4;  // of the cost: how far the first cutoff is from the bound

double tolerance_of(double cost) {
  return 1e-9 * std::max(1.0, std::abs(cost));
}

double whole(const Choices& choices, double bound) {
  return choices.whole_costs ? std::ceil(bound - kWhole) : bound;
}

/// What remains of a problem, and what is taken already, by tag.
struct Node {
  Choices open;
  std::vector<std::uint32_t> taken;
  double cost = 0;  // of what is taken
};

/// The options of a problem that `keeps` says; groups with one left are taken. The places of the
/// kept ones in the old problem go to `kept`. False: of a group nothing is left.
template <class Keeps>
bool narrow(const Node& from, const Keeps& keeps, Node& to, std::vector<std::uint32_t>& kept) {
  to = {};
  to.open.limits = from.open.limits;
  to.open.whole_costs = from.open.whole_costs;
  to.taken = from.taken;
  to.cost = from.cost;
  for (std::size_t g = 0; g < from.open.groups(); ++g) {
    const std::size_t before = kept.size();
    for (std::size_t o = from.open.begin[g]; o < from.open.begin[g + 1]; ++o)
      if (keeps(o)) kept.push_back(static_cast<std::uint32_t>(o));
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
  return std::ranges::all_of(to.open.limits, [](double limit) { return limit >= -kSlack; });
}

/// How a search chooses the option to decide on: that which is worth the most, several such at once
/// and not for long, or that which proves to make most of a difference. None is always the best.
enum class Way : std::uint8_t { by_worth, hasty, by_trial };

/// What searches share that are parts of one.
struct Hunt {
  Budget& budget;
  Way way = Way::by_worth;
  double cutoff = 0;                   // only what costs less is of use,
  double less = 0;                     // and by so much
  int turns_left = kTurns;             // hasty: how many dead ends it may still meet
  double unfinished = HUGE_VAL;        // the least bound of what was not looked at
  std::vector<std::uint32_t> found{};  // tags; empty: nothing yet

  bool is_too_dear(const Choices& choices, double bound) const {
    return whole(choices, bound) >= cutoff - (choices.whole_costs ? kWhole : less);
  }
};

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
      if (hunt_.way != Way::by_trial)
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
    if (hunt_.way == Way::hasty && hunt_.turns_left < 0) return true;
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
      if (left < -kSlack) return leave_open();
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
      if (chosen.size() >= (hunt_.way == Way::hasty ? kTogether : 1)) break;
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
    if (!narrow(node_, [&](std::size_t o) { return stays[o]; }, node, kept)) return;
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

void take_over(const Choices& choices, std::vector<std::uint32_t> taken, Answer& answer) {
  BERTH_ASSERT(taken.size() == choices.groups());
  std::ranges::sort(taken);  // options stand by group
  answer.chosen = std::move(taken);
  answer.cost = cost_of(choices, answer.chosen);
}

/// The problem as a whole: its relaxation, and what is known of it so far.
class Inquiry {
 public:
  Inquiry(const Choices& choices, Budget& budget, Answer& answer)
      : choices_(choices),
        budget_(budget),
        answer_(answer),
        root_(choices),
        enough_(choices.groups() > kMostExact ? choices.close_enough : 0) {
    root_.solve(HUGE_VAL, budget);
    answer.relaxed = root_.bound(budget);
    answer.bound = whole(choices, answer.relaxed);
    answer.prices = root_.prices();
    answer.prices.resize(choices.limits.size());
  }

  Chosen mostly() const { return root_.mostly(); }

  bool is_done() const { return gap() <= std::max(enough_, tolerance_of(answer_.cost)); }

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
      const double before = gap();
      const double used = look_below(answer_.bound + step, is_far ? 0 : passes);
      if (is_far) continue;
      const bool was_easy = gap() < before && 4 * used < static_cast<double>(passes);
      if (!was_easy && part < 1) passes *= 4;
      part = was_easy || part == 1 ? 0.5 : 1;
    }
  }

 private:
  static constexpr std::int64_t kGlance = 1500;
  static constexpr std::int64_t kFirstPasses = 8000;  // over the options of a search

  double gap() const { return answer_.cost - answer_.bound; }

  /// Looks for what costs less than `cutoff`, in one way after another. How many passes the one
  /// that got somewhere took.
  double look_below(double cutoff, std::int64_t passes) {
    const double before = gap();
    double used = look_below(cutoff, way_, kGlance);
    if (gap() == before) used = look_below(cutoff, Way::hasty, kGlance);
    for (int i = 0; i < 2 && gap() == before && passes > kGlance; ++i) {
      used = look_below(cutoff, way_, passes);
      if (gap() == before) way_ = way_ == Way::by_worth ? Way::by_trial : Way::by_worth;
    }
    return used;
  }

  double look_below(double cutoff, Way way, std::int64_t passes) {
    Budget part = budget_;
    Hunt hunt{.budget = part,
              .way = way,
              .cutoff = cutoff,
              .less = std::max(enough_ / 2, tolerance_of(cutoff))};
    Node all, node;
    all.open = choices_;
    for (std::uint32_t o = 0; o < choices_.options.size(); ++o) all.open.options[o].tag = o;
    std::vector<std::uint32_t> kept;
    const auto keeps = [&](std::size_t o) {
      return !hunt.is_too_dear(choices_,
                               answer_.relaxed + root_.reduced_cost(static_cast<std::uint32_t>(o)));
    };
    const bool is_left = narrow(all, keeps, node, kept);
    part.options = std::min(budget_.options, passes * static_cast<std::int64_t>(kept.size()));
    const std::int64_t given = part.options;
    if (is_left) Search(std::move(node), hunt).descend();
    if (!hunt.found.empty()) take_over(choices_, hunt.found, answer_);
    const double closed =
        choices_.whole_costs || enough_ == 0 ? hunt.cutoff : hunt.cutoff - hunt.less;
    if (way != Way::hasty)
      answer_.bound = std::max(answer_.bound, std::min(hunt.unfinished, closed));
    budget_.options -= given - part.options;
    budget_.stopped = part.stopped;
    return static_cast<double>(given - part.options) /
           static_cast<double>(std::max<std::size_t>(1, kept.size()));
  }

  const Choices& choices_;
  Budget& budget_;
  Answer& answer_;
  Relaxation root_;
  Way way_ = Way::by_worth;
  const double enough_;
};

}  // namespace

Answer solve(const Choices& choices, const Chosen& start, Budget& budget, double useful) {
  Answer answer;
  answer.chosen = start;
  answer.cost = cost_of(choices, start);
  if (choices.groups() == 0) return answer;
  Inquiry inquiry(choices, budget, answer);
  if (answer.bound > useful) return answer;
  if (Chosen rounded = inquiry.mostly(); repair(choices, answer.prices, rounded, budget))
    if (cost_of(choices, rounded) < answer.cost) answer.chosen = std::move(rounded);
  answer.cost = cost_of(choices, answer.chosen);
  inquiry.close_in(useful);
  if (!inquiry.is_done()) {
    improve(choices, answer.chosen, budget);
    answer.cost = cost_of(choices, answer.chosen);
  }
  answer.bound = std::min(answer.bound, answer.cost);
  return answer;
}

}  // namespace berth::fleet
