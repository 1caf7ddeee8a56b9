// For tests of flows: a world of names, and filesets without files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "berth/flow/flow.h"

namespace berth::flow {

/// The flow of the design.
inline constexpr std::string_view kCountFlow = R"(name: count
steps:
  split:
    run: split -n l/8 {in.text} {out.parts}/
    in: {text: data/corpus.txt}
    out: {parts: parts/}
  count:
    foreach: {part: split.parts/*}
    run: wc -w < {part} > {out.n}
    out: {n: 'counts/{part.stem}.txt'}
    resources: {cpu: 1, mem: 100M}
  sum:
    in: {counts: count.n}
    run: cat {in.counts} | awk '{s += $1} END {print s}' > {out.total}
    out: {total: total.txt}
)";

struct FakeWorld {
  std::set<std::string> files;
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> tables{};

  World world() const {
    return {[*this](const std::string& path) {
              return files.contains(path) || std::ranges::any_of(files, [&](const auto& file) {
                       return file.starts_with(path + "/");
                     });
            },
            [*this](const std::string& pattern) -> Result<Words> {
              Words found;
              for (const auto& file : files)
                if (fileset::matches(pattern, file)) found.push_back(file);
              return found;
            },
            [*this](const std::string& name) -> std::optional<std::string> {
              const auto found = variables.find(name);
              return found == variables.end() ? std::nullopt : std::optional(found->second);
            },
            [*this](const std::string& path) -> Result<std::string> {
              const auto found = tables.find(path);
              if (found == tables.end()) return fail(ErrorKind::not_found, "no table {}", path);
              return found->second;
            }};
  }
};

/// Files of these names, each holding `content` and its name; one called "." is a file by itself.
inline fileset::Fileset files(Words names, const std::string& content = "") {
  fileset::Fileset fileset;
  std::ranges::sort(names);
  for (auto& name : names) {
    const Digest digest = sha256(content + name);
    fileset.entries.push_back({std::move(name), fileset::Entry::Kind::file, digest, 1, {}});
  }
  return fileset;
}

inline Flow read(std::string_view text, const std::string& file = "f.yaml") {
  auto flow = read_flow(text, file);
  EXPECT_TRUE(flow) << flow.error().message;
  return flow ? *std::move(flow) : Flow{};
}

inline Graph build(std::string_view text, const FakeWorld& world = {}) {
  auto graph = Graph::build(read(text), world.world());
  EXPECT_TRUE(graph) << graph.error().message;
  return *std::move(graph);
}

/// What reading, or else building, says is wrong.
inline std::string complaint(std::string_view text, const FakeWorld& world = {}) {
  auto flow = read_flow(text, "f.yaml");
  if (!flow) return flow.error().message;
  const auto graph = Graph::build(*std::move(flow), world.world());
  return graph ? "nothing" : graph.error().message;
}

inline Words names(const Graph& graph, const std::vector<TaskIndex>& tasks) {
  Words result;
  for (const auto task : tasks) result.push_back(graph.name(task));
  return result;
}

/// Finishes a task; each of its outputs is one file, a directory's holds `parts`.
inline Status finish(Graph& graph, const std::string& name, const Words& parts = {"a", "b"}) {
  const auto task = graph.find(name);
  EXPECT_TRUE(task) << name;
  std::vector<fileset::Fileset> outputs;
  for (const auto& output :
       graph.flow().steps[static_cast<std::size_t>(graph.step_of(*task).value)].out)
    outputs.push_back(output.directory ? files(parts, name) : files({"."}, name));
  return graph.finish(*task, std::move(outputs));
}

/// All of a task that is ready.
inline TaskSpec spec(const Graph& graph, const std::string& name) {
  auto spec = graph.spec(*graph.find(name));
  EXPECT_TRUE(spec) << spec.error().message;
  return spec ? *std::move(spec) : TaskSpec{};
}

}  // namespace berth::flow
