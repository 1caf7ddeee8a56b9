#include "berth/fleet/autoscaler.h"

#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/fleet/calibrated_queue.h"
#include "berth/fleet/sizing.h"
#include "berth/fleet/system_view.h"

namespace berth::fleet {
namespace {

constexpr double kHour_s = 3600, kMinuteMs = 60'000;
constexpr double kTokenStep = 1.05;   // mean tokens are planned for in steps of 5 %, upwards:
constexpr double kDriftStep = 0.01;   // equal questions are simulated once
constexpr double kTokenWeight = 0.3;  // of the mean tokens that were measured last
constexpr double kMostAhead = 2;      // no trend is believed beyond twice the load
constexpr double kForget = 0.9;       // of what was learnt of the drift, by decision
constexpr double kDriftPrior = 3;     // as if so many measurements had confirmed the parameters,
constexpr double kDriftPart = 0.1;    // each with this part of alpha
constexpr double kWaitingToTell = 2;  // requests a replica that wait, where it is full
constexpr double kNearlyWhole = 0.05;
constexpr double kFewestRunning = 1;  // requests a replica, below which ITL tells little of beta

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

/// By how much the rates grow a second, less how far chance may have moved that: the slope of the
/// straight line of the least squares, less its standard error. 0: nothing that is certain.
template <class Times>
double growth_of(const Times& rates, double now_s) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (const auto& [at_s, rate] : rates) {
    const double s = at_s - now_s;
    n += 1, x += s, y += rate, xx += s * s, xy += s * rate, yy += rate * rate;
  }
  const double spread = xx - x * x / n, both = xy - x * y / n;
  if (n < 3 || !(spread > 0)) return 0;
  const double slope = both / spread;
  const double rest = std::max(0.0, yy - y * y / n - slope * both);
  return std::max(0.0, slope - std::sqrt(rest / (n - 2) / spread));
}

std::optional<int> count_of(const Live& live) {
  if (!live.replicas || !(*live.replicas >= 0 && *live.replicas <= kMostReplicas))
    return std::nullopt;
  return static_cast<int>(*live.replicas);
}

std::string text_of(double per_min) {
  return fmt::format("{:.1f}/min", per_min);
}

}  // namespace

