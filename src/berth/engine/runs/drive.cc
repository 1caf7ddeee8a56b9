#include "berth/engine/runs/drive.h"

#include "berth/engine/runs/notifications.h"
#include "berth/engine/runs/on_end.h"
#include "berth/run/state/find_run.h"

namespace berth::engine {

Result<store::RunRecord> drive(run::Context& context, const std::string& name,
                               run::Observer& observer, const Print& print,
                               const std::vector<TaskNumber>& only) {
  BERTH_ASSIGN(const auto record, run::find_run(context, name));
  Notifier notifier(context, record, observer, print);
  auto final = run::drive(context, name, notifier, only);
  observer.on_driven();
  if (final) conclude(context, *final, print);
  return final;
}

void conclude(run::Context& context, const store::RunRecord& record, const Print& print) {
  if (const auto status = run_on_end(context, record, print); !status)
    print(fmt::format("{}: on_end failed: {}\n", record.name, status.error().message));
  if (!store::is_open(record.state))
    start_notifying(context, record, exec::Notify::Event::end, "", {}, print);
}

}  // namespace berth::engine
