// The control loop of berth autoscale: every interval it asks Prometheus what the servers of a
// fleet do, has fleet::Autoscaler decide, keeps each decision in a file, and publishes it: as
// metrics for HPA and KEDA, and by a command of the person's own. Without `applies` it gives
// advice, and publishes no desired replicas.
//
// Ownership: refers to the Env and the plugin. Threads: one, but metrics() and decisions_json() may
// be called on any. Failure: what fails is told in the decisions' reasons and tried again at the
// next interval; turn() fails only where waiting does.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "berth/api/autoscale_metrics.h"
#include "berth/api/prometheus.h"
#include "berth/fleet/autoscale/autoscaler.h"

namespace berth::api {

/// The last decisions that a record keeps: the file grows to this, and one older file stays.
inline constexpr std::int64_t kMostRecord = 64LL << 20;

struct LoopOptions {
  fleet::AutoscalerOptions autoscaler;
  double window_s = 60;                          // rates are over the last such while
  std::string prometheus, token;                 // its URL, and what it wants of bearers
  std::map<std::string, std::string> selectors;  // by server; else by the name of its model
  std::string hook;                              // for sh, on each change; "": none
  std::string name_space = "default";
  bool old_names = false;
  std::string record;  // a file, in a directory that exists
};
/// Errors: invalid: two servers whose metrics are the same; as fleet::check().
Status check(const LoopOptions& options, const fleet::System& system);
/// The selector of a server's metrics.
std::string selector_of(const LoopOptions& options, const std::string& name,
                        const fleet::Server& server);

/// A decision as it is recorded: one line of JSON.
std::string decision_json(const fleet::Decision& decision, const fleet::Live& live, Wall at,
                          bool applies);

class ControlLoop {
 public:
  /// `told` is given the decisions of each turn, in order of the servers.
  using Told = std::function<void(const std::vector<fleet::Decision>& decisions,
                                  const std::map<std::string, fleet::Live>& live)>;
  /// Precondition: check().
  ControlLoop(os::Env& env, const remote::Cloud& cloud, const fleet::System& system,
              LoopOptions options, fleet::Execution execution, Told told);

  /// Asks, decides, records and publishes, once.
  Status turn();
  /// Turns every interval until a stop signal.
  Status run();

  /// Queries, hooks and records that failed so far.
  std::int64_t failures() const;
  std::string metrics() const;
  /// The last decisions: {"decisions": […]}.
  std::string decisions_json() const;

 private:
  std::map<std::string, fleet::Live> ask();
  Status call_hook(const fleet::Decision& decision, int before);
  Result<bool> ends_with_a_line() const;
  Status hand_over(const std::vector<fleet::Decision>& decisions);
  void record(const std::vector<fleet::Decision>& decisions,
              const std::map<std::string, fleet::Live>& live);
  void publish(const std::vector<fleet::Decision>& decisions,
               const std::map<std::string, fleet::Live>& live);
  void complain(const std::string& what, std::string message);

  os::Env& env_;
  std::map<std::string, std::string> queries_;  // by server
  LoopOptions options_;
  fleet::Execution execution_;
  Told told_;
  Prometheus prometheus_;
  fleet::Autoscaler autoscaler_;
  std::map<std::string, int> handed_over_;         // replicas, by server
  std::map<std::string, std::string> complaints_;  // the last one of each kind
  Scalings scalings_;
  Published published_;
  mutable std::mutex mutex_;  // of the two below
  std::string metrics_, decisions_;
};

}  // namespace berth::api
