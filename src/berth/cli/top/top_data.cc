#include "berth/cli/top/top_data.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/engine/queries/run_json.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/render/cells.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

/// Tasks are read again after so many times what it took, and, as a run's counts may stay the same
/// while its tasks do not, after so long.
constexpr int kSeldom = 20;
constexpr Duration kTasksAge = std::chrono::seconds(5);

double part_of(std::int64_t held, std::int64_t total) {
  return total > 0 ? static_cast<double>(held) / static_cast<double>(total) : 0;
}

std::int64_t finished(const store::Counts& counts) {
  return counts.done + counts.cached + counts.skipped + counts.failed;
}

/// To seconds, and beyond an hour as format_duration() has it.
std::string rough(Duration left) {
  return format_duration(std::chrono::round<std::chrono::seconds>(left));
}

/// Each once: parts of one may have several holders.
void add_gpus(std::string& all, std::string_view more) {
  for (const auto index : split(more, ','))
    if (const auto has = split(all, ','); std::ranges::find(has, index) == has.end())
      all += (all.empty() ? "" : ",") + std::string(index);
}

/// Those that run, that have failed, that wait, and the others, each as they are numbered.
void order_tasks(std::vector<TopEntry>& tasks) {
  const auto rank = [](const TopEntry& task) {
    return task.state == "running"   ? 0
           : task.state == "failed"  ? 1
           : task.state == "waiting" ? 2
                                     : 3;
  };
  std::ranges::stable_sort(tasks, {}, rank);
}

void set_lines(TextPane& pane, std::string_view text) {
  pane.lines.clear();
  for (const auto line : split(text, '\n')) pane.lines.push_back(render::one_line(line));
  while (!pane.lines.empty() && pane.lines.back().empty()) pane.lines.pop_back();
}

}  // namespace

Result<TopSource> TopSource::open(os::Env& env) {
  BERTH_ASSIGN(auto report, engine::machine_report(env));
  BERTH_ASSIGN(auto clusters, TopClusters::open(env));
  return TopSource(env, std::move(report), std::move(clusters));
}

std::string TopSource::user_name(uid_t user) const {
  for (const auto line : split(users_, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() > 2 && fields[2] == fmt::format("{}", user)) return std::string(fields[0]);
  }
  return fmt::format("{}", user);
}

/// `uuids`: a JSON list, or a list with commas between.
std::string TopSource::gpus_of(const std::string& uuids) const {
  std::vector<std::string> indices;
  for (const auto& share : machine_.devices.shares)
    if (uuids.contains(share.uuid)) indices.push_back(fmt::format("{}", share.index));
  return join(indices, ",");
}

TopEntry TopSource::entry_of(const machine::LedgerEntry& held) const {
  TopEntry entry{.name = held.label};
  entry.state = held.waiting ? store::name(store::RunState::queued) : "allocated";
  entry.waits = held.waiting;
  entry.cpu = held.block.resources.get(Known::cpu);
  entry.mem = held.block.resources.get(Known::mem);
  std::string uuids;
  for (const auto& share : held.block.devices) uuids += share.uuid + ",";
  entry.gpus = gpus_of(uuids);
  if (const auto gpus = held.block.resources.get(Known::gpu); held.waiting && gpus > 0)
    entry.gpus = fmt::format("{} GPU{}", gpus, gpus > 1 ? "s" : "");
  entry.time = env_->wall() - held.since;
  entry.user = user_name(held.user);
  return entry;
}

TopEntry TopSource::task_entry(const store::RunRecord& run, const store::TaskRecord& task,
                               const engine::TaskTimes& times) const {
  TopEntry entry{.name = run.name + "/" + task.label, .run = run.name, .is_task = true};
  entry.state = store::name(task.state);
  entry.is_active = task.state == store::TaskState::running;
  if (entry.is_active) {
    const Duration elapsed = task.started ? env_->wall() - *task.started : Duration{};
    const auto left = times.left(task.label, std::max(Duration{}, elapsed));
    if (left) entry.until = left->left;
    entry.expected =
        left ? fmt::format("ends {}{}", left->is_limit ? "<" : "~", rough(left->left)) : "ends ?";
    const Resources held = engine::resources_of_json(task.resources);
    entry.cpu = held.get(Known::cpu);
    entry.mem = held.get(Known::mem);
    entry.gpus = gpus_of(task.devices);
    if (task.started) entry.time = elapsed;
    if (!task.host.empty() && task.host != env_->host_name()) entry.note = "on " + task.host;
    if (task.attempts > 1) entry.note += fmt::format(" attempt {}", task.attempts);
  } else if (task.started && task.ended) {
    entry.time = *task.ended - *task.started;
  }
  if (task.state == store::TaskState::failed) entry.note = engine::cause_text(task);
  return entry;
}

