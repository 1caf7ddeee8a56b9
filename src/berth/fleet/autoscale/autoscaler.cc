#include "berth/fleet/autoscale/autoscaler.h"

#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/queueing/sizing.h"

namespace berth::fleet {
namespace {

constexpr double kHour_s = 3600;
constexpr double kTokenStep = 1.05;

template <class Times>
void forget_before(Times& times, double s) {
  while (!times.empty() && times.front().first < s) times.pop_front();
}

const Performance* performance_of(const System& system, const Server& server) {
  const auto model = system.models.find(server.model);
  if (model == system.models.end()) return nullptr;
  const auto found = model->second.accelerators.find(server.current.accelerator);
  return found == model->second.accelerators.end() ? nullptr : &found->second;
}

/// Of the accelerator's type, that one replica takes.
int units_of(const System& system, const Server& server) {
  const auto accelerator = system.accelerators.find(server.current.accelerator);
  if (accelerator == system.accelerators.end()) return 1;
  const Performance* performance = performance_of(system, server);
  const int each = performance == nullptr ? 1 : performance->accelerators;
  return std::max(1, accelerator->second.multiplicity) * std::max(1, each);
}

std::string text_of(double per_min) {
  return fmt::format("{:.1f}/min", per_min);
}

}  // namespace

Status check(const AutoscalerOptions& o) {
  for (const auto& [what, value, least, most] :
       {std::tuple("the interval", o.interval_s, 0.01, 86'400.0),
        {"the start-up time", o.startup_s, 0.0, 86'400.0},
        {"the time that unneeded replicas are kept", o.hold_s, 0.0, 7 * 86'400.0},
        {"the headroom", o.headroom, 0.0, 10.0},
        {"the maximum step up", static_cast<double>(o.most_up), 0.0, 1e6},
        {"the maximum step down", static_cast<double>(o.most_down), 0.0, 1e6},
        {"the changes an hour", static_cast<double>(o.most_changes_per_h), 0.0, 1e6},
        {"the maximum jump", o.most_jump, 1.0, 1e6},
        {"the maximum drift", o.most_drift, 0.0, 10.0}})
    if (!(value >= least && value <= most))
      return fail(ErrorKind::invalid, "{}: expected {} to {}, got {}", what, least, most, value);
  return {};
}

Status check_scalable(const System& system) {
  for (const auto& [name, server] : system.servers) {
    const Allocation& has = server.current;
    if (!has.parts.empty())
      return fail(ErrorKind::invalid, "{} has {}: the loop scales {}", name, in_words(has),
                  has.is_split() ? "no pools that prefill and decode apart"
                                 : "one accelerator; make each part a server");
    if (has.accelerator.empty()) continue;
    const auto accelerator = system.accelerators.find(has.accelerator);
    if (accelerator == system.accelerators.end())
      return fail(ErrorKind::invalid, "{} has '{}', which is not an accelerator of the document",
                  name, clip(has.accelerator));
    const auto capacity = system.capacities.find(accelerator->second.type);
    if (system.options.solver != Solver::unlimited &&
        (capacity == system.capacities.end() || capacity->second.count == 0))
      return fail(ErrorKind::impossible,
                  "{} has {}, and there is no capacity of {}: give a count in capacityData, or set "
                  "\"unlimited\": true for the optimizer",
                  name, has.accelerator, accelerator->second.type);
  }
  return {};
}

double in_token_steps(double tokens) {
  if (!(tokens > 1)) return tokens;
  return std::pow(kTokenStep, std::ceil(std::log(tokens) / std::log(kTokenStep) - 1e-9));
}

/// A server on the way to its decision. Its reason is empty as long as it may be moved.
struct Autoscaler::Draft {
  const Server* server = nullptr;
  State* state = nullptr;
  Decision decision;
  int units = 1;  // of its accelerator's type, a replica
  int least = 1;
  bool is_missing = false;  // fewer replicas report than should for some time
};

Autoscaler::Autoscaler(System system, const AutoscalerOptions& options, const Execution& execution)
    : system_(std::move(system)), options_(options) {
  BERTH_ASSERT(check(options));
  system_.options.heterogeneous = system_.options.disaggregated = false;
  const Plan plan = fleet::plan(system_, execution);
  for (auto& [name, server] : system_.servers) {
    if (server.current.accelerator.empty())
      server.current.accelerator = plan.servers.at(name).allocation.accelerator;
    server.keep_accelerator = true;
    State& state = states_[name];
    state.estimate = LoadEstimate(server.current.load);
    state.counted = server.current.replicas;
  }
}

/// What there is of the server, and what to plan for; a reason where that is not known.
void Autoscaler::look(double now_s, Draft& draft, const Live& live) {
  State& state = *draft.state;
  Decision& d = draft.decision;
  d.reason = state.estimate.take(now_s, live, options_);
  if (live.replicas && *live.replicas >= 0 && *live.replicas <= kMostReplicas)
    d.reporting = static_cast<int>(*live.replicas);
  const bool is_decided = options_.applies && state.desired;
  // The first look may come when Prometheus has seen some of the replicas only: it has to be
  // what the document says, or what the second one sees.
  d.is_known = is_decided || (d.reporting && (state.desired || state.counted == d.reporting));
  state.counted = d.reporting;
  d.current = is_decided ? *state.desired : d.reporting.value_or(draft.server->current.replicas);
  d.desired = d.current;
  if (d.reason.empty() && !d.is_known)
    d.reason = d.reporting
                   ? fmt::format("no data: {} replicas are seen for the first time", *d.reporting)
                   : "no data: the number of its replicas is not reported";
  forget_before(state.desires, now_s - options_.startup_s - 2 * options_.interval_s);
  int expected = d.current;
  for (const auto& [at_s, desired] : state.desires)
    expected = std::min(expected, static_cast<int>(desired));
  draft.is_missing = d.reporting.value_or(0) < expected;
  const bool is_steady = d.reporting == expected && expected == d.current;
  if (const Performance* performance = performance_of(system_, *draft.server);
      d.reason.empty() && performance != nullptr)
    state.estimate.learn(now_s, live, demand_of(state.estimate.load(), *draft.server, {}),
                         *performance, state.batch, is_steady, options_);
  if (const Performance* performance = performance_of(system_, *draft.server))
    d.drift = state.estimate.drift(*performance, options_);
  if (d.reason.empty()) {
    d.planned_per_min = state.estimate.forecast_per_min(now_s, live, options_);
  } else if (d.is_known && d.current == 0) {  // nobody tells of what is not there
    d.desired = draft.least;
    d.reason = "none is left: back to the minimum";
  } else if (d.is_known) {
    state.needs.emplace_back(now_s, d.current);
  }
}

/// How many replicas each draft needs, by the candidates for its load; a reason where there is
/// none.
void Autoscaler::size(double now_s, std::vector<Draft>& drafts, const Execution& execution) {
  System asked = system_;
  asked.servers.clear();
  std::map<std::string, Draft*> by_name;
  for (Draft& draft : drafts) {
    if (!draft.decision.reason.empty()) continue;
    by_name[draft.decision.server] = &draft;
    const LoadEstimate& estimate = draft.state->estimate;
    Server server = *draft.server;
    server.current.load = estimate.load();
    server.current.load.in_tokens = in_token_steps(server.current.load.in_tokens);
    server.current.load.out_tokens = in_token_steps(server.current.load.out_tokens);
    server.current.load.arrivals_per_min = draft.decision.planned_per_min;
    server.min_replicas = draft.least;
    if (const int full_at = estimate.full_at(); full_at > 0)
      server.max_batch = server.max_batch > 0 ? std::min(server.max_batch, full_at) : full_at;
    const std::string model = server.model + "\n" + draft.decision.server;  // its own parameters
    if (const auto known = system_.models.find(server.model); known != system_.models.end()) {
      Model own = known->second;
      for (auto& [accelerator, p] : own.accelerators)
        for (double* ms : {&p.beta_ms, &p.gamma_ms, &p.beta_prefill_ms})
          *ms *= draft.decision.drift;
      asked.models[model] = std::move(own);
      asked.classes[class_of(server)].targets[model] = target_of(system_, server);
      server.model = model;
    }
    asked.servers[draft.decision.server] = std::move(server);
  }
  const Candidates made = candidates(asked, system_.options.model, execution);
  for (std::size_t s = 0; s < made.servers.size(); ++s) {
    Draft& draft = *by_name.at(made.servers[s]);
    const auto a =
        static_cast<std::size_t>(std::ranges::find(made.accelerators, draft.decision.accelerator) -
                                 made.accelerators.begin());
    const auto of = made.of(s);
    const auto found = std::ranges::find(of, a, &Candidate::accelerator);
    if (found != of.end()) {
      draft.decision.needed = std::max(found->replicas, draft.least);
      draft.state->batch = found->batch;
    } else {
      draft.decision.reason =
          a == made.accelerators.size()
              ? "it has no accelerator, and none serves it"
              : fmt::format("cannot be served on {}: {}", draft.decision.accelerator,
                            name(made.refusals[s * made.accelerators.size() + a]));
      draft.state->needs.emplace_back(now_s, draft.decision.current);
    }
  }
}

/// So many of `wanted` replicas as one decision and the hour may change; `why` gets the limit.
int Autoscaler::allowed(double now_s, State& state, int wanted, int most_step,
                        std::string& why) const {
  int given = wanted;
  if (most_step > 0 && given > most_step) {
    given = most_step;
    why = fmt::format("; at most {} in a step", most_step);
  }
  if (options_.most_changes_per_h == 0) return given;
  forget_before(state.changes, now_s - kHour_s);
  double changed = 0;
  for (const auto& [at_s, replicas] : state.changes) changed += replicas;
  const int left = std::max(0, options_.most_changes_per_h - static_cast<int>(changed));
  if (given > left) {
    given = left;
    why = fmt::format("; at most {} changes an hour", options_.most_changes_per_h);
  }
  return given;
}

/// What it should have, by what it needs and by the limits of the options.
void Autoscaler::choose(double now_s, Draft& draft) const {
  Decision& d = draft.decision;
  State& state = *draft.state;
  std::string load =
      fmt::format("{} measured, {} planned for", text_of(state.estimate.load().arrivals_per_min),
                  text_of(d.planned_per_min));
  if (const int full_at = state.estimate.full_at(); full_at > 0)
    load += fmt::format(", {} concurrent per replica", full_at);
  if (draft.is_missing)
    load += fmt::format(", {} of {} report", d.reporting.value_or(0), d.current);
  // Who does not report is not counted in the rate; and before the first decision nobody knows
  // what was needed: what is there was.
  const bool is_unsure = draft.is_missing || state.needs.empty();
  state.needs.emplace_back(now_s, is_unsure ? std::max(d.needed, d.current) : d.needed);
  forget_before(state.needs, now_s - options_.hold_s);
  const auto most =
      std::ranges::max_element(state.needs, {}, [](const auto& need) { return need.second; });
  const int floor = static_cast<int>(most->second);
  std::string why;
  if (d.needed > d.current) {
    d.desired = d.current + allowed(now_s, state, d.needed - d.current, options_.most_up, why);
    d.reason = fmt::format("{} needs {}{}", load, d.needed, why);
  } else if (floor < d.current) {
    d.desired = d.current - allowed(now_s, state, d.current - floor, options_.most_down, why);
    d.reason = fmt::format("{} needs {}, and for {:.0f} s no more than {}{}", load, d.needed,
                           options_.hold_s, floor, why);
  } else if (d.needed == d.current) {
    d.reason = fmt::format("{} needs {}", load, d.needed);
  } else if (most->first == now_s) {
    d.reason = fmt::format("{} needs {}; {} are kept until that is sure", load, d.needed, floor);
  } else {
    d.reason = fmt::format("{} needs {}; {} were needed {:.0f} s ago", load, d.needed, floor,
                           now_s - most->first);
  }
}

/// What there is of each type goes first to the least of what everybody has, then by priority; of
/// one priority everybody keeps what it has before anybody gets more.
void Autoscaler::fit_capacity(std::vector<Draft>& drafts) const {
  if (system_.options.solver == Solver::unlimited) return;
  std::map<std::string, std::int64_t> left;
  for (const auto& [type, capacity] : system_.capacities) left[type] = capacity.count;
  std::map<const Draft*, int> granted;
  const auto grant = [&](Draft& draft, int up_to) {
    auto& of = left[system_.accelerators.at(draft.decision.accelerator).type];
    int& has = granted[&draft];
    const auto more =
        std::clamp<std::int64_t>(up_to - has, 0, std::max<std::int64_t>(0, of) / draft.units);
    has += static_cast<int>(more);
    of -= more * draft.units;
  };
  std::map<int, std::vector<Draft*>> by_priority;
  for (Draft& draft : drafts) {
    if (!system_.accelerators.contains(draft.decision.accelerator)) continue;
    if (draft.decision.is_known)
      by_priority[priority_of(system_, *draft.server)].push_back(&draft);
    else  // nobody moves it
      grant(draft, draft.decision.current);
  }
  for (const auto& [priority, group] : by_priority)
    for (Draft* draft : group)
      grant(*draft, std::min({draft->least, draft->decision.current, draft->decision.desired}));
  for (const auto& [priority, group] : by_priority) {
    for (Draft* draft : group)
      grant(*draft, std::min(draft->decision.current, draft->decision.desired));
    for (Draft* draft : group) grant(*draft, draft->decision.desired);
    for (Draft* draft : group) {
      Decision& d = draft->decision;
      if (granted[draft] == d.desired) continue;
      d.is_short = true;
      d.reason += fmt::format("; {} of {} by the capacity of {}", granted[draft], d.desired,
                              system_.accelerators.at(d.accelerator).type);
      d.desired = granted[draft];
    }
  }
}

Decision Autoscaler::conclude(double now_s, Draft& draft) const {
  Decision& d = draft.decision;
  State& state = *draft.state;
  d.action = d.desired > d.current   ? Action::more
             : d.desired < d.current ? Action::fewer
             : d.needed == 0         ? Action::hold
                                     : Action::keep;
  if (!d.is_known) return std::move(d);
  const int has = options_.applies ? d.desired : d.current;
  if (has != d.current) state.changes.emplace_back(now_s, std::abs(has - d.current));
  state.desires.emplace_back(now_s, has);
  state.desired = d.desired;
  return std::move(d);
}

std::vector<Decision> Autoscaler::decide(double now_s, const std::map<std::string, Live>& live,
                                         const Execution& execution) {
  std::vector<Draft> drafts;
  for (const auto& [name, server] : system_.servers) {
    Draft& draft = drafts.emplace_back();
    draft.server = &server;
    draft.state = &states_.at(name);
    draft.units = units_of(system_, server);
    draft.least = std::max(1, server.min_replicas);
    draft.decision.server = name;
    draft.decision.accelerator = server.current.accelerator;
    const auto found = live.find(name);
    look(now_s, draft, found == live.end() ? Live{} : found->second);
  }
  size(now_s, drafts, execution);
  for (Draft& draft : drafts)
    if (draft.decision.reason.empty()) choose(now_s, draft);
  fit_capacity(drafts);
  std::vector<Decision> decisions;
  for (Draft& draft : drafts) decisions.push_back(conclude(now_s, draft));
  return decisions;
}

}  // namespace berth::fleet
