// berth top: who holds what of this machine and of the clusters, again every second on a terminal,
// once elsewhere.
#include <unistd.h>

#include "berth/base/units.h"
#include "berth/cli/json_output.h"
#include "berth/cli/machine_report.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/table.h"
#include "berth/cli/top_clusters.h"
#include "berth/os/loop.h"

namespace berth::cli {
namespace {

constexpr std::size_t kBarWidth = 30;
constexpr Duration kAnswersWithin = std::chrono::seconds(15);

struct TopOptions {
  bool json = false, once = false;

  void add_to(Options& options) {
    options.json(json);
    options.flag("--once", once, "one page, also on a terminal");
    options.example("berth top --once");
  }
};

std::string utilization_bar(std::int64_t held, std::int64_t total) {
  const double part = total > 0 ? static_cast<double>(held) / static_cast<double>(total) : 0;
  const auto full = static_cast<std::size_t>(std::min(1.0, part) * kBarWidth + 0.5);
  return std::string(full, '#') + std::string(kBarWidth - full, '.');
}

std::string page(const MachineReport& report, Wall now) {
  Table amounts({"resource", "", "held", "of"});
  report.capacity.total.each([&](std::string_view name, std::int64_t total) {
    const std::int64_t held = total - report.free.get(name);
    amounts.add({std::string(name), utilization_bar(held, total), format_amount(name, held),
                 format_amount(name, total)});
  });
  return amounts.text() + "\n" + holders_text(report, now, "nobody holds anything\n");
}

Result<int> top(os::Env& env, const TopOptions& options) {
  constexpr std::string_view kHomeAndClear = "\x1b[H\x1b[2J";
  const bool live = !options.json && !options.once && ::isatty(STDOUT_FILENO) == 1;
  if (live) os::install_stop_signals();
  BERTH_ASSIGN(MachineReport report, machine_report(env));
  BERTH_ASSIGN(auto clusters, TopClusters::open(env));
  // Looked at once, it is worth waiting for.
  const Mono until = env.now() + (live ? Duration(0) : kAnswersWithin);
  while (!clusters.settled() && env.now() < until && env.stop_signals() == 0)
    BERTH_TRY(env.loop().turn(until));
  if (options.json) {
    std::string text = machine_json(report);
    if (const std::string list = clusters.json(); !list.empty())
      text.insert(text.rfind('}'), ",\"clusters\":" + list);
    print(text);
    return 0;
  }
  for (;;) {
    print((live ? std::string(kHomeAndClear) : "") + page(report, env.wall()) + clusters.text());
    if (!live) return 0;
    BERTH_TRY(env.loop().turn(env.now() + std::chrono::seconds(1)));
    if (env.stop_signals() > 0) return 0;
    BERTH_TRY(refresh(env, report));
  }
}

}  // namespace

Command top_command() {
  return command("top", "who holds what of this machine and of the clusters, every second", top);
}

}  // namespace berth::cli
