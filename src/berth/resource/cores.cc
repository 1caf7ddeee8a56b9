#include "berth/resource/cores.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace berth {
namespace {

constexpr int kWhole = 1000;
constexpr std::size_t kNone = SIZE_MAX;

/// What a request comes to on cores that are not cut up more than it asks for.
struct Wish {
  std::int64_t whole = 0;  // cores
  int fraction = 0;        // thousandths of one more core
};

/// What one NUMA node, or the whole machine, has free.
struct Tally {
  int node = 0;
  std::int64_t whole = 0;  // cores that are free altogether
  std::int64_t milli = 0;
  std::size_t host = kNone;  // the fullest broken core that has room for the fraction
  int host_milli = kWhole;

  void count(std::size_t at, const CoreShare& share, const Wish& wish) {
    milli += share.milli;
    if (share.milli == kWhole) {
      ++whole;
    } else if (wish.fraction > 0 && share.milli >= wish.fraction && share.milli < host_milli) {
      host = at;
      host_milli = share.milli;
    }
  }
  bool breaks_one(const Wish& wish) const { return wish.fraction > 0 && host == kNone; }
  bool suits(const Wish& wish) const { return whole >= wish.whole + (breaks_one(wish) ? 1 : 0); }
};

std::vector<Tally> tally_by_node(std::span<const CoreShare> free, const Wish& wish, Tally& all) {
  std::vector<Tally> nodes;
  std::size_t last = 0;
  for (std::size_t i = 0; i < free.size(); ++i) {
    if (last >= nodes.size() || nodes[last].node != free[i].node) {
      const auto found = std::ranges::find(nodes, free[i].node, &Tally::node);
      last = static_cast<std::size_t>(found - nodes.begin());
      if (found == nodes.end()) nodes.push_back({.node = free[i].node});
    }
    nodes[last].count(i, free[i], wish);
    all.count(i, free[i], wish);
  }
  return nodes;
}

/// The least by `rank` among the nodes that pass; nullptr when none does.
template <class Pass, class Rank>
const Tally* best(const std::vector<Tally>& nodes, Pass pass, Rank rank) {
  const Tally* chosen = nullptr;
  for (const auto& node : nodes)
    if (pass(node) && (chosen == nullptr || rank(node) < rank(*chosen))) chosen = &node;
  return chosen;
}

/// The wish out of what `from` counted; whole cores come from the nodes in their order.
std::vector<CoreShare> take_whole(std::span<const CoreShare> free, const Wish& wish,
                                  const Tally& from, std::span<const Tally> nodes) {
  const bool breaks_one = from.breaks_one(wish);
  const auto count = static_cast<std::size_t>(wish.whole) + (breaks_one ? 1 : 0);
  std::vector<CoreShare> taken;
  taken.reserve(count + 1);
  for (const auto& node : nodes)
    for (auto share = free.begin(); share != free.end() && taken.size() < count; ++share)
      if (share->node == node.node && share->milli == kWhole) taken.push_back(*share);
  if (breaks_one) taken.back().milli = wish.fraction;
  if (from.host != kNone)
    taken.push_back({free[from.host].core, free[from.host].node, wish.fraction});
  std::ranges::sort(taken, {}, &CoreShare::core);
  return taken;
}

/// The amount out of as few cores as will do, whatever their size, of one node where it is given.
std::vector<CoreShare> take_pieces(std::span<const CoreShare> free, std::int64_t milli,
                                   const Tally* only) {
  std::vector<CoreShare> pieces;
  for (const auto& share : free)
    if (share.milli > 0 && (only == nullptr || share.node == only->node)) pieces.push_back(share);
  std::ranges::stable_sort(pieces, std::ranges::greater{}, &CoreShare::milli);
  std::size_t used = 0;
  for (; milli > 0; ++used) {
    pieces[used].milli = static_cast<int>(std::min<std::int64_t>(pieces[used].milli, milli));
    milli -= pieces[used].milli;
  }
  pieces.resize(used);
  std::ranges::sort(pieces, {}, &CoreShare::core);
  return pieces;
}

}  // namespace

std::vector<CoreShare> choose_cores(std::span<const CoreShare> free, std::int64_t milli, int near) {
  if (milli <= 0) return {};
  const Wish wish{milli / kWhole, static_cast<int>(milli % kWhole)};
  Tally all;
  std::vector<Tally> nodes = tally_by_node(free, wish, all);
  if (all.milli < milli) return {};

  const auto far = [&](const Tally& node) { return near >= 0 && node.node != near; };
  const auto suits = [&](const Tally& node) { return node.suits(wish); };
  const auto tightest = [&](const Tally& node) {
    return std::tuple(far(node), node.host_milli, node.whole, node.node);
  };
  if (const Tally* one = best(nodes, suits, tightest))
    return take_whole(free, wish, *one, std::span(one, 1));
  if (all.suits(wish)) {
    std::ranges::sort(nodes, {}, [&](const Tally& node) {
      return std::tuple(far(node), -node.whole, node.node);
    });
    return take_whole(free, wish, all, nodes);
  }
  const auto has_it = [&](const Tally& node) { return node.milli >= milli; };
  const auto least = [&](const Tally& node) {
    return std::tuple(far(node), node.milli, node.node);
  };
  return take_pieces(free, milli, best(nodes, has_it, least));
}

}  // namespace berth
