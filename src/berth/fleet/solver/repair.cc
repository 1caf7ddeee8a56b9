#include <algorithm>

#include "berth/fleet/solver/knapsack.h"

namespace berth::fleet {
namespace {

constexpr int kPasses = 30;
constexpr std::size_t kPartners = 300;  // looked at for one move of two groups

struct Move {
  double cost = 0;  // what it adds
  std::uint32_t group = 0, to = 0;
};

bool cheaper(const Move& a, const Move& b) {
  if (a.cost != b.cost) return a.cost < b.cost;
  return a.group != b.group ? a.group < b.group : a.to < b.to;
}

class Mover {
 public:
  Mover(const Knapsack& knapsack, Chosen& chosen, Budget& budget)
      : knapsack_(knapsack), chosen_(chosen), budget_(budget), left_(left_of(knapsack, chosen)) {}

  /// Out of rows that are used beyond their limits, by what it costs at the prices for each unit.
  bool repair(const std::vector<double>& prices) {
    const auto is_over = [](double left) { return left < -kFeasibilityTolerance; };
    for (int pass = 0; pass < kPasses && !budget_.spent(); ++pass) {
      bool any = false;
      for (std::size_t row = 0; row < left_.size(); ++row)
        if (is_over(left_[row])) any = relieve(static_cast<std::uint32_t>(row), prices) || any;
      if (!any) break;
    }
    return std::ranges::none_of(left_, is_over);
  }

  void improve() {
    for (int pass = 0; pass < kPasses && !budget_.spent(); ++pass) {
      const bool alone = move_alone();
      if (!move_in_pairs() && !alone) return;
    }
  }

 private:
  const Option& at(std::uint32_t option) const { return knapsack_.options[option]; }
  void use(const Option& o, double times) {
    for (const Use& use : knapsack_.uses_of(o)) left_[use.row] -= times * use.amount;
  }
  double amount_of(const Option& o, std::uint32_t row) const {
    double amount = 0;
    for (const Use& use : knapsack_.uses_of(o))
      if (use.row == row) amount += use.amount;
    return amount;
  }
  void apply(const Move& move) {
    use(at(chosen_[move.group]), -1);
    use(at(move.to), 1);
    chosen_[move.group] = move.to;
  }
  /// Whether `to` fits once `from` is gone.
  bool fits(const Option& from, const Option& to) const {
    return std::ranges::all_of(knapsack_.uses_of(to), [&](const Use& use) {
      const double given = amount_of(from, use.row);
      return use.amount <= std::max(given, left_[use.row] + given + kFeasibilityTolerance);
    });
  }
  template <class Visit>
  void each_move(std::uint32_t group, const Visit& visit) const {
    for (std::size_t o = knapsack_.begin[group]; o < knapsack_.begin[group + 1]; ++o)
      if (o != chosen_[group])
        visit(Move{knapsack_.options[o].cost - at(chosen_[group]).cost, group,
                   static_cast<std::uint32_t>(o)});
  }

  double priced(const Option& o, const std::vector<double>& prices) const {
    return o.cost + knapsack_.weighted(o, prices);
  }

  bool relieve(std::uint32_t row, const std::vector<double>& prices) {
    std::vector<Move> moves;
    for (std::uint32_t g = 0; g < knapsack_.groups(); ++g) {
      const Option& from = at(chosen_[g]);
      const double amount = amount_of(from, row);
      if (amount == 0) continue;
      each_move(g, [&](Move move) {
        const Option& to = at(move.to);
        const double freed = amount - amount_of(to, row);
        if (freed <= 0) return;
        move.cost = (priced(to, prices) - priced(from, prices)) / std::min(freed, -left_[row]);
        moves.push_back(move);
      });
    }
    budget_.iterations -= static_cast<std::int64_t>(moves.size() * 4);
    std::ranges::sort(moves, cheaper);
    bool any = false;
    for (const Move& move : moves) {
      if (left_[row] >= -kFeasibilityTolerance) break;
      const Option& from = at(chosen_[move.group]);
      if (amount_of(from, row) == 0 || !fits(from, at(move.to))) continue;
      apply(move);
      any = true;
    }
    return any;
  }

