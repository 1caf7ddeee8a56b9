// A fleet document, which is JSON whose keys are matched in any case.
#include <set>

#include "berth/fleet/document/document_place.h"
#include "berth/fleet/document/format.h"
#include "berth/fleet/model/names.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/solver/server_size.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostNotes = 20;

class DocumentReader {
 public:
  DocumentReader(Reading& reading) : reading_(reading) {}

  /// Whether the document held anything of a fleet.
  Result<bool> read(const std::string& file, const Json& document) {
    file_ = file;
    known_ = false;
    const Place root{&document, nullptr, {}, 0};
    if (!document.is_object()) return root.wanted("an object");
    System earlier = std::exchange(reading_.system, {});
    reading_.system.options = earlier.options;
    BERTH_TRY(read_top(root));
    BERTH_TRY(merge(reading_.system, std::move(earlier)));
    return known_;
  }

  /// Into what is asked, and into the server what it is to have otherwise.
  Status read_question(const Json& document, SizeQuestion& question, Server& server);

 private:
  /// The format lists the keys that `fields` has readers for (tests/schema_test.py asks each).
  Status read_object(const Place& at, const MapFormat& format, std::span<const Field> fields) {
    BERTH_ASSERT(fields.size() == format.keys.size());
    return read_object(at, fields);
  }

  Status read_object(const Place& at, std::span<const Field> fields) {
    if (!at.value->is_object()) return at.wanted("an object");
    std::uint32_t seen = 0;
    for (const auto& [key, value] : at.value->items()) {
      const std::string plain = lower(key);
      std::size_t i = 0;
      while (i < fields.size() && lower(fields[i].key) != plain) ++i;
      const Place place{&value, &at, key, 0};
      if (i == fields.size()) {
        note(place);
        continue;
      }
      if ((seen >> i & 1U) != 0) return place.error("given twice");
      seen |= 1U << i;
      if (value.is_null()) continue;
      BERTH_TRY(std::visit([&](const auto& to) { return read_into(place, to); }, fields[i].to));
    }
    return {};
  }

  Status read_list(const Place& at, const Reader& item) {
    if (!at.value->is_array()) return at.wanted("a list");
    if (at.value->size() > kMostEntries)
      return at.error(
          fmt::format("{} entries; expected at most {}", at.value->size(), kMostEntries));
    known_ = true;
    std::size_t index = 0;
    for (const auto& value : *at.value) BERTH_TRY(item(Place{&value, &at, {}, index++}));
    return {};
  }

  /// Puts what was read under its name; the name must be new.
  template <class T>
  Status keep(const Place& at, std::map<std::string, T>& entries, const std::string& name,
              T value) {
    if (name.empty()) return at.error("has no name");
    if (auto status = check(value); !status)
      return fail(ErrorKind::invalid, "{}.{}", at.path(), status.error().message);
    if (!entries.emplace(name, std::move(value)).second)
      return at.error(fmt::format("'{}' is given twice", clip(name)));
    return {};
  }

  void note(const Place& at) {
    if (at.parent->parent == nullptr && !known_top_) return;  // told as a whole, or not at all
    if (reading_.notes.size() == kMostNotes) reading_.notes.emplace_back("and so on");
    if (reading_.notes.size() > kMostNotes) return;
    reading_.notes.push_back(fmt::format("{}: {}: unknown key", file_, at.path()));
  }

  Status read_top(const Place& at);
  Status read_accelerator(const Place& at);
  Status read_capacity(const Place& at);
  Status read_model(const Place& at);
  Status read_class(const Place& at);
  Status read_server(const Place& at);
  Status read_histogram(const Place& at, LengthHistogram& to);
  Status read_load(const Place& at, Load& to);
  Status read_allocation(const Place& at, Allocation& to);
  Status read_texts(const Place& at, std::vector<std::string>& to);
  Status read_texts(const Place& at, std::map<std::string, std::string>& to);
  Status read_start(const Place& at, Start& to);
  Status read_optimizer(const Place& at);

  Reading& reading_;
  std::set<LengthHistogram> histograms_;  // equal ones share their bins
  std::string file_;
  bool known_ = false, known_top_ = true;
};

