#include "berth/cli/fleet_input.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "berth/cli/print.h"
#include "berth/fleet/simulated_limit.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostBytes = 256U << 20;  // of one document
constexpr std::size_t kMostTraceBytes = 1U << 30;
constexpr unsigned kMostThreads = 16;
constexpr std::size_t kMostNotes = 20;

}  // namespace

Result<std::vector<fleet::Document>> fleet_documents(os::Env& env, const std::string& path) {
  BERTH_ASSIGN(const auto status, env.status(path));
  std::vector<std::string> files{path};
  if (status.kind == os::FileStatus::Kind::directory) {
    BERTH_ASSIGN(const auto names, env.list(path));
    files.clear();
    for (const auto& name : names)
      if (name.ends_with(".json")) files.push_back(path + "/" + name);
    if (files.empty()) return fail(ErrorKind::not_found, "{}: no .json file in it", path);
  }
  std::vector<fleet::Document> documents;
  for (const auto& file : files) {
    BERTH_ASSIGN(auto text, env.read_file(file, kMostBytes));
    documents.push_back({file, std::move(text)});
  }
  return documents;
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

void print_notes(const std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i)
    print_error(fmt::format("note: {}\n", notes[i]));
  if (notes.size() > kMostNotes)
    print_error(fmt::format("note: {} more of the kind\n", notes.size() - kMostNotes));
}

void print_percentiles_note(const fleet::System& system, fleet::QueueModel model) {
  if (model != fleet::QueueModel::reference) return;
  for (const auto& [name, service_class] : system.classes)
    for (const auto& [of, target] : service_class.targets)
      if (target.has_percentiles())
        return print_error(
            "note: the reference model knows averages; targets for percentiles are left out\n");
}

fleet::Execution planning_execution(std::string_view percentiles) {
  fleet::Execution execution;
  execution.parallel_for = on_all_cores;
  if (percentiles == "simulated")
    execution.rate_limit = [](const auto& question) { return fleet::simulated_limit(question); };
  return execution;
}

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

}  // namespace berth::cli
