// The planner: how many of which accelerator a fleet of LLM inference servers needs, at the least
// cost and within its service level objectives (SLOs). A System describes the fleet, candidates()
// sizes each server on each accelerator, and solve() makes a Plan of them.
// docs/explanation/fleet-model.md has the formulas and their source.
//
// Pure: the functions keep nothing and may be called on any thread. The same fleet gives the same
// bytes, whatever the order of its entries and the number of threads, unless Execution::stop ended
// the search. Errors: invalid (names the entry and its field), not_found. A plan never fails: a
// server that cannot be served has a reason. Units: milliseconds; requests a minute where a name
// says per_min; money in cents an hour; watts.
#pragma once

#include <array>
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
#include "berth/fleet.h"
#include "berth/fleet/model/capacity.h"
#include "berth/fleet/model/start.h"
#include "berth/fleet/queueing/length_histogram.h"

namespace berth::fleet {

// ---- The fleet. Maps are by name; a name that refers to nothing is no error. --------------------

struct Power {
  double idle_w = 0, full_w = 0, mid_w = 0;
  double mid_utilisation = 0;
  bool operator==(const Power&) const = default;
};

struct Accelerator {
  std::string type;      // capacity is counted by type
  int multiplicity = 1;  // how many units of its type it consists of
  double memory_gb = 0, bandwidth_gb_s = 0;
  Power power;
  double cost = 0;
  std::string resource{};  // as Kubernetes calls it; "": resource_of() says
  // The labels of the nodes that have it; empty: any node; nullopt: not said.
  std::optional<std::map<std::string, std::string>> node_selector{};
  bool operator==(const Accelerator&) const = default;
};

/// How a step's time is made of alpha and of its prompts' tokens.
enum class StepForm : std::uint8_t {
  sum,  // alpha + betaPrefill·tokens
  max   // the greater of the two: the weights are read while prompts are computed
};

/// How long a prompt's cache takes from a replica that prefills to one that decodes.
struct Transfer {
  double fixed_ms = 0, per_token_ms = 0;  // of the prompt
  auto operator<=>(const Transfer&) const = default;
};

/// The performance of a model on an accelerator. A step takes alpha + beta·(its tokens of prefill
/// and decode) + gamma·(the tokens that these attend to). The last three are of the calibrated
/// model alone.
struct Performance {
  int accelerators = 1;        // how many accelerators one replica takes; 0 counts as 1
  int max_batch = 0;           // requests at the same time, each of
  std::int64_t at_tokens = 0;  // this many tokens
  double alpha_ms = 0, beta_ms = 0, gamma_ms = 0;
  double beta_prefill_ms = 0;  // beta of a prompt's token; 0: beta
  double ttft_offset_ms = 0;   // what the first token takes outside of steps
  StepForm form = StepForm::sum;
  // Of a cache that leaves a replica, to wherever it goes; nullopt: prefill and decode stay
  // together.
  std::optional<Transfer> transfer{};
  double prefill_ms() const { return beta_prefill_ms > 0 ? beta_prefill_ms : beta_ms; }
  auto operator<=>(const Performance&) const = default;
};

struct Model {
  std::map<std::string, Performance> accelerators;
  std::map<std::string, Start> starts{};  // by accelerator; a server's own `start` goes before
  bool operator==(const Model&) const = default;
};

/// The percentiles that there are targets and figures of, and their names.
inline constexpr std::array<double, 4> kPercentiles{0.50, 0.90, 0.95, 0.99};
inline constexpr std::array<std::string_view, 4> kPercentileNames{"p50", "p90", "p95", "p99"};

/// Of TTFT over requests, and of ITL over tokens, in the order of kPercentiles.
struct Percentiles {
  std::array<double, 4> ttft_ms{}, itl_ms{};
  auto operator<=>(const Percentiles&) const = default;
};

/// What of a request a replica does. Where prefill and decode are apart, a request goes through one
/// replica of each.
enum class Role : std::uint8_t { whole, prefill, decode };
std::string_view name(Role role);

/// What of targets a replica of the role is to meet: of one that prefills nothing for ITL, of one
/// that decodes nothing for TTFT.
Percentiles targets_of(Percentiles targets, Role role);

/// The service level objectives of a model; 0: none.
struct Target {
  double itl_ms = 0;          // between two tokens, on average
  double ttft_ms = 0;         // to the first token, on average
  double tps = 0;             // tokens a second, over all replicas
  Percentiles percentiles{};  // of the calibrated model alone
  bool has_percentiles() const { return percentiles != Percentiles{}; }
  auto operator<=>(const Target&) const = default;
};

struct ServiceClass {
  int priority = 100;                     // 1 is the highest, 100 the lowest
  std::map<std::string, Target> targets;  // by model
  bool operator==(const ServiceClass&) const = default;
};

struct Load {
  double arrivals_per_min = 0;
  double throughput = 0;  // as the document has it; not used
  double in_tokens = 0, out_tokens = 0;
  // Coefficients of variation: standard deviation / mean. 0: all are equal; an arrival_cv of 1 is
  // that of Poisson arrivals, at the server as a whole. Of the calibrated model alone.
  double in_cv = 0, out_cv = 0, arrival_cv = 1;
  // In place of a variation, all of the distribution: about in_tokens and out_tokens, whatever its
  // own mean. Of the calibrated model alone.
  LengthHistogram in_histogram{}, out_histogram{};
  auto operator<=>(const Load&) const = default;
};

/// What one server has, or is to get; without an accelerator: nothing. A mix of several
/// accelerators has parts: then `accelerator` and `batch` are those of the part with the most load,
/// replicas and cost are sums, and times and utilisation are means weighted by load. A split has
/// two parts, of the roles prefill and decode, each with all of the load: `accelerator` and `batch`
/// are those of the one that decodes, TTFT is of the one, ITL of the other, and utilisation is
/// weighted by replicas.
struct Allocation {
  std::string accelerator;
  Role role = Role::whole;  // of a part
  int replicas = 0, batch = 0;
  double cost = 0;
  double itl_ms = 0, ttft_ms = 0, utilisation = 0;
  Load load;
  // Expected by the calibrated model's closed form, of servers whose targets have percentiles.
  std::optional<Percentiles> percentiles{};
  std::vector<Allocation> parts;  // of a mix or a split; a part has no parts
  bool is_split() const { return !parts.empty() && parts.front().role != Role::whole; }
  bool operator==(const Allocation&) const = default;
};

struct Server {
  std::string service_class;  // "": Free
  std::string model;
  bool keep_accelerator = false;
  int min_replicas = 0;
  int max_batch = 0;  // 0: not set
  int max_queue = 0;
  bool spot = false;  // its replicas may be taken away
  Allocation current, desired;
  Start start{};
  bool operator==(const Server&) const = default;
};

using QueueModel = Fleet::Model;
using Solver = Fleet::Solver;
using Saturation = Fleet::Saturation;

struct Options {
  QueueModel model = QueueModel::calibrated;
  Solver solver = Solver::optimal;
  Saturation saturation = Saturation::none;  // greedy: what unserved servers get
  bool delayed_best_effort = false;          // greedy: after all priorities, not after each
  bool heterogeneous = false;                // optimal, unlimited: mixes of two accelerators too
  bool disaggregated = false;                // the same: splits into prefill and decode too
  // What all replicas may draw by the power curves; only optimal without mixes has it.
  std::optional<double> power_budget_w{};
  bool operator==(const Options&) const = default;
};

std::string_view name(StepForm form);

struct System {
  std::map<std::string, Accelerator> accelerators;
  std::map<std::string, Capacity> capacities{};  // by type; a type that is missing has none
  std::map<std::string, Model> models;
  std::map<std::string, ServiceClass> classes;
  std::map<std::string, Server> servers;
  Options options;
  bool operator==(const System&) const = default;
};

/// Errors: invalid, with the field and what was found: negative, not finite, all zero, out of
/// range.
Status check(const Accelerator& accelerator);
Status check(const Performance& performance);
Status check(const Model& model);
Status check(const Target& target);
Status check(const ServiceClass& service_class);
Status check(const Server& server);
/// Also a power budget that the solver cannot keep.
Status check(const Options& options);
/// The maximum number of entries in a list of a document, and of pairs of a server and an
/// accelerator: what a plan needs of time and memory grows with both.
inline constexpr std::size_t kMostEntries = 100'000, kMostPairs = 10'000'000;
/// Also kinds of purchase that the solver cannot tell apart, and more than kMostPairs.
Status check(const System& system);
/// Whether some type is bought in several ways.
bool has_purchases(const System& system);

/// Edit any of the maps above: put(system.models["llama"].accelerators, "H100", {…}). The value is
/// checked first, and an error changes nothing.
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

/// Sets one value by its path: capacity.TYPE, of a type with kinds of purchase
/// capacity.TYPE.reserved (on-demand, spot) and capacity.TYPE.reserved.cost, accelerator.NAME.cost,
/// class.NAME.priority, and server.NAME.F where F is arrivalRate, avgInTokens, avgOutTokens,
/// inTokensCv, outTokensCv (which takes the place of a histogram), arrivalCv, minNumReplicas,
/// maxBatchSize or maxQueueSize; optimizer.powerBudget. Keys match in any case, names exactly.
/// Errors: not_found if nothing is there; invalid as check().
Status set_value(System& system, std::string_view path, double value);

/// What the server's class asks for its model; nothing where either is not known.
Target target_of(const System& system, const Server& server);

/// The power in watts at a utilisation in 0..1: linear from idle to mid, and from there to full.
double power_w(const Accelerator& accelerator, double utilisation);
/// The power in watts of all replicas of an allocation of the server; 0 if no curves are known.
double power_w(const System& system, const Server& server, const Allocation& allocation);

struct Document {
  std::string name;  // for errors
  std::string text;  // JSON
};
struct Reading {
  System system;
  std::vector<std::string> notes;  // unknown keys, documents without anything of a fleet
};
/// Merges documents by their top-level keys (acceleratorData, capacityData, modelData,
/// serviceClassData, serverData, optimizerData, or the contents of these; within a "system" or
/// not). Keys match in any case. Errors: invalid, "fleet.json:
/// serverData.servers[3].minNumReplicas: wanted …", also for an entry that one document has twice,
/// or that differs between two.
Result<Reading> read_documents(std::span<const Document> documents);
/// Names that refer to nothing in the system and may be misspelt: of accelerators in performance
/// data, of types in capacities, of accelerators that servers have.
std::vector<std::string> dangling_names(const System& system);
/// Writes one document that read_documents() reads as the same system.
std::string write_document(const System& system);

// ---- Candidates: each server sized on each accelerator ------------------------------------------

/// Why an accelerator is no candidate for a server.
enum class Refusal : std::uint8_t {
  none,              // it is a candidate
  idle,              // there is no load and no minimum: the server needs no replica
  no_class,          // the server's class is not known
  no_model,          // the server's model is not known
  no_target,         // the class has no target for the model
  no_performance,    // no performance data of the model on the accelerator
  zero_performance,  // alpha, beta and gamma are all zero, and there is a load
  kept,              // the server keeps the accelerator that it has
  itl,               // the target is not met even by a nearly idle replica
  ttft,
  loss,        // even a nearly idle replica rejects too many requests
  memory,      // not one request fits into its memory
  overloaded,  // more replicas than can be counted
  // A percentile's target is not met even by a nearly idle replica.
  ttft_p50,
  ttft_p90,
  ttft_p95,
  ttft_p99,
  itl_p50,
  itl_p90,
  itl_p95,
  itl_p99,
};
std::string_view name(Refusal refusal);

/// The constraint that keeps a replica from serving a greater rate.
enum class Binding : std::uint8_t {
  none,
  itl,
  ttft,
  loss,
  throughput,
  tps,
  min_replicas,
  ttft_p50,
  ttft_p90,
  ttft_p95,
  ttft_p99,
  itl_p50,
  itl_p90,
  itl_p95,
  itl_p99,
};
std::string_view name(Binding binding);

/// One accelerator for one server. It is small, as there are hundreds of thousands.
struct Candidate {
  std::uint32_t accelerator = 0;  // index into Candidates::accelerators, or kNothing
  Role role = Role::whole;
  std::int32_t replicas = 0;
  std::int32_t batch = 0;
  std::int32_t units_per_replica = 0;  // of the accelerator's type
  double rate_per_s = 0;               // the greatest rate of a replica within the SLO
  double cost = 0;
  double value = 0;  // the objective: the cost relative to what the server has
  double itl_ms = 0, ttft_ms = 0, utilisation = 0;  // of a replica under its part of the load
  double watts = 0;                                 // of all replicas
  Binding binding = Binding::none;                  // of the replicas: min_replicas, or
  Binding rate_binding = Binding::none;             // of rate_per_s
  bool is_rate_asked_for = false;                   // rate_per_s is what Execution::rate_limit says