Status DocumentReader::read_top(const Place& at) {
  struct Section {
    std::string_view wrapper, list;
    Status (DocumentReader::*read)(const Place&);
  };
  static constexpr Section kSections[] = {
      {"acceleratorData", "accelerators", &DocumentReader::read_accelerator},
      {"capacityData", "count", &DocumentReader::read_capacity},
      {"modelData", "models", &DocumentReader::read_model},
      {"serviceClassData", "serviceClasses", &DocumentReader::read_class},
      {"serverData", "servers", &DocumentReader::read_server},
  };
  std::vector<Field> fields;
  for (const Section& section : kSections) {
    const Reader list = [this, section](const Place& place) {
      return read_list(place, [&](const Place& item) { return (this->*section.read)(item); });
    };
    fields.push_back({section.list, list});
    fields.push_back({section.wrapper, [this, section, list](const Place& place) {
                        return read_object(place, std::array{Field{section.list, list}});
                      }});
  }
  const Reader optimizer = [this](const Place& place) { return read_optimizer(place); };
  fields.push_back({"optimizer", optimizer});
  fields.push_back({"optimizerData", [this, optimizer](const Place& place) {
                      return read_object(place, std::array{Field{"optimizer", optimizer}});
                    }});
  if (at.parent == nullptr)
    fields.push_back({"system", [this](const Place& place) { return read_top(place); }});
  const auto bears = [&](const Field& field) {
    for (const auto& [key, value] : at.value->items())
      if (lower(key) == lower(field.key)) return true;
    return false;
  };
  known_top_ =
      at.parent != nullptr || (at.value->is_object() && std::ranges::any_of(fields, bears));
  return read_object(at, at.parent == nullptr ? kFleetFormat : kSystemFormat, fields);
}

Status DocumentReader::read_accelerator(const Place& at) {
  std::string name;
  Accelerator a;
  const Reader power = [&](const Place& place) {
    return read_object(place, kPowerFormat,
                       std::array<Field, 4>{{{"idle", &a.power.idle_w},
                                             {"full", &a.power.full_w},
                                             {"midPower", &a.power.mid_w},
                                             {"midUtil", &a.power.mid_utilisation}}});
  };
  const Reader selector = [&](const Place& place) {
    return read_texts(place, a.node_selector.emplace());
  };
  BERTH_TRY(read_object(at, kAcceleratorFormat,
                        std::array<Field, 9>{{{"name", &name},
                                              {"type", &a.type},
                                              {"multiplicity", &a.multiplicity},
                                              {"memSize", &a.memory_gb},
                                              {"memBW", &a.bandwidth_gb_s},
                                              {"power", power},
                                              {"cost", &a.cost},
                                              {"resource", &a.resource},
                                              {"nodeSelector", selector}}}));
  if (a.type.empty()) a.type = name;
  return keep(at, reading_.system.accelerators, name, std::move(a));
}

Status DocumentReader::read_capacity(const Place& at) {
  std::string type;
  Capacity capacity;
  bool has_count = false;
  const Reader count = [&](const Place& place) {
    has_count = true;
    return read_into(place, &capacity.count);
  };
  const Reader purchase = [&](const Place& place) -> Status {
    auto kind = PurchaseKind::on_demand;
    Purchase bought;
    const Reader kind_reader = choice_reader(kPurchaseNames, kind);
    BERTH_TRY(read_object(
        place, kPurchaseFormat,
        std::array<Field, 3>{
            {{"kind", kind_reader}, {"count", &bought.count}, {"cost", &bought.cost}}}));
    if (!place.has("kind") || !place.has("cost")) return place.error("expected a kind and a cost");
    if (!capacity.purchases.emplace(kind, bought).second)
      return place.error(fmt::format("'{}' is given twice", name(kind)));
    return {};
  };
  const Reader purchases = [&](const Place& place) { return read_list(place, purchase); };
  BERTH_TRY(read_object(
      at, kCapacityFormat,
      std::array<Field, 3>{{{"type", &type}, {"count", count}, {"purchase", purchases}}}));
  if (!has_count)
    for (const auto& [kind, bought] : capacity.purchases) capacity.count += bought.count;
  return keep(at, reading_.system.capacities, type, std::move(capacity));
}

