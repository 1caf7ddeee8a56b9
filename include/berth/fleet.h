// The planner: how many of which accelerator a fleet of LLM inference servers needs, at the least
// cost and within its service level objectives. A Fleet is read from documents
// (docs/reference/fleet-documents.md), edited, and asked. docs/explanation/fleet-model.md has the
// formulas.
//
//   auto fleet = berth::Fleet::read_path("fleet.json");
//   fleet->set("capacity.H100", 16);
//   const berth::Fleet::Plan plan = fleet->plan();
//   for (auto& [server, a] : plan.servers)
//     std::cout << server << ": " << a.allocation.text << ", " << a.reason << '\n';
//
// Units: milliseconds; requests a minute where a name says per_min; tokens; cents an hour; watts.
// Ownership: a Fleet and its answers are values of the caller's. Threads: any number may ask one
// Fleet at a time, one alone may change it; an answer is computed on all cores and has the same
// bytes on any number of them. Errors: invalid names the entry and its field, not_found suggests
// the nearest name; a call that fails changes nothing. A plan never fails: a server that cannot be
// served has a reason.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/error.h"

namespace berth {

class BERTH_EXPORT Fleet {
 public:
  struct Document {
    std::string name;  ///< For errors.
    std::string text;  ///< JSON.
  };

  enum class Model : std::uint8_t { calibrated, reference };
  enum class Solver : std::uint8_t { optimal, greedy, unlimited };
  /// What the greedy solver gives to servers that it cannot serve.
  enum class Saturation : std::uint8_t {
    none,
    priority_exhaustive,
    priority_round_robin,
    round_robin
  };
  struct Options {
    Model model = Model::calibrated;
    Solver solver = Solver::optimal;
    Saturation saturation = Saturation::none;
    bool delayed_best_effort = false;  ///< Greedy: after all priorities, not after each.
    bool heterogeneous = false;        ///< Mixes of two accelerators for one server too.
    bool disaggregated = false;        ///< Prefill and decode apart, where that is better.
    std::optional<double> power_budget_w{};
  };

  struct Load {
    double arrivals_per_min = 0;
    double in_tokens = 0, out_tokens = 0;          ///< Means of a request.
    double in_cv = 0, out_cv = 0, arrival_cv = 1;  ///< Standard deviation / mean.
  };

  /// What a server has or is to get; no accelerator: nothing. A mix, and a split into prefill and
  /// decode, has parts; then replicas and cost are sums.
  struct Allocation {
    std::string accelerator;
    std::string role{};  ///< "whole"; of a part of a split "prefill" or "decode".
    int replicas = 0, batch = 0;
    double cost = 0;
    double itl_ms = 0, ttft_ms = 0;  ///< Expected means.
    double utilisation = 0;          ///< 0 to 1.
    Load load{};
    std::vector<Allocation> parts{};
    std::string text{};  ///< For people: "3 × H100".
  };
  struct Difference {
    std::string from, to;  ///< Accelerators.
    int replicas = 0;      ///< More, or fewer.
    double cost = 0;
  };

  /// A server on an accelerator, as its load needs it.
  struct Candidate {
    std::string accelerator;
    std::string refusal{};  ///< Why it is none: "ITL not met even when idle"; "": it is one.
    Allocation allocation{};
    double replica_per_min = 0;  ///< The greatest rate that one replica serves within the targets.
    std::string binding{};       ///< The constraint that keeps a replica from a greater rate.
    double watts = 0;            ///< Of all replicas.
    double value = 0;            ///< transition_value() from what the server has.
    std::optional<bool> saturated{};  ///< By the load; nullopt: not known.
  };

