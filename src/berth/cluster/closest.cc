#include <algorithm>
#include <tuple>

#include "berth/cluster/cluster.h"
#include "berth/machine/machine.h"

namespace berth::cluster {
namespace {

constexpr std::int64_t kLeastUsableCpu = 1000;        // a core
constexpr std::int64_t kLeastUsableMem = 64LL << 20;  // bytes

/// The wish `count` times over; nullopt when that overflows, or has parts of devices in it, of
/// which two are not one twice as large, or devices that are there but once.
std::optional<machine::Request> times(const Wish& wish, std::int64_t count) {
  const Resources& min = wish.requirements.min;
  const bool is_part = min.get(Known::gpu_mem) > 0 || min.get(Known::gpu_slots) > 0;
  const bool is_once = !wish.selection.required.empty() || wish.selection.is_by_group();
  if (count > 1 && (is_part || is_once)) return std::nullopt;
  Resources all;
  for (std::int64_t i = 0; i < count; ++i)
    if (!all.add(min)) return std::nullopt;
  return machine::Request{all, name_of(wish.labels), wish.selection};
}

/// How often the wish fits, up to its width.
std::int64_t how_often(const machine::Machine& machine, const Wish& wish) {
  const auto one = times(wish, 1);
  if (!one || !machine.dry_run(*one)) return 0;
  std::int64_t fits = 1, width = std::max<std::int64_t>(wish.requirements.width, 1);
  while (fits < width) {  // the greatest, by halving
    const std::int64_t tried = fits + (width - fits + 1) / 2;
    const auto request = times(wish, tried);
    if (request && machine.dry_run(*request))
      fits = tried;
    else
      width = tried - 1;
  }
  return fits;
}

bool usable(const Resources& rest, const Resources& total) {
  if (rest.get(Known::cpu) < kLeastUsableCpu) return false;
  return total.get(Known::mem) == 0 || rest.get(Known::mem) >= kLeastUsableMem;
}

/// What is left, as fractions of the machine: the less, the closer the fit.
double leftover(const Resources& rest, const Resources& total) {
  double sum = 0;
  total.each([&](std::string_view resource, std::int64_t amount) {
    if (amount > 0) sum += static_cast<double>(rest.get(resource)) / static_cast<double>(amount);
  });
  return sum;
}

}  // namespace

std::string name_of(const Labels& labels) {
  const auto run = std::ranges::find(labels, "run", &Labels::value_type::first);
  return run == labels.end() ? "" : run->second;
}

Result<Choice> closest(std::span<const Offer> offers, const Wish& wish) {
  std::optional<Choice> best;
  std::tuple<std::int64_t, double> best_rank;
  std::optional<Error> refusal;
  bool possible = false;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const Offer& offer = offers[i];
    const machine::Machine machine(offer.free, offer.links);
    const std::int64_t often = how_often(machine, wish);
    if (often == 0) {
      machine::Machine empty(offer.total, offer.links);
      empty.set_name(offer.machine);
      const auto ever = empty.dry_run(*times(wish, 1));
      possible = possible || ever.has_value();
      if (ever)
        refusal = Error{ErrorKind::busy, fmt::format("{} has no room for {}{} now", offer.machine,
                                                     to_string(wish.requirements.min),
                                                     machine::text_of(wish.selection))};
      else if (!possible)
        refusal = ever.error();
      continue;
    }
    auto part = times(wish, often);
    Resources rest = offer.free.resources;
    const bool whole =
        !rest.subtract(machine::charged(part->resources)) || !usable(rest, offer.total.resources);
    // Room for more of the wish first, then the least left over; among equals the first.
    const std::tuple rank(-often, leftover(rest, offer.total.resources));
    if (best && best_rank <= rank) continue;
    best_rank = rank;
    best = Choice{i, whole ? std::nullopt : std::move(part)};
  }
  if (best) return *std::move(best);
  if (!offers.empty() && !possible && refusal)
    return fail(ErrorKind::impossible, "{}", refusal->message);
  return fail(ErrorKind::busy, "{}", refusal ? refusal->message : "no machine offers resources");
}

}  // namespace berth::cluster
