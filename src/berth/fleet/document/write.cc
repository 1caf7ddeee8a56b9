// Fleet documents and plans as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/fleet/document/manifests.h"
#include "berth/fleet/model/names.h"
#include "berth/fleet/solver/server_size.h"

namespace berth::fleet {
namespace {

constexpr double kPerMinute = 60;
constexpr const char* kClosedForm = "closed form";

/// Only what is not the default is added to the keys that other planners know.
template <class Value>
void add_unless(Json& object, const std::string& key, Value value, Value usual) {
  if (value != usual) object[key] = value;
}

/// Of lengths that have a mean of 0 by now no histogram is left.
void add_histogram(Json& json, std::string_view key, const LengthHistogram& histogram,
                   double mean) {
  if (!histogram || !(mean > 0)) return;
  Json& list = json[std::string(key)] = Json::array();
  for (const auto& [tokens, weight] : histogram.stretched(mean))
    list.push_back({{"tokens", tokens}, {"weight", weight}});
}

Json load_json(const Load& load) {
  Json json = {{"arrivalRate", load.arrivals_per_min},
               {"throughput", load.throughput},
               {"avgInTokens", load.in_tokens},
               {"avgOutTokens", load.out_tokens}};
  const Load usual;
  add_unless(json, "inTokensCv", load.in_cv, usual.in_cv);
  add_unless(json, "outTokensCv", load.out_cv, usual.out_cv);
  add_unless(json, "arrivalCv", load.arrival_cv, usual.arrival_cv);
  for (const LengthKeys& keys : kLengthKeys)
    add_histogram(json, keys.histogram, load.*keys.histogram_at, load.*keys.mean_at);
  return json;
}

Json parameters_json(const Performance& p) {
  Json json = {{"alpha", p.alpha_ms}, {"beta", p.beta_ms}, {"gamma", p.gamma_ms}};
  add_unless(json, "betaPrefill", p.beta_prefill_ms, 0.0);
  add_unless(json, "ttftOffset", p.ttft_offset_ms, 0.0);
  add_unless(json, "form", kFormNames.name(p.form), kFormNames.name(StepForm::sum));
  if (p.transfer)
    json["transfer"] = {{"fixed", p.transfer->fixed_ms}, {"perToken", p.transfer->per_token_ms}};
  return json;
}

Json percentiles_json(const std::array<double, 4>& percentiles_ms) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kPercentileNames.size(); ++i)
    json[std::string(kPercentileNames[i])] = percentiles_ms[i];
  return json;
}

Json target_json(const std::string& model, const Target& t) {
  Json json = {
      {"model", model}, {"slo-itl", t.itl_ms}, {"slo-ttft", t.ttft_ms}, {"slo-tps", t.tps}};
  for (std::size_t i = 0; i < kPercentileNames.size(); ++i) {
    add_unless(json, std::string(kTtftKeys[i]), t.percentiles.ttft_ms[i], 0.0);
    add_unless(json, std::string(kItlKeys[i]), t.percentiles.itl_ms[i], 0.0);
  }
  return json;
}

Json allocation_json(const Allocation& a) {
  Json json = {{"accelerator", a.accelerator}, {"numReplicas", a.replicas},
               {"maxBatch", a.batch},          {"cost", a.cost},
               {"itlAverage", a.itl_ms},       {"ttftAverage", a.ttft_ms},
               {"load", load_json(a.load)}};
  if (a.percentiles) {
    if (a.role != Role::decode) json["ttftPercentiles"] = percentiles_json(a.percentiles->ttft_ms);
    if (a.role != Role::prefill) json["itlPercentiles"] = percentiles_json(a.percentiles->itl_ms);
    json["method"] = kClosedForm;
  }
  add_unless(json, "role", name(a.role), name(Role::whole));
  for (const Allocation& part : a.parts) json["parts"].push_back(allocation_json(part));
  return json;
}

