#include "berth/render/fleets/size.h"

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/render/fleets/fleet_cells.h"

namespace berth::render {
namespace {

std::string rate_text(const fleet::SizedAllocation& sized) {
  if (sized.rate_per_s == 0) return "-";
  return fmt::format("{} ({})", figure(60 * sized.rate_per_s, 1), fleet::name(sized.rate_binding));
}

std::string why_text(const fleet::SizedAllocation& sized) {
  std::vector<std::string> parts;
  if (sized.refusal != fleet::Refusal::none) parts.emplace_back(fleet::name(sized.refusal));
  if (sized.saturated == true) parts.emplace_back("saturated");
  if (sized.binding == fleet::Binding::min_replicas) parts.emplace_back("minNumReplicas binds");
  return join(parts, "; ");
}

std::vector<std::string> row_of(const fleet::ServerSize& size, const std::string& mark,
                                const std::string& accelerator,
                                const fleet::SizedAllocation& sized) {
  const fleet::Allocation& a = sized.allocation;
  const bool is_given = !a.accelerator.empty();
  const bool serves = a.ttft_ms > 0;
  const bool is_now = &sized == &size.current;
  return {mark,
          is_given && !a.parts.empty() ? fleet::in_words(a) : accelerator,
          is_given ? fmt::format("{}", a.replicas) : "-",
          is_given ? fmt::format("{}", a.batch) : "-",
          rate_text(sized),
          serves ? against(a.itl_ms, size.target.itl_ms) : "-",
          serves ? against(a.ttft_ms, size.target.ttft_ms) : "-",
          serves ? fmt::format("{:.0f} %", 100 * a.utilisation) : "-",
          is_given ? watts_text(sized.watts) : "-",
          is_given ? figure(a.cost) : "-",
          is_given && !is_now ? change_of(size.server.current, a) : "",
          is_given && !is_now ? figure(sized.value) : "",
          why_text(sized)};
}

/// Visits what there is now, and then each accelerator, with its place in the fleet's eyes.
template <class Visit>
void each_row(const fleet::ServerSize& size, const Visit& visit) {
  if (const auto& now = size.current; !now.allocation.accelerator.empty())
    visit("now", now.allocation.accelerator, now);
  for (const auto& [name, sized] : size.accelerators)
    visit(size.best == name ? "best" : "", name.empty() ? "none" : name, sized);
}

std::string best_text(const fleet::ServerSize& size) {
  if (!size.best) return "best: no accelerator is within the targets";
  const fleet::SizedAllocation& best = size.accelerators.at(*size.best);
  const std::string now = fleet::in_words(size.server.current);
  const std::string then = fleet::in_words(best.allocation);
  if (then == now && !now.empty()) return "best: no change";
  return fmt::format("best: {}{}: replicas {:+}, cents an hour {:+.2f}, value {}",
                     then.empty() ? "none, because it is idle" : then,
                     now.empty() ? "" : ", in place of " + now, best.difference.replicas,
                     best.difference.cost, figure(best.value));
}

std::string now_text(const fleet::ServerSize& size) {
  const std::string now = fleet::in_words(size.server.current);
  if (now.empty()) return "now: nothing";
  const auto saturated = size.current.saturated;
  return fmt::format("now: {}, {}", now,
                     !saturated   ? "whose saturation is not known"
                     : *saturated ? "which the load saturates"
                                  : "which the load does not saturate");
}

}  // namespace

std::string to_text(const fleet::ServerSize& size, const View& view) {
  const fleet::Load& load = size.server.current.load;
  std::string text = fmt::format(
      "{}: {} in class {}, {} requests a minute, {} tokens in and {} out\n\n", size.name,
      size.server.model, size.server.service_class.empty() ? "Free" : size.server.service_class,
      format_number(load.arrivals_per_min), format_number(load.in_tokens),
      format_number(load.out_tokens));
  Table table({"",
               "accelerator",
               "replicas",
               {"batch", 5},
               {"most req/min each (by)", 4},
               {"ITL / SLO ms", 1},
               {"TTFT / SLO ms", 2},
               {"use", 6},
               {"W", 8},
               "cost",
               {"change", 3},
               {"value", 7},
               {"why", Column::kCut}});
  Table tails({"", "accelerator", "expected / SLO ms (closed form)"});
  bool is_asked_for = false;
  each_row(size, [&](const std::string& mark, const std::string& name,
                     const fleet::SizedAllocation& sized) {
    table.add(row_of(size, mark, name, sized));
    is_asked_for |= sized.is_rate_asked_for;
    if (sized.allocation.percentiles)
      tails.add(
          {mark, name, percentiles_text(*sized.allocation.percentiles, size.target.percentiles)});
  });
  text += to_text(table, view);
  if (!tails.empty()) text += "\n" + to_text(tails);
  if (is_asked_for)
    text += "maximum rates by simulation, within 3 %; --percentiles closed-form is faster\n";
  if (has_histogram(load, size.model)) text += histograms_text({size.name});
  return text + "\n" + now_text(size) + "\n" + best_text(size) + "\n";
}

std::string to_json(const fleet::ServerSize& size) {
  return fleet::size_json(size) + "\n";
}

}  // namespace berth::render
