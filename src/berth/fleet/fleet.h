// How many of which accelerator a fleet of LLM inference servers needs, at least cost, within its
// service level objectives (SLOs): what is known of the fleet, what each accelerator would take for
// each server (candidates), and the plan made of them. docs/fleet.md has the formulas and their
// source.
//
// Pure: values in, values out; any thread, nothing kept. The same fleet gives the same bytes,
// whatever the order of its entries and the number of threads, unless stop() said to stop.
// Failure: invalid (names the entry and its field), not_found. A plan never fails: a server
// that cannot be served has a reason.
// Units: ms; requests a minute where a document says so; money is cents an hour; power watts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/result.h"

namespace berth::fleet {

// ---- What is known of a fleet. Maps are by name; names that nothing bears are no error. ---------

struct Power {
  double idle_w = 0, full_w = 0, mid_w = 0;
  double mid_utilisation = 0;
  bool operator==(const Power&) const = default;
};

struct Accelerator {
  std::string type;      // capacity is counted by type
  int multiplicity = 1;  // how many of its type it is made of
  double memory_gb = 0, bandwidth_gb_s = 0;
  Power power;
  double cost = 0;
  bool operator==(const Accelerator&) const = default;
};

struct Capacity {
  std::int64_t count = 0;  // of one type
  bool operator==(const Capacity&) const = default;
};

/// Of a model on an accelerator. A step with a batch of B and k tokens in all of prefill and decode
/// takes alpha + beta·(its tokens) + gamma·(the tokens they attend to).
struct Performance {
  int accelerators = 1;        // that one replica takes; 0 counts as 1
  int max_batch = 0;           // requests side by side, each of
  std::int64_t at_tokens = 0;  // this many tokens
  double alpha_ms = 0, beta_ms = 0, gamma_ms = 0;
  bool operator==(const Performance&) const = default;
};

struct Model {
  std::map<std::string, Performance> accelerators;
  bool operator==(const Model&) const = default;
};

/// 0: none.
struct Target {
  double itl_ms = 0;   // between two tokens
  double ttft_ms = 0;  // to the first token
  double tps = 0;      // tokens a second, over all replicas
  auto operator<=>(const Target&) const = default;
};

struct ServiceClass {
  int priority = 100;                     // 1 is the highest, 100 the lowest
  std::map<std::string, Target> targets;  // by model
  bool operator==(const ServiceClass&) const = default;
};

struct Load {
  double arrivals_per_min = 0;
  double throughput = 0;  // as a document tells it; not used
  double in_tokens = 0, out_tokens = 0;
  bool operator==(const Load&) const = default;
};

/// What one server has, or is to get. No accelerator: nothing. A mix of several accelerators has
/// parts: then `accelerator` and `batch` are those of the part that takes the most load, replicas
/// and cost are sums, times and utilisation are means by load.
struct Allocation {
  std::string accelerator;
  int replicas = 0, batch = 0;
  double cost = 0;
  double itl_ms = 0, ttft_ms = 0, utilisation = 0;
  Load load;
  std::vector<Allocation> parts;  // of a mix: one of each accelerator, without parts of its own
  bool operator==(const Allocation&) const = default;
};

struct Server {
  std::string service_class;  // "": Free
  std::string model;
  bool keep_accelerator = false;
  int min_replicas = 0;
  int max_batch = 0;  // 0: not set
  int max_queue = 0;
  Allocation current, desired;
  bool operator==(const Server&) const = default;
};

enum class QueueModel : std::uint8_t { calibrated, reference };
enum class Solver : std::uint8_t { optimal, greedy, unlimited };
enum class Saturation : std::uint8_t {
  none,
  priority_exhaustive,
  priority_round_robin,
  round_robin
};

struct Options {
  QueueModel model = QueueModel::calibrated;
  Solver solver = Solver::optimal;
  Saturation saturation = Saturation::none;  // greedy: what the unserved get
  bool delayed_best_effort = false;          // greedy: after all priorities, not after each
  bool heterogeneous = false;                // optimal, unlimited: mixes of two accelerators too
  bool operator==(const Options&) const = default;
};

/// As documents and the command line spell them, in any case; nullopt: no such.
std::optional<QueueModel> queue_model(std::string_view name);
std::optional<Solver> solver(std::string_view name);
std::optional<Saturation> saturation(std::string_view name);

struct System {
  std::map<std::string, Accelerator> accelerators;
  std::map<std::string, Capacity> capacities;  // by type; a type without has none
  std::map<std::string, Model> models;
  std::map<std::string, ServiceClass> classes;
  std::map<std::string, Server> servers;
  Options options;
  bool operator==(const System&) const = default;
};

/// invalid: names the field and what was found: negative, not finite, all zero, out of range.
Status check(const Accelerator& accelerator);
Status check(const Capacity& capacity);
Status check(const Performance& performance);
Status check(const Model& model);
Status check(const Target& target);
Status check(const ServiceClass& service_class);
Status check(const Server& server);
Status check(const System& system);

/// Edits of any of the maps above: put(system.models["llama"].accelerators, "H100", {…}). What is
/// put is checked first, and an error changes nothing.
template <class T>
Status put(std::map<std::string, T>& entries, const std::string& name, T value) {
  if (name.empty()) return fail(ErrorKind::invalid, "a name is empty");
  if (auto status = check(value); !status)
    return std::unexpected(within(name, std::move(status).error()));
  entries.insert_or_assign(name, std::move(value));
  return {};
}
template <class T>
Status remove(std::map<std::string, T>& entries, const std::string& name) {
  if (entries.erase(name) == 0) return fail(ErrorKind::not_found, "no '{}' is known", name);
  return {};
}
template <class T>
Result<T> get(const std::map<std::string, T>& entries, const std::string& name) {
  const auto found = entries.find(name);
  if (found == entries.end()) return fail(ErrorKind::not_found, "no '{}' is known", name);
  return found->second;
}

/// One value by its path: capacity.TYPE, accelerator.NAME.cost, class.NAME.priority, and
/// server.NAME.F where F is arrivalRate, avgInTokens, avgOutTokens, minNumReplicas, maxBatchSize or
/// maxQueueSize. Keys in any case, names exactly. not_found: nothing is there; invalid: as check().
Status set_value(System& system, std::string_view path, double value);

/// Watts at a utilisation in 0..1: linear from idle to mid, and from there to full.
double power_w(const Accelerator& accelerator, double utilisation);
/// Watts of all replicas of what the server has or is to get; 0 where no curves are known.
double power_w(const System& system, const Server& server, const Allocation& allocation);

struct Document {
  std::string name;  // for errors
  std::string text;  // JSON
};
struct Reading {
  System system;
  std::vector<std::string> notes;  // unknown keys, documents that hold nothing of a fleet
};
/// Merges documents by their top-level keys (acceleratorData, capacityData, modelData,
/// serviceClassData, serverData, optimizerData, or what stands within them; in a "system" or not),
/// keys in any case. invalid: "fleet.json: serverData.servers[3].minNumReplicas: wanted …"; also
/// for an entry that is given twice in one document, or differs between two.
Result<Reading> read_documents(std::span<const Document> documents);
/// Names that nothing of the system bears, which may be misspelt: performance data of a model on
/// an accelerator, capacities of a type, accelerators that servers have.
std::vector<std::string> dangling_names(const System& system);
/// One document that reads as the same system.
std::string write_document(const System& system);

// ---- What each accelerator would take for each server ------------------------------------------

/// Why an accelerator is none for a server.
enum class Refusal : std::uint8_t {
  none,              // it is a candidate
  idle,              // nothing has to be kept, and there is no load: the server needs none
  no_class,          // the server's class is not known
  no_model,          // the server's model is not known
  no_target,         // the class has no target for the model
  no_performance,    // no performance data of the model on the accelerator
  zero_performance,  // alpha, beta and gamma are all zero, and there is a load
  kept,              // the server keeps the accelerator that it has
  itl,               // not met even by an all but idle replica
  ttft,
  loss,        // an all but idle replica turns too many away
  memory,      // not one request fits into it
  overloaded,  // more replicas than can be counted
};
std::string_view name(Refusal refusal);

/// What keeps a replica from taking more.
enum class Binding : std::uint8_t { none, itl, ttft, loss, throughput, tps, min_replicas };
std::string_view name(Binding binding);

/// One accelerator for one server; small, as there are hundreds of thousands.
struct Candidate {
  std::uint32_t accelerator = 0;  // place in Candidates::accelerators; kNothing
  std::int32_t replicas = 0;
  std::int32_t batch = 0;
  std::int32_t units_per_replica = 0;  // of the accelerator's type
  double rate_per_s = 0;               // the greatest that a replica takes within the SLO
  double cost = 0;
  double value = 0;  // against what the server has: what is minimised
  double itl_ms = 0, ttft_ms = 0, utilisation = 0;  // of a replica under its part of the load
  double watts = 0;                                 // of all replicas
  Binding binding = Binding::none;