  static constexpr std::uint32_t kNothing = UINT32_MAX;  // an idle server that needs none
  std::int64_t units() const { return std::int64_t{units_per_replica} * replicas; }
};

struct Candidates {
  QueueModel model = QueueModel::calibrated;
  std::vector<std::string> servers, accelerators, types;  // each ascending
  std::vector<std::uint32_t> type_of;                     // by accelerator
  std::vector<int> priority;                              // by server
  std::vector<std::size_t> begin;  // by server, with the end of the last one behind
  std::vector<Candidate> all;      // by server, then by accelerator
  std::vector<Refusal> refusals;   // servers × accelerators, row-major
  // Of Options::disaggregated: the pools that a split may be made of, by server, then by
  // accelerator; those that prefill have no ITL, those that decode no TTFT.
  std::vector<std::vector<Candidate>> pools;
  bool stopped = false;  // by Execution::stop: limits not asked for are the closed form's

  std::span<const Candidate> of(std::size_t server) const {
    return std::span(all).subspan(begin[server], begin[server + 1] - begin[server]);
  }
};

/// What decides how great a rate one replica serves within targets for percentiles.
struct RateQuestion {
  Performance performance;
  Load load;  // lengths and variations, that of arrivals as a replica has it; no rate
  int batch = 1, queue = 0;
  Target target;
  Role role = Role::whole;
  double estimate_per_s = 0;  // the limit by the closed form
  auto operator<=>(const RateQuestion&) const = default;
};

/// How a computation is executed. By default it runs on one thread and nothing stops it.
struct Execution {
  /// Calls body(0) … body(count − 1), each once, in any order, on any threads.
  std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)> parallel_for;
  /// The greatest rate of a replica in requests a second, such as a simulation finds it; 0: there
  /// is none. It is asked for candidates whose targets have percentiles, once for each question, on
  /// any thread of parallel_for, and must give the same answer to the same question. Without it the
  /// closed form decides.
  std::function<double(const RateQuestion& question)> rate_limit;
  /// A search calls it now and then, on the caller's thread; true ends it with the best plan so
  /// far.
  std::function<bool()> stop;
  /// How many candidates the search for the optimum may visit (about 4·10⁸ a second).
  std::int64_t iteration_limit = 500'000'000;
};

