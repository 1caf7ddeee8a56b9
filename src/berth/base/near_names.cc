#include "berth/base/near_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "berth/base/text.h"

namespace berth {
namespace {

using Synonym = std::pair<std::string_view, std::string_view>;

/// Words of other tools, and what the same is called here.
constexpr auto kKeys = std::to_array<Synonym>({
    {"rules", "steps"},
    {"rule", "steps"},
    {"jobs", "steps"},
    {"tasks", "steps"},
    {"processes", "steps"},
    {"stages", "steps"},
    {"input", "in"},
    {"inputs", "in"},
    {"output", "out"},
    {"outputs", "out"},
    {"cmd", "run"},
    {"command", "run"},
    {"commands", "run"},
    {"exec", "run"},
    {"sh", "run"},
    {"code", "script"},
    {"depends", "needs"},
    {"depends_on", "needs"},
    {"after", "needs"},
    {"requires", "needs"},
    {"dependencies", "needs"},
    {"mem", "resources"},
    {"memory", "resources"},
    {"cpu", "resources"},
    {"cpus", "resources"},
    {"cores", "resources"},
    {"threads", "resources"},
    {"gpu", "resources"},
    {"gpus", "resources"},
    {"disk", "resources"},
    {"container", "image"},
    {"docker", "image"},
    {"singularity", "image"},
    {"apptainer", "image"},
    {"podman", "image"},
    {"bubblewrap", "sandbox"},
    {"bwrap", "sandbox"},
    {"hermetic", "sandbox"},
    {"matrix", "foreach"},
    {"scatter", "foreach"},
    {"with_items", "foreach"},
    {"expand", "foreach"},
    {"environment", "env"},
    {"vars", "params"},
    {"parameters", "params"},
    {"config", "params"},
    {"args", "params"},
    {"walltime", "timeout"},
    {"time", "timeout"},
    {"time_limit", "timeout"},
    {"retry", "retries"},
    {"attempts", "retries"},
    {"if", "when"},
    {"condition", "when"},
    {"tags", "labels"},
    {"interpreter", "shell"},
    {"trials", "search"},
    {"objective", "goal"},
    {"metric", "goal"},
    {"hyperparameters", "params"},
    {"space", "params"},
    {"max_parallel", "parallel"},
});

constexpr auto kResources = std::to_array<Synonym>({
    {"memory", "mem"},    {"ram", "mem"},       {"mem_mb", "mem"},         {"mem_gb", "mem"},
    {"memory_mb", "mem"}, {"memory_gb", "mem"}, {"cpus", "cpu"},           {"core", "cpu"},
    {"cores", "cpu"},     {"thread", "cpu"},    {"threads", "cpu"},        {"ncpus", "cpu"},
    {"gpus", "gpu"},      {"ngpus", "gpu"},     {"gpu_memory", "gpu_mem"}, {"vram", "gpu_mem"},
    {"storage", "disk"},  {"disk_mb", "disk"},  {"scratch", "disk"},
});

std::string_view known_as(std::span<const Synonym> synonyms, std::string_view name) {
  const auto found = std::ranges::find(synonyms, name, &Synonym::first);
  return found == synonyms.end() ? std::string_view() : found->second;
}

}  // namespace

std::string_view meant_key(std::string_view key, std::span<const std::string_view> known) {
  const auto meant = known_as(kKeys, lower(key));
  if (!meant.empty() && std::ranges::find(known, meant) != known.end()) return meant;
  return nearest(key, known);
}

std::string_view meant_resource(std::string_view name) {
  return known_as(kResources, lower(name));
}

}  // namespace berth
