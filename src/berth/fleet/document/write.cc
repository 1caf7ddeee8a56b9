// Fleet documents and plans as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/fleet/document/manifests.h"
#include "berth/fleet/document/records.h"
#include "berth/fleet/model/names.h"

namespace berth::fleet {
namespace {

constexpr double kPerMinute = 60;
constexpr const char* kClosedForm = "closed form";

/// Only what is not the default is added to the keys that other planners know.
template <class Value>
void add_unless(Json& object, const std::string& key, Value value, Value usual) {
  if (value != usual) object[key] = value;
}

template <class Value>
Json json_of(const Value& value);

/// Adds the keys that have a member.
template <class Struct, class... Ats>
void add_record(Json& json, const Record<Ats...>& record, const Struct& object) {
  static const Struct usual;
  record.for_each([&](const auto& key) {
    if constexpr (std::remove_cvref_t<decltype(key)>::kHasMember) {
      const auto& value = key.in(object);
      if (key.is_optional && value == key.in(usual)) return;
      if (Json written = json_of(value); !written.is_null())
        append(json, std::string(key.format.name), std::move(written));
    }
  });
}

/// Lengths that have a mean of 0 have no histogram.
void add_histogram(Json& json, const LengthKeys& keys, const Load& load) {
  const LengthHistogram& histogram = load.*keys.histogram_at;
  const double mean = load.*keys.mean_at;
  if (!histogram || !(mean > 0)) return;
  Json& list = json[std::string(keys.histogram)] = Json::array();
  for (const auto& bin : histogram.stretched(mean))
    add_record(list.emplace_back(Json::object()), records::kBin, bin);
}

template <class Value>
Json list_json(const std::vector<Value>& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(json_of(value));
  return list;
}

/// null: an optional value that is absent.
template <class Value>
Json json_of(const Value& value) {
  if constexpr (requires { value.has_value(); }) {
    return value ? json_of(*value) : Json();
  } else if constexpr (kHasNames<Value>) {
    return kNamesOf<Value>.name(value);
  } else if constexpr (kHasRecord<Value>) {
    Json json = Json::object();
    add_record(json, kRecordOf<Value>, value);
    if constexpr (std::is_same_v<Value, Load>)
      for (const LengthKeys& keys : kLengthKeys) add_histogram(json, keys, value);
    return json;
  } else if constexpr (std::is_same_v<Value, std::vector<Allocation>>) {
    return list_json(value);
  } else {
    return value;
  }
}

Json percentiles_json(const std::array<double, 4>& percentiles_ms) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kPercentileNames.size(); ++i)
    json[std::string(kPercentileNames[i])] = percentiles_ms[i];
  return json;
}

Json target_json(const std::string& model, const Target& target) {
  Json json = {{"model", model}};
  add_record(json, records::kTarget, target);
  return json;
}

/// An allocation of a plan, with the percentiles that it should attain.
Json allocation_json(const Allocation& a) {
  Json json = json_of(a);
  if (!a.parts.empty()) json["parts"] = Json::array();
  for (const Allocation& part : a.parts) json["parts"].push_back(allocation_json(part));
  if (!a.percentiles) return json;
  if (a.role != Role::decode) json["ttftPercentiles"] = percentiles_json(a.percentiles->ttft_ms);
  if (a.role != Role::prefill) json["itlPercentiles"] = percentiles_json(a.percentiles->itl_ms);
  json["method"] = kClosedForm;
  return json;
}

Json accelerators_json(const System& system) {
  Json list = Json::array();
  for (const auto& [name, accelerator] : system.accelerators)
    add_record(list.emplace_back(Json{{"name", name}}), records::kAccelerator, accelerator);
  return list;
}

Json capacities_json(const System& system) {
  Json list = Json::array();
  for (const auto& [type, capacity] : system.capacities) {
    Json& json = list.emplace_back(Json{{"type", type}});
    add_record(json, records::kCapacity, capacity);
    for (const auto& [kind, purchase] : capacity.purchases)
      add_record(json["purchase"].emplace_back(Json{{"kind", fleet::name(kind)}}),
                 records::kPurchase, purchase);
  }
  return list;
}

Json models_json(const System& system) {
  Json list = Json::array();
  for (const auto& [name, model] : system.models) {
    if (model.accelerators.empty()) list.push_back({{"name", name}});
    for (const auto& [accelerator, performance] : model.accelerators) {
      Json& json = list.emplace_back(Json{{"name", name}, {"acc", accelerator}});
      add_record(json, records::kModelEntry, performance);
      add_record(json["perfParms"] = Json::object(), records::kPerformance, performance);
      if (const auto start = model.starts.find(accelerator); start != model.starts.end())
        json["start"] = json_of(start->second);
    }
  }
  return list;
}

Json classes_json(const System& system) {
  Json list = Json::array();
  for (const auto& [name, service_class] : system.classes) {
    Json& json = list.emplace_back(Json{{"name", name}});
    add_record(json, records::kServiceClass, service_class);
    json["modelTargets"] = Json::array();
    for (const auto& [model, target] : service_class.targets)
      json["modelTargets"].push_back(target_json(model, target));
  }
  return list;
}

/// As allocation_json() for the allocations.
Json servers_json(const System& system) {
  Json list = Json::array();
  for (const auto& [name, server] : system.servers) {
    Json& json = list.emplace_back(Json{{"name", name}});
    add_record(json, records::kServer, server);
    json["currentAlloc"] = allocation_json(server.current);
    if (json.contains("desiredAlloc")) json["desiredAlloc"] = allocation_json(server.desired);
  }
  return list;
}

Json options_json(const Options& options) {
  Json json = {{"unlimited", options.solver == Solver::unlimited}};
  add_record(json, records::kOptions, options);
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
  return whole_dump({{"acceleratorData", {{"accelerators", accelerators_json(system)}}},
                     {"capacityData", {{"count", capacities_json(system)}}},
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
                     {"load", json_of(size.server.current.load)},
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