Candidates candidates(const System& system, QueueModel model, const Execution& execution = {});

// ---- The plan ----------------------------------------------------------------------------------

enum class Why : std::uint8_t { served, partly, no_candidate, capacity, power };

struct Assignment {
  Why why = Why::served;
  Allocation allocation;  // of an unserved server: nothing, or a part of what it needs
  double watts = 0;
  double value = 0;
  bool is_spot = false;
  Binding binding = Binding::none;
  std::string reason;  // for people: the binding constraint, or why it is not served
};

struct PurchaseTotal {
  std::int64_t used = 0, limit = 0;
  double cost = 0;          // of all that is reserved, of the rest what is used
  double shadow_price = 0;  // as of TypeTotal
};

struct TypeTotal {
  std::string type{};
  std::int64_t used = 0;
  std::optional<std::int64_t> limit{};  // nullopt under the solver `unlimited`
  double cost = 0;
  double shadow_price = 0;  // the value that one more would save, by the bound
  std::map<PurchaseKind, PurchaseTotal> purchases{};
};

struct PowerTotal {
  double limit_w = 0;
  double shadow_price = 0;  // the value that one more watt would save, by the bound
};

struct Proof {
  std::map<int, int> unserved, unserved_bound;  // by priority; no plan leaves fewer than the bound
  double value = 0;                             // summed over the served servers
  double bound = 0;                             // no plan with these counts is below it
  double gap = 0;                               // (value − bound) / max(1, cost of the plan)
  bool stopped = false;                         // by stop(): a faster machine may get further
};

