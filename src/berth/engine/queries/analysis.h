// What the tasks of finished runs teach: which parameters matter, and which resources steps need.
#pragma once

#include <string>
#include <vector>

#include "berth/experiment/importance.h"
#include "berth/run/state/advice.h"
#include "berth/run/state/context.h"

namespace berth::engine {

/// How much each parameter of a run decides a metric.
struct ImportanceReport {
  std::string run, metric;
  experiment::Importances found;
  std::size_t left_out = 0;  ///< Trials without a value of the metric.
  std::string because{};     ///< Why nothing is known yet; "" if something is.
};
/// `metric`: "" for the metric of the goal. The result has a `because` if too few trials have
/// finished. Errors: not_found; invalid, if there is neither a goal nor a metric.
Result<ImportanceReport> importance_of(run::Context& context, const std::string& run,
                                       const std::string& metric);

struct AdviceReport {
  std::string name;  ///< Of the runs, without their numbers.
  std::vector<run::StepAdvice> steps;
};
/// Suggests resources for the steps of a file, or of a run's file, from its latest runs. `of`: a
/// file if there is one of this name, otherwise a run. Errors: not_found; invalid.
Result<AdviceReport> advice_for(run::Context& context, const std::string& of);

}  // namespace berth::engine