Status DocumentReader::read_model(const Place& at) {
  std::string name, accelerator;
  Performance p;
  const Reader form = choice_reader(kFormNames, p.form);
  const Reader transfer = [&](const Place& place) -> Status {
    if (place.value->is_object() && !place.has("fixed") && !place.has("pertoken"))
      return place.error("expected fixed, perToken or both, in ms");
    return read_object(place, kTransferFormat,
                       std::array<Field, 2>{{{"fixed", &p.transfer.emplace().fixed_ms},
                                             {"perToken", &p.transfer->per_token_ms}}});
  };
  const Reader parameters = [&](const Place& place) {
    return read_object(place, kPerformanceFormat,
                       std::array<Field, 7>{{{"alpha", &p.alpha_ms},
                                             {"beta", &p.beta_ms},
                                             {"gamma", &p.gamma_ms},
                                             {"betaPrefill", &p.beta_prefill_ms},
                                             {"ttftOffset", &p.ttft_offset_ms},
                                             {"form", form},
                                             {"transfer", transfer}}});
  };
  Start start;
  const Reader start_reader = [&](const Place& place) { return read_start(place, start); };
  BERTH_TRY(read_object(at, kModelFormat,
                        std::array<Field, 7>{{{"name", &name},
                                              {"acc", &accelerator},
                                              {"accCount", &p.accelerators},
                                              {"maxBatchSize", &p.max_batch},
                                              {"atTokens", &p.at_tokens},
                                              {"perfParms", parameters},
                                              {"start", start_reader}}}));
  if (name.empty()) return at.error("has no name");
  Model& model = reading_.system.models[name];
  if (accelerator.empty()) return {};  // a model of which only the name is known
  if (start != Start{}) model.starts[accelerator] = std::move(start);
  return keep(at, model.accelerators, accelerator, p);
}

Status DocumentReader::read_class(const Place& at) {
  std::string name;
  ServiceClass service_class;
  const Reader target = [&](const Place& place) -> Status {
    std::string model;
    Target t;
    std::vector<Field> fields{
        {"model", &model}, {"slo-itl", &t.itl_ms}, {"slo-ttft", &t.ttft_ms}, {"slo-tps", &t.tps}};
    for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
      fields.push_back({kTtftKeys[i], &t.percentiles.ttft_ms[i]});
      fields.push_back({kItlKeys[i], &t.percentiles.itl_ms[i]});
    }
    BERTH_TRY(read_object(place, kTargetFormat, fields));
    return keep(place, service_class.targets, model, t);
  };
  const Reader targets = [&](const Place& place) { return read_list(place, target); };
  BERTH_TRY(read_object(
      at, kClassFormat,
      std::array<Field, 3>{
          {{"name", &name}, {"priority", &service_class.priority}, {"modelTargets", targets}}}));
  return keep(at, reading_.system.classes, name, std::move(service_class));
}

Status DocumentReader::read_histogram(const Place& at, LengthHistogram& to) {
  std::vector<LengthHistogram::Bin> bins;
  const Reader bin_reader = [&](const Place& place) -> Status {
    auto& bin = bins.emplace_back();
    BERTH_TRY(
        read_object(place, kBinFormat,
                    std::array<Field, 2>{{{"tokens", &bin.tokens}, {"weight", &bin.weight}}}));
    if (!place.has("tokens") || !place.has("weight"))
      return place.error("expected tokens and a weight");
    return {};
  };
  BERTH_TRY(read_list(at, bin_reader));
  auto made = LengthHistogram::of(std::move(bins));
  if (!made) {
    const std::string& message = made.error().message;
    return fail(ErrorKind::invalid, "{}{}{}", at.path(), message[0] == '[' ? "" : ": ", message);
  }
  to = *histograms_.insert(*std::move(made)).first;
  return {};
}