  static constexpr std::uint32_t kNothing = UINT32_MAX;  // an idle server that needs none
  std::int64_t units() const { return std::int64_t{units_per_replica} * replicas; }
};

struct Candidates {
  QueueModel model = QueueModel::calibrated;
  std::vector<std::string> servers, accelerators, types;  // each ascending
  std::vector<std::uint32_t> type_of;                     // by accelerator
  std::vector<int> priority;                              // by server
  std::vector<std::size_t> begin;                         // by server, and the end of the last
  std::vector<Candidate> all;                             // of a server by accelerator
  std::vector<Refusal> refusals;                          // servers × accelerators, row-major

  std::span<const Candidate> of(std::size_t server) const {
    return std::span(all).subspan(begin[server], begin[server + 1] - begin[server]);
  }
};

/// What a pure function is handed of the world. Empty: one after another; never stop.
struct Means {
  /// Calls body(0) … body(count − 1), each once, in any order, on any threads.
  std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)> parallel_for;
  /// Asked now and then by a search, on the caller's thread: true ends it with the best so far.
  std::function<bool()> stop;
  /// How often the search for the optimum may look at a candidate (a second is about 2·10⁸).
  std::int64_t looks = 350'000'000;
};

Candidates candidates(const System& system, QueueModel model, const Means& means = {});

