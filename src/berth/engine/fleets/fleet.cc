#include "berth/engine/fleets/fleet.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "berth/fleet/model/missing_limits.h"
#include "berth/fleet/simulate/simulated_limit.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostBytes = 256U << 20;  // of one document
constexpr std::size_t kMostTraceBytes = 1U << 30;
constexpr unsigned kMostThreads = 16;
constexpr std::size_t kMostRemembered = 50'000;  // limits, of some hundred bytes each

/// Asks the simulator, and remembers what it said: sweeps and days ask the same again. What was
/// remembered goes when it is a lot, so that a server does not grow with the questions.
std::function<double(const fleet::RateQuestion&)> remembered_limits() {
  struct Known {
    std::mutex mutex;
    std::map<fleet::RateQuestion, double> limits;
  };
  return [known = std::make_shared<Known>()](const fleet::RateQuestion& question) {
    {
      const std::lock_guard lock(known->mutex);
      if (const auto found = known->limits.find(question); found != known->limits.end())
        return found->second;
    }
    const double limit = fleet::simulated_limit(question);
    const std::lock_guard lock(known->mutex);
    if (known->limits.size() >= kMostRemembered) known->limits.clear();
    return known->limits.emplace(question, limit).first->second;
  };
}

/// Calls body(0) … body(count - 1) on as many threads as there are cores, 16 at most.
void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::jthread> others;
  const auto threads = std::min<std::size_t>(
      count, std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads));
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work);
  work();
}

}  // namespace

std::string path_in(std::string_view directory, std::string_view name) {
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", name);
}

Result<std::vector<fleet::Document>> fleet_documents(os::Env& env, const std::string& path) {
  BERTH_ASSIGN(const auto status, env.status(path));
  std::vector<std::string> files{path};
  if (status.kind == os::FileStatus::Kind::directory) {
    BERTH_ASSIGN(const auto names, env.list(path));
    files.clear();
    for (const auto& name : names)
      if (name.ends_with(".json")) files.push_back(path_in(path, name));
    if (files.empty()) return fail(ErrorKind::not_found, "{}: no .json file in it", path);
  }
  std::vector<fleet::Document> documents;
  for (const auto& file : files) {
    BERTH_ASSIGN(auto text, env.read_file(file, kMostBytes));
    documents.push_back({file, std::move(text)});
  }
  return documents;
}

Result<fleet::System> read_fleet(os::Env& env, const std::string& path, const FleetNotes& notes) {
  BERTH_ASSIGN(const auto documents, fleet_documents(env, path));
  BERTH_ASSIGN(auto reading, fleet::read_documents(documents));
  notes(reading.notes);
  return std::move(reading.system);
}

void note_missing(const fleet::System& system, const FleetNotes& notes) {
  notes(fleet::dangling_names(system));
  notes(fleet::notes_on_missing_limits(system));
}

void note_averages(const fleet::System& system, const FleetNotes& notes) {
  if (system.options.model != fleet::QueueModel::reference) return;
  for (const auto& [name, service_class] : system.classes)
    for (const auto& [of, target] : service_class.targets)
      if (target.has_percentiles())
        return notes({"the reference model knows averages; targets for percentiles are left out"});
}

Result<std::vector<fleet::Request>> fleet_trace(os::Env& env, const std::string& path) {
  BERTH_ASSIGN(const auto text, env.read_file(path, kMostTraceBytes));
  if (text.starts_with("\xFD"
                       "7zXZ") ||
      text.starts_with("\x1F\x8B"))
    return fail(ErrorKind::invalid, "{}: it is compressed; decompress it first (xz -d, gzip -d)",
                path);
  return fleet::read_trace(path, text);
}

fleet::Execution planning_execution(std::string_view percentiles) {
  fleet::Execution execution;
  execution.parallel_for = on_all_cores;
  if (percentiles == "simulated") execution.rate_limit = remembered_limits();
  return execution;
}

void limit_time(fleet::Execution& execution, os::Env& env, Duration limit) {
  execution.stop = [&env, until = env.now() + limit, stop = std::move(execution.stop)] {
    return env.now() >= until || (stop && stop());
  };
  execution.iteration_limit = INT64_MAX / 2;
}

}  // namespace berth::engine
