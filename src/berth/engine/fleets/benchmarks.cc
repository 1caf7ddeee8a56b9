#include "berth/engine/fleets/benchmarks.h"

#include <algorithm>
#include <map>

#include "berth/base/text.h"
#include "berth/engine/fleets/fleet.h"
#include "berth/fleet/measurements/benchmark_files.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostFileBytes = 256U << 20;
constexpr std::size_t kMostFiles = 10'000;
constexpr int kMostDepth = 4;  // of directories

bool may_be_benchmark(std::string_view name) {
  return name.ends_with(".json") || name.ends_with(".jsonl") || name.ends_with(".csv");
}

/// Files below a directory, by the directory that they stand in.
Status list_files(os::Env& env, const std::string& directory, int depth,
                  std::map<std::string, std::vector<std::string>>& files) {
  BERTH_ASSIGN(const auto names, env.list(directory));
  for (const auto& name : names) {
    const std::string path = path_in(directory, name);
    BERTH_ASSIGN(const auto status, env.status(path));
    if (status.kind == os::FileStatus::Kind::directory && depth < kMostDepth)
      BERTH_TRY(list_files(env, path, depth + 1, files));
    if (status.kind == os::FileStatus::Kind::file && may_be_benchmark(name))
      files[directory].push_back(path);
    if (files.size() > kMostFiles)
      return fail(ErrorKind::invalid, "{}: more than {} directories", directory, kMostFiles);
  }
  return {};
}

Result<fleet::BenchmarkFile> read_one(os::Env& env, const std::string& path) {
  BERTH_ASSIGN(const auto text, env.read_file(path, kMostFileBytes));
  return fleet::read_benchmark_file(path, text);
}

void take(BenchmarkInput& input, fleet::BenchmarkFile&& file) {
  std::ranges::move(file.notes, std::back_inserter(input.notes));
  for (auto& part : file.measured) {
    const auto same = std::ranges::find_if(input.measured, [&](const auto& each) {
      return each.model == part.model && each.accelerator == part.accelerator;
    });
    if (same == input.measured.end()) {
      input.measured.push_back(std::move(part));
      continue;
    }
    std::ranges::move(part.iterations, std::back_inserter(same->iterations));
    std::ranges::move(part.points, std::back_inserter(same->points));
  }
}

/// The tool writes one file a run, with or without requests.
bool writes_one_file(std::string_view tool) {
  return tool == "vLLM" || tool == "sglang";
}

/// Reads the files of one directory. Tools write several of a run, of which the most detailed are
/// taken. A file that cannot be read is left out, with a note.
void read_directory(os::Env& env, const std::vector<std::string>& paths, BenchmarkInput& input) {
  std::vector<std::pair<std::string, fleet::BenchmarkFile>> files;
  for (const auto& path : paths) {
    auto file = read_one(env, path);
    if (file)
      files.emplace_back(path, *std::move(file));
    else if (file.error().kind == ErrorKind::not_found)
      input.notes.push_back(
          fmt::format("{}: not the output of a known benchmark tool; skipped", path));
    else
      input.notes.push_back(fmt::format("{}; the file is skipped", file.error().message));
  }
  for (auto& [path, file] : files) {
    const auto better = std::ranges::find_if(files, [&](const auto& other) {
      return other.second.tool == file.tool && other.second.detail > file.detail;
    });
    if (better == files.end() || writes_one_file(file.tool))
      take(input, std::move(file));
    else
      input.notes.push_back(
          fmt::format("{}: skipped, because {} has more data on the run", path, better->first));
  }
}

}  // namespace

Result<BenchmarkInput> read_benchmarks(os::Env& env, const std::vector<std::string>& paths) {
  BenchmarkInput input;
  for (const auto& path : paths) {
    BERTH_ASSIGN(const auto status, env.status(path));
    if (status.kind != os::FileStatus::Kind::directory) {
      BERTH_ASSIGN(auto file, read_one(env, path));
      take(input, std::move(file));
      continue;
    }
    std::map<std::string, std::vector<std::string>> directories;
    BERTH_TRY(list_files(env, path, 1, directories));
    for (const auto& [directory, files] : directories) read_directory(env, files, input);
  }
  if (input.measured.empty())
    return fail(ErrorKind::not_found, "{}: contains no output of a known benchmark tool{}{}",
                join(paths, ", "), input.notes.empty() ? "" : ": ", join(input.notes, "; "));
  return input;
}

Status choose_measured(std::vector<fleet::Measured>& all, const std::string& model,
                       const std::string& accelerator) {
  struct Choice {
    std::string_view option;
    const std::string& wanted;
    std::string fleet::Measured::* field;
  };
  for (const auto& [option, wanted, field] :
       {Choice{"--llm", model, &fleet::Measured::model},
        Choice{"--accelerator", accelerator, &fleet::Measured::accelerator}}) {
    if (wanted.empty()) continue;
    std::vector<std::string> names;
    for (const auto& each : all)
      if (std::ranges::find(names, each.*field) == names.end()) names.push_back(each.*field);
    if (std::ranges::find(names, wanted) != names.end()) {
      std::erase_if(all, [&](const auto& each) { return each.*field != wanted; });
    } else if (names.size() == 1) {
      for (auto& each : all) each.*field = wanted;
    } else {
      std::ranges::replace(names, std::string(), std::string("(not said)"));
      return fail(ErrorKind::usage, "{}: expected one of {}; got '{}'", option, join(names, ", "),
                  clip(wanted));
    }
  }
  return {};
}

}  // namespace berth::engine