Json start_json(const Start& start) {
  Json json = Json::object();
  add_unless(json, "image", start.image, std::string());
  add_unless(json, "command", start.command, {});
  add_unless(json, "args", start.args, {});
  add_unless(json, "port", start.port, 0);
  add_unless(json, "env", start.environment, {});
  add_unless(json, "cpu", start.cpu, 0.0);
  add_unless(json, "memSize", start.memory_gb, 0.0);
  return json;
}

Json accelerators_json(const System& system) {
  Json list = Json::array();
  for (const auto& [name, a] : system.accelerators) {
    list.push_back({{"name", name},
                    {"type", a.type},
                    {"multiplicity", a.multiplicity},
                    {"memSize", a.memory_gb},
                    {"memBW", a.bandwidth_gb_s},
                    {"power",
                     {{"idle", a.power.idle_w},
                      {"full", a.power.full_w},
                      {"midPower", a.power.mid_w},
                      {"midUtil", a.power.mid_utilisation}}},
                    {"cost", a.cost}});
    add_unless(list.back(), "resource", a.resource, std::string());
    if (a.node_selector) list.back()["nodeSelector"] = *a.node_selector;
  }
  return list;
}

Json models_json(const System& system) {
  Json list = Json::array();
  for (const auto& [name, model] : system.models) {
    if (model.accelerators.empty()) list.push_back({{"name", name}});
    for (const auto& [accelerator, p] : model.accelerators) {
      list.push_back({{"name", name},
                      {"acc", accelerator},
                      {"accCount", p.accelerators},
                      {"maxBatchSize", p.max_batch},
                      {"atTokens", p.at_tokens},
                      {"perfParms", parameters_json(p)}});
      if (const auto start = model.starts.find(accelerator); start != model.starts.end())
        list.back()["start"] = start_json(start->second);
    }
  }
  return list;
}

Json classes_json(const System& system) {
  Json list = Json::array();
  for (const auto& [name, service_class] : system.classes) {
    Json targets = Json::array();
    for (const auto& [model, t] : service_class.targets) targets.push_back(target_json(model, t));
    list.push_back(
        {{"name", name}, {"priority", service_class.priority}, {"modelTargets", targets}});
  }
  return list;
}

Json servers_json(const System& system) {
  Json list = Json::array();
  for (const auto& [name, s] : system.servers) {
    Json server = {{"name", name},
                   {"class", s.service_class},
                   {"model", s.model},
                   {"keepAccelerator", s.keep_accelerator},
                   {"minNumReplicas", s.min_replicas},
                   {"maxBatchSize", s.max_batch},
                   {"maxQueueSize", s.max_queue},
                   {"currentAlloc", allocation_json(s.current)}};
    add_unless(server, "spot", s.spot, false);
    if (s.desired != Allocation{}) server["desiredAlloc"] = allocation_json(s.desired);
    if (s.start != Start{}) server["start"] = start_json(s.start);
    list.push_back(std::move(server));
  }
  return list;
}

Json options_json(const Options& o) {
  Json json = {{"unlimited", o.solver == Solver::unlimited},
               {"heterogeneous", o.heterogeneous},
               {"delayedBestEffort", o.delayed_best_effort},
               {"saturationPolicy", kSaturationNames.name(o.saturation)},
               {"solver", kSolverNames.name(o.solver)},
               {"model", kModelNames.name(o.model)}};
  add_unless(json, "disaggregated", o.disaggregated, false);
  if (o.power_budget_w) json["powerBudget"] = *o.power_budget_w;
  return json;
}

Json candidate_json(const Candidate& c, QueueModel model) {
  Json json = {{"numReplicas", c.replicas},
               {"maxBatch", c.batch},
               {"cost", c.cost},
               {"itlAverage", c.itl_ms},
               {"ttftAverage", c.ttft_ms},
               {"utilisation", c.utilisation},
               {"maxRatePerReplica", kPerMinute * c.rate_per_s},
               {"binds", fleet::name(c.binding)},
               {"watts", c.watts},
               {"value", c.value}};
  if (model == QueueModel::calibrated)
    json["rateMethod"] = c.is_rate_asked_for ? "simulation" : kClosedForm;
  return json;
}

