#include "berth/cli/commands/shared_options.h"

#include "berth/base/units.h"
#include "berth/engine/context.h"

namespace berth::cli {

Status replace_last_run(os::Env& env, std::string& reference) {
  if (!reference.starts_with(engine::kLastRun)) return {};
  BERTH_ASSIGN(const auto context, engine::open_context(env));
  return engine::replace_last_run(context, reference);
}

Option add_run(Options& options, std::string& to, const std::string& name,
               const std::string& help) {
  options.prepare([&to](os::Env& env) { return replace_last_run(env, to); });
  return options.value(name, to, help).required();
}

Option add_run_or_last(Options& options, std::string& to, const std::string& name,
                       const std::string& help) {
  options.prepare([&to](os::Env& env) {
    if (to.empty()) to = engine::kLastRun;
    return replace_last_run(env, to);
  });
  return options.value(name, to, help + " (default: @last, the latest run)");
}

Option add_runs(Options& options, std::vector<std::string>& to, const std::string& help) {
  options.prepare([&to](os::Env& env) -> Status {
    for (auto& each : to) BERTH_TRY(replace_last_run(env, each));
    return {};
  });
  return options.list("RUN", to, help).required();
}

Option add_topology(Options& options, std::string& to) {
  return options
      .value("--topology", to,
             "Topology file (nvidia-smi topo -m, rocm-smi --showtopo, JSON) or machine type such "
             "as dgx-h100 (default: this machine)")
      .named("TOPOLOGY");
}

Option add_fleet(Options& options, std::string& to) {
  return options.value("PATH", to, "Fleet document (JSON) or a directory of them").required();
}

Option add_percentiles(Options& options, std::string& to) {
  return options
      .value("--percentiles", to,
             "Check percentile targets with this model: simulated (default) or closed-form")
      .named("MODEL")
      .one_of({"simulated", "closed-form"});
}

Result<Duration> age_of(std::string_view option, const std::string& text) {
  if (text.empty()) return std::chrono::hours(24 * 30);
  auto age = parse_age(text);
  if (!age) return std::unexpected(within(std::string(option), std::move(age).error()));
  return age;
}

}  // namespace berth::cli
