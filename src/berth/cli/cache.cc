// berth cache: what flows keep for later runs.
#include "berth/base/units.h"
#include "berth/cli/commands.h"
#include "berth/cli/json_output.h"
#include "berth/cli/table.h"

namespace berth::cli {
namespace {

constexpr Duration kUnusedFor = std::chrono::hours(24 * 30);

std::string report_text(const CacheReport& report) {
  std::string text;
  if (report.collected)
    text +=
        fmt::format("removed {} result{} and {} object{}, {}\n", report.collected->results,
                    report.collected->results == 1 ? "" : "s", report.collected->objects.objects,
                    report.collected->objects.objects == 1 ? "" : "s",
                    format_bytes(report.collected->objects.bytes));
  if (report.damage) {
    for (const auto& each : *report.damage) text += each.what + "\n";
    if (report.damage->empty()) text += "every object is whole\n";
  }
  text += fmt::format("{} results in {} objects, {}", report.results, report.usage.objects,
                      format_bytes(report.usage.bytes));
  if (report.usage.damaged > 0)
    text += fmt::format("; {} damaged, set aside", report.usage.damaged);
  return text + "\n";
}

}  // namespace

Result<int> cache_command(os::Env& env, const Arguments& arguments) {
  Duration unused_for = kUnusedFor;
  if (!arguments.unused_for.empty()) {
    if (!arguments.collect) return fail(ErrorKind::usage, "--unused-for belongs to --collect");
    const auto given = parse_age(arguments.unused_for);
    if (!given) return std::unexpected(within("--unused-for", given.error()));
    unused_for = *given;
  }
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  BERTH_ASSIGN(auto cache, run::open_cache(site));
  CacheReport report;
  if (arguments.verify) {
    BERTH_ASSIGN(report.damage.emplace(), cache.verify());
  }
  if (arguments.collect) {
    BERTH_ASSIGN(report.collected.emplace(), run::collect(site, unused_for));
  }
  BERTH_ASSIGN(report.usage, cache.usage());
  BERTH_ASSIGN(const auto results, site.store->results(0));
  report.results = results.size();
  print(arguments.json ? cache_json(report) : report_text(report));
  return report.damage && !report.damage->empty() ? 1 : 0;
}

}  // namespace berth::cli
