// berth autoscale: the control loop, or what it would have done with a trace.
#include "berth/cli/server/autoscale.h"

#include <algorithm>
#include <map>
#include <utility>

#include "berth/api/control_loop.h"
#include "berth/api/server.h"
#include "berth/base/exposition.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/visible.h"
#include "berth/cli/print.h"
#include "berth/cli/server/listen.h"
#include "berth/engine/context.h"
#include "berth/engine/fleets/autoscale.h"
#include "berth/render/fleets/autoscale.h"

namespace berth::cli {
namespace {

constexpr int kPort = 8322;
constexpr Duration kSecondLook = std::chrono::seconds(2);
constexpr std::size_t kMostToken = 64U << 10;

Status read_seconds(std::string_view option, const std::string& text, double& to) {
  if (text.empty()) return {};
  const auto duration = parse_duration(text);
  if (!duration) return fail(ErrorKind::usage, "{}: {}", option, duration.error().message);
  to = std::chrono::duration<double>(*duration).count();
  return {};
}

Result<fleet::AutoscalerOptions> autoscaler_options(const AutoscaleOptions& given) {
  fleet::AutoscalerOptions options;
  BERTH_TRY(read_seconds("--interval", given.interval, options.interval_s));
  BERTH_TRY(read_seconds("--startup", given.startup, options.startup_s));
  BERTH_TRY(read_seconds("--hold", given.hold, options.hold_s));
  if (!given.headroom.empty()) {
    const auto part = parse_number(given.headroom);
    if (!part) return fail(ErrorKind::usage, "--headroom: {}", part.error().message);
    options.headroom = *part;
  }
  options.most_up = given.most_up;
  options.most_down = given.most_down;
  options.most_changes_per_h = given.most_changes;
  options.applies = given.apply;
  if (auto checked = fleet::check(options); !checked)
    return fail(ErrorKind::usage, "{}", checked.error().message);
  return options;
}

Result<int> replay_trace(os::Env& env, const AutoscaleOptions& given) {
  if (given.trace->empty()) return fail(ErrorKind::usage, "--trace: expected a file");
  fleet::ReplayOptions options;
  BERTH_ASSIGN(options.autoscaler, autoscaler_options(given));
  options.autoscaler.applies = true;
  BERTH_TRY(read_seconds("--window", given.window, options.window_s));
  BERTH_ASSIGN(const auto system, engine::read_scaled_fleet(env, given.path, print_notes));
  BERTH_ASSIGN(const auto replayed,
               engine::replay_trace(env, system, given.server.value_or(""), *given.trace, options,
                                    engine::planning_execution(given.percentiles)));
  given.output.print(replayed);
  return 0;
}

Result<api::LoopOptions> loop_options(os::Env& env, const AutoscaleOptions& given) {
  api::LoopOptions options;
  BERTH_ASSIGN(options.autoscaler, autoscaler_options(given));
  BERTH_TRY(read_seconds("--window", given.window, options.window_s));
  options.prometheus = given.prometheus;
  if (!options.prometheus.starts_with("http://") && !options.prometheus.starts_with("https://"))
    return fail(ErrorKind::usage,
                "--prometheus: expected a URL, such as http://127.0.0.1:9090; got '{}'",
                clip(given.prometheus));
  if (!given.prometheus_token_file.empty()) {
    BERTH_ASSIGN(const auto text, env.read_file(given.prometheus_token_file, kMostToken));
    options.token = trim(text);
  }
  BERTH_ASSIGN(options.selectors, engine::selectors_of(given.selects));
  options.hook = given.hook;
  options.name_space = given.name_space;
  options.old_names = given.old_names;
  BERTH_ASSIGN(const auto state, engine::state_directory(env));
  BERTH_TRY(env.make_directory(state, 0700));
  options.record = engine::autoscale_record(state);
  return options;
}

/// A decision of the loop, as it is recorded and printed.
struct LoopDecision {
  const fleet::Decision& decision;
  const fleet::Live& live;
  Wall at;
  bool applies;
};

std::string to_json(const LoopDecision& one) {
  return api::decision_json(one.decision, one.live, one.at, one.applies) + "\n";
}

std::string to_text(const LoopDecision& one) {
  const fleet::Decision& d = one.decision;
  const std::string replicas =
      d.desired == d.current ? fmt::format("{} {}", fleet::kActionNames.name(d.action), d.current)
                             : fmt::format("{} → {}", d.current, d.desired);
  return Visible()(fmt::format("{}  {}: {}{}{}: {}\n", format_utc(one.at).substr(11, 8), d.server,
                               replicas, d.accelerator.empty() ? "" : " × " + d.accelerator,
                               d.desired != d.current && !one.applies ? " (advice)" : "",
                               d.reason));
}

/// Prints decisions: as text each one that differs from the last one of its server.
class DecisionPrinter {
 public:
  explicit DecisionPrinter(const AutoscaleOptions& given) : given_(given) {}

