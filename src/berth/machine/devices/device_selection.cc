#include "berth/machine/devices/device_selection.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::machine {
bool DeviceSelection::is_by_group() const {
  switch (policy) {
    case placement::PolicyKind::packed:
    case placement::PolicyKind::best_effort:
    case placement::PolicyKind::simple: return false;
    case placement::PolicyKind::static_dgx1_pascal:
    case placement::PolicyKind::static_dgx1_volta:
    case placement::PolicyKind::static_dgx2: break;
  }
  return true;
}

Result<std::vector<std::string>> device_names(
    std::string_view list, const std::function<bool(std::string_view)>& is_device) {
  std::vector<std::string> names;
  for (const auto part : split(list, ',')) {
    const auto item = trim(part);
    if (item.empty()) continue;
    const auto dash = item.find('-');
    const auto first = parse_integer(item.substr(0, dash));
    const auto last = dash == item.npos ? first : parse_integer(item.substr(dash + 1));
    if (!first || !last || (is_device && is_device(item))) {
      names.emplace_back(item);
      continue;
    }
    if (*last < *first || *last - *first >= placement::kMostDevices)
      return fail(ErrorKind::invalid, "expected a range such as 2-5, got '{}'", clip(item));
    for (std::int64_t index = *first; index <= *last; ++index)
      names.push_back(fmt::format("{}", index));
  }
  return names;
}

Status add_required(std::string_view list, std::vector<std::string>& required) {
  BERTH_ASSIGN(auto names, device_names(list));
  for (std::string& name : names)
    if (std::ranges::find(required, name) == required.end()) required.push_back(std::move(name));
  if (required.size() <= placement::kMostDevices) return {};
  return fail(ErrorKind::invalid, "expected at most {} devices, got {}", placement::kMostDevices,
              required.size());
}

bool takes_part(const Resources& resources) {
  return resources.get(Known::gpu_mem) > 0 || resources.get(Known::gpu_slots) > 0;
}

Status imply_devices(const DeviceSelection& selection, bool none, Resources& resources) {
  const DeviceSelection usual;
  const auto required = static_cast<std::int64_t>(selection.required.size());
  std::int64_t count = resources.get(Known::gpu);
  if (!none && count == 0 && takes_part(resources)) count = 1;
  if (!none && count == 0) {
    count = std::max<std::int64_t>(required, selection.memory_min > 0 ? 1 : 0);
    resources.set(Known::gpu, count);
  }
  if (required > count)
    return fail(ErrorKind::invalid, "gpu_require: {} devices are more than a gpu of {}", required,
                count);
  if (count > 0 || (selection == usual && !takes_part(resources))) return {};
  return fail(ErrorKind::invalid, "{}: no gpu is asked for",
              resources.get(Known::gpu_mem) > 0     ? "gpu_mem"
              : resources.get(Known::gpu_slots) > 0 ? "gpu_slots"
              : selection.memory_min > 0            ? "gpu_mem_min"
              : !selection.slot_sizes.empty()       ? "gpu_slot_sizes"
              : selection.policy == usual.policy    ? "gpu_objective"
                                                    : "gpu_policy");
}

std::string to_json(const DeviceSelection& selection) {
  const DeviceSelection usual;
  JsonWriter json;
  json.object();
  if (!selection.slot_sizes.empty()) json.key("gpu_slot_sizes").list(selection.slot_sizes);
  if (selection.memory_min > 0) json.add("gpu_mem_min", selection.memory_min);
  if (selection.policy != usual.policy) json.add("gpu_policy", placement::name(selection.policy));
  if (selection.objective != usual.objective)
    json.add("gpu_objective", placement::name(selection.objective));
  if (!selection.required.empty()) json.key("gpu_require").list(selection.required);
  return json.end().take();
}

std::string text_of(const DeviceSelection& selection) {
  const DeviceSelection usual;
  std::string text;
  if (!selection.slot_sizes.empty())
    text += fmt::format(", gpu_slot_sizes {}", fmt::join(selection.slot_sizes, ","));
  if (selection.memory_min > 0) text += ", gpu_mem_min " + format_bytes(selection.memory_min);
  if (selection.policy != usual.policy)
    text += fmt::format(", gpu_policy {}", placement::name(selection.policy));
  if (selection.objective != usual.objective)
    text += fmt::format(", gpu_objective {}", placement::name(selection.objective));
  if (!selection.required.empty()) text += ", gpu_require " + join(selection.required, ",");
  return text;
}

namespace {

Status read_slot_sizes(const Field& list, std::vector<int>& sizes) {
  constexpr std::int64_t kMost = 10'000;
  BERTH_ASSIGN(const auto items, list.items());
  for (const Field& item : items) {
    BERTH_ASSIGN(const std::int64_t size, item.integer());
    if (size < 1 || size > kMost)
      return item.error(fmt::format("expected 1 to {} slots, got {}", kMost, size));
    sizes.push_back(static_cast<int>(size));
  }
  return {};
}

Result<std::int64_t> read_memory_min(const Field& field) {
  BERTH_ASSIGN(const std::string text, field.text());
  const auto amount = parse_amount(name(Known::gpu_mem), text);
  if (!amount) return field.error(amount.error());
  return *amount;
}

Status read_required(const Field& field, std::vector<std::string>& required) {
  std::vector<Field> items{field};
  if (!field.is_scalar()) {
    BERTH_ASSIGN(items, field.items());
  }
  for (const Field& item : items) {
    BERTH_ASSIGN(const std::string list, item.text());
    if (const auto added = add_required(list, required); !added) return item.error(added.error());
  }
  return {};
}

}  // namespace

Result<bool> read_selection(std::string_view key, const Field& value, DeviceSelection& selection) {
  const auto named = [&](auto& kind, const auto& find) -> Status {
    BERTH_ASSIGN(const std::string text, value.text());
    const auto found = find(text);
    if (!found) return value.error(found.error());
    kind = *found;
    return {};
  };
  if (key == "gpu_slot_sizes") {
    BERTH_TRY(read_slot_sizes(value, selection.slot_sizes));
  } else if (key == "gpu_mem_min") {
    BERTH_ASSIGN(selection.memory_min, read_memory_min(value));
  } else if (key == "gpu_policy") {
    BERTH_TRY(named(selection.policy, placement::policy_named));
  } else if (key == "gpu_objective") {
    BERTH_TRY(named(selection.objective, placement::objective_named));
  } else if (key == "gpu_require") {
    BERTH_TRY(read_required(value, selection.required));
  } else {
    return false;
  }
  return true;
}

Result<DeviceSelection> selection_of_json(std::string_view text) {
  const auto read = [&]() -> Result<DeviceSelection> {
    DeviceSelection selection;
    BERTH_ASSIGN(const Field field, Field::parse(text, "selection"));
    BERTH_ASSIGN(const auto entries, field.entries());
    for (const auto& [key, value] : entries) {
      BERTH_ASSIGN(const bool known, read_selection(key, value, selection));
      if (!known) return value.error("not of a selection of devices");
    }
    return selection;
  };
  auto selection = read();
  if (!selection) return fail(ErrorKind::corrupt, "{}", selection.error().message);
  return selection;
}

}  // namespace berth::machine
