// From a recorded run to the loop that drives it.
#include "berth/run/runner.h"

#include "berth/run/drive.h"

namespace berth::run {
namespace {

Result<std::unique_ptr<Workload>> workload_of(Site& site, const store::RunRecord& record) {
  if (record.kind == "flow") return flow_tasks(site, record);
  BERTH_ASSIGN(auto program, experiment::from_json_text(record.spec_json));
  return trials(site, record, std::move(program));
}

}  // namespace

Result<store::RunRecord> drive(Site& site, const std::string& run_name, Observer& observer) {
  BERTH_ASSIGN(store::RunRecord record, site.store->find_run(run_name));
  const std::string directory = run_directory(site, record.name);
  BERTH_TRY(site.env->make_directory(directory, 0700));
  const auto lock = site.env->lock(directory + "/lock", false);
  if (!lock) {
    if (lock.error().kind == ErrorKind::busy)
      return fail(ErrorKind::busy, "{} is running already, under process {}", record.name,
                  record.runner_pid);
    return std::unexpected(lock.error());
  }
  BERTH_ASSIGN(auto left, find_agents(*site.env, directory, record.epoch + 1));
  BERTH_ASSIGN(const int orphans, end_orphans(*site.env, directory, left.tokens));
  if (orphans > 0)
    observer.on_note(
        fmt::format("ended {} process{} of an earlier runner", orphans, orphans == 1 ? "" : "es"));
  BERTH_ASSIGN(auto workload, workload_of(site, record));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(*site.env, site.ledger_directory));
  BERTH_ASSIGN(auto log, LogWriter::open(*site.env, directory));
  Drive loop(site, std::move(record), std::move(workload), observer, std::move(ledger),
             std::move(log), std::move(left));
  return loop.go();
}

}  // namespace berth::run
