// A flow that is read runs to its end, whatever its tasks write; every task once, each with a
// record that reads back.
#include "berth/flow/flow.h"

#include <algorithm>
#include <set>

#include "fuzz.h"

namespace {

using namespace berth::flow;
namespace fileset = berth::fileset;

constexpr std::int64_t kMostWork = 200;  // tasks of one input
constexpr std::string_view kFiles[] = {"a.txt", "b.txt", "data/c.txt", "data/d e"};

World world() {
  return {[](const std::string& path) { return path.size() % 3 != 0; },
          [](const std::string& pattern) -> berth::Result<Words> {
            Words found;
            for (const auto file : kFiles)
              if (fileset::matches(pattern, file)) found.emplace_back(file);
            return found;
          },
          [](const std::string& name) -> std::optional<std::string> {
            return name.size() % 2 == 0 ? std::optional<std::string>("x") : std::nullopt;
          },
          [](const std::string& path) -> berth::Result<std::string> {
            return "id,n\nA," + path + "\nB,2\n";
          }};
}

fileset::Fileset written(const Output& output, std::int64_t task) {
  fileset::Fileset fileset;
  const auto add = [&](std::string path) {
    fileset.entries.push_back(
        {std::move(path), fileset::Entry::Kind::file, berth::sha256("x"), 1, {}});
  };
  if (!output.directory) add(".");
  if (output.directory)
    for (std::int64_t i = 0; i <= task % 3; ++i) add(std::string(1, static_cast<char>('a' + i)));
  return fileset;
}

void check_spec(const Graph& graph, TaskIndex task) {
  const auto spec = graph.spec(task);
  if (!spec) {
    BERTH_ASSERT(spec.error().kind == berth::ErrorKind::invalid);
    return;
  }
  BERTH_ASSERT(graph.find(spec->name) == task);
  std::vector<berth::Digest> digests;
  for (const auto& input : spec->inputs) {
    BERTH_ASSERT(!input.place.empty() && input.place[0] != '/');
    BERTH_ASSERT(input.world.empty() != input.content.entries.empty());
    digests.push_back(fileset::digest(input.content));
  }
  for (const auto& output : spec->outputs)
    BERTH_ASSERT(!output.path.starts_with('/') && !output.path.starts_with("../"));
  const auto text = record(*spec, digests);
  const auto differences = changes(text, text);
  BERTH_ASSERT(differences && differences->empty());
}

void run(Graph graph) {
  std::set<std::int64_t> seen;
  for (;;) {
    const auto ready = graph.take_ready();
    if (!ready || graph.known() > kMostWork) return;
    for (const auto task : ready->skipped) BERTH_ASSERT(seen.insert(task.value).second);
    for (const auto task : ready->run) {
      BERTH_ASSERT(seen.insert(task.value).second);
      check_spec(graph, task);
      const auto step = static_cast<std::size_t>(graph.step_of(task).value);
      std::vector<fileset::Fileset> outputs;
      for (const auto& output : graph.flow().steps[step].out)
        outputs.push_back(written(output, task.value));
      if (!graph.finish(task, std::move(outputs))) return;
    }
    if (ready->run.empty()) break;
  }
  BERTH_ASSERT(graph.done());
  BERTH_ASSERT(static_cast<std::int64_t>(seen.size()) == graph.known());
}

}  // namespace

void berth::fuzz(std::string_view text) {
  if (std::ranges::count(text, '*') > 12) return;  // as in document_fuzz.cc
  auto flow = read_flow(text, "f.yaml");
  if (!flow) {
    BERTH_ASSERT(flow.error().kind == ErrorKind::invalid);
    BERTH_ASSERT(flow.error().message.starts_with("f.yaml:"));
    return;
  }
  (void)check_fits(*flow, Resources());
  if (flow->steps.size() > 50) return;
  auto graph = Graph::build(*std::move(flow), world());
  if (graph)
    run(*std::move(graph));
  else
    BERTH_ASSERT(graph.error().message.starts_with("f.yaml:"));
}
