#include "berth/cli/commands/plan_day.h"

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::cli {
namespace {

Status read_seconds(std::string_view option, const std::optional<std::string>& text, double& to) {
  if (!text) return {};
  const auto duration = parse_duration(*text);
  if (!duration) return fail(ErrorKind::usage, "{}: {}", option, duration.error().message);
  to = std::chrono::duration<double>(*duration).count();
  return {};
}

/// A bare number is cents, a duration the time for which a replica's price is paid.
Status read_transition_cost(const std::optional<std::string>& text, fleet::DayOptions& to) {
  if (!text) return {};
  const auto cents = parse_number(*text);
  if (!cents) return read_seconds("--transition-cost", text, to.change_s);
  if (*cents < 0)
    return fail(ErrorKind::usage, "--transition-cost: expected 0 or more, got '{}'", clip(*text));
  to.change_cents = *cents;
  return {};
}

Status check_replay(const DayChoices& given) {
  if (!given.replay || given.trace) return {};
  return fail(ErrorKind::usage, "--replay: needs --trace: only a trace has requests to replay");
}

Result<fleet::DayOptions> day_options(const DayChoices& given) {
  fleet::DayOptions options;
  BERTH_TRY(read_transition_cost(given.transition_cost, options));
  BERTH_TRY(read_seconds("--startup", given.startup, options.startup_s));
  BERTH_TRY(read_seconds("--min-up", given.min_up, options.min_up_s));
  if (!given.hysteresis) return options;
  const auto part = parse_number(*given.hysteresis);
  if (!part || *part < 0 || *part > 1)
    return fail(ErrorKind::usage, "--hysteresis: expected 0 to 1, got '{}'",
                clip(*given.hysteresis));
  options.hysteresis = *part;
  return options;
}

}  // namespace

void DayChoices::add_to(Options& options) {
  options
      .value("--profile", profile,
             "Loads over a day (CSV): time,server,arrivalRate[,avgInTokens,avgOutTokens]")
      .named("FILE");
  options.value("--trace", trace, "Requests of a day (CSV): seconds,in_tokens,out_tokens")
      .named("FILE")
      .excludes("--profile");
  options.flag("--replay", replay, "Simulate the requests of the trace under each plan");
  options.value("--window", window, "Plan the trace in windows of this length (default: 10m)")
      .named("DURATION")
      .excludes("--profile");
  options
      .value("--server", server,
             "Send the whole trace to this server (default: split by arrivalRate)")
      .named("NAME")
      .excludes("--profile");
  options
      .value("--transition-cost", transition_cost,
             "Cost of each start or stop of a replica: cents, or its price for a time (5m)")
      .named("COST");
  options.value("--startup", startup, "Time a replica costs before it serves").named("DURATION");
  options.value("--min-up", min_up, "After a start, keep all replicas of the server this long")
      .named("DURATION");
  options
      .value("--hysteresis", hysteresis,
             "With greedy: move only to save more than this fraction (0 to 1)")
      .named("FRACTION");
}

Status check_no_day(const DayChoices& given) {
  BERTH_TRY(check_replay(given));
  for (const auto& [option, value] : {std::pair("--window", &given.window),
                                      {"--server", &given.server},
                                      {"--transition-cost", &given.transition_cost},
                                      {"--startup", &given.startup},
                                      {"--min-up", &given.min_up},
                                      {"--hysteresis", &given.hysteresis}})
    if (*value) return fail(ErrorKind::usage, "{}: needs --profile or --trace", option);
  return {};
}

Result<engine::DayRequest> DayChoices::read() const {
  BERTH_TRY(check_replay(*this));
  engine::DayRequest request{
      .profile = profile, .trace = trace, .server = server, .is_replayed = replay};
  BERTH_ASSIGN(request.options, day_options(*this));
  BERTH_TRY(read_seconds("--window", window, request.window_s));
  return request;
}

}  // namespace berth::cli
