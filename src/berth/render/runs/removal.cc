#include "berth/render/runs/removal.h"

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::render {
namespace {

std::string names_json(std::string_view key, const std::vector<std::string>& names) {
  JsonWriter json;
  return json.object().add("version", 1).key(key).list(names).end().take() + "\n";
}

}  // namespace

std::string to_text(const Removed& removed, const View&) {
  return fmt::format("removed {}\n", join(removed.runs, ", "));
}

std::string to_json(const Removed& removed) {
  return names_json("removed", removed.runs);
}

std::string to_text(const engine::Pruned& pruned, const View&) {
  const auto& names = pruned.removed;
  if (names.empty())
    return fmt::format("no run ended longer ago than {}\n", format_duration(pruned.age));
  return fmt::format("{} {}: {}\n", pruned.is_dry_run ? "would remove" : "removed", names.size(),
                     join(names, ", "));
}

std::string to_json(const engine::Pruned& pruned) {
  return names_json(pruned.is_dry_run ? "would_remove" : "removed", pruned.removed);
}

}  // namespace berth::render
