// The files of a flow's tasks: into their directories before they start, out of them when they have
// ended, and to their places beside the flow's file.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/os/failpoint.h"
#include "berth/run/flow_tasks.h"

namespace berth::run {
namespace {

constexpr std::size_t kInputsHeld = 8;
constexpr Duration kGrace = std::chrono::seconds(5);

}  // namespace

Result<fileset::Fileset> Inputs::get(const std::string& path) {
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  if (auto failed = failed_.extract(path)) return std::unexpected(std::move(failed.mapped()));
  BERTH_TRY(read_now(path));
  if (auto failed = failed_.extract(path)) return std::unexpected(std::move(failed.mapped()));
  return known_.at(path);
}

/// Beside the loop all the same, which waits here for nothing else.
Status Inputs::read_now(const std::string& path) {
  if (!aside_) aside_ = env_.aside();
  BERTH_TRY(aside_->start([this, path, read = reader(path)](os::Env& there) mutable {
    return [this, path, got = read(there)]() mutable { take(path, std::move(got)); };
  }));
  while (aside_->busy()) {
    if (env_.stop_signals() > 0)
      return fail(ErrorKind::interrupted, "stopped while {} was read", place(path));
    std::array<os::Watch, 1> watches{os::Watch{.fd = aside_->ready()}};
    BERTH_TRY(env_.wait(watches, std::nullopt));
    aside_->turn();
  }
  return {};
}

std::move_only_function<Result<Reading>(os::Env&)> Inputs::reader(const std::string& path) const {
  return [path = place(path), directory = cache_.directory()](os::Env& there) -> Result<Reading> {
    BERTH_ASSIGN(auto store, fileset::ObjectStore::open(there, directory));
    BERTH_ASSIGN(auto captured, store.capture(path, fileset::Expect::stored));
    // What is small becomes durable with others.
    if (takes_long(captured.fileset)) BERTH_TRY(store.make_durable());
    return Reading{std::move(store), std::move(captured)};
  };
}

void Inputs::take(const std::string& path, Result<Reading> read) {
  if (!read) {
    failed_.emplace(path, std::move(read).error());
    return;
  }
  cache_.adopt(std::move(read->store));
  latest_.push_front(std::move(read->captured.hold).in(env_));
  if (latest_.size() > kInputsHeld) latest_.pop_back();
  known_.emplace(path, std::move(read->captured.fileset));
}

Status Inputs::restore(const std::string& path) {
  const auto known = known_.extract(path);
  BERTH_ASSIGN(const auto now, get(path));
  if (!known || known.mapped() == now) return {};
  known_.insert_or_assign(path, known.mapped());
  return fail(ErrorKind::stale, "{}: it has changed since this run took it in", path);
}

/// false, where `later` allows it: an input is read first, and then it is looked at again.
Result<bool> FlowTasks::prepare(Prepared& prepared, bool later) {
  BERTH_ASSIGN(prepared.spec, graph_->spec(prepared.index));
  const std::string* last = nullptr;
  for (const auto& input : prepared.spec.inputs) {
    if (!later || input.world.empty() || !inputs_.missing(input.world)) continue;
    BERTH_TRY(read_aside(input.world));
    last = &input.world;
  }
  if (last != nullptr) {
    reading_.at(*last).push_back(prepared.index);
    count_unstarted(prepared.index, 1);
    return false;
  }
  for (const auto& input : prepared.spec.inputs) {
    if (input.world.empty()) {
      prepared.inputs.push_back(input.content);
    } else {
      BERTH_ASSIGN(prepared.inputs.emplace_back(), inputs_.get(input.world));
    }
  }
  BERTH_TRY(hold_inputs(prepared));
  return true;
}

/// All of them by one hold; those of the world that are not in the store any more are read again.
Status FlowTasks::hold_inputs(Prepared& prepared) {
  fileset::Fileset all;
  for (const auto& input : prepared.inputs)
    all.entries.insert(all.entries.end(), input.entries.begin(), input.entries.end());
  if (all.entries.empty()) return {};
  auto hold = cache_.hold(all);
  if (!hold && hold.error().kind == ErrorKind::not_found) {
    std::vector<fileset::Hold> meanwhile;
    for (std::size_t i = 0; i < prepared.inputs.size(); ++i) {
      const std::string& world = prepared.spec.inputs[i].world;
      auto one = cache_.hold(prepared.inputs[i]);
      if (one)
        meanwhile.push_back(*std::move(one));
      else if (one.error().kind == ErrorKind::not_found && !world.empty())
        BERTH_TRY(inputs_.restore(world));
    }
    hold = cache_.hold(all);
  }
  if (!hold) return std::unexpected(hold.error());
  prepared.hold = *std::move(hold);
  return {};
}

std::string FlowTasks::task_directory(TaskNumber number, Token token) const {
  return fmt::format("{}/tasks/{}-{}", directory_, number.value, token.value);
}

Status FlowTasks::place_here(Delivery& delivery) {
  for (;;) {
    BERTH_ASSIGN(const bool placed, place(env_, cache_, delivery));
    if (placed) return {};
    BERTH_TRY(judge(delivery));
  }
}

/// A folder is replaced whole, so all that goes with it must be what an earlier run of this task
/// wrote there. exists: names the first file that is not.
Status FlowTasks::judge(Delivery& delivery) {
  const std::size_t output = delivery.placed;
  const auto there = std::exchange(delivery.there, std::nullopt);
  auto strange = without(there->entries, delivery.outputs[output]);
  delivery.ours = true;
  BERTH_ASSIGN(const auto runs, site_.store->runs());
  for (auto run = runs.rbegin(); run != runs.rend() && !strange.empty(); ++run) {
    if (run->kind != "flow" || run->directory != record_.directory) continue;
    const auto task = site_.store->find_task(run->id, delivery.spec.name);
    if (!task) continue;
    const auto result = site_.store->result(task->digest);
    if (!result) continue;
    const auto outputs = parse_outputs(result->outputs);
    if (outputs && output < outputs->size()) strange = without(strange, (*outputs)[output]);
  }
  if (strange.empty()) return {};
  const auto& declared = delivery.spec.outputs[output];
  return fail(ErrorKind::exists,
              "out.{}: {}/{}: not written by this step; move it away, or it would be lost",
              declared.name, inputs_.place(declared.path), strange.front().path);
}

/// interrupted: a stop came before a resume had looked at everything, and an agent tells of a task
/// that was not looked at yet; the next resume runs it again.
Result<FlowTasks::Prepared*> FlowTasks::find(const store::TaskRecord& task) {
  const auto found = prepared_.find(task.number.value);
  if (found == prepared_.end())
    return fail(ErrorKind::interrupted, "{}: stopped before it was taken over", task.label);
  return &found->second;
}

Result<exec::Launch> FlowTasks::launch(const store::TaskRecord& task, Token token) {
  BERTH_ASSIGN(Prepared * known, find(task));
  Prepared& prepared = *known;
  const Token earlier = std::exchange(prepared.token, token);
  if (earlier.value == 0)
    count_unstarted(prepared.index, -1);
  else
    (void)cache_.remove_published(task_directory(task.number, earlier));
  if (prepared.adopted) {
    prepared.inputs.clear();  // of a try that found no room
    BERTH_TRY(prepare(prepared, false));
    key(prepared, task.number, depends_of(prepared), late_);
    prepared.adopted = false;
  }
  if (prepared.error) return std::unexpected(*prepared.error);
  const flow::TaskSpec& spec = prepared.spec;
  const std::string directory = task_directory(task.number, token);
  BERTH_TRY(env_.make_directory(directory, 0700));
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const std::string to = directory + "/" + spec.inputs[i].place;
    BERTH_TRY(env_.make_directory(parent_of(to), 0700));
    auto placed = cache_.publish(prepared.inputs[i], to, fileset::Publish::links);
    if (!placed && placed.error().kind == ErrorKind::not_found) {  // another task spoiled it
      BERTH_TRY(hold_inputs(prepared));
      placed = cache_.publish(prepared.inputs[i], to, fileset::Publish::links);
    }
    BERTH_TRY(placed);
  }
  for (const auto& output : spec.outputs) {
    const std::string to = directory + "/" + output.path;
    BERTH_TRY(env_.make_directory(output.directory ? to : parent_of(to), 0700));
  }
  if (spec.params_file)
    BERTH_TRY(env_.replace_file(directory + "/" + std::string(flow::kParamsFile),
                                experiment::values_json(spec.params) + "\n", 0600));
  exec::Environment environment;
  for (const auto& [name, value] : spec.params) set(environment, parameter_variable(name), value);
  for (const auto& [name, value] : spec.environment) set(environment, name, value);
  name_task(environment, directory_, record_, task, token);
  const flow::Step& of = step(prepared.index);
  exec::Launch launch{.task = task.number,
                      .token = token,
                      .request = {of.resources, record_.name + "/" + task.label, of.selection},
                      .argv = spec.command,
                      .environment = std::move(environment),
                      .directory = directory,
                      .timeout = of.timeout,
                      .grace = kGrace,
                      .enforce = of.enforce,
                      .gpu_mem_over = exec::watched(of.resources, of.gpu_mem_over),
                      .takes = {directory}};
  for (const auto& output : spec.outputs) launch.brings.push_back(directory + "/" + output.path);
  return launch;
}

