#include "berth/run/flows/temporary.h"

#include <algorithm>

namespace berth::run {
namespace {

constexpr std::string_view kGone = "gone\n";

std::vector<Digest> objects_of(const std::vector<fileset::Fileset>& outputs) {
  std::unordered_set<Digest> found;
  for (const auto& output : outputs) fileset::add_live(found, output);
  return {found.begin(), found.end()};
}

const fileset::Entry* find_entry(const fileset::Fileset& fileset, const std::string& path) {
  const auto found = std::ranges::lower_bound(fileset.entries, path, {}, &fileset::Entry::path);
  return found != fileset.entries.end() && found->path == path ? &*found : nullptr;
}

/// Removes a file, or of a folder what is in the fileset and the folders that are empty then; what
/// a person edited stays.
Status remove_output(FlowRun& run, const fileset::Fileset& content, const std::string& at) {
  os::Env& env = run.env;
  BERTH_ASSIGN(const std::string place, behind_links(env, at));
  const auto status = env.status(place);
  const auto there =
      status ? run.cache.read(place, *status, true) : std::unexpected(status.error());
  if (!there) return {};
  const auto paths = fileset::paths(content);
  if (paths.empty()) {
    return *there == content ? env.remove_file(place) : Status();
  }
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
    const auto now = find_entry(*there, *path), then = find_entry(content, *path);
    if (now != nullptr && (then == nullptr || *now != *then)) continue;
    const std::string file = fmt::format("{}/{}", place, *path);
    if (!env.remove_directory(file)) (void)env.remove_file(file);
  }
  (void)env.remove_directory(place);
  return {};
}

}  // namespace

std::string gone_text(const std::vector<fileset::Fileset>& outputs) {
  return std::string(kGone) + to_text(outputs);
}

std::optional<std::vector<fileset::Fileset>> parse_gone(std::string_view text) {
  if (!text.starts_with(kGone)) return std::nullopt;
  auto outputs = parse_outputs(text.substr(kGone.size()));
  return outputs ? std::optional(*std::move(outputs)) : std::nullopt;
}

Status LiveObjects::update() {
  BERTH_ASSIGN(const auto results, store_.results(last_));
  for (const auto& result : results) {
    last_ = result.sequence;
    auto& objects = of_[result.digest];
    for (const auto& digest : objects)
      if (--counts_[digest] == 0) counts_.erase(digest);
    const auto outputs = parse_outputs(result.outputs);
    objects = outputs ? objects_of(*outputs) : std::vector<Digest>{};
    for (const auto& digest : objects) ++counts_[digest];
  }
  return {};
}

bool Temporary::is_target(flow::TaskIndex task) const {
  const auto& targets = graph_.graph().flow().targets;
  return std::ranges::find(targets, graph_.step(task).name) != targets.end() ||
         std::ranges::find(targets, graph_.graph().name(task)) != targets.end();
}

void Temporary::wrote(flow::TaskIndex task, std::string key, std::string origin,
                      const std::vector<fileset::Fileset>& outputs) {
  if (!graph_.step(task).temp || is_target(task)) return;
  written_.insert_or_assign(task.value, Written{std::move(key), std::move(origin),
                                                graph_.graph().output_paths(task), outputs});
}

Result<std::optional<std::vector<fileset::Fileset>>> Temporary::find_gone(flow::TaskIndex task,
                                                                          const std::string& key) {
  using Found = std::optional<std::vector<fileset::Fileset>>;
  if (!graph_.step(task).temp || is_target(task) || is_made_again(task)) return Found{};
  const auto result = run_.context.store->result(key);
  if (!result && result.error().kind == ErrorKind::not_found) return Found{};
  if (!result) return std::unexpected(result.error());
  auto outputs = parse_gone(result->outputs);
  if (!outputs || outputs->size() != graph_.step(task).out.size()) return Found{};
  return outputs;
}

Status Temporary::leave_gone(flow::TaskIndex task, Gone gone, const std::string& key,
                             std::vector<fileset::Fileset> outputs) {
  BERTH_ASSIGN(const auto result, run_.context.store->result(key));
  gone.changes.emplace_back(store::ResultKept{key, result.outputs, result.origin, run_.env.wall()});
  wrote(task, key, result.origin, outputs);
  BERTH_ASSIGN(const auto spec, graph_.graph().spec(task));
  auto& producers = would_read_[task.value] = producers_of(task, spec);
  for (const auto producer : producers) ++would_be_read_[producer];
  gone_.emplace(task.value, std::move(gone));
  return graph_.graph().finish(task, std::move(outputs));
}

