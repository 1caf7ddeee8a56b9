// berth/run.h: runs that this process drives itself.
#include <algorithm>
#include <atomic>
#include <utility>

#include "berth/base/guarded.h"
#include "berth/base/text.h"
#include "berth/engine/runs/drive.h"
#include "berth/library/own_cluster.h"
#include "berth/library/runs_state.h"
#include "berth/os/wake.h"
#include "berth/run/drive/runner.h"

namespace berth {

struct Stop::State {
  os::StopSource source;
  std::atomic<bool> in_use = false;
};

Stop::Stop() : state_(std::make_unique<State>()) {}
Stop::~Stop() = default;
void Stop::request() noexcept {
  state_->source.request();
}

namespace {

/// Shows a run that is driven to an observer of the program's own. One that throws stops the run.
class Shown final : public run::Observer {
 public:
  Shown(run::Context& context, store::RunRecord record, RunObserver* observer, os::StopSource& stop)
      : context_(context), record_(std::move(record)), observer_(observer), stop_(stop) {}

  const Status& status() const { return status_; }

  void on_progress(const run::Progress& progress, Mono) override {
    if (observer_ == nullptr || progress.counts == counts_) return;
    counts_ = progress.counts;
    if (const auto record = context_.store->find_run(record_.name))
      tell([&] { observer_->on_progress(library::run_of(context_, *record)); });
  }
  void on_task_end(const run::TaskEnd& end) override {
    if (observer_ == nullptr || end.again) return;
    if (const auto task = context_.store->find_task(record_.id, end.label))
      tell([&] { observer_->on_task_end(library::task_of(*task)); });
  }
  void on_output(const exec::Output& output) override {
    if (observer_ == nullptr) return;
    const std::string& label = label_of(output.task);
    tell([&] { observer_->on_output(label, output.stream == exec::Stream::err, output.bytes); });
  }
  void on_note(const std::string& note) override {
    if (observer_ != nullptr) tell([&] { observer_->on_note(note); });
  }

 private:
  template <class Call>
  void tell(const Call& call) {
    if (!status_) return;
    status_ = guarded("the observer", call);
    if (!status_) stop_.request();
  }
  const std::string& label_of(TaskNumber task) {
    const auto at = static_cast<std::size_t>(task.value - 1);
    if (at >= labels_.size())
      if (const auto tasks = context_.store->tasks(record_.id))
        for (std::size_t i = labels_.size(); i < tasks->size(); ++i)
          labels_.push_back((*tasks)[i].label);
    if (at >= labels_.size()) labels_.resize(at + 1);
    return labels_[at];
  }

  run::Context& context_;
  store::RunRecord record_;
  RunObserver* observer_;
  os::StopSource& stop_;
  store::Counts counts_;
  std::vector<std::string> labels_;  // by number
  Status status_;
};

/// Nobody drives it any more, though the process that did lives on.
void record_left(run::Context& context, const std::string& name, const Error& because) {
  const auto self = context.env->self();
  const auto now = context.store->find_run(name);
  if (!now || !store::is_open(now->state) || now->runner_pid != self.pid ||
      now->runner_started_at != self.started_at)
    return;
  (void)context.store->apply(
      now->id, {{store::RunMoved{store::RunState::stopped, context.env->wall(), because.message,
                                 now->result}}});
}

/// A Stop belongs to one drive() at a time.
class InUse {
 public:
  explicit InUse(std::atomic<bool>& in_use) : in_use_(in_use) {}
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() { in_use_ = false; }

 private:
  std::atomic<bool>& in_use_;
};

}  // namespace

Result<Run> Runs::drive(const std::string& name, const DriveOptions& options) {
  Stop unasked;
  Stop::State& stop = *(options.stop != nullptr ? *options.stop : unasked).state_;
  if (stop.in_use.exchange(true))
    return fail(ErrorKind::busy, "stop: it belongs to another drive() now");
  const InUse in_use(stop.in_use);
  if (stop.source.wake().descriptor() < 0)
    return fail(ErrorKind::full, "no descriptor is left for a Stop");
  // What drives has a world of its own: the requests of `stop` are its stop signals.
  const auto env = os::posix_env(stop.source);
  BERTH_ASSIGN(auto context, library::open_runs(*env, state_->state_directory));
  context.program = state_->context.program;
  BERTH_ASSIGN(const auto record, context.store->find_run(name));
  if (options.cluster != nullptr)
    context.sources = [&](const store::RunRecord& of) -> Result<run::Sources> {
      BERTH_TRY(guarded("begin() of the cluster", [&] { return options.cluster->begin(of.name); }));
      return library::own_sources(*env, *options.cluster);
    };
  Shown shown(context, record, options.observer, stop.source);
  const auto driven = engine::drive(
      context, name, shown, [&](std::string_view text) { shown.on_note(std::string(trim(text))); });
  if (!driven) record_left(context, name, driven.error());
  if (!shown.status()) return std::unexpected(shown.status().error());
  if (!driven) return std::unexpected(driven.error());
  return library::run_of(context, *driven);
}

}  // namespace berth
