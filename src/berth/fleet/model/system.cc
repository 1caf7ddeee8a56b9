#include <algorithm>
#include <cmath>
#include <set>

#include "berth/base/text.h"
#include "berth/fleet/model/bounds.h"
#include "berth/fleet/model/names.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/queueing/queue.h"

namespace berth::fleet {
namespace {

constexpr double kSumRounding = 1e-6;

struct Bound {
  std::string_view field;
  double value;
  double most = kMostAmount;
  double least = 0;
};

/// Every value a number within its bounds.
Status check_bounds(std::initializer_list<Bound> bounds) {
  for (const auto& [field, value, most, least] : bounds) {
    if (std::isnan(value)) return fail(ErrorKind::invalid, "{}: not a number", field);
    if (value < least)
      return fail(ErrorKind::invalid, "{0}: expected at least {2}, got {1}", field, value, least);
    if (value > most)
      return fail(ErrorKind::invalid, "{0}: expected at most {2}, got {1}", field, value, most);
  }
  return {};
}

template <class T>
Status check_all(const std::map<std::string, T>& entries, std::string_view what) {
  for (const auto& [name, entry] : entries)
    if (auto status = check(entry); !status)
      return std::unexpected(
          within(fmt::format("{} '{}'", what, clip(name)), std::move(status).error()));
  return {};
}

}  // namespace

Status check(const Accelerator& a) {
  if (!a.resource.empty() && !is_qualified_name(a.resource))
    return fail(ErrorKind::invalid, "resource: '{}', expected a name such as nvidia.com/gpu",
                clip(a.resource));
  if (a.node_selector)
    for (const auto& [key, value] : *a.node_selector)
      if (!is_qualified_name(key) || !is_label_value(value))
        return fail(ErrorKind::invalid, "nodeSelector: '{}: {}' is not a label of a node",
                    clip(key), clip(value));
  return check_bounds({{"multiplicity", static_cast<double>(a.multiplicity), kMostCount, 1},
                       {"memSize", a.memory_gb},
                       {"memBW", a.bandwidth_gb_s},
                       {"power.idle", a.power.idle_w},
                       {"power.full", a.power.full_w},
                       {"power.midPower", a.power.mid_w},
                       {"power.midUtil", a.power.mid_utilisation, 1},
                       {"cost", a.cost, kMostMoney}});
}

Status check(const Capacity& capacity) {
  std::int64_t sum = 0;
  for (const auto& [kind, purchase] : capacity.purchases) {
    if (auto status = check_bounds({{"count", static_cast<double>(purchase.count), kMostUnits},
                                    {"cost", purchase.cost, kMostMoney}});
        !status)
      return fail(ErrorKind::invalid, "purchase of {}: {}", name(kind), status.error().message);
    sum += purchase.count;
  }
  if (!capacity.purchases.empty() && sum != capacity.count)
    return fail(ErrorKind::invalid, "count: {}, the kinds of purchase have {}", capacity.count,
                sum);
  return check_bounds({{"count", static_cast<double>(capacity.count), kMostUnits}});
}

// All zero is found where it matters: under a load.
Status check(const Performance& p) {
  const Transfer transfer = p.transfer.value_or(Transfer{});
  return check_bounds({{"accCount", static_cast<double>(p.accelerators), 1000},
                       {"maxBatchSize", static_cast<double>(p.max_batch), kMostBatch},
                       {"atTokens", static_cast<double>(p.at_tokens), kMostTokens},
                       {"perfParms.alpha", p.alpha_ms, kMostTimeMs},
                       {"perfParms.beta", p.beta_ms, kMostTimeMs},
                       {"perfParms.gamma", p.gamma_ms, kMostTimeMs},
                       {"perfParms.betaPrefill", p.beta_prefill_ms, kMostTimeMs},
                       {"perfParms.ttftOffset", p.ttft_offset_ms, kMostTimeMs},
                       {"perfParms.transfer.fixed", transfer.fixed_ms, kMostTimeMs},
                       {"perfParms.transfer.perToken", transfer.per_token_ms, kMostTimeMs}});
}

Status check(const Model& model) {
  BERTH_TRY(check_all(model.starts, "start on"));
  return check_all(model.accelerators, "accelerator");
}

Status check(const Target& target) {
  BERTH_TRY(check_bounds(
      {{"slo-itl", target.itl_ms}, {"slo-ttft", target.ttft_ms}, {"slo-tps", target.tps}}));
  for (std::size_t i = 0; i < kPercentiles.size(); ++i)
    BERTH_TRY(check_bounds({{kTtftKeys[i], target.percentiles.ttft_ms[i]},
                            {kItlKeys[i], target.percentiles.itl_ms[i]}}));
  return {};
}

Status check(const ServiceClass& service_class) {
  BERTH_TRY(check_bounds(
      {{"priority", static_cast<double>(service_class.priority), kLowestPriority, 1}}));
  return check_all(service_class.targets, "model");
}

Status check(const Load& load) {
  BERTH_TRY(check_bounds({{"arrivalRate", load.arrivals_per_min},
                          {"avgInTokens", load.in_tokens, kMostTokens},
                          {"avgOutTokens", load.out_tokens, kMostTokens},
                          {"inTokensCv", load.in_cv, kMostVariation},
                          {"outTokensCv", load.out_cv, kMostVariation},
                          {"arrivalCv", load.arrival_cv, kMostVariation}}));
  for (const LengthKeys& keys : kLengthKeys) {
    const LengthHistogram& histogram = load.*keys.histogram_at;
    if (!histogram) continue;
    const double longest = histogram.bins().back().tokens * (load.*keys.mean_at / histogram.mean());
    if (longest > kMostTokens)
      return fail(ErrorKind::invalid,
                  "{0}: {1} stretches {2} to {3} tokens, at most {4} are possible", keys.mean,
                  load.*keys.mean_at, keys.histogram, longest, kMostTokens);
  }
  return {};
}

namespace {

/// Of a split there is one part that prefills and one that decodes.
Status check_roles(const Allocation& whole) {
  if (whole.role != Role::whole)
    return fail(ErrorKind::invalid, "role: '{}' is of one of two parts", name(whole.role));
  const auto count = [&](Role role) {
    return std::ranges::count(whole.parts, role, &Allocation::role);
  };
  const auto apart = count(Role::prefill) + count(Role::decode);
  if (apart == 0 ||
      (whole.parts.size() == 2 && count(Role::prefill) == 1 && count(Role::decode) == 1))
    return {};
  return fail(ErrorKind::invalid,
              "parts: expected one with the role prefill and one with decode, got {} and {} among "
              "{}",
              count(Role::prefill), count(Role::decode), whole.parts.size());
}

/// The parts of a mix are of several accelerators, each once; parts add up to the whole.
Status check_parts(const Allocation& mix) {
  if (mix.parts.empty()) return {};
  std::set<std::string_view> names;
  std::int64_t replicas = 0;
  double cost = 0;
  for (const Allocation& part : mix.parts) {
    const auto where = fmt::format("parts[{}]", &part - mix.parts.data());
    if (!part.parts.empty()) return fail(ErrorKind::invalid, "{}: has parts itself", where);
    if (auto status = check(part); !status)
      return fail(ErrorKind::invalid, "{}.{}", where, status.error().message);
    if (part.accelerator.empty()) return fail(ErrorKind::invalid, "{}: has no accelerator", where);
    if (!names.insert(part.accelerator).second && !mix.is_split())
      return fail(ErrorKind::invalid, "{}: '{}' is given twice", where, clip(part.accelerator));
    replicas += part.replicas;
    cost += part.cost;
  }
  if (!names.contains(mix.accelerator))
    return fail(ErrorKind::invalid, "accelerator: '{}' is of none of the parts",
                clip(mix.accelerator));
  if (replicas != mix.replicas)
    return fail(ErrorKind::invalid, "numReplicas: {}, the parts have {}", mix.replicas, replicas);
  if (std::abs(cost - mix.cost) > kSumRounding * std::max(1.0, mix.cost))
    return fail(ErrorKind::invalid, "cost: {}, the parts cost {}", mix.cost, cost);
  return {};
}

}  // namespace

Status check(const Allocation& allocation) {
  BERTH_TRY(check_bounds({{"numReplicas", static_cast<double>(allocation.replicas), kMostReplicas},
                          {"maxBatch", static_cast<double>(allocation.batch), kMostBatch},
                          {"cost", allocation.cost}}));
  BERTH_TRY(check_parts(allocation));
  return check(allocation.load);
}

Status check(const Server& server) {
  BERTH_TRY(
      check_bounds({{"minNumReplicas", static_cast<double>(server.min_replicas), kMostReplicas},
                    {"maxBatchSize", static_cast<double>(server.max_batch), kMostBatch},
                    {"maxQueueSize", static_cast<double>(server.max_queue), kMostBatch}}));
  const auto at = [](std::string_view key, Status status) {
    return status ? status : std::unexpected(within(key, std::move(status).error()));
  };
  BERTH_TRY(at("currentAlloc", check_roles(server.current)));
  BERTH_TRY(at("desiredAlloc", check_roles(server.desired)));
  BERTH_TRY(at("currentAlloc", check(server.current)));
  BERTH_TRY(at("desiredAlloc", check(server.desired)));
  if (auto status = check(server.start); !status)
    return fail(ErrorKind::invalid, "start.{}", status.error().message);
  return {};
}

Status check(const Options& options) {
  if (options.disaggregated && options.model == QueueModel::reference)
    return fail(ErrorKind::invalid,
                "disaggregated: the reference model does not support separate prefill and decode");
  if (!options.power_budget_w) return {};
  BERTH_TRY(check_bounds({{"powerBudget", *options.power_budget_w}}));
  if (options.solver == Solver::optimal && !options.heterogeneous && !options.disaggregated)
    return {};
  return fail(ErrorKind::invalid,
              "powerBudget: supported only by the solver optimal without mixes of accelerators and "
              "without separate prefill and decode");
}

Status check(const System& system) {
  const std::size_t pairs = system.servers.size() * system.accelerators.size();
  if (pairs > kMostPairs)
    return fail(ErrorKind::invalid,
                "{} servers and {} accelerators are {} pairs; expected at most {}: plan parts of "
                "the fleet",
                system.servers.size(), system.accelerators.size(), pairs, kMostPairs);
  BERTH_TRY(check(system.options));
  const Options& o = system.options;
  if (has_purchases(system) &&
      (o.solver != Solver::optimal || o.heterogeneous || o.disaggregated || o.power_budget_w))
    return fail(
        ErrorKind::invalid,
        "capacity with kinds of purchase: supported only by the solver optimal without mixes of "
        "accelerators, without separate prefill and decode and without a power budget");
  BERTH_TRY(check_all(system.accelerators, "accelerator"));
  BERTH_TRY(check_all(system.capacities, "capacity"));
  BERTH_TRY(check_all(system.models, "model"));
  BERTH_TRY(check_all(system.classes, "service class"));
  return check_all(system.servers, "server");
}

bool has_purchases(const System& system) {
  return std::ranges::any_of(system.capacities,
                             [](const auto& of) { return !of.second.purchases.empty(); });
}

namespace {

/// A whole number, or one that check() refuses.
int to_int(double value) {
  return value == std::floor(value) && std::abs(value) < 2e9 ? static_cast<int>(value) : -1;
}

/// TYPE, or of a type with kinds of purchase TYPE.KIND and TYPE.KIND.cost.
Status set_capacity(System& system, const std::string& path, double value) {
  const std::string plain = lower(path);
  for (const auto& [type, capacity] : system.capacities) {
    if (capacity.purchases.empty()) continue;
    if (path == type)
      return fail(ErrorKind::invalid, "has several kinds of purchase: choose one, such as {}.{}",
                  type, name(capacity.purchases.begin()->first));
    for (const auto& [kind, purchase] : capacity.purchases) {
      const std::string of = fmt::format("{}.{}", type, name(kind));
      const bool is_cost = plain == lower(of) + ".cost";
      if (!path.starts_with(type) || (!is_cost && plain != lower(of))) continue;
      Capacity changed = capacity;
      Purchase& to = changed.purchases[kind];
      if (is_cost) {
        to.cost = value;
      } else {
        changed.count += to_int(value) - to.count;
        to.count = to_int(value);
      }
      return put(system.capacities, type, std::move(changed));
    }
  }
  return put(system.capacities, path, Capacity{to_int(value)});
}

/// Changes a copy of an entry, and puts it back where it may stand so.
template <class T, class Change>
Status changed(std::map<std::string, T>& entries, const std::string& name, const Change& change) {
  BERTH_ASSIGN(T entry, get(entries, name));
  if (!change(entry)) return fail(ErrorKind::not_found, "no such field");
  return put(entries, name, std::move(entry));
}

bool set_field(Server& server, std::string_view field, double value) {
  Load& load = server.current.load;
  const std::pair<std::string_view, double*> numbers[] = {
      {"arrivalrate", &load.arrivals_per_min}, {"avgintokens", &load.in_tokens},
      {"avgouttokens", &load.out_tokens},      {"intokenscv", &load.in_cv},
      {"outtokenscv", &load.out_cv},           {"arrivalcv", &load.arrival_cv}};
  const std::pair<std::string_view, int*> counts[] = {{"minnumreplicas", &server.min_replicas},
                                                      {"maxbatchsize", &server.max_batch},
                                                      {"maxqueuesize", &server.max_queue}};
  for (const auto& [name, to] : numbers)
    if (name == field) {
      *to = value;
      for (const LengthKeys& keys : kLengthKeys)
        if (to == &(load.*keys.cv_at)) load.*keys.histogram_at = {};
      return true;
    }
  for (const auto& [name, to] : counts)
    if (name == field) return *to = to_int(value), true;
  return false;
}

Status set_at(System& system, std::string_view path, double value) {
  const auto dot = path.find('.');
  const std::string kind = lower(path.substr(0, dot));
  if (dot == std::string_view::npos) return fail(ErrorKind::not_found, "no such value");
  const std::string rest(path.substr(dot + 1));
  if (kind == "capacity") return set_capacity(system, rest, value);
  if (kind == "optimizer" && lower(rest) == "powerbudget") {
    Options options = system.options;
    options.power_budget_w = value;
    BERTH_TRY(check(options));
    system.options = options;
    return {};
  }
  const auto last = rest.rfind('.');  // names may have dots
  if (last == std::string::npos) return fail(ErrorKind::not_found, "no such value");
  const std::string name = rest.substr(0, last), field = lower(rest.substr(last + 1));
  if (kind == "accelerator")
    return changed(system.accelerators, name,
                   [&](Accelerator& a) { return field == "cost" && (a.cost = value, true); });
  if (kind == "class")
    return changed(system.classes, name, [&](ServiceClass& c) {
      return field == "priority" && (c.priority = to_int(value), true);
    });
  if (kind == "server")
    return changed(system.servers, name, [&](Server& s) { return set_field(s, field, value); });
  return fail(ErrorKind::not_found, "no such value");
}

}  // namespace

Status set_value(System& system, std::string_view path, double value) {
  auto status = set_at(system, path, value);
  if (!status) return std::unexpected(within(clip(path), std::move(status).error()));
  return {};
}

namespace {

/// Adds the earlier entries. What both have must be the same.
template <class T>
Status merge(std::map<std::string, T>& entries, std::map<std::string, T>&& earlier,
             std::string_view what) {
  entries.merge(earlier);  // which leaves there what both have
  for (const auto& [name, entry] : earlier)
    if (entries.at(name) != entry)
      return fail(ErrorKind::invalid, "{} '{}' is not the same as in an earlier document", what,
                  clip(name));
  return {};
}

}  // namespace

Status merge(System& system, System&& earlier) {
  BERTH_TRY(merge(system.accelerators, std::move(earlier.accelerators), "accelerator"));
  BERTH_TRY(merge(system.capacities, std::move(earlier.capacities), "the capacity of"));
  for (auto& [name, model] : earlier.models) {
    const auto what = fmt::format("model '{}' on accelerator", clip(name));
    BERTH_TRY(merge(system.models[name].accelerators, std::move(model.accelerators), what));
    BERTH_TRY(merge(system.models[name].starts, std::move(model.starts), "the start of " + what));
  }
  BERTH_TRY(merge(system.classes, std::move(earlier.classes), "service class"));
  return merge(system.servers, std::move(earlier.servers), "server");
}

double power_w(const Accelerator& accelerator, double utilisation) {
  const Power& p = accelerator.power;
  const double u = std::clamp(utilisation, 0.0, 1.0);
  const auto between = [](double x, double x0, double y0, double x1, double y1) {
    return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y1;
  };
  return u <= p.mid_utilisation ? between(u, 0, p.idle_w, p.mid_utilisation, p.mid_w)
                                : between(u, p.mid_utilisation, p.mid_w, 1, p.full_w);
}

double power_w(const System& system, const Server& server, const Allocation& allocation) {
  double sum = 0;
  for (const Allocation& part : allocation.parts) sum += power_w(system, server, part);
  if (!allocation.parts.empty()) return sum;
  const auto accelerator = system.accelerators.find(allocation.accelerator);
  const auto model = system.models.find(server.model);
  if (accelerator == system.accelerators.end() || model == system.models.end()) return 0;
  const auto performance = model->second.accelerators.find(allocation.accelerator);
  if (performance == model->second.accelerators.end()) return 0;
  return power_w(accelerator->second, allocation.utilisation) *
         std::max(1, performance->second.accelerators) * allocation.replicas;
}

std::vector<std::string> dangling_names(const System& system) {
  std::vector<std::string> notes;
  const auto is_accelerator = [&](const std::string& name) {
    return name.empty() || system.accelerators.contains(name);
  };
  for (const auto& [model, data] : system.models)
    for (const auto& [accelerator, performance] : data.accelerators)
      if (!is_accelerator(accelerator))
        notes.push_back(
            fmt::format("model '{}' has performance data on '{}', which is not an accelerator",
                        clip(model), clip(accelerator)));
  std::set<std::string_view> types;
  for (const auto& [name, accelerator] : system.accelerators) types.insert(accelerator.type);
  for (const auto& [type, capacity] : system.capacities)
    if (!types.contains(type))
      notes.push_back(
          fmt::format("a capacity of '{}', which is not the type of any accelerator", clip(type)));
  for (const auto& [name, server] : system.servers) {
    std::set<std::string> held{server.current.accelerator};
    for (const Allocation& part : server.current.parts) held.insert(part.accelerator);
    for (const std::string& accelerator : held)
      if (!is_accelerator(accelerator))
        notes.push_back(fmt::format("server '{}' has '{}' now, which is not an accelerator",
                                    clip(name), clip(accelerator)));
  }
  return notes;
}

int priority_of(const System& system, const Server& server) {
  const auto found = system.classes.find(class_of(server));
  return found == system.classes.end() ? kLowestPriority : found->second.priority;
}

}  // namespace berth::fleet
