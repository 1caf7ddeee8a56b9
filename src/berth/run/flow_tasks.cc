#include "berth/run/flow_tasks.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::run {
namespace {

/// Tasks that are prepared and not yet started: enough that the machine never waits for the next,
/// few because each holds a descriptor.
constexpr std::int64_t kMostUnstarted = 16;
constexpr std::size_t kInputsKept = 8;
/// Looked at before the loop gets its turn again.
constexpr int kAtOnce = 64;
constexpr Duration kGrace = std::chrono::seconds(5);

/// What passes by itself, rather than being wrong with this task.
bool may_pass(const Error& error) {
  return error.kind == ErrorKind::full || error.kind == ErrorKind::busy;
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

}  // namespace

Result<fileset::Fileset> Inputs::get(const std::string& path) {
  const auto known = std::ranges::find(latest_, path, &Known::path);
  if (known != latest_.end()) {
    latest_.splice(latest_.begin(), latest_, known);
  } else {
    BERTH_ASSIGN(auto captured, cache_.capture(path, fileset::Expect::stored));
    latest_.push_front({path, std::move(captured)});
    if (latest_.size() > kInputsKept) latest_.pop_back();
  }
  return latest_.front().captured.fileset;
}

FlowTasks::FlowTasks(Site& site, store::RunRecord record, FlowProgram program,
                     fileset::ObjectStore cache)
    : site_(site),
      env_(*site.env),
      directory_(run_directory(site, record.name)),
      record_(std::move(record)),
      program_(std::move(program)),
      cache_(std::move(cache)),
      inputs_(cache_) {
  manner_.parallel = program_.parallel;
  manner_.in_turn = true;
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

Wants FlowTasks::wants(const store::TaskRecord& task) const {
  const flow::Step& step = graph_->flow().steps.at(step_of(task));
  return {step.resources, step.slot_sizes, step.priority, step.retries};
}

Status FlowTasks::take_over(std::span<const store::TaskRecord> tasks) {
  BERTH_ASSIGN(auto flow, read_flow(program_));
  for (const auto& step : flow.steps) {
    manner_.steps.push_back(step.name);
    step.resources.each([&](std::string_view resource, std::int64_t amount) {
      manner_.most.set(resource, std::max(amount, manner_.most.get(resource)));
    });
  }
  BERTH_ASSIGN(auto graph, flow::Graph::build(std::move(flow),
                                              world_of(env_, record_.directory, program_.answers)));
  graph_.emplace(std::move(graph));
  for (const auto& task : tasks) {
    numbers_.emplace(task.label, task.number);
    if (store::final(task.state)) recorded_.emplace(task.label, task);
  }
  last_ = static_cast<std::int64_t>(tasks.size());
  return fileset::remove_all(env_, directory_ + "/tasks");  // of attempts that were lost or failed
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

Result<Next> FlowTasks::next() {
  Next next;
  for (int looked = 0; unstarted_ < kMostUnstarted; ++looked) {
    if (looked == kAtOnce) {
      next.more = true;
      break;
    }
    BERTH_TRY(take_ready(next));
    if (queue_.empty()) break;
    const auto first = *queue_.begin();
    queue_.erase(queue_.begin());
    const auto status = consider({first.second}, next);
    if (status) continue;
    // Short of descriptors, say: what runs gives some back when it ends.
    if (!may_pass(status.error()) || prepared_.empty()) return std::unexpected(status.error());
    queue_.insert(first);
    break;
  }
  return next;
}

Status FlowTasks::take_ready(Next& next) {
  BERTH_ASSIGN(const auto ready, graph_->take_ready());
  for (; seen_ < graph_->known(); ++seen_) (void)number_of(graph_->name({seen_}), next);
  for (const auto task : ready.run) queue_.emplace(-step(task).priority, task.value);
  for (const auto task : ready.skipped)
    next.settled.push_back({number_of(graph_->name(task), next), store::TaskState::done});
  return {};
}

Status FlowTasks::consider(flow::TaskIndex index, Next& next) {
  const std::string name = graph_->name(index);
  const TaskNumber number = number_of(name, next);
  if (const auto recorded = recorded_.find(name); recorded != recorded_.end()) {
    const store::TaskRecord task = recorded->second;
    bool settled = task.state == store::TaskState::failed;
    if (!settled) {
      BERTH_ASSIGN(settled, recall(index, task));
      if (settled)
        next.settled.push_back({number, task.state});
      else
        next.reopened.push_back(number);
    }
    recorded_.erase(name);
    if (settled) return {};
  }
  Prepared prepared{.index = index};
  if (const auto status = prepare(prepared); !status) {
    if (may_pass(status.error())) return status;
    prepared.error = status.error();
  } else {
    std::vector<Digest> digests;
    for (const auto& input : prepared.inputs) digests.push_back(fileset::digest(input));
    const std::string depends = flow::record(prepared.spec, digests);
    if (reads(program_.cache) && !prepared.spec.outputs.empty()) {
      BERTH_ASSIGN(const bool brought, bring(number, prepared, depends, next));
      if (brought) return {};
    }
    if (!prepared.spec.outputs.empty()) prepared.key = key_of(depends, writes(program_.cache));
    next.changes.emplace_back(store::TaskKeyed{number, prepared.key, depends});
  }
  ++unstarted_;
  next.start.push_back(number);
  prepared_.insert_or_assign(number.value, std::move(prepared));
  return {};
}

/// A result that other runs must not find has a key that only this one knows.
std::string FlowTasks::key_of(const std::string& depends, bool shared) const {
  return to_hex(sha256(shared ? depends : record_.name + "\n" + depends));
}

/// What an earlier runner has finished; false where its outputs are no more.
Result<bool> FlowTasks::recall(flow::TaskIndex index, const store::TaskRecord& recorded) {
  std::vector<fileset::Fileset> outputs;
  if (!step(index).out.empty()) {
    BERTH_ASSIGN(auto found, find_result(recorded.digest, nullptr));
    if (!found || found->size() != step(index).out.size()) return false;
    outputs = *std::move(found);
    // It may have died between recording them and bringing them to their places.
    const auto spec = graph_->spec(index);
    if (spec) BERTH_TRY(publish(*spec, outputs));
  }
  BERTH_TRY(graph_->finish(index, std::move(outputs)));
  return true;
}

Status FlowTasks::prepare(Prepared& prepared) {
  BERTH_ASSIGN(prepared.spec, graph_->spec(prepared.index));
  fileset::Fileset all;  // one hold for everything
  for (const auto& input : prepared.spec.inputs) {
    if (input.world.empty()) {
      prepared.inputs.push_back(input.content);
    } else {
      BERTH_ASSIGN(prepared.inputs.emplace_back(), inputs_.get(place(input.world)));
    }
    const auto& entries = prepared.inputs.back().entries;
    all.entries.insert(all.entries.end(), entries.begin(), entries.end());
  }
  if (all.entries.empty()) return {};
  BERTH_ASSIGN(prepared.hold, cache_.hold(all));
  return {};
}

/// From the cache, if it is there.
Result<bool> FlowTasks::bring(TaskNumber number, Prepared& prepared, const std::string& depends,
                              Next& next) {
  const std::string key = key_of(depends, true);
  std::string origin;
  BERTH_ASSIGN(auto found, find_result(key, &origin));
  if (!found || found->size() != prepared.spec.outputs.size()) return false;
  if (const auto status = publish(prepared.spec, *found); !status) {
    if (may_pass(status.error())) return std::unexpected(status.error());
    prepared.error = status.error();
    return false;
  }
  next.changes.emplace_back(store::TaskKeyed{number, key, depends});
  next.changes.emplace_back(
      store::ResultKept{key, to_text(*found), std::move(origin), env_.wall()});
  next.settled.push_back({number, store::TaskState::cached});
  BERTH_TRY(graph_->finish(prepared.index, *std::move(found)));
  return true;
}

/// nullopt: not there, or not whole any more. What it found is held until the next commit.
Result<std::optional<std::vector<fileset::Fileset>>> FlowTasks::find_result(const std::string& key,
                                                                            std::string* origin) {
  using Found = std::optional<std::vector<fileset::Fileset>>;
  const auto result = site_.store->result(key);
  if (!result && result.error().kind == ErrorKind::not_found) return Found{};
  if (!result) return std::unexpected(result.error());
  auto outputs = parse_outputs(result->outputs);
  if (!outputs) return Found{};
  fileset::Fileset all;
  for (const auto& output : *outputs)
    all.entries.insert(all.entries.end(), output.entries.begin(), output.entries.end());
  auto hold = cache_.hold(all);
  if (!hold) {
    if (may_pass(hold.error())) return std::unexpected(hold.error());
    return Found{};
  }
  closing_.push_back(*std::move(hold));
  if (origin != nullptr) *origin = result->origin;
  return Found(*std::move(outputs));
}

std::string FlowTasks::place(const std::string& path) const {
  return path.starts_with('/') ? path : record_.directory + "/" + path;
}

std::string FlowTasks::task_directory(TaskNumber number, Token token) const {
  return fmt::format("{}/tasks/{}-{}", directory_, number.value, token.value);
}

/// Brings outputs to their places beside the flow's file; what is there already stays untouched.
Status FlowTasks::publish(const flow::TaskSpec& spec,
                          const std::vector<fileset::Fileset>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string to = place(spec.outputs[i].path);
    const auto there = env_.status(to);
    const auto& entries = outputs[i].entries;
    const bool single = entries.size() == 1 && entries[0].path == ".";
    const bool may_be_same = there && (!single || there->kind == os::FileStatus::Kind::directory ||
                                       there->size == entries[0].size);
    if (may_be_same) {
      const auto captured = cache_.capture(to, fileset::Expect::stored);
      if (captured && captured->fileset == outputs[i]) continue;
    }
    if (const auto parent = parent_of(to); !env_.status(parent))
      BERTH_TRY(env_.make_directory(parent, 0777 & ~env_.mask()));
    BERTH_TRY(cache_.publish(outputs[i], to, fileset::Publish::copies));
  }
  return {};
}

Result<exec::Launch> FlowTasks::launch(const store::TaskRecord& task, Token token) {
  Prepared& prepared = prepared_.at(task.number.value);
  const Token earlier = std::exchange(prepared.token, token);
  if (earlier.value == 0)
    --unstarted_;
  else
    BERTH_TRY(fileset::remove_all(env_, task_directory(task.number, earlier)));
  if (prepared.error) return std::unexpected(*prepared.error);
  const flow::TaskSpec& spec = prepared.spec;
  const std::string directory = task_directory(task.number, token);
  BERTH_TRY(env_.make_directory(directory, 0700));
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const std::string to = directory + "/" + spec.inputs[i].place;
    BERTH_TRY(env_.make_directory(parent_of(to), 0700));
    BERTH_TRY(cache_.publish(prepared.inputs[i], to, fileset::Publish::links));
  }
  for (const auto& output : spec.outputs) {
    const std::string to = directory + "/" + output.path;
    BERTH_TRY(env_.make_directory(output.directory ? to : parent_of(to), 0700));
  }
  if (spec.params_file)
    BERTH_TRY(env_.replace_file(directory + "/" + std::string(flow::kParamsFile),
                                experiment::values_json(spec.params) + "\n", 0600));
  auto environment = inherited_environment(env_);
  for (const auto& [name, value] : spec.params) set(environment, parameter_variable(name), value);
  for (const auto& [name, value] : spec.environment) set(environment, name, value);
  name_task(environment, directory_, record_, task, token);
  const flow::Step& of = step(prepared.index);
  return exec::Launch{.task = task.number,
                      .token = token,
                      .request = {of.resources, record_.name + "/" + task.label, of.slot_sizes},
                      .argv = spec.command,
                      .environment = std::move(environment),
                      .directory = directory,
                      .timeout = of.timeout,
                      .grace = kGrace};
}

/// Nothing is read-only to root: what it wrote into would be wrong for all that share it.
Status FlowTasks::check_inputs(const Prepared& prepared) {
  if (env_.user() != 0) return {};
  for (std::size_t i = 0; i < prepared.inputs.size(); ++i) {
    const auto hold = cache_.hold(prepared.inputs[i]);
    if (!hold && hold.error().kind == ErrorKind::not_found)
      return fail(ErrorKind::invalid, "it changed its input {}: {}; it has to change a copy",
                  prepared.spec.inputs[i].name, prepared.spec.inputs[i].place);
  }
  return {};
}

Result<std::vector<store::Change>> FlowTasks::finish(const store::TaskRecord& task, Token token) {
  Prepared& prepared = prepared_.at(task.number.value);
  BERTH_TRY(check_inputs(prepared));
  prepared.outputs.clear();
  for (const auto& output : prepared.spec.outputs) {
    const std::string path = task_directory(task.number, token) + "/" + output.path;
    auto captured = cache_.capture(path, fileset::Expect::fresh);
    if (!captured && captured.error().kind == ErrorKind::not_found)
      return fail(ErrorKind::not_found, "it did not write out.{}: {}", output.name, output.path);
    if (!captured) return std::unexpected(within("out." + output.name, captured.error()));
    prepared.outputs.push_back(std::move(captured->fileset));
    closing_.push_back(std::move(captured->hold));
  }
  BERTH_TRY(publish(prepared.spec, prepared.outputs));
  std::vector<store::Change> changes;
  if (!prepared.key.empty())
    changes.emplace_back(store::ResultKept{prepared.key, to_text(prepared.outputs),
                                           record_.name + "/" + task.label, env_.wall()});
  return changes;
}

Status FlowTasks::ended(const store::TaskRecord& task, Token token, store::TaskState to) {
  const auto found = prepared_.find(task.number.value);
  if (found == prepared_.end()) return {};
  if (to == store::TaskState::waiting) return {};
  Prepared prepared = std::move(found->second);
  prepared_.erase(found);
  if (prepared.token.value == 0) --unstarted_;
  closing_.push_back(std::move(prepared.hold));
  if (to != store::TaskState::done) return {};
  (void)fileset::remove_all(env_, task_directory(task.number, token));
  return graph_->finish(prepared.index, std::move(prepared.outputs));
}

Result<std::unique_ptr<Workload>> flow_tasks(Site& site, const store::RunRecord& record) {
  BERTH_ASSIGN(auto program, flow_program(record.spec_json));
  BERTH_ASSIGN(auto cache, open_cache(site));
  return std::make_unique<FlowTasks>(site, record, std::move(program), std::move(cache));
}

}  // namespace berth::run