/// Into a load that may have lengths already: another mean stretches its histogram, another
/// variation takes the histogram's place.
Status DocumentReader::read_load(const Place& at, Load& to) {
  std::vector<Field> fields{{"arrivalRate", &to.arrivals_per_min},
                            {"throughput", &to.throughput},
                            {"arrivalCv", &to.arrival_cv}};
  for (const LengthKeys& keys : kLengthKeys) {
    fields.push_back({keys.mean, &(to.*keys.mean_at)});
    fields.push_back({keys.cv, &(to.*keys.cv_at)});
    fields.push_back({keys.histogram, [&](const Place& place) {
                        return read_histogram(place, to.*keys.histogram_at);
                      }});
  }
  BERTH_TRY(read_object(at, kLoadFormat, fields));
  for (const LengthKeys& keys : kLengthKeys) {
    LengthHistogram& histogram = to.*keys.histogram_at;
    double &mean = to.*keys.mean_at, &cv = to.*keys.cv_at;
    const bool has_mean = at.has(lower(keys.mean)), has_cv = at.has(lower(keys.cv));
    if (!at.has(lower(keys.histogram))) {
      if (has_cv) histogram = {};
      continue;
    }
    if (has_mean && !histogram.has_mean(mean))
      return at.error(fmt::format("{}: {}, the mean of {} is {}", keys.mean, mean, keys.histogram,
                                  histogram.mean()));
    if (has_cv && !histogram.has_cv(cv))
      return at.error(
          fmt::format("{}: {}, that of {} is {}", keys.cv, cv, keys.histogram, histogram.cv()));
    mean = histogram.mean();
    cv = histogram.cv();
  }
  return {};
}

Status DocumentReader::read_allocation(const Place& at, Allocation& to) {
  const Reader part = [&](const Place& place) {
    return read_allocation(place, to.parts.emplace_back());
  };
  const Reader parts = [&](const Place& place) { return read_list(place, part); };
  const Reader load = [&](const Place& place) { return read_load(place, to.load); };
  const Reader role = choice_reader(kRoleNames, to.role);
  double watts = 0;  // which plans tell, as percentiles; they follow from the rest
  const Reader ignored = [](const Place&) -> Status { return {}; };
  return read_object(at, kAllocationFormat,
                     std::array<Field, 14>{{{"accelerator", &to.accelerator},
                                            {"role", role},
                                            {"numReplicas", &to.replicas},
                                            {"maxBatch", &to.batch},
                                            {"cost", &to.cost},
                                            {"itlAverage", &to.itl_ms},
                                            {"ttftAverage", &to.ttft_ms},
                                            {"load", load},
                                            {"watts", &watts},
                                            {"ttftPercentiles", ignored},
                                            {"itlPercentiles", ignored},
                                            {"method", ignored},
                                            {"spot", ignored},
                                            {"parts", parts}}});
}

Status DocumentReader::read_texts(const Place& at, std::vector<std::string>& to) {
  return read_list(at, [&](const Place& item) { return read_into(item, &to.emplace_back()); });
}

Status DocumentReader::read_texts(const Place& at, std::map<std::string, std::string>& to) {
  if (!at.value->is_object()) return at.wanted("an object");
  for (const auto& [key, value] : at.value->items())
    BERTH_TRY(read_into(Place{&value, &at, key, 0}, &to[key]));
  return {};
}

Status DocumentReader::read_start(const Place& at, Start& to) {
  const Reader command = [&](const Place& place) { return read_texts(place, to.command); };
  const Reader args = [&](const Place& place) { return read_texts(place, to.args); };
  const Reader environment = [&](const Place& place) { return read_texts(place, to.environment); };
  BERTH_TRY(read_object(at, kStartFormat,
                        std::array<Field, 7>{{{"image", &to.image},
                                              {"command", command},
                                              {"args", args},
                                              {"port", &to.port},
                                              {"env", environment},
                                              {"cpu", &to.cpu},
                                              {"memSize", &to.memory_gb}}}));
  auto status = check(to);
  if (!status) return fail(ErrorKind::invalid, "{}.{}", at.path(), status.error().message);
  return {};
}