std::set<std::int64_t> Temporary::producers_of(flow::TaskIndex task,
                                               const flow::TaskSpec& spec) const {
  std::set<std::int64_t> producers;
  for (const auto& input : spec.inputs)
    if (input.producer.value >= 0) producers.insert(input.producer.value);
  for (const auto step : graph_.step(task).needs)
    if (const auto tasks = graph_.graph().tasks(step))
      for (std::int64_t i = 0; i < tasks->count; ++i) producers.insert(tasks->first.value + i);
  return producers;
}

bool Temporary::await(flow::TaskIndex reader, const flow::TaskSpec& spec, Next& next) {
  if (gone_.empty() && waiting_.empty()) return false;
  std::size_t count = 0;
  for (const std::int64_t task : producers_of(reader, spec)) {
    if (const auto gone = gone_.extract(task)) {
      made_again_.insert(task);
      if (gone.mapped().is_final) next.reopened.push_back(gone.mapped().number);
      graph_.put_back({task});
      waiting_[task];
    }
    const auto waits = waiting_.find(task);
    if (waits == waiting_.end()) continue;
    waits->second.push_back(reader);
    ++count;
  }
  if (count > 0) awaited_[reader.value] = count;
  return count > 0;
}

Status Temporary::was_made_again(flow::TaskIndex task, std::vector<fileset::Fileset> outputs) {
  BERTH_TRY(graph_.graph().replace(task, std::move(outputs)));
  let_go(task.value);
  if (const auto waits = waiting_.extract(task.value))
    for (const auto reader : waits.mapped())
      if (--awaited_[reader.value] == 0) {
        awaited_.erase(reader.value);
        graph_.put_back(reader);
      }
  return {};
}

bool Temporary::is_there(const Written& written) {
  if (std::ranges::any_of(written.places, [&](const auto& place) {
        return run_.env.status(place_in(run_.record.directory, place)).has_value();
      }))
    return true;
  return std::ranges::any_of(
      written.outputs, [&](const auto& output) { return run_.cache.hold(output).has_value(); });
}

/// The task is not made again any more.
void Temporary::let_go(std::int64_t reader) {
  if (const auto producers = would_read_.extract(reader))
    for (const auto producer : producers.mapped()) --would_be_read_[producer];
}

void Temporary::release(Next& next) {
  for (const auto task : graph_.graph().take_released()) released_.push_back(task.value);
  while (std::erase_if(released_, [&](std::int64_t task) { return settle(task, next); }) > 0) {
  }
}

/// A task that all its readers have released; false: it has to wait for one that is gone.
bool Temporary::settle(std::int64_t task, Next& next) {
  if (const auto readers = would_be_read_.find(task);
      readers != would_be_read_.end() && readers->second > 0)
    return false;
  auto written = written_.extract(task);
  if (!written) return true;
  if (auto gone = gone_.extract(task)) {
    let_go(task);
    std::ranges::move(gone.mapped().changes, std::back_inserter(next.changes));
    next.settled.push_back({gone.mapped().number, gone.mapped().to});
    if (!is_there(written.mapped())) return true;
  } else {
    const Written& now = written.mapped();
    if (!now.key.empty())
      next.changes.emplace_back(
          store::ResultKept{now.key, gone_text(now.outputs), now.origin, run_.env.wall()});
  }
  removing_.push_back(std::move(written.mapped()));
  return true;
}

void Temporary::committed() {
  if (removing_.empty()) return;
  std::unordered_set<Digest> objects;
  for (const auto& written : std::exchange(removing_, {}))
    for (std::size_t i = 0; i < written.outputs.size(); ++i) {
      (void)remove_output(run_, written.outputs[i],
                          place_in(run_.record.directory, written.places[i]));
      fileset::add_live(objects, written.outputs[i]);
    }
  if (!live_.update()) return;
  std::erase_if(objects, [&](const Digest& digest) { return live_.contains(digest); });
  if (objects.empty()) return;
  // Somebody may have recorded one of them since.
  const auto add_live = [&](std::unordered_set<Digest>& live) -> Status {
    BERTH_TRY(live_.update());
    for (const auto& digest : objects)
      if (live_.contains(digest)) live.insert(digest);
    return {};
  };
  (void)run_.cache.collect(add_live, {.came_before = {}, .dry_run = false, .only = &objects});
}

}  // namespace berth::run