  bool move_alone() {
    std::vector<Move> moves;
    for (std::uint32_t g = 0; g < knapsack_.groups(); ++g)
      each_move(g, [&](const Move& move) {
        if (move.cost < 0 && fits(at(chosen_[g]), at(move.to))) moves.push_back(move);
      });
    budget_.iterations -= static_cast<std::int64_t>(knapsack_.options.size());
    std::ranges::sort(moves, cheaper);
    bool any = false;
    for (const Move& move : moves) {
      const Option& from = at(chosen_[move.group]);
      if (at(move.to).cost >= from.cost || !fits(from, at(move.to))) continue;
      apply(move);
      any = true;
    }
    return any;
  }

  /// One group to a cheaper option for which another makes room at a lower cost.
  bool move_in_pairs() {
    std::vector<std::vector<Move>> leaving(left_.size());
    std::vector<Move> wanted;
    for (std::uint32_t g = 0; g < knapsack_.groups(); ++g) {
      const Option& from = at(chosen_[g]);
      each_move(g, [&](const Move& move) {
        const Option& to = at(move.to);
        if (move.cost < 0 && to.first_use < to.end_use) wanted.push_back(move);
        if (move.cost < 0) return;
        for (const Use& use : knapsack_.uses_of(from))
          if (amount_of(to, use.row) < use.amount) leaving[use.row].push_back(move);
      });
    }
    budget_.iterations -= 3 * static_cast<std::int64_t>(knapsack_.options.size());
    for (auto& moves : leaving) std::ranges::sort(moves, cheaper);
    std::ranges::sort(wanted, cheaper);
    bool any = false;
    for (const Move& move : wanted) {
      if (budget_.spent()) break;
      if (chosen_[move.group] == move.to || cost_now(move) >= 0) continue;
      for (const Use& use : knapsack_.uses_of(at(move.to)))
        if (chosen_[move.group] != move.to) any = with_partner(move, leaving[use.row]) || any;
    }
    return any;
  }

  bool has_room(const Option& o) const {
    return std::ranges::all_of(knapsack_.uses_of(o), [&](const Use& use) {
      return left_[use.row] >= -kFeasibilityTolerance;
    });
  }

  double cost_now(const Move& move) const {
    return at(move.to).cost - at(chosen_[move.group]).cost;
  }

  bool with_partner(const Move& move, const std::vector<Move>& leaving) {
    const double gain = -cost_now(move);
    const Option out = at(chosen_[move.group]);
    std::size_t looked_at = 0;
    for (const Move& partner : leaving) {
      if (partner.cost >= gain - 1e-9 || ++looked_at > kPartners) break;
      if (partner.group == move.group) continue;
      const double cost = cost_now(partner);
      if (chosen_[partner.group] == partner.to || cost >= gain - 1e-9) continue;
      // Both leave, then both must fit.
      const Option from = at(chosen_[partner.group]);
      use(out, -1), use(from, -1), use(at(move.to), 1), use(at(partner.to), 1);
      if (has_room(at(move.to)) && has_room(at(partner.to))) {
        chosen_[move.group] = move.to;
        chosen_[partner.group] = partner.to;
        budget_.iterations -= static_cast<std::int64_t>(looked_at);
        return true;
      }
      use(out, 1), use(from, 1), use(at(move.to), -1), use(at(partner.to), -1);
    }
    budget_.iterations -= static_cast<std::int64_t>(looked_at);
    return false;
  }

  const Knapsack& knapsack_;
  Chosen& chosen_;
  Budget& budget_;
  std::vector<double> left_;
};

}  // namespace

bool repair(const Knapsack& knapsack, const std::vector<double>& prices, Chosen& chosen,
            Budget& budget) {
  return Mover(knapsack, chosen, budget).repair(prices);
}

void improve(const Knapsack& knapsack, Chosen& chosen, Budget& budget) {
  Mover(knapsack, chosen, budget).improve();
}

}  // namespace berth::fleet
