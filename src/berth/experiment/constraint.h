// A constraint is what a trial has to keep besides doing well: latency <= 50. A trial that breaks
// one is infeasible: it is never the best, and searches prefer trials that break less. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/experiment/program.h"

namespace berth::experiment {

/// Reads "METRIC <= NUMBER", with <=, <, >= or >. Errors: invalid.
Result<Constraint> read_constraint(std::string_view text);
/// The text that read_constraint() reads.
std::string constraint_text(const Constraint& constraint);

/// How far a trial is beyond the bound, as a part of the bound (of 0: of 1), so that constraints in
/// different units count alike; above 0 the constraint is broken. nullopt: not reported.
std::optional<double> excess(const Constraint& constraint, const Numbers& metrics);
/// The texts of the constraints that a finished trial breaks or has not reported.
std::vector<std::string> broken(const std::vector<Constraint>& constraints, const Numbers& metrics);
/// The sum of what it is beyond the bounds; 0: feasible; HUGE_VAL: one was not reported.
double violation(const std::vector<Constraint>& constraints, const Numbers& metrics);
/// A finished trial with its score.
struct Scored {
  double score = 0;
  std::int64_t number = 0;  // of the trial
};
/// Returns true if `a` is the better trial. Of equal scores the trial with the lower number is
/// better, whichever ended first: a resume, another process and `berth best` name the same one.
bool is_better(const Goal& goal, const Scored& a, const Scored& b);

/// The score of a finished trial; nullopt: not reported, or the trial is infeasible.
std::optional<double> feasible_score(const Goal& goal, const std::vector<Constraint>& constraints,
                                     const Numbers& metrics);

}  // namespace berth::experiment
