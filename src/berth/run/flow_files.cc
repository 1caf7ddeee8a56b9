// The files of a flow's tasks: into their directories before they start, out of them when they have
// ended, and to their places beside the flow's file.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/os/failpoint.h"
#include "berth/run/flow_tasks.h"

namespace berth::run {
namespace {

constexpr std::size_t kInputsHeld = 8;
constexpr Duration kGrace = std::chrono::seconds(5);

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

bool is_file(const fileset::Fileset& fileset) {
  const auto& entries = fileset.entries;
  return entries.size() == 1 && entries[0].path == "." &&
         entries[0].kind != fileset::Entry::Kind::directory;
}

/// Those of `entries` that `known` has none of that name for.
std::vector<fileset::Entry> without(std::vector<fileset::Entry> entries,
                                    const fileset::Fileset& known) {
  std::erase_if(entries, [&](const fileset::Entry& entry) {
    return entry.path == "." ||
           std::ranges::binary_search(known.entries, entry.path, {}, &fileset::Entry::path);
  });
  return entries;
}

}  // namespace

Result<fileset::Fileset> Inputs::get(const std::string& path) {
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  BERTH_ASSIGN(auto captured, cache_.capture(path.starts_with('/') ? path : folder_ + "/" + path,
                                             fileset::Expect::stored));
  latest_.push_front(std::move(captured.hold));
  if (latest_.size() > kInputsHeld) latest_.pop_back();
  return known_.emplace(path, std::move(captured.fileset)).first->second;
}

Status Inputs::restore(const std::string& path) {
  const auto known = known_.extract(path);
  BERTH_ASSIGN(const auto now, get(path));
  if (!known || known.mapped() == now) return {};
  known_.insert_or_assign(path, known.mapped());
  return fail(ErrorKind::stale, "{}: it has changed since this run took it in", path);
}

Status FlowTasks::prepare(Prepared& prepared) {
  BERTH_ASSIGN(prepared.spec, graph_->spec(prepared.index));
  for (const auto& input : prepared.spec.inputs) {
    if (input.world.empty()) {
      prepared.inputs.push_back(input.content);
    } else {
      BERTH_ASSIGN(prepared.inputs.emplace_back(), inputs_.get(input.world));
    }
  }
  return hold_inputs(prepared);
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

std::string FlowTasks::place(const std::string& path) const {
  return path.starts_with('/') ? path : record_.directory + "/" + path;
}

std::string FlowTasks::task_directory(TaskNumber number, Token token) const {
  return fmt::format("{}/tasks/{}-{}", directory_, number.value, token.value);
}

/// Brings outputs to their places beside the flow's file; what is there already stays untouched.
Status FlowTasks::publish(const flow::TaskSpec& spec,
                          const std::vector<fileset::Fileset>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const auto status = publish_one(spec, i, outputs[i]); !status)
      return std::unexpected(within("out." + spec.outputs[i].name, status.error()));
  os::failpoint("outputs published");
  return {};
}

Status FlowTasks::publish_one(const flow::TaskSpec& spec, std::size_t output,
                              const fileset::Fileset& content) {
  const std::string to = place(spec.outputs[output].path);
  const auto there = env_.status(to);
  const bool folder = there && there->kind == os::FileStatus::Kind::directory;
  if (there && (folder || !is_file(content) || there->size == content.entries[0].size)) {
    const auto captured = cache_.capture(to, fileset::Expect::stored);
    if (captured && captured->fileset == content) return {};
    if (folder && !captured)
      return fail(ErrorKind::exists, "{}: it cannot be replaced: {}", to, captured.error().message);
    if (folder) BERTH_TRY(check_ours(spec.name, output, to, captured->fileset, content));
  }
  if (const auto parent = parent_of(to); !env_.status(parent))
    BERTH_TRY(env_.make_directory(parent, 0777 & ~env_.mask()));
  return cache_.publish(content, to, fileset::Publish::copies);
}

/// A folder is replaced whole, so all that goes with it must be what an earlier run of this task
/// wrote there. exists: names the first file that is not.
Status FlowTasks::check_ours(const std::string& label, std::size_t output, const std::string& path,
                             const fileset::Fileset& there, const fileset::Fileset& wanted) {
  auto strange = without(there.entries, wanted);
  if (strange.empty()) return {};
  BERTH_ASSIGN(const auto runs, site_.store->runs());
  for (auto run = runs.rbegin(); run != runs.rend() && !strange.empty(); ++run) {
    if (run->kind != "flow" || run->directory != record_.directory) continue;
    const auto task = site_.store->find_task(run->id, label);
    if (!task) continue;
    const auto result = site_.store->result(task->digest);
    if (!result) continue;
    const auto outputs = parse_outputs(result->outputs);
    if (outputs && output < outputs->size()) strange = without(strange, (*outputs)[output]);
  }
  if (strange.empty()) return {};
  return fail(ErrorKind::exists,
              "{}/{}: not written by this step; move it away, or it would be lost", path,
              strange.front().path);
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
    (void)fileset::remove_all(env_, task_directory(task.number, earlier));
  if (std::exchange(prepared.adopted, false)) {
    BERTH_TRY(prepare(prepared));
    key(prepared, task.number, depends_of(prepared), late_);
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

/// Inputs are shared with other tasks and read-only, which who owns them can undo: what was written
/// into is wrong for all of them, and this task says nothing about what it was to be.
Status FlowTasks::check_inputs(const Prepared& prepared) {
  for (std::size_t i = 0; i < prepared.inputs.size(); ++i) {
    const auto hold = cache_.hold(prepared.inputs[i]);
    if (!hold && hold.error().kind == ErrorKind::not_found)
      return fail(ErrorKind::invalid,
                  "its input {} is not what it was: {}; a task has to change a copy",
                  prepared.spec.inputs[i].name, prepared.spec.inputs[i].place);
  }
  return {};
}

Status FlowTasks::finish(const store::TaskRecord& task, Token token,
                         std::vector<store::Change>& changes) {
  BERTH_ASSIGN(Prepared * known, find(task));
  Prepared& prepared = *known;
  BERTH_TRY(check_inputs(prepared));
  prepared.outputs.clear();
  for (const auto& output : prepared.spec.outputs) {
    const std::string path = task_directory(task.number, token) + "/" + output.path;
    auto captured = cache_.capture(path, fileset::Expect::fresh);
    if (!captured && captured.error().kind == ErrorKind::not_found)
      return fail(ErrorKind::not_found, "it did not write out.{}: {}", output.name, output.path);
    if (!captured) return std::unexpected(within("out." + output.name, captured.error()));
    if (is_file(captured->fileset) == output.directory)
      return fail(ErrorKind::invalid, "out.{}: {} is {}, wanted {}", output.name, output.path,
                  output.directory ? "a file" : "a directory",
                  output.directory ? "a directory" : "a file (the path of a directory ends in /)");
    prepared.outputs.push_back(std::move(captured->fileset));
    closing_.push_back(std::move(captured->hold));
  }
  os::failpoint("outputs captured");
  if (!prepared.key.empty())
    changes.emplace_back(store::ResultKept{prepared.key, to_text(prepared.outputs),
                                           record_.name + "/" + task.label, env_.wall()});
  return publish(prepared.spec, prepared.outputs);
}

}  // namespace berth::run
