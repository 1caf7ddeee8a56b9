// berth size: one server of a fleet by itself. What each accelerator would be for it, what a
// replica takes at most and why, how it gets along with what it has, and its best move.
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/fleet_input.h"
#include "berth/cli/fleet_view.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/fleet/missing_limits.h"
#include "berth/fleet/server_size.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

struct SizeOptions {
  bool json = false;
  std::string path, server, load, model;
  std::string percentiles = "simulated";
  std::vector<std::string> sets;
  fleet::SizeQuestion question;

  void add_to(Options& options) {
    options.json(json);
    add_fleet(options, path);
    options.value("SERVER", server, "Server of the fleet").required();
    options
        .value("--on", question.accelerator,
               "Use only this accelerator, even if the server pins another (default: each)")
        .named("ACCELERATOR");
    options.value("--load", load, "Requests per minute (default: its arrivalRate)").named("RATE");
    options
        .value("--replicas", question.replicas, "Number of replicas (default: what the load needs)")
        .between(1, 10'000'000);
    options
        .list("--set", sets, "Change a value: server.NAME.avgOutTokens, accelerator.NAME.cost, ...")
        .named("PATH=VALUE");
    options.value("--model", model, "Performance model (default: as in the document)")
        .named("MODEL")
        .one_of({"calibrated", "reference"});
    add_percentiles(options, percentiles);
    options.footer(
        "Exits with 3 if no option meets the targets.\n"
        "\n"
        "Examples:\n"
        "  berth size examples/fleet assistant                every accelerator\n"
        "  berth size examples/fleet assistant --load 1500    is the present size enough?\n"
        "  berth size examples/fleet assistant --on H100 --replicas 1");
  }
};

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

std::string size_text(const fleet::ServerSize& size) {
  const fleet::Load& load = size.server.current.load;
  std::string text = fmt::format(
      "{}: {} in class {}, {} requests a minute, {} tokens in and {} out\n\n", size.name,
      size.server.model, size.server.service_class.empty() ? "Free" : size.server.service_class,
      format_number(load.arrivals_per_min), format_number(load.in_tokens),
      format_number(load.out_tokens));
  render::Table table({"", "accelerator", "replicas", "batch", "most req/min each (by)",
                       "ITL / SLO ms", "TTFT / SLO ms", "use", "W", "cost", "change", "value",
                       "why"});
  render::Table tails({"", "accelerator", "expected / SLO ms (closed form)"});
  bool is_asked_for = false;
  each_row(size, [&](const std::string& mark, const std::string& name,
                     const fleet::SizedAllocation& sized) {
    table.add(row_of(size, mark, name, sized));
    is_asked_for |= sized.is_rate_asked_for;
    if (sized.allocation.percentiles)
      tails.add(
          {mark, name, percentiles_text(*sized.allocation.percentiles, size.target.percentiles)});
  });
  text += render::to_text(table);
  if (!tails.empty()) text += "\n" + render::to_text(tails);
  if (is_asked_for)
    text += "maximum rates by simulation, within 3 %; --percentiles closed-form is faster\n";
  if (has_histogram(load, size.model)) text += histograms_text({size.name});
  return text + "\n" + now_text(size) + "\n" + best_text(size) + "\n";
}

/// The notes on missing limits of the server's replicas.
std::vector<std::string> notes_on_server(const fleet::System& system, const std::string& name) {
  const auto server = system.servers.find(name);
  if (server == system.servers.end()) return {};
  fleet::System alone{system.accelerators, {},        system.models,
                      system.classes,      {*server}, system.options};
  return fleet::notes_on_missing_limits(alone);
}

Result<int> size(os::Env& env, const SizeOptions& given) {
  BERTH_ASSIGN(const auto documents, fleet_documents(env, given.path));
  BERTH_ASSIGN(auto reading, fleet::read_documents(documents));
  print_notes(reading.notes);
  fleet::System& system = reading.system;
  if (const auto model = fleet::queue_model(given.model)) system.options.model = *model;
  BERTH_TRY(set_fleet_values(system, given.sets));
  if (!given.load.empty() && system.servers.contains(given.server)) {
    BERTH_ASSIGN(const double rate, number_given("--load", given.load));
    BERTH_TRY(set_fleet_value("--load", system, "server." + given.server + ".arrivalRate", rate));
  }
  print_percentiles_note(system, system.options.model);
  print_notes(notes_on_server(system, given.server));
  BERTH_ASSIGN(const auto found, fleet::size_server(system, given.server, given.question,
                                                    planning_execution(given.percentiles)));
  print(given.json ? fleet::size_json(found) + "\n" : size_text(found));
  if (found.best) return 0;
  return fail(ErrorKind::impossible, "{}: {}", given.server, fleet::why_no_best(found));
}

}  // namespace

Command size_command() {
  return command("size", "Size one server of a fleet on each accelerator", size);
}

}  // namespace berth::cli