const TopSource::KnownTasks& TopSource::tasks_of(const store::RunRecord& run,
                                                 std::span<const store::RunRecord> runs, bool all) {
  KnownTasks& known = known_[run.name];
  const Mono now = env_->now();
  const bool is_old = known.counts != run.counts || now - known.read_at > kTasksAge;
  const bool lacks = all && !known.has_all;
  if (!lacks && (!is_old || now < known.again_at)) return known;
  auto tasks = context_->store->tasks(run.id);
  const auto whole = context_->store->find_run(run.name);
  if (!tasks || !whole) return known;
  known.tasks = *std::move(tasks);
  known.times = engine::TaskTimes::read(*context_, *whole, known.tasks, runs);
  if (!all)
    std::erase_if(known.tasks,
                  [](const auto& task) { return task.state != store::TaskState::running; });
  known.counts = run.counts;
  known.has_all = all;
  known.read_at = env_->now();
  known.again_at = known.read_at + (known.read_at - now) * kSeldom;
  return known;
}

TopEntry TopSource::run_entry(const store::RunRecord& run, std::span<const store::RunRecord> runs,
                              const TopState& state) {
  TopEntry entry{.name = run.name, .run = run.name};
  entry.state = engine::state_now(*env_, run);
  entry.is_active = engine::is_under_way(entry.state);
  entry.tasks = fmt::format("{}/{}", finished(run.counts), run.counts.total());
  entry.running = entry.is_active ? run.counts.running : 0;
  entry.user = user_name(env_->user());
  if (run.counts.failed > 0) entry.note = fmt::format("{} failed", run.counts.failed);
  if (!run.error.empty()) entry.note = run.error;
  const auto since = run.ended ? run.ended : run.started;
  if (since) entry.time = env_->wall() - *since;
  const bool is_open = state.open.contains(run.name);
  if (entry.running > 0 || is_open) {
    const KnownTasks& known = tasks_of(run, runs, is_open);
    for (const auto& task : known.tasks)
      entry.entries.push_back(task_entry(run, task, known.times));
  }
  for (const auto& task : entry.entries) {
    if (!task.is_active) continue;
    entry.cpu += task.cpu;
    entry.mem += task.mem;
    add_gpus(entry.gpus, task.gpus);
  }
  order_tasks(entry.entries);
  return entry;
}

Result<std::vector<TopEntry>> TopSource::entries(const TopState& state) {
  std::vector<TopEntry> entries;
  if (!context_) {
    BERTH_ASSIGN(context_, engine::open_context(*env_));
  }
  BERTH_ASSIGN(const auto runs, context_->store->runs());
  for (const auto& run : runs)
    if (state.shows_all || store::is_open(run.state))
      entries.push_back(run_entry(run, runs, state));
  return entries;
}

/// What others hold, and the queue: a run of ours that waits is taken to its place in it.
void TopSource::add_queue(std::vector<TopEntry>& entries) {
  std::size_t known = entries.size();
  std::size_t waiting = 0;
  for (const auto& held : machine_.entries) {
    TopEntry other = entry_of(held);
    if (held.waiting && waiting < machine_.starts.size()) {
      const auto& start = machine_.starts[waiting++];
      other.expected = to_text(start, env_->wall());
      if (start.at) other.until = *start.at - env_->wall();
      other.note = start.because;
    }
    const auto begin = entries.begin();
    const auto ours = std::find_if(
        begin, begin + static_cast<std::ptrdiff_t>(known),
        [&](const auto& run) { return held.user == env_->user() && run.name == held.label; });
    const bool is_ours = ours != begin + static_cast<std::ptrdiff_t>(known);
    // What holds something stands there with its tasks already.
    if (is_ours && (!held.waiting || ours->running > 0)) continue;
    if (is_ours) {
      other.run = ours->run;
      other.state = ours->state;
      other.tasks = ours->tasks;
      other.entries = std::move(ours->entries);
      entries.erase(ours);
      --known;
    }
    const auto same = std::ranges::find_if(entries, [&](const auto& each) {
      return each.run.empty() && each.name == other.name && each.user == other.user &&
             each.state == other.state;
    });
    if (same == entries.end() || held.waiting) {
      entries.push_back(std::move(other));
      continue;
    }
    same->cpu += other.cpu;
    same->mem += other.mem;
    add_gpus(same->gpus, other.gpus);
  }
}