  struct Assignment {
    bool served = false;
    Allocation allocation{};  ///< Of an unserved server nothing, or a part of what it needs.
    double watts = 0, value = 0;
    std::string reason{};  ///< For people: the binding constraint, or why it is not served.
  };
  struct TypeTotal {
    std::string type;
    std::int64_t used = 0;
    std::optional<std::int64_t> limit{};  ///< nullopt under the solver `unlimited`.
    double cost = 0;
    double shadow_price = 0;  ///< What one more would save, by the bound.
  };
  struct Plan {
    std::map<std::string, Assignment> servers;
    std::vector<TypeTotal> totals;  ///< By type.
    double cost = 0, watts = 0;
    double value = 0;             ///< Summed over the served servers.
    double bound = 0;             ///< No plan that serves as many is below it.
    double gap = 0;               ///< (value − bound) / max(1, cost).
    std::map<int, int> unserved;  ///< How many, by priority.
    bool stopped = false;         ///< By the time limit: the best plan so far.
    std::string json;             ///< What `berth plan --json` prints of it.
  };

  /// Merges documents by their keys (acceleratorData, capacityData, modelData, serviceClassData,
  /// serverData, optimizerData). invalid: also for an entry that differs between two.
  static Result<Fleet> read(std::span<const Document> documents);
  /// A file, or every .json file of a directory. Errors also of files.
  static Result<Fleet> read_path(const std::string& path);
  Fleet(const Fleet&);
  Fleet(Fleet&&) noexcept;
  Fleet& operator=(const Fleet&);
  Fleet& operator=(Fleet&&) noexcept;
  ~Fleet();

  /// Unknown keys, names that refer to nothing and may be misspelt, and missing limits of replicas
  /// (maxBatchSize, atTokens) with what a plan assumes instead.
  std::vector<std::string> notes() const;
  /// One document that read() reads as the same fleet.
  std::string write() const;
  std::vector<std::string> servers() const;
  std::vector<std::string> accelerators() const;

  /// Adds the document's entries, or puts them in the place of those of the same name; a model's
  /// performance by accelerator, a class's targets by model. Its optimizerData does not count.
  Status put(const Document& document);
  /// "server.NAME", "accelerator.NAME", "model.NAME", "class.NAME", "capacity.TYPE".
  Status remove(std::string_view path);
  /// One value: capacity.TYPE, accelerator.NAME.cost, class.NAME.priority, optimizer.powerBudget,
  /// and server.NAME.F where F is arrivalRate, avgInTokens, avgOutTokens, minNumReplicas,
  /// maxBatchSize…
  Status set(std::string_view path, double value);
  Options options() const;
  Status set_options(const Options& options);

  /// `time_limit` 0: none, and the plan has the same bytes everywhere.
  Plan plan(std::chrono::milliseconds time_limit = {}) const;
  /// The server on each accelerator, refused ones too.
  Result<std::vector<Candidate>> candidates(const std::string& server) const;

  /// What the server has now, and making an allocation that.
  Result<Allocation> current(const std::string& server) const;
  Status apply(const std::string& server, const Allocation& allocation);

  /// Sizes the server on the accelerator for its load. impossible: with why it is no candidate.
  Result<Allocation> allocate(const std::string& server, const std::string& accelerator) const;
  /// The same accelerator for a new load. impossible: also for a mix, which has to be replanned.
  Result<Allocation> scale(const std::string& server, const Allocation& allocation,
                           const Load& load) const;
  /// Moves the server to the candidate of the least value.
  Result<Allocation> reallocate(const std::string& server) const;
  /// Whether the rate exceeds what the replicas serve within the targets.
  Result<bool> saturated(const std::string& server, const Allocation& allocation,
                         double arrivals_per_min) const;
  /// Of all replicas; 0 if no power curves are known.
  Result<double> power_w(const std::string& server, const Allocation& allocation) const;
  /// Of an accelerator at a utilisation in 0 to 1.
  Result<double> accelerator_power_w(const std::string& accelerator, double utilisation) const;
  /// The difference in cost, and 0.1 of what is given up and begun where the accelerator changes.
  double transition_value(const Allocation& from, const Allocation& to) const;
  static Difference difference(const Allocation& from, const Allocation& to);

 private:
  struct State;
  explicit Fleet(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth
