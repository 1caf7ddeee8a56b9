// berth/run.h: runs that this process records and drives itself.
#include <algorithm>
#include <atomic>
#include <utility>

#include "berth/base/guarded.h"
#include "berth/base/text.h"
#include "berth/library/own_cluster.h"
#include "berth/library/runs_state.h"
#include "berth/os/wake.h"
#include "berth/run/flow_run.h"
#include "berth/run/images.h"
#include "berth/run/prepare.h"
#include "berth/run/run_labels.h"
#include "berth/run/runner.h"
#include "berth/run/search_input.h"

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

/// A file that was read, and the folder that its tasks start in.
struct RunFile {
  std::string text, directory;
};

Result<RunFile> read_run_file(os::Env& env, const std::string& file) {
  BERTH_ASSIGN(auto text, env.read_file(file, flow::kMostFlowBytes));
  BERTH_ASSIGN(const auto path, env.real_path(file));
  return RunFile{std::move(text), path.substr(0, std::max<std::size_t>(path.rfind('/'), 1))};
}

Result<store::RunRecord> record_flow(run::Context& context, const RunFile& read,
                                     const std::string& file, const FileOptions& options) {
  run::FlowProgram program;
  program.text = read.text;
  program.file = file;
  for (const auto& [name, value] : options.set) {
    auto& set = program.options.set;
    const auto known = std::ranges::find(set, name, &std::pair<std::string, flow::Words>::first);
    if (known == set.end())
      set.emplace_back(name, flow::Words{value});
    else
      known->second.push_back(value);
  }
  BERTH_TRY(run::take_parts(*context.env, read.directory, program));
  BERTH_TRY(run::keep_reading(program));
  program.labels = program.reading->flow.labels;
  program.notify = program.reading->flow.notify;
  program.name = options.name.empty() ? program.reading->flow.name : options.name;
  program.parallel = options.parallel;
  program.outlive = true;
  const bool here = !options.elsewhere;
  BERTH_TRY(run::check_flow(context, program, read.directory, here));
  BERTH_ASSIGN(const auto missing, run::find_images(context, program, read.directory, here));
  if (!missing.empty())
    return fail(ErrorKind::not_found, "{}: image {} is not on this machine: download it first",
                file, missing.front());
  return run::submit(context, std::move(program), read.directory);
}

Result<store::RunRecord> record_trials(run::Context& context, const RunFile& read,
                                       const std::string& file, const FileOptions& options) {
  if (!options.set.empty())
    return fail(ErrorKind::invalid,
                "{}: set is for the parameters of flows, and this is not a flow", file);
  BERTH_ASSIGN(auto program, experiment::read_program(read.text, file));
  BERTH_TRY(run::read_sequence(*context.env, read.directory, program));
  if (!options.name.empty()) program.name = options.name;
  if (options.parallel > 0) program.parallel = options.parallel;
  program.outlive = true;
  if (!options.elsewhere) BERTH_TRY(run::check_program(context, program, read.directory, file));
  return run::submit(context, program, read.directory);
}

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

/// Says which keys of the run's file only a driver that is the `berth` program heeds.
void tell_of_unheeded(const store::RunRecord& record, Shown& shown) {
  std::vector<std::string> keys;
  if (!run::notify_of(record).empty()) keys.emplace_back("notify");
  if (record.kind == "flow")
    if (const auto program = run::flow_program(record.spec_json))
      if (const auto flow = run::read_flow(*program); flow && flow->on_end != exec::Command{})
        keys.emplace_back("on_end");
  if (keys.empty()) return;
  shown.on_note(fmt::format("{}: its {} {} the program that drives it: notify them after drive()",
                            record.name, join(keys, " and "),
                            keys.size() == 1 ? "is left to" : "are left to"));
}

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

Result<std::string> Runs::record(const Command& command, bool elsewhere) {
  if (command.argv.empty())
    return fail(ErrorKind::invalid, "argv: expected a command, got nothing");
  if (command.retries < 0 || command.timeout.count() < 0)
    return fail(ErrorKind::invalid, "retries and timeout: expected at least 0");
  experiment::Program program = run::program_of_command(command.argv);
  if (!command.name.empty()) program.name = command.name;
  if (!experiment::valid_name(program.name))
    return fail(ErrorKind::invalid, "name: '{}' is not the name of a run", program.name);
  if (!command.resources.empty()) program.resources = command.resources;
  program.retries = command.retries;
  program.timeout = command.timeout;
  program.environment = command.environment;
  program.outlive = true;
  os::Env& env = *state_->env;
  BERTH_ASSIGN(const auto directory,
               env.real_path(command.directory.empty() ? "." : command.directory));
  if (!elsewhere) BERTH_TRY(run::check_program(state_->context, program, directory, ""));
  BERTH_ASSIGN(const auto record, run::submit(state_->context, program, directory));
  return record.name;
}

Result<std::string> Runs::record_file(const std::string& file, const FileOptions& options) {
  if (!options.name.empty() && !experiment::valid_name(options.name))
    return fail(ErrorKind::invalid, "name: '{}' is not the name of a run", options.name);
  BERTH_ASSIGN(const auto read, read_run_file(*state_->env, file));
  const auto record = run::is_flow(read.text) ? record_flow(state_->context, read, file, options)
                                              : record_trials(state_->context, read, file, options);
  if (!record) return std::unexpected(record.error());
  return record->name;
}

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
  BERTH_ASSIGN(const auto record, context.store->find_run(name));
  if (options.cluster != nullptr)
    context.sources = [&](const store::RunRecord& of) -> Result<run::Sources> {
      BERTH_TRY(guarded("begin() of the cluster", [&] { return options.cluster->begin(of.name); }));
      return library::own_sources(*env, *options.cluster);
    };
  Shown shown(context, record, options.observer, stop.source);
  tell_of_unheeded(record, shown);
  const auto driven = run::drive(context, name, shown);
  if (!driven) record_left(context, name, driven.error());
  if (!shown.status()) return std::unexpected(shown.status().error());
  if (!driven) return std::unexpected(driven.error());
  return library::run_of(context, *driven);
}

}  // namespace berth
