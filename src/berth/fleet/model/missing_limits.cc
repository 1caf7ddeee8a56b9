#include "berth/fleet/model/missing_limits.h"

#include <set>

#include "berth/base/text.h"
#include "berth/fleet/model/system_view.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostNamed = 4;  // entries in one note

using Assumed = MissingLimits::Assumed;

/// What the plan of a server assumes on an accelerator. nullopt: nothing that it needs is missing.
std::optional<Assumed> assumption(const Server& server, const Performance& performance,
                                  bool is_idle, QueueModel model) {
  const bool knows_batch = server.max_batch > 0 || performance.max_batch > 0;
  const bool knows_memory = performance.max_batch > 0 && performance.at_tokens > 0;
  if (is_idle) return knows_batch ? std::nullopt : std::optional(Assumed::one_request);
  if (knows_memory) return std::nullopt;
  if (model == QueueModel::reference)  // which has no limit of memory next to the server's batch
    return server.max_batch > 0 ? std::nullopt : std::optional(Assumed::one_request);
  return knows_batch ? Assumed::any_length : Assumed::one_request;
}

}  // namespace

std::string listed_entries(std::vector<std::string> entries) {
  const std::size_t count = entries.size();
  if (count <= kMostNamed) return join(entries, ", ");
  entries.resize(kMostNamed);
  return fmt::format("{} and {} more", join(entries, ", "), count - kMostNamed);
}

void MissingLimits::add(const std::string& model, const std::string& accelerator,
                        const Performance& performance, Assumed assumed) {
  entries_[{assumed, performance.max_batch == 0, performance.at_tokens == 0}].push_back(
      fmt::format("{} on {}", clip(model), clip(accelerator)));
}

std::vector<std::string> MissingLimits::notes() const {
  std::vector<std::string> notes;
  for (const auto& [lacking, entries] : entries_) {
    const auto& [assumed, no_batch, no_tokens] = lacking;
    std::vector<std::string> keys, cures;
    if (no_batch) {
      keys.emplace_back("maxBatchSize");
      cures.emplace_back("maxBatchSize (such as --max-num-seqs of vLLM)");
    }
    if (no_tokens) {
      keys.emplace_back("atTokens");
      cures.emplace_back("atTokens (tokens of the key-value cache / maxBatchSize)");
    }
    notes.push_back(
        fmt::format("{}: {} {} missing. A plan assumes that {}. In models, add {}",
                    listed_entries(entries), join(keys, " and "), keys.size() == 1 ? "is" : "are",
                    assumed == Assumed::one_request
                        ? "a replica serves one request at a time, so it has far too many replicas"
                        : "any number of tokens fits a replica, so it may have too few replicas",
                    join(cures, " and ")));
  }
  return notes;
}

std::optional<Assumed> assumed_for_entry(const System& system, const std::string& model,
                                         const std::string& accelerator) {
  const Performance& performance = system.models.at(model).accelerators.at(accelerator);
  std::optional<Assumed> worst;
  bool is_used = false;
  for (const auto& [name, server] : system.servers) {
    if (server.model != model) continue;
    is_used = true;
    const auto assumed = assumption(server, performance, false, system.options.model);
    if (assumed && (!worst || *assumed < *worst)) worst = assumed;
  }
  return is_used ? worst : assumption({}, performance, false, system.options.model);
}

std::vector<std::string> notes_on_missing_limits(const System& system) {
  // Many servers share an entry; the first one that lacks something is enough for a note.
  std::map<std::pair<std::string, std::string>, std::set<Assumed>> found;
  for (const auto& [name, server] : system.servers) {
    const auto model = system.models.find(server.model);
    const auto service_class = system.classes.find(class_of(server));
    if (model == system.models.end() || service_class == system.classes.end()) continue;
    const auto target = service_class->second.targets.find(server.model);
    if (target == service_class->second.targets.end()) continue;
    const bool is_idle =
        rate_per_ms(server.current.load, target->second, system.options.model) == 0;
    if (is_idle && server.min_replicas == 0) continue;
    for (const auto& [accelerator, performance] : model->second.accelerators) {
      if (!system.accelerators.contains(accelerator) || keeps_another(server, accelerator))
        continue;
      if (const auto assumed = assumption(server, performance, is_idle, system.options.model))
        found[{server.model, accelerator}].insert(*assumed);
    }
  }
  MissingLimits missing;
  for (const auto& [entry, all] : found)
    for (const Assumed assumed : all)
      missing.add(entry.first, entry.second,
                  system.models.at(entry.first).accelerators.at(entry.second), assumed);
  return missing.notes();
}

}  // namespace berth::fleet