/// As reading runs of many tasks takes time, not each second.
void TopSource::expect() {
  const auto count = static_cast<std::size_t>(
      std::ranges::count_if(machine_.entries, &machine::LedgerEntry::waiting));
  const Mono now = env_->now();
  const bool is_as_before = count == machine_.starts.size() && now < expect_at_;
  if (count == 0) machine_.starts.clear();
  if (count == 0 || !context_ || is_as_before) return;
  engine::find_starts(*context_, machine_);
  expect_at_ = env_->now() + std::max<Duration>(kTasksAge, (env_->now() - now) * kSeldom);
}

std::vector<Meter> TopSource::meters() const {
  std::vector<Meter> meters;
  machine_.capacity.total.each([&](std::string_view name, std::int64_t total) {
    if (name.starts_with("gpu")) return;  // card by card
    const std::int64_t held = total - machine_.free.get(name);
    meters.push_back(
        {std::string(name), part_of(held, total),
         fmt::format("{} of {}", format_amount(name, held), format_amount(name, total))});
  });
  for (const auto& share : machine_.devices.shares) {
    Meter meter{.name = fmt::format("GPU {}", share.index)};
    for (const auto& [uuid, because] : machine_.devices.health.out_of_service)
      if (uuid == share.uuid) meter.text = "out of service: " + because;
    const auto at =
        std::ranges::find(machine_.total_devices, share.uuid, &machine::DeviceShare::uuid);
    if (meter.text.empty() && at != machine_.total_devices.end()) {
      const auto& free =
          machine_.free_devices[static_cast<std::size_t>(at - machine_.total_devices.begin())];
      meter.part = part_of(at->memory - free.memory, at->memory);
      meter.text = format_bytes(at->memory - free.memory) + " of " + format_bytes(at->memory);
      std::vector<std::string> holders;
      for (const auto& entry : machine_.entries)
        for (const auto& held : entry.block.devices)
          if (held.uuid == share.uuid && !entry.waiting) holders.push_back(entry.label);
      for (const auto& use : machine_.devices.health.foreign)
        if (use.uuid == share.uuid) holders.push_back(use.program);
      if (!holders.empty()) meter.text = join(holders, ",") + " " + meter.text;
    }
    meters.push_back(std::move(meter));
  }
  return meters;
}

void TopSource::refresh(TopData& data, const TopState& state) {
  if (users_.empty()) users_ = env_->read_file("/etc/passwd", 1U << 20).value_or("\n");
  data.trouble.clear();
  if (auto read = engine::refresh(*env_, machine_); !read) data.trouble = read.error().message;
  data.meters = meters();
  data.has_gpus = !machine_.devices.shares.empty();
  auto read = entries(state);
  if (!read) data.trouble = read.error().message;
  expect();
  data.entries = std::move(read).value_or(std::vector<TopEntry>{});
  add_queue(data.entries);
  std::int64_t running = 0, runs = 0, waits = 0;
  for (const auto& entry : data.entries) {
    running += entry.running;
    runs += entry.running > 0 ? 1 : 0;
    waits += entry.waits ? 1 : 0;
  }
  data.title =
      fmt::format("berth top  {}  {} {} ({} {})  {} in the queue", env_->host_name(), runs,
                  runs == 1 ? "run" : "runs", running, running == 1 ? "task" : "tasks", waits);
  set_lines(data.machine, render::usage_text(machine_) + clusters_.text());
}

}  // namespace berth::cli