Json candidates_json(const Candidates& candidates) {
  Json all = Json::object();
  for (std::size_t s = 0; s < candidates.servers.size(); ++s) {
    Json& of = append(all, candidates.servers[s], Json::object());
    for (const Candidate& c : candidates.of(s)) {
      const bool is_nothing = c.accelerator == Candidate::kNothing;
      append(of, is_nothing ? "" : candidates.accelerators[c.accelerator],
             candidate_json(c, candidates.model));
    }
  }
  return all;
}

/// By server, then by role and accelerator.
Json pools_json(const Candidates& candidates) {
  Json all = Json::object();
  for (std::size_t s = 0; s < candidates.pools.size(); ++s) {
    Json of = Json::object();
    for (const Candidate& c : candidates.pools[s]) {
      Json& by_role = of[std::string(name(c.role))];
      if (by_role.is_null()) by_role = Json::object();
      append(by_role, candidates.accelerators[c.accelerator], candidate_json(c, candidates.model))
          .erase("value");
    }
    if (!of.empty()) append(all, candidates.servers[s], std::move(of));
  }
  return all;
}

Json refused_json(const Candidates& candidates) {
  Json all = Json::object();
  const std::size_t count = candidates.accelerators.size();
  for (std::size_t s = 0; s < candidates.servers.size(); ++s) {
    Json of = Json::object();
    for (std::size_t a = 0; a < count; ++a)
      if (const Refusal refusal = candidates.refusals[s * count + a]; refusal != Refusal::none)
        append(of, candidates.accelerators[a], fleet::name(refusal));
    if (!of.empty()) append(all, candidates.servers[s], std::move(of));
  }
  return all;
}

Json manifests_json(const std::vector<Manifest>& manifests) {
  Json list = Json::array();
  for (const Manifest& m : manifests)
    list.push_back({{"server", m.server},
                    {"accelerator", m.accelerator},
                    {"name", m.name},
                    {"replicas", m.replicas},
                    {"file", m.file}});
  return list;
}

/// An allocation, and what there is to be said of it under the server's load.
Json sized_json(const SizedAllocation& sized, QueueModel model) {
  Json json = allocation_json(sized.allocation);
  json["utilisation"] = sized.allocation.utilisation;
  json["watts"] = sized.watts;
  json["saturated"] = sized.saturated ? Json(*sized.saturated) : Json();
  json["binds"] = fleet::name(sized.binding);
  if (sized.rate_per_s > 0) {
    json["maxRatePerReplica"] = kPerMinute * sized.rate_per_s;
    json["rateBinds"] = fleet::name(sized.rate_binding);
    if (model == QueueModel::calibrated)
      json["rateMethod"] = sized.is_rate_asked_for ? "simulation" : kClosedForm;
  }
  return json;
}

Json candidate_json(const SizedAllocation& sized, QueueModel model) {
  Json json = sized_json(sized, model);
  json["value"] = sized.value;
  json["difference"] = {{"from", sized.difference.from},
                        {"to", sized.difference.to},
                        {"numReplicas", sized.difference.replicas},
                        {"cost", sized.difference.cost}};
  return json;
}

/// Numbers that are whole become integers, which are written without a fraction.
void make_whole(Json& json) {
  constexpr double kMostExact = 9007199254740992;  // every whole number below it is a double
  for (auto& value : json) {
    if (value.is_structured()) {
      make_whole(value);
    } else if (value.is_number_float()) {
      const auto number = value.get<double>();
      if (number == std::floor(number) && std::abs(number) < kMostExact)
        value = static_cast<std::int64_t>(number);
    }
  }
}

std::string whole_dump(Json json) {
  make_whole(json);
  return dump(json);
}

}  // namespace

std::string write_document(const System& system) {
  Json capacities = Json::array();
  for (const auto& [type, capacity] : system.capacities) {
    capacities.push_back({{"type", type}, {"count", capacity.count}});
    for (const auto& [kind, purchase] : capacity.purchases)
      capacities.back()["purchase"].push_back(
          {{"kind", fleet::name(kind)}, {"count", purchase.count}, {"cost", purchase.cost}});
  }
  return whole_dump({{"acceleratorData", {{"accelerators", accelerators_json(system)}}},
                     {"capacityData", {{"count", capacities}}},
                     {"modelData", {{"models", models_json(system)}}},
                     {"serviceClassData", {{"serviceClasses", classes_json(system)}}},
                     {"serverData", {{"servers", servers_json(system)}}},
                     {"optimizerData", {{"optimizer", options_json(system.options)}}}});
}

