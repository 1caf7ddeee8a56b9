// One server by itself: what each accelerator would be for it, what it has now, and its best move.
// It is all that there is to be asked about one allocation in one answer, which berth size prints
// and /v1/servers/NAME/size gives.
//
// Pure; any thread. Units as in fleet.h.
#pragma once

#include <optional>
#include <string>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

struct SizeQuestion {
  std::string accelerator;  // whatever the server keeps; "": each of those that it may have
  int replicas = 0;         // 0: as many as the load and the server's minimum need
};

/// An allocation of the server under its load, and what a replica of it can take.
struct SizedAllocation {
  Allocation allocation;  // nothing where it is refused, unless the server has it now
  Refusal refusal = Refusal::none;
  double rate_per_s = 0;  // the greatest rate of a replica within the targets; 0: none, or
                          // a mix, which has several
  Binding rate_binding = Binding::none;  // what keeps it from a greater one
  Binding binding = Binding::none;       // of the replicas: min_replicas, or that of the rate
  bool is_rate_asked_for = false;        // by Execution::rate_limit
  std::optional<bool> saturated;         // by the load; nullopt: not known
  double watts = 0;                      // of all replicas
  double value = 0;                      // transition_value() from what the server has
  Difference difference;                 // the same
};

struct ServerSize {
  std::string name;
  Server server;
  Target target;
  QueueModel model = QueueModel::calibrated;
  SizedAllocation current;  // what the server has, with the figures that its load gives it
  std::map<std::string, SizedAllocation> accelerators;  // "": none, for an idle server
  // The accelerator of the least value that is neither refused nor saturated; nullopt: there is
  // none.
  std::optional<std::string> best;
};

/// Errors: not_found: no server or no accelerator of that name, with the nearest; invalid: the
/// number of replicas. Mixes are looked at only where the server has one now.
Result<ServerSize> size_server(const System& system, const std::string& server,
                               const SizeQuestion& question = {}, const Execution& execution = {});

/// The same, asked by a document such as {"accelerator": "H100", "numReplicas": 2, "load":
/// {"arrivalRate": 1500}, "currentAlloc": {…}}, of which each key may be left out, as may all of
/// the text. What `load` does not say is that of the server; `currentAlloc` stands in for what the
/// server has, but for its load. Keys match in any case. Errors: also invalid: an unknown key, or a
/// value that a fleet document may not have.
Result<ServerSize> size_as_asked(const System& system, const std::string& server,
                                 const Document& question, const Execution& execution = {});
/// Reads such a document into the question, and into the server what it is to have otherwise.
Status read_question(const Document& document, SizeQuestion& question, Server& server);

/// Why there is no best one: "A100: saturated; L4: ITL not met even when idle".
std::string why_no_best(const ServerSize& size);

/// One line of JSON: {"version": 1, "server", "class", "model", "load", "targets", "current": {…},
/// "candidates": {accelerator: {…}}, "refused": {accelerator: reason}, "best"}. Allocations have
/// the keys of the documents, and more.
std::string size_json(const ServerSize& size);
/// The best one, as it stands among the candidates. There has to be one.
std::string best_json(const ServerSize& size);

}  // namespace berth::fleet
