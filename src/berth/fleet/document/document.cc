// A fleet document, which is JSON whose keys are matched in any case.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "berth/fleet/document/document_place.h"
#include "berth/fleet/document/format.h"
#include "berth/fleet/document/records.h"
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
  /// Calls read(position, place) for each of the keys that has a value; notes unknown keys.
  template <class Read>
  Status read_object(const Place& at, std::span<const KeyFormat> keys, const Read& read) {
    if (!at.value->is_object()) return at.wanted("an object");
    std::uint32_t seen = 0;
    for (const auto& [key, value] : at.value->items()) {
      const std::string plain = lower(key);
      std::size_t i = 0;
      while (i < keys.size() && lower(keys[i].name) != plain) ++i;
      const Place place{&value, &at, key, 0};
      if (i == keys.size()) {
        note(place);
        continue;
      }
      if ((seen >> i & 1U) != 0) return place.error("given twice");
      seen |= 1U << i;
      if (!value.is_null()) BERTH_TRY(read(i, place));
    }
    return {};
  }

  /// Reads the keys that have a member into the object, and others as they say; keys without a
  /// member that are not among them are left out.
  template <class Struct, class... Ats>
  Status read_record(const Place& at, const Record<Ats...>& record, Struct& to,
                     std::initializer_list<OtherKey> others = {}) {
    return read_object(at, record.formats, [&](std::size_t position, const Place& place) {
      return record.visit(position, [&](const auto& key) -> Status {
        if constexpr (std::remove_cvref_t<decltype(key)>::kHasMember) {
          return read_value(place, key.in(to));
        } else {
          const auto* other = std::ranges::find(others, key.format.name, &OtherKey::name);
          return other == others.end() ? Status() : other->read(place);
        }
      });
    });
  }

  template <class Value>
  Status read_value(const Place& at, Value& to) {
    if constexpr (requires { read_into(at, &to); })
      return read_into(at, &to);
    else if constexpr (kHasNames<Value>)
      return read_choice(at, kNamesOf<Value>, to);
    else
      return read_entry(at, to);
  }
  template <class Value>
  Status read_value(const Place& at, std::optional<Value>& to) {
    return read_value(at, to.emplace());
  }
  template <class Value>
  Status read_value(const Place& at, std::vector<Value>& to) {
    return read_list(at, [&](const Place& item) { return read_value(item, to.emplace_back()); });
  }
  Status read_value(const Place& at, std::map<std::string, std::string>& to) {
    if (!at.value->is_object()) return at.wanted("an object");
    for (const auto& [key, value] : at.value->items())
      BERTH_TRY(read_into(Place{&value, &at, key, 0}, &to[key]));
    return {};
  }

  template <class Read>
  Status read_list(const Place& at, const Read& item) {
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
  Status read_optimizer(const Place& at);
  Status read_histogram(const Place& at, LengthHistogram& to);
  template <class Struct>
  Status read_entry(const Place& at, Struct& to) {
    return read_record(at, kRecordOf<Struct>, to);
  }
  Status read_entry(const Place& at, Transfer& to);
  Status read_entry(const Place& at, Load& to);
  Status read_entry(const Place& at, Start& to);

  Reading& reading_;
  std::set<LengthHistogram> histograms_;  // equal ones share their bins
  std::string file_;
  bool known_ = false, known_top_ = true;
};

Status DocumentReader::read_top(const Place& at) {
  struct Section {
    std::string_view list, wrapper;  // of one entry at least, without or within an object
    Status (DocumentReader::*read)(const Place&);
  };
  static constexpr Section kSections[] = {
      {"accelerators", "acceleratorData", &DocumentReader::read_accelerator},
      {"count", "capacityData", &DocumentReader::read_capacity},
      {"models", "modelData", &DocumentReader::read_model},
      {"serviceClasses", "serviceClassData", &DocumentReader::read_class},
      {"servers", "serverData", &DocumentReader::read_server},
      {"optimizer", "optimizerData", &DocumentReader::read_optimizer},
  };
  const bool is_root = at.parent == nullptr;
  const MapFormat& format = is_root ? kFleetFormat : kSystemFormat;
  const auto has_key = [&](const KeyFormat& known) {
    return std::ranges::any_of(at.value->items(), [&](const auto& item) {
      return lower(item.key()) == lower(known.name);
    });
  };
  known_top_ = !is_root || (at.value->is_object() && std::ranges::any_of(format.keys, has_key));
  return read_object(at, format.keys, [&](std::size_t position, const Place& place) -> Status {
    const KeyFormat& key = format.keys[position];
    if (key.name == "system") return read_top(place);
    for (const auto& [list, wrapper, read] : kSections) {
      const auto read_section = [&](const Place& section) {
        if (list == "optimizer") return read_optimizer(section);
        return read_list(section, [&](const Place& item) { return (this->*read)(item); });
      };
      if (key.name == list) return read_section(place);
      if (key.name == wrapper)
        return read_object(place, key.value.keys->keys,
                           [&](std::size_t, const Place& inner) { return read_section(inner); });
    }
    BERTH_ASSERT(false);
    return {};
  });
}

Status DocumentReader::read_accelerator(const Place& at) {
  std::string name;
  Accelerator a;
  BERTH_TRY(read_record(at, records::kAccelerator, a, {read_to("name", name)}));
  if (a.type.empty()) a.type = name;
  return keep(at, reading_.system.accelerators, name, std::move(a));
}