Result<bool> FlowTasks::finish(const store::TaskRecord& task, Token token,
                               std::vector<store::Change>& changes, bool later) {
  BERTH_ASSIGN(Prepared * known, find(task));
  Delivery delivery{.spec = known->spec,
                    .folder = record_.directory,
                    .directory = task_directory(task.number, token),
                    .inputs = known->inputs};
  if (!later || (!is_placing(task.number) && !takes_long(env_, delivery))) {
    Status status = gather(cache_, delivery);
    if (status) status = place_here(delivery);
    BERTH_TRY(conclude(*known, task.label, delivery, std::move(status), changes));
    return true;
  }
  BERTH_TRY(deliver_aside(token, {task.number, task.label}, std::move(delivery)));
  return false;
}

void FlowTasks::keep(Prepared& prepared, const std::string& label,
                     std::vector<fileset::Fileset> outputs,
                     std::vector<store::Change>& changes) const {
  prepared.outputs = std::move(outputs);
  if (!prepared.key.empty())
    changes.emplace_back(store::ResultKept{prepared.key, to_text(prepared.outputs),
                                           record_.name + "/" + label, env_.wall()});
}

/// Of a task whose process has ended well: its result is kept, whether it could be placed or not.
Status FlowTasks::conclude(Prepared& prepared, const std::string& label, Delivery& delivery,
                           Status placed, std::vector<store::Change>& changes) {
  std::ranges::move(delivery.holds, std::back_inserter(closing_));
  if (!delivery.gathered) return placed;
  keep(prepared, label, std::move(delivery.outputs), changes);
  // To run it again would not make room there.
  if (!placed && placed.error().kind == ErrorKind::full)
    return fail(ErrorKind::io, "{}; what it wrote is kept in the cache", placed.error().message);
  return placed;
}

}  // namespace berth::run
