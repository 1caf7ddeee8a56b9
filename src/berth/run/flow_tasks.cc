#include "berth/run/flow_tasks.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "berth/base/text.h"

namespace berth::run {
namespace {

/// Tasks that are prepared and not yet started: of each step enough that the machine never waits
/// for the next, and few in all, because each holds a descriptor.
constexpr std::int64_t kMostUnstarted = 128;
constexpr std::int64_t kMostUnstartedOfStep = 16;
constexpr std::size_t kMostClosing = 32;
/// Looked at before the loop gets its turn again.
constexpr int kTasksPerTurn = 64;
/// So many inputs, or places of outputs, may hang before others wait for them.
constexpr std::size_t kReadsAtOnce = 8;
constexpr std::size_t kOutputsAtOnce = 4;

/// What passes by itself, rather than being wrong with this task.
bool is_resource_shortage(const Error& error) {
  return error.kind == ErrorKind::full || error.kind == ErrorKind::busy;
}

}  // namespace

FlowTasks::FlowTasks(Site& site, store::RunRecord record, FlowProgram program,
                     fileset::ObjectStore cache)
    : site_(site),
      env_(*site.env),
      directory_(run_directory(site, record.name)),
      record_(std::move(record)),
      program_(std::move(program)),
      cache_(std::move(cache)),
      inputs_(env_, cache_, record_.directory),
      reads_(env_, kReadsAtOnce),
      outputs_(env_, kOutputsAtOnce) {
  options_.parallel = program_.parallel;
  options_.outlive = program_.outlive;
  options_.retain = program_.retain;
  options_.in_turn = true;
}

const flow::Step& FlowTasks::step(flow::TaskIndex task) const {
  return graph_->flow().steps[static_cast<std::size_t>(graph_->step_of(task).value)];
}

std::size_t FlowTasks::step_of(const store::TaskRecord& task) const {
  const std::string_view name = std::string_view(task.label).substr(0, task.label.find('/'));
  const auto& steps = graph_->flow().steps;
  const auto found = std::ranges::find(steps, name, &flow::Step::name);
  return static_cast<std::size_t>(found - steps.begin());
}

ResourceRequest FlowTasks::request(const store::TaskRecord& task) const {
  const flow::Step& step = graph_->flow().steps.at(step_of(task));
  return {step.resources, step.selection, step.priority, step.retries};
}

Status FlowTasks::take_over(std::span<const store::TaskRecord> tasks) {
  BERTH_ASSIGN(auto flow, read_flow(program_));
  for (const auto& step : flow.steps) {
    options_.steps.push_back(step.name);
    if (step.selection != machine::DeviceSelection() &&
        std::ranges::find(options_.selections, step.selection) == options_.selections.end())
      options_.selections.push_back(step.selection);
    options_.shares_devices = options_.shares_devices || machine::takes_part(step.resources);
    step.resources.each([&](std::string_view resource, std::int64_t amount) {
      options_.most.set(resource, std::max(amount, options_.most.get(resource)));
    });
  }
  for (const auto& task : tasks) {
    numbers_.emplace(task.label, task.number);
    if (store::final(task.state) || task.state == store::TaskState::running)
      recorded_.emplace(task.label, task);
  }
  last_ = static_cast<std::int64_t>(tasks.size());
  auto world = world_of(env_, record_.directory, program_.answers);
  world.held = [this](const std::string& task) -> std::optional<bool> {
    const auto known = recorded_.find(task);
    if (known == recorded_.end()) return std::nullopt;
    return known->second.state != store::TaskState::skipped;
  };
  BERTH_ASSIGN(auto graph, flow::Graph::build(std::move(flow), std::move(world)));
  graph_.emplace(std::move(graph));
  const auto& steps = graph_->flow().steps;
  queues_.resize(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) by_priority_.push_back(i);
  std::ranges::stable_sort(by_priority_, std::greater{},
                           [&](std::size_t step) { return steps[step].priority; });
  (void)cache_.sweep();
  return sweep_directories(tasks);
}

/// Of attempts that were lost or failed.
Status FlowTasks::sweep_directories(std::span<const store::TaskRecord> tasks) {
  const std::string all = directory_ + "/tasks";
  const auto names = env_.list(all);
  if (!names) return {};
  std::unordered_set<std::string> running;
  for (const auto& task : tasks)
    if (task.state == store::TaskState::running)
      running.insert(task_directory(task.number, task.token));
  for (const auto& name : *names)
    if (!running.contains(all + "/" + name)) BERTH_TRY(cache_.remove_published(all + "/" + name));
  return {};
}

/// Tasks are numbered as they become known; after a resume most are already.
TaskNumber FlowTasks::number_of(const std::string& name, Next& next) {
  const auto [found, is_new] = numbers_.try_emplace(name, TaskNumber{last_ + 1});
  if (is_new) {
    ++last_;
    next.added.push_back({name, {}});
  }
  return found->second;
}

/// The one of the greatest priority that has something to look at, and room for it.
std::optional<std::size_t> FlowTasks::next_step() const {
  if (unstarted_ >= kMostUnstarted) return std::nullopt;
  const auto found = std::ranges::find_if(by_priority_, [&](std::size_t step) {
    return !queues_[step].ready.empty() && queues_[step].unstarted < kMostUnstartedOfStep;
  });
  return found == by_priority_.end() ? std::nullopt : std::optional(*found);
}

Result<Next> FlowTasks::next() {
  Next next;
  next.changes = std::exchange(late_, {});
  for (int looked = 0;; ++looked) {
    BERTH_TRY(take_ready(next));
    const auto step = next_step();
    if (came_.empty() && ready_again_.empty() && !step) break;
    if (looked == kTasksPerTurn || wants_commit()) {
      next.more = true;
      break;
    }
    flow::TaskIndex task;
    Status status;
    if (!came_.empty()) {
      auto came = std::move(came_.front());
      came_.pop_front();
      task = came.task;
      count_unstarted(task, -1);
      status = came.then(next);
    } else {
      auto& ready = ready_again_.empty() ? queues_[*step].ready : ready_again_;
      task = ready.front();
      ready.pop_front();
      status = consider(task, next);
    }
    if (status) continue;
    queue_of(task).push_front(task);
    if (status.error().kind == ErrorKind::interrupted) break;
    if (!is_resource_shortage(status.error())) return std::unexpected(status.error());
    // Short of descriptors, say: a commit lets go of some, and so does what runs when it ends.
    if (closing_.empty() && prepared_.empty()) return std::unexpected(status.error());
    starved_ = next.more = !closing_.empty();
    break;
  }
  next.notes = cache_.take_damage();
  return next;
}

std::deque<flow::TaskIndex>& FlowTasks::queue_of(flow::TaskIndex task) {
  return queues_[static_cast<std::size_t>(graph_->step_of(task).value)].ready;
}

bool FlowTasks::wants_commit() const {
  return starved_ || closing_.size() >= kMostClosing;
}

void FlowTasks::committed() {
  closing_.clear();
  starved_ = false;
  for (const auto& directory : emptied_) (void)cache_.remove_published(directory);
  emptied_.clear();
}

void FlowTasks::count_unstarted(flow::TaskIndex task, std::int64_t change) {
  unstarted_ += change;
  queues_[static_cast<std::size_t>(graph_->step_of(task).value)].unstarted += change;
}

Status FlowTasks::take_ready(Next& next) {
  BERTH_ASSIGN(const auto ready, graph_->take_ready());
  for (; seen_ < graph_->known(); ++seen_) (void)number_of(graph_->name({seen_}), next);
  for (const auto task : ready.run) {
    const auto step = static_cast<std::size_t>(graph_->step_of(task).value);
    (recorded_.contains(graph_->name(task)) ? ready_again_ : queues_[step].ready).push_back(task);
  }
  for (const auto task : ready.skipped) {
    const std::string name = graph_->name(task);
    recorded_.erase(name);
    next.settled.push_back({number_of(name, next), store::TaskState::skipped});
  }
  // An edited flow may have fewer tasks than the run.
  if (graph_->done() && !std::exchange(done_, true))
    for (const auto& [name, number] : numbers_)
      if (!graph_->find(name)) next.settled.push_back({number, store::TaskState::skipped});
  return {};
}

Status FlowTasks::consider(flow::TaskIndex index, Next& next) {
  const std::string name = graph_->name(index);
  const TaskNumber number = number_of(name, next);
  const auto recorded = recorded_.find(name);
  if (recorded == recorded_.end()) return take_up(index, number, next);
  const store::TaskRecord task = recorded->second;
  if (task.state == store::TaskState::running) return adopt(index, task);
  if (task.state != store::TaskState::failed) BERTH_TRY(recall(index, task, next));
  recorded_.erase(name);
  return {};
}

/// What has to be done: from the cache, or by starting it.
Status FlowTasks::take_up(flow::TaskIndex index, TaskNumber number, Next& next) {
  Prepared prepared{.index = index};
  const auto ready = prepare(prepared, true);
  if (ready && !*ready) return {};  // until its inputs are read
  if (!ready) {
    if (is_resource_shortage(ready.error()) || ready.error().kind == ErrorKind::interrupted)
      return std::unexpected(ready.error());
    prepared.error = ready.error();
    start(number, std::move(prepared), next);
    return {};
  }
  const std::string depends = depends_of(prepared);
  if (reads(program_.cache) && !prepared.spec.outputs.empty()) {
    const std::string key = key_of(depends, true);
    std::string origin;
    BERTH_ASSIGN(auto found, find_result(key, prepared.spec.outputs.size(), &origin));
    if (found) {
      found->spec = prepared.spec;
      return bring(
          index, *std::move(found),
          [this, number, depends, key, origin, prepared = std::move(prepared)](
              Delivery& result, const Status& placed, Next& later) mutable -> Status {
            if (!placed && is_resource_shortage(placed.error())) return placed;
            if (!placed) {
              // Damaged objects are as good as none.
              if (placed.error().kind != ErrorKind::not_found) prepared.error = placed.error();
              this->key(prepared, number, depends, later.changes);
              start(number, std::move(prepared), later);
              return {};
            }
            later.changes.emplace_back(store::TaskKeyed{number, key, depends});
            later.changes.emplace_back(
                store::ResultKept{key, to_text(result.outputs), origin, env_.wall()});
            later.settled.push_back({number, store::TaskState::cached});
            std::ranges::move(result.holds, std::back_inserter(closing_));
            return graph_->finish(prepared.index, std::move(result.outputs));
          },
          next);
    }
  }
  key(prepared, number, depends, next.changes);
  start(number, std::move(prepared), next);
  return {};
}

void FlowTasks::start(TaskNumber number, Prepared prepared, Next& next) {
  count_unstarted(prepared.index, 1);
  next.start.push_back(number);
  prepared_.insert_or_assign(number.value, std::move(prepared));
}

/// What an earlier runner started, and an agent still runs: its record stands.
Status FlowTasks::adopt(flow::TaskIndex index, const store::TaskRecord& task) {
  Prepared prepared{.index = index, .key = task.digest, .token = task.token, .adopted = true};
  BERTH_ASSIGN(prepared.spec, graph_->spec(index));
  prepared_.insert_or_assign(task.number.value, std::move(prepared));
  recorded_.erase(task.label);
  return {};
}

std::string FlowTasks::depends_of(const Prepared& prepared) const {
  std::vector<Digest> digests;
  for (const auto& input : prepared.inputs) digests.push_back(fileset::digest(input));
  return flow::record(prepared.spec, digests);
}

void FlowTasks::key(Prepared& prepared, TaskNumber number, const std::string& depends,
                    std::vector<store::Change>& changes) const {
  if (!prepared.spec.outputs.empty()) prepared.key = key_of(depends, writes(program_.cache));
  changes.emplace_back(store::TaskKeyed{number, prepared.key, depends});
}

/// A result that other runs must not find has a key that only this one knows.
std::string FlowTasks::key_of(const std::string& depends, bool shared) const {
  return to_hex(sha256(shared ? depends : record_.name + "\n" + depends));
}

/// What an earlier runner has finished; where its outputs are no more, it is to be done again.
Status FlowTasks::recall(flow::TaskIndex index, store::TaskRecord recorded, Next& next) {
  const auto done = [this, index, number = recorded.number, state = recorded.state](
                        Delivery& result, const Status& placed, Next& later) -> Status {
    if (!placed) {
      later.reopened.push_back(number);
      queue_of(index).push_front(index);
      return {};
    }
    later.settled.push_back({number, state});
    std::ranges::move(result.holds, std::back_inserter(closing_));
    return graph_->finish(index, std::move(result.outputs));
  };
  Delivery none;
  if (recorded.state == store::TaskState::skipped)
    return done(none, fail(ErrorKind::not_found, "there is something to do now"), next);
  if (step(index).out.empty()) return done(none, {}, next);
  BERTH_ASSIGN(auto found, find_result(recorded.digest, step(index).out.size(), nullptr));
  auto spec = graph_->spec(index);
  if (!found || !spec) return done(none, fail(ErrorKind::not_found, "no result"), next);
  // It may have died between recording them and bringing them to their places. Where that cannot
  // be, the task says so itself.
  found->spec = *std::move(spec);
  return bring(index, *std::move(found), done, next);
}

Result<std::optional<Delivery>> FlowTasks::find_result(const std::string& key, std::size_t outputs,
                                                       std::string* origin) {
  const auto result = site_.store->result(key);
  if (!result && result.error().kind == ErrorKind::not_found) return std::nullopt;
  if (!result) return std::unexpected(result.error());
  auto found = parse_outputs(result->outputs);
  if (!found || found->size() != outputs) return std::nullopt;
  fileset::Fileset all;
  for (const auto& output : *found)
    all.entries.insert(all.entries.end(), output.entries.begin(), output.entries.end());
  auto hold = cache_.hold(all);
  if (!hold) {
    if (is_resource_shortage(hold.error())) return std::unexpected(hold.error());
    return std::nullopt;
  }
  if (origin != nullptr) *origin = result->origin;
  std::optional<Delivery> delivery;
  delivery.emplace(Delivery{.spec = {}, .folder = record_.directory, .outputs = *std::move(found)});
  delivery->holds.push_back(*std::move(hold));
  return delivery;
}

Status FlowTasks::ended(const store::TaskRecord& task, Token token, store::TaskState to) {
  const auto found = prepared_.find(task.number.value);
  if (found == prepared_.end()) return {};
  if (to == store::TaskState::waiting) return {};
  Prepared prepared = std::move(found->second);
  prepared_.erase(found);
  if (prepared.token.value == 0) count_unstarted(prepared.index, -1);
  closing_.push_back(std::move(prepared.hold));
  if (to != store::TaskState::done) return {};
  emptied_.push_back(task_directory(task.number, token));
  return graph_->finish(prepared.index, std::move(prepared.outputs));
}

Result<std::unique_ptr<Workload>> flow_tasks(Site& site, const store::RunRecord& record) {
  BERTH_ASSIGN(auto program, flow_program(record.spec_json));
  BERTH_ASSIGN(auto cache, open_cache(site));
  return std::make_unique<FlowTasks>(site, record, std::move(program), std::move(cache));
}

}  // namespace berth::run