Status DocumentReader::read_capacity(const Place& at) {
  std::string type;
  Capacity capacity;
  const auto read_purchase = [&](const Place& place) -> Status {
    auto kind = PurchaseKind::on_demand;
    Purchase bought;
    BERTH_TRY(read_record(
        place, records::kPurchase, bought,
        {{"kind", [&](const Place& each) { return read_choice(each, kPurchaseNames, kind); }}}));
    if (!place.has("kind") || !place.has("cost")) return place.error("expected a kind and a cost");
    if (!capacity.purchases.emplace(kind, bought).second)
      return place.error(fmt::format("'{}' is given twice", name(kind)));
    return {};
  };
  BERTH_TRY(read_record(at, records::kCapacity, capacity,
                        {read_to("type", type), {"purchase", [&](const Place& place) {
                                                   return read_list(place, read_purchase);
                                                 }}}));
  if (!at.has("count"))
    for (const auto& [kind, bought] : capacity.purchases) capacity.count += bought.count;
  return keep(at, reading_.system.capacities, type, std::move(capacity));
}

Status DocumentReader::read_entry(const Place& at, Transfer& to) {
  if (at.value->is_object() && !at.has("fixed") && !at.has("pertoken"))
    return at.error("expected fixed, perToken or both, in ms");
  return read_record(at, records::kTransfer, to);
}

Status DocumentReader::read_model(const Place& at) {
  std::string name, accelerator;
  Performance p;
  Start start;
  BERTH_TRY(read_record(
      at, records::kModelEntry, p,
      {read_to("name", name),
       read_to("acc", accelerator),
       {"perfParms",
        [&](const Place& place) { return read_record(place, records::kPerformance, p); }},
       {"start", [&](const Place& place) { return read_value(place, start); }}}));
  if (name.empty()) return at.error("has no name");
  Model& model = reading_.system.models[name];
  if (accelerator.empty()) return {};  // a model of which only the name is known
  if (start != Start{}) model.starts[accelerator] = std::move(start);
  return keep(at, model.accelerators, accelerator, p);
}

Status DocumentReader::read_class(const Place& at) {
  std::string name;
  ServiceClass service_class;
  const auto read_target = [&](const Place& place) -> Status {
    std::string model;
    Target target;
    BERTH_TRY(read_record(place, records::kTarget, target, {read_to("model", model)}));
    return keep(place, service_class.targets, model, target);
  };
  BERTH_TRY(read_record(at, records::kServiceClass, service_class,
                        {read_to("name", name), {"modelTargets", [&](const Place& place) {
                                                   return read_list(place, read_target);
                                                 }}}));
  return keep(at, reading_.system.classes, name, std::move(service_class));
}

Status DocumentReader::read_histogram(const Place& at, LengthHistogram& to) {
  std::vector<LengthHistogram::Bin> bins;
  const auto read_bin = [&](const Place& place) -> Status {
    BERTH_TRY(read_record(place, records::kBin, bins.emplace_back()));
    if (!place.has("tokens") || !place.has("weight"))
      return place.error("expected tokens and a weight");
    return {};
  };
  BERTH_TRY(read_list(at, read_bin));
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
Status DocumentReader::read_entry(const Place& at, Load& to) {
  const auto histogram_key = [&](const LengthKeys& keys) {
    return OtherKey{keys.histogram, [&](const Place& place) {
                      return read_histogram(place, to.*keys.histogram_at);
                    }};
  };
  BERTH_TRY(read_record(at, records::kLoad, to,
                        {histogram_key(kLengthKeys[0]), histogram_key(kLengthKeys[1])}));
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

Status DocumentReader::read_entry(const Place& at, Start& to) {
  BERTH_TRY(read_record(at, records::kStart, to));
  auto status = check(to);
  if (!status) return fail(ErrorKind::invalid, "{}.{}", at.path(), status.error().message);
  return {};
}

Status DocumentReader::read_server(const Place& at) {
  std::string name;
  Server server;
  BERTH_TRY(read_record(at, records::kServer, server, {read_to("name", name)}));
  return keep(at, reading_.system.servers, name, std::move(server));
}

Status DocumentReader::read_optimizer(const Place& at) {
  known_ = true;
  Options& options = reading_.system.options;
  bool is_unlimited = false;
  BERTH_TRY(read_record(at, records::kOptions, options, {read_to("unlimited", is_unlimited)}));
  if (is_unlimited) options.solver = Solver::unlimited;
  if (auto status = check(options); !status)
    return fail(ErrorKind::invalid, "{}.{}", at.path(), status.error().message);
  return {};
}

Status DocumentReader::read_question(const Json& document, SizeQuestion& question, Server& server) {
  const Place root{&document, nullptr, {}, 0};
  Load load = server.current.load;
  BERTH_TRY(read_record(root, records::kSizeQuestion, question,
                        {{"load", [&](const Place& place) { return read_value(place, load); }},
                         {"currentAlloc", [&](const Place& place) {
                            server.current = {};
                            return read_value(place, server.current);
                          }}}));
  for (const auto& [key, value] : document.items())
    if (std::ranges::none_of(records::kSizeQuestion.formats, [&](const KeyFormat& known) {
          return lower(known.name) == lower(key);
        }))
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