  void print(const LoopDecision& one) {
    given_.output.print(one, [&] { return is_new(one.decision) ? to_text(one) : ""; });
  }

 private:
  bool is_new(const fleet::Decision& d) {
    const std::string now =
        fmt::format("{} {}", d.action == fleet::Action::hold ? d.reason : "", d.desired);
    return std::exchange(printed_[d.server], now) != now || d.desired != d.current;
  }

  const AutoscaleOptions& given_;
  std::map<std::string, std::string> printed_;  // by server
};

std::vector<api::Route> routes_of(const api::ControlLoop& loop) {
  using api::Request, api::Reply, api::Role;
  constexpr std::string_view kLoop = "autoscale";
  return {{{"GET", "/metrics", Role::read, kLoop, "the metrics of the loop", kExpositionType},
           [&loop](const Request&) { return Reply{200, loop.metrics(), kExpositionType, false}; }},
          {{"GET", "/v1/decisions", Role::read, kLoop, "the last decisions", "Decisions"},
           [&loop](const Request&) { return Reply{200, loop.decisions_json()}; }},
          {{"GET", "/v1/health", Role::none, kLoop, "the state of the loop", "Health"},
           [](const Request&) { return Reply{200, R"({"ok":true})"}; }}};
}

Status check_words(const AutoscaleOptions& given) {
  if (given.server && !given.trace)
    return fail(ErrorKind::usage, "--server: only with --trace; otherwise all servers are scaled");
  if (!given.hook.empty() && !given.apply)
    return fail(ErrorKind::usage, "--hook: only with --apply");
  if (given.old_names && !given.apply)
    return fail(ErrorKind::usage, "--old-names: only with --apply");
  if (given.trace)
    for (const auto& [option, is_given] :
         {std::pair("--apply", given.apply),
          {"--once", given.once},
          {"--listen", given.listen.has_value()},
          {"--select", !given.selects.empty()},
          {"--namespace", given.name_space != "default"},
          {"--prometheus-token-file", !given.prometheus_token_file.empty()},
          {"--token-file", !given.access.token_file.empty()},
          {"--read-token-file", !given.access.read_token_file.empty()},
          {"--tls-cert", !given.access.certificate.empty()},
          {"--tls-key", !given.access.key.empty()}})
      if (is_given) return fail(ErrorKind::usage, "{}: not with --trace, which plays", option);
  if (given.once && given.apply && given.hook.empty())
    return fail(ErrorKind::usage,
                "--once --apply: requires a --hook, because metrics published once are not read");
  if (!given.trace && given.prometheus.empty())
    return fail(ErrorKind::usage, "expected --prometheus URL, or --trace FILE");
  if (given.once && given.listen)
    return fail(ErrorKind::usage,
                "--listen: not with --once, which ends before a client can connect");
  return {};
}

}  // namespace

Result<int> autoscale(os::Env& env, const AutoscaleOptions& given) {
  BERTH_TRY(check_words(given));
  if (given.trace) return replay_trace(env, given);
  BERTH_ASSIGN(const auto options, loop_options(env, given));
  BERTH_ASSIGN(const auto system, engine::read_scaled_fleet(env, given.path, print_notes));
  BERTH_TRY(api::check(options, system));
  BERTH_ASSIGN(auto listening, listen_options(env, given.listen.value_or(""), given.access));
  if (!given.listen) listening.port = kPort;
  BERTH_ASSIGN(const auto* cloud, remote::load_cloud(env));
  os::install_stop_signals();
  DecisionPrinter printer(given);
  bool is_first_look = false;
  api::ControlLoop loop(env, *cloud, system, options, engine::planning_execution(given.percentiles),
                        [&](const std::vector<fleet::Decision>& decisions, const auto& live) {
                          for (const auto& d : decisions)
                            printer.print({d, live.at(d.server), env.wall(), given.apply});
                          is_first_look = std::ranges::any_of(decisions, [](const auto& d) {
                            return !d.is_known && d.reporting.has_value();
                          });
                        });
  if (given.once) {
    BERTH_TRY(loop.turn());
    if (is_first_look) {  // its count of replicas wants a second one
      is_first_look = false;
      BERTH_TRY(env.wait({}, env.now() + kSecondLook));
      if (env.stop_signals() == 0) BERTH_TRY(loop.turn());
    }
    return loop.failures() > 0 ? 1 : 0;
  }
  const auto routes = routes_of(loop);
  const auto say = [&](int port) {
    print_error(fmt::format(
        "{}/metrics; {}\n", url_of(listening, port),
        given.apply ? "desired replicas are published" : "advice only; --apply publishes"));
  };
  BERTH_TRY(api::serve(env, routes, listening, say, [&] { return loop.run(); }));
  return 0;
}

}  // namespace berth::cli
