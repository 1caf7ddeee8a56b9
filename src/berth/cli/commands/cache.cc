// berth cache: what flows keep for later runs.
#include "berth/render/runs/cache.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/context.h"

namespace berth::cli {
namespace {

struct CacheOptions {
  Output output;
  bool verify = false, collect = false;
  std::string unused_for;

  void add_to(Options& options) {
    output.add_to(options);
    options.flag("--verify", verify, "Read all entries and set damaged ones aside");
    options.flag("--collect", collect, "Remove entries that no recent run needs");
    options
        .value("--unused-for", unused_for,
               "With --collect: remove results unused for this long (default: 30d)")
        .named("DURATION");
    options.example("berth cache --collect --unused-for 7d");
  }
};

Result<int> cache(os::Env& env, const CacheOptions& options) {
  if (!options.unused_for.empty() && !options.collect)
    return fail(ErrorKind::usage, "--unused-for belongs to --collect");
  BERTH_ASSIGN(const Duration unused_for, age_of("--unused-for", options.unused_for));
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto report,
               engine::examine_cache(context, options.verify,
                                     options.collect ? std::optional(unused_for) : std::nullopt));
  options.output.print(report);
  return report.damage && !report.damage->empty() ? 1 : 0;
}

}  // namespace

Command cache_command() {
  return command("cache", "Show, verify or clean up cached results of flows", cache);
}

}  // namespace berth::cli