// ---- The plan ----------------------------------------------------------------------------------

enum class Why : std::uint8_t { served, partly, no_candidate, capacity };

struct Assignment {
  Why why = Why::served;
  Allocation allocation;  // what there is for an unserved server: nothing, or a part
  double watts = 0;
  double value = 0;
  Binding binding = Binding::none;
  std::string reason;  // in words: what binds, or why it is not served
};

struct TypeTotal {
  std::string type{};
  std::int64_t used = 0;
  std::optional<std::int64_t> limit{};  // none under the solver `unlimited`
  double cost = 0;
  double shadow_price = 0;  // what one more of it would save of value, by the bound
};

struct Proof {
  std::map<int, int> unserved, unserved_bound;  // by priority; no plan leaves fewer than the bound
  double value = 0;                             // over all that is served
  double bound = 0;                             // no plan with these counts is below it
  double gap = 0;                               // (value − bound) / max(1, cost of the plan)
  bool stopped = false;                         // by stop(): so another machine may get further
};

struct Plan {
  std::map<std::string, Assignment> servers;
  std::vector<TypeTotal> totals;  // by type
  double cost = 0, watts = 0;
  Proof proof;
};

Plan solve(const System& system, const Candidates& candidates, const Options& options,
           const Means& means = {});
/// candidates() and solve() as the system's options say.
Plan plan(const System& system, const Means& means = {});

/// {"allocations": {server: {…}}, "reasons": {…}, "proof": {…}, "totals": [...]}, and of the
/// candidates "candidates": {server: {accelerator: {…}}}, "refused": the same with reasons; one
/// line. Whole numbers have no fraction: clients in Go refuse 128.0 for an integer.
std::string plan_json(const Plan& plan, const Candidates* candidates);

// ---- Operations on one allocation --------------------------------------------------------------

/// The server on the accelerator, sized for its load. impossible: says why it is no candidate.
Result<Allocation> create(const System& system, const std::string& server,
                          const std::string& accelerator);
/// The same accelerator under a new load. impossible: of a mix, which is to be planned anew.
Result<Allocation> scale(const System& system, const std::string& server,
                         const Allocation& allocation, const Load& load);
/// The accelerator of the least value against what the server has.
Result<Allocation> reallocate(const System& system, const std::string& server);
/// Whether the allocation's replicas are asked for more than they take within the SLO; those of a
/// mix together, its load split in proportion to what each takes at most.
Result<bool> saturated(const System& system, const std::string& server,
                       const Allocation& allocation, double arrivals_per_min);
/// What it costs to go from one to the other: the difference, and where the accelerators are not
/// the same ones 0.1·(what each loses or gains in cost): for one accelerator in place of another,
/// 0.1·(both).
double transition_value(const Allocation& from, const Allocation& to, QueueModel model);
/// "3 × H100", "2 × H100 + 1 × L4", "".
std::string in_words(const Allocation& allocation);

struct Difference {
  std::string from, to;  // accelerators; of a mix "H100 + L4"
  int replicas = 0;      // more, or fewer
  double cost = 0;
};
Difference difference(const Allocation& from, const Allocation& to);

}  // namespace berth::fleet