Status DocumentReader::read_server(const Place& at) {
  std::string name;
  Server s;
  const Reader current = [&](const Place& place) { return read_allocation(place, s.current); };
  const Reader desired = [&](const Place& place) { return read_allocation(place, s.desired); };
  const Reader start = [&](const Place& place) { return read_start(place, s.start); };
  BERTH_TRY(read_object(at, kServerFormat,
                        std::array<Field, 11>{{{"name", &name},
                                               {"class", &s.service_class},
                                               {"model", &s.model},
                                               {"keepAccelerator", &s.keep_accelerator},
                                               {"minNumReplicas", &s.min_replicas},
                                               {"maxBatchSize", &s.max_batch},
                                               {"maxQueueSize", &s.max_queue},
                                               {"spot", &s.spot},
                                               {"currentAlloc", current},
                                               {"desiredAlloc", desired},
                                               {"start", start}}}));
  return keep(at, reading_.system.servers, name, std::move(s));
}

Status DocumentReader::read_optimizer(const Place& at) {
  known_ = true;
  Options& o = reading_.system.options;
  bool unlimited = false, ignored = false;
  const Reader power = [&](const Place& place) {
    return read_into(place, &o.power_budget_w.emplace());
  };
  const Reader saturation = choice_reader(kSaturationNames, o.saturation);
  const Reader solver = choice_reader(kSolverNames, o.solver);
  const Reader model = choice_reader(kModelNames, o.model);
  BERTH_TRY(read_object(at, kOptimizerFormat,
                        std::array<Field, 10>{{{"unlimited", &unlimited},
                                               {"heterogeneous", &o.heterogeneous},
                                               {"disaggregated", &o.disaggregated},
                                               {"milpSolver", &ignored},
                                               {"useCplex", &ignored},
                                               {"delayedBestEffort", &o.delayed_best_effort},
                                               {"saturationPolicy", saturation},
                                               {"powerBudget", power},
                                               {"solver", solver},
                                               {"model", model}}}));
  if (unlimited) o.solver = Solver::unlimited;
  if (auto status = check(o); !status)
    return fail(ErrorKind::invalid, "{}.{}", at.path(), status.error().message);
  return {};
}

Status DocumentReader::read_question(const Json& document, SizeQuestion& question, Server& server) {
  const Place root{&document, nullptr, {}, 0};
  Load load = server.current.load;
  const Reader current = [&](const Place& place) {
    server.current = {};
    return read_allocation(place, server.current);
  };
  const std::array<Field, 4> fields{
      {{"accelerator", &question.accelerator},
       {"numReplicas", &question.replicas},
       {"load", [&](const Place& place) { return read_load(place, load); }},
       {"currentAlloc", current}}};
  BERTH_TRY(read_object(root, fields));
  for (const auto& [key, value] : document.items())
    if (std::ranges::none_of(fields, [&](const Field& f) { return lower(f.key) == lower(key); }))
      return Place{&value, &root, key, 0}.error(
          "unknown key; expected accelerator, numReplicas, load or currentAlloc");
  server.current.load = load;
  return check(server);
}

}  // namespace

Status read_question(const Document& document, SizeQuestion& question, Server& server) {
  const auto json = parse_json(document.text, JsonComments::skipped);
  if (!json) return std::unexpected(within(document.name, json.error()));
  Reading reading;
  if (auto status = DocumentReader(reading).read_question(*json, question, server); !status)
    return std::unexpected(within(document.name, std::move(status).error()));
  return {};
}

Result<Reading> read_documents(std::span<const Document> documents) {
  Reading reading;
  DocumentReader reader(reading);
  bool any = false;
  std::vector<std::string> empty;
  for (const Document& document : documents) {
    const auto json = parse_json(document.text, JsonComments::skipped);
    if (!json) return std::unexpected(within(document.name, json.error()));
    const auto known = reader.read(document.name, *json);
    if (!known) return std::unexpected(within(document.name, known.error()));
    if (!*known) empty.push_back(document.name);
    any = any || *known;
  }
  if (!any)
    return fail(ErrorKind::invalid,
                "{}: not a fleet document: expected acceleratorData, capacityData, modelData, "
                "serviceClassData, serverData or optimizerData",
                empty.empty() ? "no document" : join(empty, ", "));
  if (auto status = check(reading.system); !status) return std::unexpected(status.error());
  for (const auto& name : empty)
    reading.notes.push_back(fmt::format("{}: nothing of a fleet, left out", name));
  return reading;
}

}  // namespace berth::fleet