struct Plan {
  std::map<std::string, Assignment> servers;
  std::vector<TypeTotal> totals;      // by type
  std::optional<PowerTotal> power{};  // where there is a budget
  double cost = 0, watts = 0;
  Proof proof;
};

/// Precondition: check(system) with these options.
Plan solve(const System& system, const Candidates& candidates, const Options& options,
           const Execution& execution = {});
/// Calls candidates() and solve() with the system's options.
Plan plan(const System& system, const Execution& execution = {});

/// The plan as one line of JSON: {"allocations": {server: {…}}, "reasons": {…}, "proof": {…},
/// "totals":
/// [...]}; with candidates also "candidates": {server: {accelerator: {…}}} and "refused", the same
/// with reasons; with manifests "manifests": [{"server", "accelerator", "name", "replicas",
/// "file"}]. Whole numbers have no fraction: clients in Go refuse 128.0 for an integer.
std::string plan_json(const Plan& plan, const Candidates* candidates,
                      const std::vector<struct Manifest>* manifests = nullptr);

// ---- Operations on one allocation. server_size.h has all of them in one answer. -----------------

/// Sizes the server on the accelerator for its load, whatever accelerator it keeps. Errors:
/// not_found, which names the nearest that is known; impossible, with why it is no candidate.
Result<Allocation> create(const System& system, const std::string& server,
                          const std::string& accelerator, const Execution& execution = {});
