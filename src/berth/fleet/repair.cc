#include <algorithm>
#include <cmath>
#include <tuple>

#include "berth/base/result.h"
#include "berth/fleet/choices.h"

namespace berth::fleet {
namespace {

constexpr double kSlack = 1e-9;  // limits and amounts are whole numbers
constexpr std::uint32_t kNoOption = UINT32_MAX;
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
  Mover(const Choices& choices, Chosen& chosen, Budget& budget)
      : choices_(choices), chosen_(chosen), budget_(budget), left_(left_of(choices, chosen)) {}

  /// Every group to one of its options, large groups first: rows are owed what the options' parts
  /// take of them, and the option is chosen whose row is owed the most.
  void spread(const Prices& prices) {
    std::vector<std::pair<double, std::uint32_t>> order;  // by falling amount
    for (std::uint32_t g = 0; g < choices_.groups(); ++g) {
      double most = 0;
      for (const Option& o : choices_.of(g)) most = std::max(most, o.amount);
      order.emplace_back(-most, g);
    }
    std::ranges::sort(order);
    std::vector<double> owed(left_.size() + 1, 0);  // the last: of options that use no row
    std::vector<double> parts;
    for (const auto& [most, g] : order) {
      const auto options = choices_.of(g);
      parts_of(options, prices, parts);
      const auto owed_to = [&](const Option& o) -> double& {
        return owed[o.row < 0 ? left_.size() : static_cast<std::size_t>(o.row)];
      };
      const auto size_of = [](const Option& o) {
        return o.row < 0 ? 1.0 : std::max(o.amount, 1e-9);
      };
      for (std::size_t i = 0; i < options.size(); ++i)
        owed_to(options[i]) += parts[i] * size_of(options[i]);
      std::size_t best = 0;
      double most_owed = -HUGE_VAL;
      for (std::size_t i = 0; i < options.size(); ++i) {
        if (parts[i] < 1e-3) continue;
        const double is_owed = owed_to(options[i]) / size_of(options[i]);
        if (is_owed > most_owed) most_owed = is_owed, best = i;
      }
      owed_to(options[best]) -= size_of(options[best]);
      put(g, static_cast<std::uint32_t>(choices_.begin[g] + best));
    }
  }

  /// Every group, those that must use a row and the most decided first, to the option that is
  /// cheapest at the prices among those that fit, or for which another group makes room.
  bool insert(const Prices& prices) {
    std::vector<std::tuple<bool, double, std::uint32_t>> order;
    std::vector<std::vector<Move>> ways(choices_.groups());
    for (std::uint32_t g = 0; g < choices_.groups(); ++g) {
      bool may_wait = false;
      for (std::size_t o = choices_.begin[g]; o < choices_.begin[g + 1]; ++o) {
        const Option& option = choices_.options[o];
        ways[g].push_back({priced(option, prices), g, static_cast<std::uint32_t>(o)});
        may_wait = may_wait || option.row < 0;
      }
      std::ranges::sort(ways[g], cheaper);
      const double second = ways[g].size() > 1 ? ways[g][1].cost : HUGE_VAL;
      order.emplace_back(may_wait, ways[g][0].cost - second, g);
    }
    std::ranges::sort(order);
    std::vector<std::uint32_t> left_out;
    for (const auto& [may_wait, undecided, g] : order) {
      const auto way = std::ranges::find_if(ways[g], [&](const Move& w) { return has_room(w.to); });
      if (way == ways[g].end())
        left_out.push_back(g);
      else
        put(g, way->to);
    }
    return std::ranges::all_of(left_out, [&](std::uint32_t g) { return make_room(ways[g]); });
  }

