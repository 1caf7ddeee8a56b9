// The control loop of a fleet: what was measured of its servers, again and again, becomes how many
// replicas each should have now, with the reason. docs/explanation/fleet-days.md, "The control
// loop".
//
// Each server keeps the accelerator that it has: moving to another is a plan's, not a loop's.
// Nothing is given up before it was needless for `hold_s`, so no replica that was started is
// stopped sooner than that, but where a higher priority takes its place. What is missing or absurd
// moves nothing.
//
// Pure: time is handed in. An Autoscaler is a value; one thread at a time calls it. The same calls
// give the same decisions.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/names.h"
#include "berth/fleet/autoscale/load_estimate.h"
#include "berth/fleet/fleet.h"

namespace berth::fleet {

struct AutoscalerOptions {
  double interval_s = 30;      // between two decisions
  double startup_s = 180;      // until a new replica serves: what is planned for lies so far ahead
  double hold_s = 600;         // a replica is given up where so long nobody needed it
  double headroom = 0;         // part of the load that is planned for on top of it
  int most_up = 0;             // replicas that a server gets in one decision; 0: any number
  int most_down = 1;           // and that it gives up; 0: any number
  int most_changes_per_h = 0;  // replicas that a server gets and gives up in an hour; 0: any number
  double most_jump = 10;    // a rate of more times the greatest of late is believed the second time
  double most_drift = 0.5;  // beta and gamma are taken for at most so much more, as a part
  bool applies = true;      // decisions are carried out; else others scale, and are looked at
};
/// Errors: invalid, with what was wanted.
Status check(const AutoscalerOptions& options);

/// Whether the loop can scale the servers. Errors: invalid, with the server: it has a mix of
/// accelerators; impossible: it has an accelerator of whose type there is no capacity.
Status check_scalable(const System& system);

/// Mean tokens as they are planned for, in steps of 5 % upwards, so that the limits of percentiles
/// are simulated once for lengths that hardly differ.
double in_token_steps(double tokens);

enum class Action : std::uint8_t { keep, more, fewer, hold };
inline constexpr auto kActionNames = names<Action>({{Action::keep, "keep"},
                                                    {Action::more, "more"},
                                                    {Action::fewer, "fewer"},
                                                    {Action::hold, "hold"}});

struct Decision {
  std::string server, accelerator;
  Action action = Action::hold;
  bool is_known = false;  // how many it has; else `current` and `desired` are the document's
  int current = 0;        // replicas that it has, by what was measured or decided before
  int desired = 0;        // that it should have now
  std::optional<int> reporting{};  // replicas that told of themselves
  int needed = 0;                  // by the model for the load that is planned for; 0: not known
  double planned_per_min = 0;
  double drift = 1;       // what beta and gamma have turned out to be, as a multiple
  bool is_short = false;  // of capacity: it has fewer than it should have
  std::string reason{};
  bool operator==(const Decision&) const = default;
};

class Autoscaler {
 public:
  /// Servers without an accelerator get that of a plan for the loads of the document. Precondition:
  /// check(options).
  Autoscaler(System system, const AutoscalerOptions& options, const Execution& execution = {});

  /// One decision for each server, by name. `now_s` never goes back. A server that is not in `live`
  /// has no data.
  std::vector<Decision> decide(double now_s, const std::map<std::string, Live>& live,
                               const Execution& execution = {});

 private:
  using Times = std::deque<std::pair<double, double>>;  // when, what
  struct State {
    LoadEstimate estimate;
    std::optional<int> desired;  // by the last decision
    std::optional<int> counted;  // replicas that were seen last, at first the document's
    Times needs;                 // of the last hold_s
    Times desires;               // that were decided, of the last startup_s
    Times changes;               // replicas, of the last hour
    int batch = 0;               // that was planned last
  };
  struct Draft;

  void look(double now_s, Draft& draft, const Live& live);
  void size(double now_s, std::vector<Draft>& drafts, const Execution& execution);
  void choose(double now_s, Draft& draft) const;
  int allowed(double now_s, State& state, int wanted, int most_step, std::string& why) const;
  void fit_capacity(std::vector<Draft>& drafts) const;
  Decision conclude(double now_s, Draft& draft) const;

  System system_;
  AutoscalerOptions options_;
  std::map<std::string, State> states_;
};

}  // namespace berth::fleet
