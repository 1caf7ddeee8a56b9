#include "berth/run/flows/flow_tasks.h"

#include <algorithm>

#include "berth/flow/attempt_request.h"
#include "berth/run/flows/taken_outputs.h"

namespace berth::run {
namespace {

constexpr std::size_t kMostClosing = 1024;
/// Looked at before the loop gets its turn again.
constexpr int kTasksPerTurn = 64;

/// How the steps of a flow go together.
void describe_steps(const flow::Flow& flow, RunOptions& options) {
  for (const auto& step : flow.steps) {
    options.steps.push_back(step.name);
    if (step.selection != machine::DeviceSelection() &&
        std::ranges::find(options.selections, step.selection) == options.selections.end())
      options.selections.push_back(step.selection);
    options.stop_on_failure = options.stop_on_failure || step.stops_run;
    options.shares_devices = options.shares_devices || machine::takes_part(step.resources);
    step.resources.each([&](std::string_view resource, std::int64_t amount) {
      options.most.set(resource, std::max(amount, options.most.get(resource)));
    });
  }
}

}  // namespace

FlowTasks::FlowTasks(Context& context, store::RunRecord record, FlowProgram program,
                     fileset::ObjectStore cache)
    : run_{.context = context,
           .env = *context.env,
           .directory = run_directory(context, record.name),
           .record = std::move(record),
           .program = std::move(program),
           .cache = std::move(cache)},
      temporary_(run_, graph_),
      dependencies_(run_.env, *run_.context.store, run_.record.directory,
                    [this](const std::string& path) { return graph_.graph().writer_of(path); }),
      inputs_(run_.env, run_.cache, run_.record.directory, run_.context.cloud),
      deliveries_(run_, [this](TaskNumber task, Token token) {
        const auto now = prepared_.find(task.value);
        return now != prepared_.end() && now->second.token == token;
      }) {
  options_.parallel = run_.program.parallel;
  options_.outlive = run_.program.outlive;
  options_.retain = run_.program.retain;
  options_.in_turn = true;
}

std::size_t FlowTasks::step_of(const store::TaskRecord& task) const {
  const std::string_view name = std::string_view(task.label).substr(0, task.label.find('/'));
  const auto& steps = graph_.graph().flow().steps;
  const auto found = std::ranges::find(steps, name, &flow::Step::name);
  return static_cast<std::size_t>(found - steps.begin());
}

ResourceRequest FlowTasks::request(const store::TaskRecord& task, std::int64_t attempt) const {
  const flow::Step& step = graph_.graph().flow().steps.at(step_of(task));
  return {.resources = flow::resources_of(step, attempt),
          .selection = step.selection,
          .priority = step.priority,
          .retries = step.retries,
          .timeout = flow::timeout_of(step, attempt),
          .tolerated = !step.stops_run};
}

Status FlowTasks::take_over(std::span<const store::TaskRecord> tasks) {
  BERTH_ASSIGN(auto flow, read_flow(run_.program));
  options_.allow_failures = run_.program.allow_failures.value_or(flow.allow_failures);
  describe_steps(flow, options_);
  // Only this runner has the permission: a later one may meet other edits.
  if (run_.env.remove_file(overwrite_file(run_.directory))) run_.program.overwrite = true;
  auto world = world_of(run_.env, run_.record.directory, run_.program.answers);
  world.content = [this](const fileset::Entry& file) {
    return run_.cache.content(file, flow::kMostJsonBytes);
  };
  BERTH_TRY(graph_.build(std::move(flow), std::move(world), tasks));
  (void)run_.cache.sweep();
  return sweep_directories(run_, tasks);
}

Result<Next> FlowTasks::next() {
  Next next;
  next.changes = std::exchange(late_, {});
  for (int looked = 0;;) {
    BERTH_TRY(graph_.update(next));
    temporary_.release(next);
    if (const auto taken = graph_.take_taken(); !taken.empty()) {
      for (const auto task : taken) BERTH_TRY(take_outputs(graph_.graph(), inputs_, task));
      continue;
    }
    if (came_.empty() && !graph_.has_next()) break;
    if ((came_.empty() && looked == kTasksPerTurn) || wants_commit()) {
      next.more = true;
      break;
    }
    flow::TaskIndex task;
    Status status;
    if (!came_.empty()) {
      auto came = std::move(came_.front());
      came_.pop_front();
      task = came.task;
      if (came.placed) graph_.free_room(task);
      if (!came.placed) came.placed = place_now(run_, came.delivery);
      status = came.then(came.delivery, *came.placed, next);
    } else {
      run_.cache.keep_lock();
      for (; status && looked < kTasksPerTurn && graph_.has_next(); ++looked) {
        task = *graph_.take();
        status = consider(task, next);
      }
      run_.cache.release_lock();
    }
    if (status) continue;
    graph_.put_back(task);
    if (status.error().kind == ErrorKind::interrupted) break;
    if (!is_resource_shortage(status.error())) return std::unexpected(status.error());
    // Short of descriptors, say: a commit lets go of some, and so does what runs when it ends.
    const bool closes = !until_commit_.closing.empty();
    if (!closes && prepared_.empty()) return std::unexpected(status.error());
    until_commit_.starved = next.more = closes;
    break;
  }
  std::ranges::move(run_.cache.take_damage(), std::back_inserter(next.notes));
  return next;
}

bool FlowTasks::wants_commit() const {
  return until_commit_.starved || temporary_.removes() ||
         until_commit_.closing.size() >= kMostClosing;
}

void FlowTasks::committed() {
  until_commit_.closing.clear();
  for (const auto& directory : until_commit_.emptied) (void)run_.cache.remove_published(directory);
  until_commit_ = {};
  temporary_.committed();
}

void FlowTasks::close(std::vector<fileset::Hold>& holds) {
  std::ranges::move(holds, std::back_inserter(until_commit_.closing));
}

Status FlowTasks::consider(flow::TaskIndex index, Next& next) {
  const std::string name = graph_.graph().name(index);
  const TaskNumber number = graph_.number(name, next);
  const auto* recorded = graph_.recorded(name);
  if (recorded == nullptr) return take_up(index, number, next);
  if (recorded->state == store::TaskState::running) {
    // An agent still runs what an earlier runner started: its record stands.
    PreparedTask prepared{
        .index = index, .key = recorded->digest, .token = recorded->token, .adopted = true};
    prepared.declared = flow::record_with(recorded->depends, {});
    BERTH_ASSIGN(prepared.spec, graph_.graph().spec(index));
    prepared_.insert_or_assign(number.value, std::move(prepared));
  } else if (recorded->state != store::TaskState::failed) {
    BERTH_TRY(recall(index, *recorded, next));
  }
  graph_.forget(name);
  return {};
}

/// What the task depends on, and what the cache has of it.
Result<FlowTasks::Lookup> FlowTasks::look_up(flow::TaskIndex index, PreparedTask& prepared,
                                             Next& next) {
  std::vector<std::string> records{depends_of(prepared)};
  std::optional<std::string> lists;  // their key
  if (!prepared.spec.depfile.empty()) {
    run_.cache.release_lock();  // what it named is read
    prepared.declared = std::move(records.front());
    lists = result_key(run_, lists_of(prepared.declared), true);
    BERTH_ASSIGN(records, dependencies_.records(*lists, prepared.declared));
  }
  if (records.empty()) records.push_back(prepared.declared);
  Lookup looked;
  std::size_t taken = 0;
  const bool forced = graph_.step(index).forced || temporary_.is_made_again(index);
  const bool looks = reads(run_.program.cache) && !forced && !prepared.spec.outputs.empty();
  for (std::size_t i = 0; looks && i < records.size(); ++i) {
    looked.key = result_key(run_, records[i], true);
    BERTH_ASSIGN(looked.gone, temporary_.find_gone(index, looked.key));
    if (!looked.gone) {
      BERTH_ASSIGN(looked.found, find_result(run_, looked.key, graph_.step(index), &looked.origin));
    }
    if (!looked.found && !looked.gone) continue;
    taken = i;
    if (lists)
      if (auto again = dependencies_.again(*lists)) next.changes.emplace_back(*std::move(again));
    break;
  }
  looked.depends = std::move(records[taken]);
  return looked;
}

/// What has to be done: from the cache, or by starting it.
Status FlowTasks::take_up(flow::TaskIndex index, TaskNumber number, Next& next) {
  PreparedTask prepared{.index = index};
  const auto ready = [&]() -> Result<bool> {
    BERTH_ASSIGN(prepared.spec, graph_.graph().spec(index));
    return inputs_.fill(prepared, true);
  }();
  if (ready && !*ready) {
    graph_.take_room(index);
    return {};
  }
  // What is gone was told by its digest: it is enough to look the task up.
  const bool gone = !ready && ready.error().kind == ErrorKind::not_found &&
                    prepared.inputs.size() == prepared.spec.inputs.size();
  if (!ready && !gone) {
    if (is_resource_shortage(ready.error()) || ready.error().kind == ErrorKind::interrupted)
      return std::unexpected(ready.error());
    prepared.error = ready.error();
    return start(number, std::move(prepared), next);
  }
  BERTH_ASSIGN(Lookup looked, look_up(index, prepared, next));
  if (looked.gone)
    return temporary_.leave_gone(
        index,
        {.number = number, .changes = {store::TaskKeyed{number, looked.key, looked.depends}}},
        looked.key, *std::move(looked.gone));
  auto& found = looked.found;
  if (!found) {
    if (temporary_.await(index, prepared.spec, next)) return {};
    run_.cache.release_lock();
    if (!gone) return check_and_start(number, std::move(prepared), std::move(looked.depends), next);
    prepared.error = ready.error();
    next.changes.emplace_back(assign_key(run_, prepared, number, looked.depends));
    return start(number, std::move(prepared), next);
  }
  found->spec = prepared.spec;
  return bring(index, *std::move(found),
               [this, number, depends = looked.depends, key = looked.key, origin = looked.origin,
                prepared = std::move(prepared)](Delivery& result, const Status& placed,
                                                Next& later) mutable -> Status {
                 if (!placed && is_resource_shortage(placed.error())) return placed;
                 if (!placed) {
                   // Damaged objects are as good as none.
                   if (placed.error().kind != ErrorKind::not_found) prepared.error = placed.error();
                   later.changes.emplace_back(assign_key(run_, prepared, number, depends));
                   return start(number, std::move(prepared), later);
                 }
                 later.changes.emplace_back(store::TaskKeyed{number, key, depends});
                 later.changes.emplace_back(store::ResultKept{
                     key, to_text(result.outputs, result.metrics), origin, run_.env.wall()});
                 later.settled.push_back({number, store::TaskState::cached});
                 close(result.holds);
                 temporary_.wrote(prepared.index, key, origin, result.outputs);
                 return graph_.graph().finish(prepared.index, std::move(result.outputs),
                                              std::move(result.metrics));
               });
}

/// Starts a task whose outputs can be put at their places; another one starts with its error.
Status FlowTasks::check_and_start(TaskNumber number, PreparedTask prepared, std::string depends,
                                  Next& next) {
  Delivery delivery{.spec = prepared.spec,
                    .folder = run_.record.directory,
                    .overwrite = run_.program.overwrite,
                    .protected_file = protected_file(run_.directory)};
  const flow::TaskIndex index = prepared.index;
  Brought then = [this, number, depends = std::move(depends), prepared = std::move(prepared)](
                     Delivery&, const Status& checked, Next& later) mutable -> Status {
    if (!checked && is_resource_shortage(checked.error())) return checked;
    if (!checked) prepared.error = checked.error();
    later.changes.emplace_back(assign_key(run_, prepared, number, depends));
    return start(number, std::move(prepared), later);
  };
  if (!check_takes_long(run_.env, delivery)) {
    const Status checked = check_places(run_.env, run_.cache, run_.placed, delivery);
    return then(delivery, checked, next);
  }
  BERTH_TRY(deliveries_.check(std::move(delivery), [this, index, then = std::move(then)](
                                                       Delivery looked, Status checked) mutable {
    came_.push_back({index, std::move(looked), std::move(checked), std::move(then)});
  }));
  graph_.take_room(index);
  return {};
}

Status FlowTasks::start(TaskNumber number, PreparedTask prepared, Next& next) {
  graph_.take_room(prepared.index);
  next.start.push_back(number);
  prepared_.insert_or_assign(number.value, std::move(prepared));
  return {};
}

/// What an earlier runner has finished; where its outputs are no more, it is to be done again.
Status FlowTasks::recall(flow::TaskIndex index, const store::TaskRecord& recorded, Next& next) {
  const auto done = [this, index, key = recorded.digest, number = recorded.number,
                     state = recorded.state, label = recorded.label](
                        Delivery& result, const Status& placed, Next& later) -> Status {
    // The task is done; what a person has changed at its place since then stays.
    const bool is_kept = !placed && placed.error().kind == ErrorKind::exists;
    if (!placed && !is_kept) {
      later.reopened.push_back(number);
      graph_.put_back(index);
      return {};
    }
    if (is_kept) later.notes.push_back(label + " stays done: " + placed.error().message);
    later.settled.push_back({number, state});
    close(result.holds);
    temporary_.wrote(index, key, run_.record.name + "/" + label, result.outputs);
    return graph_.graph().finish(index, std::move(result.outputs), std::move(result.metrics));
  };
  Delivery none;
  if (recorded.state == store::TaskState::skipped)
    return done(none, fail(ErrorKind::not_found, "there is something to do now"), next);
  const std::size_t outputs = graph_.step(index).out.size();
  none.metrics = recorded.metrics;
  if (outputs == 0) return done(none, {}, next);
  BERTH_ASSIGN(auto left, temporary_.find_gone(index, recorded.digest));
  if (left)
    return temporary_.leave_gone(index, {recorded.number, recorded.state, true}, recorded.digest,
                                 *std::move(left));
  BERTH_ASSIGN(auto found, find_result(run_, recorded.digest, graph_.step(index), nullptr));
  auto spec = graph_.graph().spec(index);
  if (!found || !spec) return done(none, fail(ErrorKind::not_found, "no result"), next);
  // It may have died between recording them and bringing them to their places. Where that cannot
  // be, the task says so itself.
  found->spec = *std::move(spec);
  return bring(index, *std::move(found), done);
}

/// To their places from the store, and `then`, when next() comes to it: a place may be slow.
Status FlowTasks::bring(flow::TaskIndex task, Delivery delivery, Brought then) {
  if (!takes_long(run_.env, delivery)) {
    came_.push_back({task, std::move(delivery), std::nullopt, std::move(then)});
    return {};
  }
  BERTH_TRY(deliveries_.place(std::move(delivery), [this, task, then = std::move(then)](
                                                       Delivery brought, Status placed) mutable {
    came_.push_back({task, std::move(brought), std::move(placed), std::move(then)});
  }));
  graph_.take_room(task);
  return {};
}

/// interrupted: a stop came before a resume had looked at everything, and an agent tells of a task
/// that was not looked at yet; the next resume runs it again.
Result<PreparedTask*> FlowTasks::find(const store::TaskRecord& task) {
  const auto found = prepared_.find(task.number.value);
  if (found == prepared_.end())
    return fail(ErrorKind::interrupted, "{}: stopped before it was taken over", task.label);
  return &found->second;
}

Result<exec::Launch> FlowTasks::launch(const store::TaskRecord& task, Token token,
                                       std::int64_t attempt) {
  BERTH_ASSIGN(PreparedTask * known, find(task));
  PreparedTask& prepared = *known;
  const Token earlier = std::exchange(prepared.token, token);
  if (earlier.value == 0)
    graph_.free_room(prepared.index);
  else
    (void)run_.cache.remove_published(task_directory(run_.directory, task.number, earlier));
  if (prepared.adopted) {
    BERTH_ASSIGN(prepared.spec, graph_.graph().spec(prepared.index));
    BERTH_TRY(inputs_.fill(prepared, false));
    prepared.declared = depends_of(prepared);
    late_.emplace_back(assign_key(run_, prepared, task.number, prepared.declared));
    prepared.adopted = false;
  }
  if (prepared.error) return std::unexpected(*prepared.error);
  const std::string directory = task_directory(run_.directory, task.number, token);
  BERTH_TRY(inputs_.publish(prepared, directory));
  BERTH_TRY(prepare_outputs(run_.env, prepared.spec, directory));
  if (graph_.step(prepared.index).names_attempt) {
    BERTH_ASSIGN(auto spec, graph_.graph().spec(prepared.index, attempt));
    prepared.spec.command = std::move(spec.command);
  }
  if (!prepared.spec.depfile.empty())
    BERTH_TRY(show_folder(run_.env, prepared.spec, run_.record.directory, directory));
  prepared.launched = run_.env.wall();
  return launch_of(run_, graph_.step(prepared.index), prepared, task, attempt);
}

Result<bool> FlowTasks::finish(const store::TaskRecord& task, Token token,
                               std::vector<store::Change>& changes, bool later) {
  BERTH_ASSIGN(PreparedTask * known, find(task));
  known->metrics = task.metrics;
  Delivery delivery{.spec = known->spec,
                    .folder = run_.record.directory,
                    .directory = task_directory(run_.directory, task.number, token),
                    .inputs = known->inputs,
                    .overwrite = run_.program.overwrite,
                    .protected_file = protected_file(run_.directory)};
  if (!known->spec.depfile.empty()) BERTH_TRY(learn(*known, task, delivery.directory));
  if (later && (deliveries_.is_placing(task.number) || takes_long(run_.env, delivery))) {
    BERTH_TRY(deliveries_.deliver({task.number, token, task.label}, std::move(delivery)));
    return false;
  }
  Status status = gather(run_.cache, delivery);
  if (status) status = place_now(run_, delivery);
  BERTH_TRY(conclude(*known, task.label, delivery, std::move(status), changes));
  return true;
}

/// What its depfile tells goes into the key of its result.
Status FlowTasks::learn(PreparedTask& prepared, const store::TaskRecord& task,
                        const std::string& directory) {
  const auto step = graph_.graph().step_of(prepared.index);
  const Wall started =
      prepared.launched != Wall{} ? prepared.launched : task.started.value_or(Wall{});
  BERTH_ASSIGN(const auto found,
               dependencies_.found({prepared.spec, directory, started, [&](flow::TaskIndex writer) {
                                      return graph_.graph().waits_for(
                                          step, graph_.graph().step_of(writer));
                                    }}));
  const bool shared = writes(run_.program.cache);
  prepared.learned = {
      assign_key(run_, prepared, task.number, flow::record_with(prepared.declared, found))};
  BERTH_ASSIGN(prepared.learned.emplace_back(),
               dependencies_.with(result_key(run_, lists_of(prepared.declared), shared), found,
                                  run_.record.name + "/" + task.label));
  return {};
}

/// Of a task whose process has ended well: its result is kept, whether it could be placed or not.
Status FlowTasks::conclude(PreparedTask& prepared, const std::string& label, Delivery& delivery,
                           Status placed, std::vector<store::Change>& changes) {
  close(delivery.holds);
  if (!delivery.gathered) return placed;
  keep_result(run_, prepared, label, std::move(delivery.outputs), changes);
  // To run it again would not make room there.
  if (!placed && placed.error().kind == ErrorKind::full)
    return fail(ErrorKind::impossible, "{}; its output is kept in the cache",
                placed.error().message);
  return placed;
}

bool FlowTasks::take_news() {
  const bool inputs = inputs_.take_news();
  return deliveries_.take_news() || inputs;
}

std::vector<Finished> FlowTasks::turn() {
  for (const auto task : inputs_.turn()) {
    graph_.free_room(task);
    graph_.put_back(task);
  }
  std::vector<Finished> all;
  for (auto& [attempt, delivery, status] : deliveries_.turn()) {
    Finished& finished = all.emplace_back(Finished{.token = attempt.token});
    finished.status = conclude(prepared_.at(attempt.task.value), attempt.label, delivery,
                               std::move(status), finished.changes);
  }
  return all;
}

bool FlowTasks::busy() const {
  return inputs_.busy() || deliveries_.busy() || !came_.empty() || temporary_.removes();
}

/// It is done, for what it wrote is kept: a resume brings that to its places, as it does for one
/// that was killed there.
std::vector<Finished> FlowTasks::leave(Mono begun_before) {
  std::vector<Finished> all;
  for (auto& [attempt, outputs, holds, note] : deliveries_.leave(begun_before)) {
    Finished& finished = all.emplace_back(Finished{.token = attempt.token});
    finished.note = std::move(note);
    keep_result(run_, prepared_.at(attempt.task.value), attempt.label, std::move(outputs),
                finished.changes);
    close(holds);
    left_ = true;
  }
  return all;
}

Status FlowTasks::ended(const store::TaskRecord& task, Token token, store::TaskState to) {
  if (to == store::TaskState::waiting) return {};
  auto found = prepared_.extract(task.number.value);
  if (!found) return {};
  PreparedTask& prepared = found.mapped();
  if (prepared.token.value == 0) graph_.free_room(prepared.index);
  until_commit_.closing.push_back(std::move(prepared.hold));
  if (to != store::TaskState::done) return {};
  until_commit_.emptied.push_back(task_directory(run_.directory, task.number, token));
  temporary_.wrote(prepared.index, prepared.key, run_.record.name + "/" + task.label,
                   prepared.outputs);
  if (temporary_.is_made_again(prepared.index))
    return temporary_.was_made_again(prepared.index, std::move(prepared.outputs));
  return graph_.graph().finish(prepared.index, std::move(prepared.outputs),
                               std::move(prepared.metrics));
}

Result<std::unique_ptr<Workload>> flow_tasks(Context& context, const store::RunRecord& record) {
  BERTH_ASSIGN(auto program, flow_program(record.spec_json));
  BERTH_ASSIGN(auto cache, open_cache(context));
  return std::make_unique<FlowTasks>(context, record, std::move(program), std::move(cache));
}

}  // namespace berth::run