Status check(const AutoscalerOptions& o) {
  for (const auto& [what, value, least, most] :
       {std::tuple("the interval", o.interval_s, 0.01, 86'400.0),
        {"the start-up time", o.startup_s, 0.0, 86'400.0},
        {"the time that needless replicas are held", o.hold_s, 0.0, 7 * 86'400.0},
        {"the headroom", o.headroom, 0.0, 10.0},
        {"the greatest step up", static_cast<double>(o.most_up), 0.0, 1e6},
        {"the greatest step down", static_cast<double>(o.most_down), 0.0, 1e6},
        {"the changes an hour", static_cast<double>(o.most_changes_per_h), 0.0, 1e6},
        {"the greatest jump", o.most_jump, 1.0, 1e6},
        {"the greatest drift", o.most_drift, 0.0, 10.0}})
    if (!(value >= least && value <= most))
      return fail(ErrorKind::invalid, "{}: wanted {} to {}, found {}", what, least, most, value);
  return {};
}

double in_token_steps(double tokens) {
  if (!(tokens > 1)) return tokens;
  return std::pow(kTokenStep, std::ceil(std::log(tokens) / std::log(kTokenStep) - 1e-9));
}

/// A server on the way to its decision.
struct Autoscaler::Draft {
  const Server* server = nullptr;
  State* state = nullptr;
  Decision decision;
  int units = 1;  // of its accelerator's type, a replica
  int least = 1;
  double measured_per_min = 0;
};

Autoscaler::Autoscaler(System system, const AutoscalerOptions& options, const Execution& execution)
    : system_(std::move(system)), options_(options) {
  BERTH_ASSERT(check(options));
  system_.options.heterogeneous = false;
  const Plan plan = fleet::plan(system_, execution);
  for (auto& [name, server] : system_.servers) {
    if (server.current.accelerator.empty())
      server.current.accelerator = plan.servers.at(name).allocation.accelerator;
    server.keep_accelerator = true;
    states_[name].load = server.current.load;
    states_[name].counted = server.current.replicas;
  }
}

/// Takes in what was measured; "": it is believed, else why not.
std::string Autoscaler::take(double now_s, State& state, const Live& live) const {
  if (!live.trouble.empty()) return "no data: " + live.trouble;
  for (const auto& [what, value] : {std::pair("the rate", live.arrivals_per_min),
                                    {"the tokens of prompts", live.in_tokens},
                                    {"the tokens of answers", live.out_tokens},
                                    {"the requests that wait", live.waiting},
                                    {"the requests that run", live.running},
                                    {"the replicas", live.replicas}})
    if (value && (!std::isfinite(*value) || *value < 0))
      return fmt::format("absurd: {} measured as {}", what, *value);
  if (!live.arrivals_per_min) return "no data: nobody tells a rate of requests";
  const double rate = *live.arrivals_per_min;
  if (rate > 0) {
    for (const auto& [what, tokens] :
         {std::pair("prompts", live.in_tokens), {"answers", live.out_tokens}})
      if (tokens && *tokens > kMostTokens)
        return fmt::format("absurd: {} of {:.0f} tokens", what, *tokens);
  }
  const double before = state.rates.empty() ? rate : state.rates.back().second;
  if (rate > options_.most_jump * std::max(before, 1.0) && !state.doubted) {
    state.doubted = rate;
    return fmt::format("absurd: {} after {}; believed if it is measured again", text_of(rate),
                       text_of(before));
  }
  state.doubted.reset();
  state.load.arrivals_per_min = rate;
  const auto smooth = [&](double& known, const std::optional<double>& seen) {
    if (seen && *seen > 0)
      known = state.rates.empty() ? *seen : known + kTokenWeight * (*seen - known);
  };
  smooth(state.load.in_tokens, live.in_tokens);
  smooth(state.load.out_tokens, live.out_tokens);
  state.rates.emplace_back(now_s, rate);
  forget_before(state.rates, now_s - std::max(options_.startup_s, 3 * options_.interval_s));
  return "";
}

/// Beta and gamma as the measured ITL has them: with X requests a replica and served requests that
/// bring prompts, an iteration takes alpha + f·(X·o + λ·s·ITL), o and s by calibrated_queue.h. The
/// multiple f is found by least squares, in which older measurements fade.
void Autoscaler::learn(State& state, const Server& server, const Live& live) const {
  const Performance* performance = performance_of(system_, server);
  if (performance == nullptr || !live.itl_ms || !live.running || !live.replicas ||
      !live.served_per_min || !(*live.replicas >= 1) || !std::isfinite(*live.itl_ms))
    return;
  const double running = *live.running / *live.replicas;
  if (running < kFewestRunning || !(state.load.out_tokens > 1)) return;
  const Demand demand = demand_of(state.load, server, {});
  const StepWork work = CalibratedQueue(demand, *performance, std::max(1, state.batch)).work();
  const double served_per_ms = *live.served_per_min / *live.replicas / kMinuteMs;
  const double expected = running * work.other_ms + served_per_ms * work.prompt_ms * *live.itl_ms;
  const double found = *live.itl_ms - performance->alpha_ms;
  if (!(expected > 0)) return;
  state.drift_product = kForget * state.drift_product + expected * found;
  state.drift_square = kForget * state.drift_square + expected * expected;
}

/// Where requests wait, what runs is what a replica takes at once, whatever the document allows.
void Autoscaler::learn_batch(State& state, const Live& live) {
  if (!live.waiting || !live.running || !live.replicas || !(*live.replicas >= 1)) return;
  const double running = *live.running / *live.replicas;
  if (running > kMostBatch) return;
  const bool waits = *live.waiting >= kWaitingToTell * *live.replicas;
  state.waiting_for = waits ? state.waiting_for + 1 : 0;
  const int full_at = std::max(1, static_cast<int>(std::ceil(running - kNearlyWhole)));
  if (state.waiting_for >= 2 && state.full_at == 0 && full_at < state.batch)
    state.full_at = full_at;
  else if (state.full_at > 0)
    state.full_at = std::max(state.full_at, full_at);
}

double Autoscaler::drift_of(const State& state, const Server& server) const {
  const Performance* performance = performance_of(system_, server);
  if (performance == nullptr || !(state.drift_square > 0)) return 1;
  // Of what is small beside alpha a measured ITL tells little.
  const double prior = kDriftPrior * std::pow(kDriftPart * performance->alpha_ms, 2);
  const double drift = (prior + state.drift_product) / (prior + state.drift_square);
  const double most = 1 + options_.most_drift;
  return std::clamp(std::round(drift / kDriftStep) * kDriftStep, 1 / most, most);
}

/// The load when what is decided now serves: a load that grows is taken to go on growing, and what
/// waits has to be served too.
double Autoscaler::forecast_per_min(double now_s, const State& state, const Live& live) const {
  const double rate = state.load.arrivals_per_min;
  const double ahead_s = options_.startup_s + options_.interval_s;
  const double growth_per_s = growth_of(state.rates, now_s);
  const double ahead = std::min(rate + std::max(0.0, growth_per_s) * ahead_s, kMostAhead * rate);
  const double waiting_per_min = live.waiting.value_or(0) / ahead_s * 60;
  return (ahead + waiting_per_min) * (1 + options_.headroom);
}

/// How many replicas each draft needs, by the candidates for its load; hold where there is none.
void Autoscaler::size(std::vector<Draft>& drafts, const Execution& execution) {
  System asked = system_;
  asked.servers.clear();
  for (const Draft& draft : drafts) {
    if (!draft.decision.reason.empty()) continue;
    Server server = *draft.server;
    server.current.load = draft.state->load;
    server.current.load.in_tokens = in_token_steps(server.current.load.in_tokens);
    server.current.load.out_tokens = in_token_steps(server.current.load.out_tokens);
    server.current.load.arrivals_per_min = draft.decision.planned_per_min;
    server.min_replicas = draft.least;
    const int full_at = draft.state->full_at;
    if (full_at > 0)
      server.max_batch = server.max_batch > 0 ? std::min(server.max_batch, full_at) : full_at;
    const double drift = draft.decision.drift;
    const std::string model = server.model + "\n" + draft.decision.server;  // its own parameters
    if (const auto known = system_.models.find(server.model); known != system_.models.end()) {
      Model own = known->second;
      for (auto& [accelerator, p] : own.accelerators)
        p.beta_ms *= drift, p.gamma_ms *= drift, p.beta_prefill_ms *= drift;
      asked.models[model] = std::move(own);
      asked.classes[class_of(server)].targets[model] = target_of(system_, server);
      server.model = model;
    }
    asked.servers[draft.decision.server] = std::move(server);
  }
  const Candidates made = candidates(asked, system_.options.model, execution);
  for (std::size_t s = 0; s < made.servers.size(); ++s) {
    const auto draft =
        std::ranges::find(drafts, made.servers[s],
                          [](const Draft& d) -> const std::string& { return d.decision.server; });
    const auto accelerator = std::ranges::find(made.accelerators, draft->decision.accelerator) -
                             made.accelerators.begin();
    const auto of = made.of(s);
    const auto found =
        std::ranges::find(of, static_cast<std::uint32_t>(accelerator), &Candidate::accelerator);
    if (found == of.end()) {
      const auto a = static_cast<std::size_t>(accelerator);
      draft->decision.reason =
          a == made.accelerators.size()
              ? "it has no accelerator, and none serves it"
              : fmt::format("cannot be served on {}: {}", draft->decision.accelerator,
                            name(made.refusals[s * made.accelerators.size() + a]));
      continue;
    }
    draft->decision.needed = std::max(found->replicas, draft->least);
    draft->units = found->units_per_replica;
    draft->state->batch = found->batch;
  }
}

/// What it should have, by what it needs and by the limits of the options.
void Autoscaler::choose(double now_s, Draft& draft) const {
  Decision& d = draft.decision;
  State& state = *draft.state;
  std::string load = fmt::format("{} measured, {} planned for", text_of(draft.measured_per_min),
                                 text_of(d.planned_per_min));
  if (state.full_at > 0) load += fmt::format(", {} at once a replica", state.full_at);
  // Before the first decision nobody knows what was needed: what is there was.
  state.needs.emplace_back(now_s, state.needs.empty() ? std::max(d.needed, d.current) : d.needed);
  forget_before(state.needs, now_s - options_.hold_s);
  forget_before(state.changes, now_s - kHour_s);
  const auto most =
      std::ranges::max_element(state.needs, {}, [](const auto& need) { return need.second; });
  const int floor = static_cast<int>(most->second);
  double changed = 0;
  for (const auto& [at_s, replicas] : state.changes) changed += replicas;
  const int may = options_.most_changes_per_h == 0
                      ? std::numeric_limits<int>::max()
                      : std::max(0, options_.most_changes_per_h - static_cast<int>(changed));
  const auto step = [&](int wanted, int most_step, std::string& why) {
    int given = most_step > 0 ? std::min(wanted, most_step) : wanted;
    if (given < wanted) why = fmt::format("; at most {} in a step", most_step);
    if (given > may) {
      given = may;
      why = fmt::format("; at most {} changes an hour", options_.most_changes_per_h);
    }
    return given;
  };
  std::string why;
  if (d.needed > d.current) {
    d.desired = d.current + step(d.needed - d.current, options_.most_up, why);
    d.reason = fmt::format("{} needs {}{}", load, d.needed, why);
  } else if (floor < d.current) {
    d.desired = d.current - step(d.current - floor, options_.most_down, why);
    d.reason = fmt::format("{} needs {}, and for {:.0f} s no more than {}{}", load, d.needed,
                           options_.hold_s, floor, why);
  } else {
    d.desired = d.current;
    d.reason = d.needed == d.current ? fmt::format("{} needs {}", load, d.needed)
                                     : fmt::format("{} needs {}; {} were needed {:.0f} s ago", load,
                                                   d.needed, floor, now_s - most->first);
  }
}

/// By priority, what there is of each type: of one priority everybody keeps what it has before
/// anybody gets more.
void Autoscaler::fit_capacity(std::vector<Draft>& drafts) const {
  if (system_.options.solver == Solver::unlimited) return;
  std::map<std::string, std::int64_t> left;
  for (const auto& [type, capacity] : system_.capacities) left[type] = capacity.count;
  std::vector<Draft*> order;
  for (Draft& draft : drafts)
    if (system_.accelerators.contains(draft.decision.accelerator)) order.push_back(&draft);
  const auto priority = [&](const Draft* d) { return priority_of(system_, *d->server); };
  std::ranges::stable_sort(order, {}, priority);
  for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
    while (to < order.size() && priority(order[to]) == priority(order[from])) ++to;
    const auto group = std::span(order).subspan(from, to - from);
    std::vector<int> granted(group.size());
    for (const bool more : {false, true})
      for (std::size_t i = 0; i < group.size(); ++i) {
        const Decision& d = group[i]->decision;
        auto& of = left[system_.accelerators.at(d.accelerator).type];
        const int wanted = (more ? d.desired : std::min(d.desired, d.current)) - granted[i];
        const auto given =
            std::min<std::int64_t>(wanted, std::max<std::int64_t>(0, of) / group[i]->units);
        granted[i] += static_cast<int>(given);
        of -= given * group[i]->units;
      }
    for (std::size_t i = 0; i < group.size(); ++i) {
      Decision& d = group[i]->decision;
      if (granted[i] == d.desired) continue;
      d.reason += fmt::format("; {} of {} by the capacity of {}", granted[i], d.desired,
                              system_.accelerators.at(d.accelerator).type);
      d.desired = granted[i];
    }
  }
}

std::vector<Decision> Autoscaler::decide(double now_s, const std::map<std::string, Live>& live,
                                         const Execution& execution) {
  std::vector<Draft> drafts;
  for (const auto& [name, server] : system_.servers) {
    Draft& draft = drafts.emplace_back();
    State& state = states_.at(name);
    draft.server = &server;
    draft.state = &state;
    draft.least = std::max(1, server.min_replicas);
    Decision& d = draft.decision;
    d.server = name, d.accelerator = server.current.accelerator;
    const auto found = live.find(name);
    const Live seen = found == live.end() ? Live{} : found->second;
    const auto count = count_of(seen);
    const bool is_decided = options_.applies && state.desired;
    // The first look may come when Prometheus has seen some of the replicas only: it has to be
    // what the document says, or what the second one sees.
    d.is_known = is_decided || (count && (state.desired || state.counted == count));
    state.counted = count;
    d.current = is_decided ? *state.desired : count.value_or(server.current.replicas);
    d.desired = d.current;
    d.reason = take(now_s, state, seen);
    if (d.reason.empty() && !d.is_known)
      d.reason = count ? fmt::format("no data: {} replicas are seen for the first time", *count)
                       : "no data: nobody tells how many replicas it has";
    if (d.reason.empty()) {
      learn(state, server, seen);
      learn_batch(state, seen);
    }
    d.drift = drift_of(state, server);
    draft.measured_per_min = state.load.arrivals_per_min;
    if (d.reason.empty()) d.planned_per_min = forecast_per_min(now_s, state, seen);
  }
  size(drafts, execution);
  for (Draft& draft : drafts)
    if (draft.decision.reason.empty()) choose(now_s, draft);
  fit_capacity(drafts);
  std::vector<Decision> decisions;
  for (Draft& draft : drafts) {
    Decision& d = draft.decision;
    d.action = d.desired > d.current   ? Action::more
               : d.desired < d.current ? Action::fewer
               : d.needed == 0         ? Action::hold
                                       : Action::keep;
    if (options_.applies && d.desired != d.current)
      draft.state->changes.emplace_back(now_s, std::abs(d.desired - d.current));
    if (d.is_known) draft.state->desired = d.desired;
    decisions.push_back(std::move(d));
  }
  return decisions;
}

}  // namespace berth::fleet
