#include "berth/engine/runs/results.h"

#include "berth/engine/queries/failures.h"
#include "berth/engine/queries/flow_steps.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/runs/detach.h"
#include "berth/run/state/clusters.h"
#include "berth/run/state/find_run.h"
#include "berth/run/state/run_end.h"

namespace berth::engine {

Result<RunResults> results_of(Context& context, const store::RunRecord& record,
                              std::size_t most_failures) {
  RunResults results{.shown = {record, state_now(*context.env, record)}};
  BERTH_ASSIGN(results.tasks, context.store->tasks(record.id));
  BERTH_ASSIGN(results.shown.used, context.store->usage(record.id));
  BERTH_ASSIGN(results.shown.failures, failures_of(context, record, results.tasks, most_failures));
  BERTH_ASSIGN(results.program, program_of(record));
  if (record.kind == "flow") {
    BERTH_ASSIGN(results.flow, flow_of(record));
    BERTH_ASSIGN(results.stale, run::stale_outputs(context, record, results.tasks));
  }
  BERTH_ASSIGN(results.exit_code, run::exit_code_of(*context.store, record));
  return results;
}

Result<RunResults> start_in_background(Context& context, const store::RunRecord& record) {
  BERTH_TRY(start_detached(context, record));
  RunResults results;
  BERTH_ASSIGN(results.tasks, context.store->tasks(record.id));
  BERTH_ASSIGN(results.shown.record, context.store->find_run(record.name));
  results.shown.state = state_now(*context.env, results.shown.record);
  return results;
}

Status confirm_sending(Context& context, const std::string& run) {
  BERTH_ASSIGN(const auto record, run::find_run(context, run));
  return run::confirm_sending(context, record);
}

}  // namespace berth::engine