  /// Out of rows that are used beyond their limits, by what it costs at the prices for each unit.
  bool repair(const Prices& prices) {
    const auto is_over = [](double left) { return left < -kSlack; };
    for (int pass = 0; pass < kPasses && !budget_.spent(); ++pass) {
      bool any = false;
      for (std::size_t row = 0; row < left_.size(); ++row)
        if (is_over(left_[row])) any = relieve(static_cast<std::int32_t>(row), prices) || any;
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
  const Option& at(std::uint32_t option) const { return choices_.options[option]; }
  double left(std::int32_t row) const {
    return row < 0 ? HUGE_VAL : left_[static_cast<std::size_t>(row)];
  }
  void use(const Option& o, double times) {
    if (o.row >= 0) left_[static_cast<std::size_t>(o.row)] -= times * o.amount;
  }
  void apply(const Move& move) {
    use(at(chosen_[move.group]), -1);
    use(at(move.to), 1);
    chosen_[move.group] = move.to;
  }
  /// Whether `to` fits once `from` is gone.
  bool fits(const Option& from, const Option& to) const {
    const double room = left(to.row) + (from.row == to.row ? from.amount : 0);
    return to.amount <= room + kSlack || (from.row == to.row && to.amount <= from.amount);
  }
  template <class Visit>
  void each_move(std::uint32_t group, const Visit& visit) const {
    for (std::size_t o = choices_.begin[group]; o < choices_.begin[group + 1]; ++o)
      if (o != chosen_[group])
        visit(Move{choices_.options[o].cost - at(chosen_[group]).cost, group,
                   static_cast<std::uint32_t>(o)});
  }

  bool has_room(std::uint32_t option) const {
    return at(option).amount <= left(at(option).row) + kSlack;
  }
  void put(std::uint32_t group, std::uint32_t option) {
    use(at(option), 1);
    chosen_[group] = option;
  }

  /// Puts the group in by the cheapest move of another one that lets it.
  bool make_room(const std::vector<Move>& ways) {
    Move best_way, best_move{.cost = HUGE_VAL};
    for (const Move& way : ways) {
      const Option& in = at(way.to);
      for (std::uint32_t h = 0; h < choices_.groups(); ++h) {
        if (chosen_[h] == kNoOption || at(chosen_[h]).row != in.row) continue;
        const Option& from = at(chosen_[h]);
        each_move(h, [&](const Move& move) {
          const Option& to = at(move.to);
          const double room = left(in.row) + from.amount - (to.row == in.row ? to.amount : 0);
          if (in.amount > room + kSlack || (to.row != in.row && !has_room(move.to))) return;
          if (in.cost + move.cost >= best_move.cost) return;
          best_way = way;
          best_move = {in.cost + move.cost, move.group, move.to};
        });
      }
    }
    budget_.options -= static_cast<std::int64_t>(choices_.options.size());
    if (best_move.cost == HUGE_VAL) return false;
    apply(best_move);
    put(best_way.group, best_way.to);
    return true;
  }

  static double priced(const Option& o, const Prices& prices) {
    return o.row < 0 ? o.cost : o.cost + prices.inner[static_cast<std::size_t>(o.row)] * o.amount;
  }

  static void parts_of(std::span<const Option> options, const Prices& prices,
                       std::vector<double>& parts) {
    parts.resize(options.size());
    double least = HUGE_VAL, sum = 0;
    for (const Option& o : options) least = std::min(least, priced(o, prices));
    for (std::size_t i = 0; i < options.size(); ++i)
      sum += parts[i] = std::exp((least - priced(options[i], prices)) / prices.smoothing);
    for (double& part : parts) part /= sum;
  }

  bool relieve(std::int32_t row, const Prices& prices) {
    std::vector<Move> moves;
    for (std::uint32_t g = 0; g < choices_.groups(); ++g) {
      const Option& from = at(chosen_[g]);
      if (from.row != row) continue;
      each_move(g, [&](Move move) {
        const Option& to = at(move.to);
        const double freed = from.amount - (to.row == row ? to.amount : 0);
        if (freed <= 0) return;
        move.cost = (priced(to, prices) - priced(from, prices)) / std::min(freed, -left(row));
        moves.push_back(move);
      });
    }
    budget_.options -= static_cast<std::int64_t>(moves.size() * 4);
    std::ranges::sort(moves, cheaper);
    bool any = false;
    for (const Move& move : moves) {
      if (left(row) >= -kSlack) break;
      const Option& from = at(chosen_[move.group]);
      if (from.row != row || !fits(from, at(move.to))) continue;
      apply(move);
      any = true;
    }
    return any;
  }

  bool move_alone() {
    std::vector<Move> moves;
    for (std::uint32_t g = 0; g < choices_.groups(); ++g)
      each_move(g, [&](const Move& move) {
        if (move.cost < 0 && fits(at(chosen_[g]), at(move.to))) moves.push_back(move);
      });
    budget_.options -= static_cast<std::int64_t>(choices_.options.size());
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
    for (std::uint32_t g = 0; g < choices_.groups(); ++g) {
      const Option& from = at(chosen_[g]);
      each_move(g, [&](const Move& move) {
        const Option& to = at(move.to);
        if (move.cost < 0 && to.row >= 0) wanted.push_back(move);
        if (move.cost >= 0 && from.row >= 0 && (to.row != from.row || to.amount < from.amount))
          leaving[static_cast<std::size_t>(from.row)].push_back(move);
      });
    }
    budget_.options -= 3 * static_cast<std::int64_t>(choices_.options.size());
    for (auto& moves : leaving) std::ranges::sort(moves, cheaper);
    std::ranges::sort(wanted, cheaper);
    bool any = false;
    for (const Move& move : wanted) {
      if (budget_.spent()) break;
      if (chosen_[move.group] == move.to || cost_now(move) >= 0) continue;
      any = with_partner(move, leaving[static_cast<std::size_t>(at(move.to).row)]) || any;
    }
    return any;
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
      if (left(at(move.to).row) >= -kSlack && left(at(partner.to).row) >= -kSlack) {
        chosen_[move.group] = move.to;
        chosen_[partner.group] = partner.to;
        budget_.options -= static_cast<std::int64_t>(looked_at);
        return true;
      }
      use(out, 1), use(from, 1), use(at(move.to), -1), use(at(partner.to), -1);
    }
    budget_.options -= static_cast<std::int64_t>(looked_at);
    return false;
  }

  const Choices& choices_;
  Chosen& chosen_;
  Budget& budget_;
  std::vector<double> left_;
};

}  // namespace

bool round_at(const Choices& choices, const Prices& prices, Chosen& chosen, Budget& budget) {
  budget.options -= static_cast<std::int64_t>(6 * choices.options.size());
  Chosen spread(choices.groups(), kNoOption), inserted = spread;
  Mover spreading(choices, spread, budget), inserting(choices, inserted, budget);
  spreading.spread(prices);
  const bool is_spread = spreading.repair(prices);
  if (is_spread) spreading.improve();
  const bool is_inserted = inserting.insert(prices);
  if (is_inserted) inserting.improve();
  const bool prefer_inserted =
      is_inserted && (!is_spread || cost_of(choices, inserted) < cost_of(choices, spread));
  chosen = prefer_inserted ? inserted : spread;
  return is_spread || is_inserted;
}

void improve(const Choices& choices, Chosen& chosen, Budget& budget) {
  Mover(choices, chosen, budget).improve();
}

}  // namespace berth::fleet
