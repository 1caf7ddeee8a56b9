// berth cache: what flows keep for later runs.
#include "berth/base/units.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"

namespace berth::cli {
namespace {

struct CacheOptions {
  bool json = false, verify = false, collect = false;
  std::string unused_for;

  void add_to(Options& options) {
    options.json(json);
    options.flag("--verify", verify, "Read all entries and set damaged ones aside");
    options.flag("--collect", collect, "Remove entries that no recent run needs");
    options
        .value("--unused-for", unused_for,
               "With --collect: remove results unused for this long (default: 30d)")
        .named("DURATION");
    options.example("berth cache --collect --unused-for 7d");
  }
};

std::string report_text(const engine::CacheReport& report) {
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

Result<int> cache(os::Env& env, const CacheOptions& options) {
  if (!options.unused_for.empty() && !options.collect)
    return fail(ErrorKind::usage, "--unused-for belongs to --collect");
  BERTH_ASSIGN(const Duration unused_for, age_of("--unused-for", options.unused_for));
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto report,
               engine::examine_cache(context, options.verify,
                                     options.collect ? std::optional(unused_for) : std::nullopt));
  print(options.json ? cache_json(report) : report_text(report));
  return report.damage && !report.damage->empty() ? 1 : 0;
}

}  // namespace

Command cache_command() {
  return command("cache", "Show, verify or clean up cached results of flows", cache);
}

}  // namespace berth::cli