/// Sizes the same accelerator for a new load. Errors: as create(), and impossible for a mix, which
/// has to be replanned.
Result<Allocation> scale(const System& system, const std::string& server,
                         const Allocation& allocation, const Load& load,
                         const Execution& execution = {});
/// Moves the server to the candidate of the least value. Errors: as create().
Result<Allocation> reallocate(const System& system, const std::string& server,
                              const Execution& execution = {});
/// Whether the load exceeds what the allocation's replicas serve within the SLO, at the batches
/// that suit it best. The load of a mix is split in proportion to the greatest rate of each part.
/// Errors: not_found, invalid.
Result<bool> saturated(const System& system, const std::string& server,
                       const Allocation& allocation, double arrivals_per_min,
                       const Execution& execution = {});
/// The value of going from one allocation to the other: the difference in cost, and, where the
/// accelerators differ, 0.1 of the cost that each loses or gains (for one accelerator in place of
/// another, 0.1 of both costs).
double transition_value(const Allocation& from, const Allocation& to, QueueModel model);
/// "H100", "H100 prefill".
std::string with_role(const std::string& accelerator, Role role);
/// "3 × H100", "2 × H100 + 1 × L4", "2 × H100 prefill + 3 × L4 decode", "".
std::string in_words(const Allocation& allocation);

struct Difference {
  std::string from, to;  // accelerators; of a mix "H100 + L4"
  int replicas = 0;      // more, or fewer
  double cost = 0;
};
Difference difference(const Allocation& from, const Allocation& to);

}  // namespace berth::fleet