std::string plan_json(const Plan& plan, const Candidates* candidates,
                      const std::vector<Manifest>* manifests) {
  Json allocations = Json::object(), reasons = Json::object(), totals = Json::array();
  for (const auto& [name, server] : plan.servers) {
    const bool has_some = server.why == Why::served || server.why == Why::partly;
    if (has_some) {
      Json& allocation = append(allocations, name, allocation_json(server.allocation));
      allocation["watts"] = server.watts;
      add_unless(allocation, "spot", server.is_spot, false);
    }
    append(reasons, name,
           {{"status", kWhyNames.name(server.why)},
            {"binds", fleet::name(server.binding)},
            {"text", server.reason}});
  }
  for (const TypeTotal& t : plan.totals) {
    totals.push_back({{"type", t.type},
                      {"count", t.used},
                      {"limit", t.limit ? Json(*t.limit) : Json()},
                      {"cost", t.cost},
                      {"shadowPrice", t.shadow_price}});
    for (const auto& [kind, bought] : t.purchases)
      totals.back()["purchase"].push_back({{"kind", fleet::name(kind)},
                                           {"count", bought.used},
                                           {"limit", bought.limit},
                                           {"cost", bought.cost},
                                           {"shadowPrice", bought.shadow_price}});
  }
  const auto by_priority = [](const std::map<int, int>& counts) {
    Json object = Json::object();
    for (const auto& [priority, count] : counts) append(object, fmt::format("{}", priority), count);
    return object;
  };
  Json json = {{"version", 1}};  // a list of all would copy the large ones
  json["allocations"] = std::move(allocations);
  json["reasons"] = std::move(reasons);
  json["proof"] = {{"unserved_by_priority", by_priority(plan.proof.unserved)},
                   {"unserved_bound_by_priority", by_priority(plan.proof.unserved_bound)},
                   {"value", plan.proof.value},
                   {"bound", plan.proof.bound},
                   {"gap", plan.proof.gap},
                   {"stopped", plan.proof.stopped}};
  json["cost"] = plan.cost;
  json["watts"] = plan.watts;
  json["totals"] = std::move(totals);
  if (plan.power)
    json["power"] = {{"watts", plan.watts},
                     {"limit", plan.power->limit_w},
                     {"shadowPrice", plan.power->shadow_price}};
  if (candidates != nullptr) {
    json["candidates"] = candidates_json(*candidates);
    json["refused"] = refused_json(*candidates);
    if (!candidates->pools.empty()) json["pools"] = pools_json(*candidates);
  }
  if (manifests != nullptr) json["manifests"] = manifests_json(*manifests);
  return whole_dump(std::move(json));
}

std::string size_json(const ServerSize& size) {
  Json candidates = Json::object(), refused = Json::object();
  for (const auto& [name, sized] : size.accelerators)
    if (sized.refusal == Refusal::none)
      candidates[name] = candidate_json(sized, size.model);
    else
      refused[name] = fleet::name(sized.refusal);
  Json current = sized_json(size.current, size.model);
  if (size.current.refusal != Refusal::none) current["refused"] = fleet::name(size.current.refusal);
  return whole_dump({{"version", 1},
                     {"server", size.name},
                     {"class", size.server.service_class},
                     {"model", size.server.model},
                     {"load", load_json(size.server.current.load)},
                     {"targets", target_json(size.server.model, size.target)},
                     {"current", std::move(current)},
                     {"candidates", std::move(candidates)},
                     {"refused", std::move(refused)},
                     {"best", size.best ? Json(*size.best) : Json()}});
}

std::string best_json(const ServerSize& size) {
  BERTH_ASSERT(size.best);
  return whole_dump(candidate_json(size.accelerators.at(*size.best), size.model));
}

}  // namespace berth::fleet
