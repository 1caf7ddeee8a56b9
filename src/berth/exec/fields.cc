#include "berth/exec/fields.h"

#include <algorithm>
#include <set>
#include <span>

#include "berth/base/near_names.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/container.h"
#include "berth/exec/formats.h"

namespace berth::exec {

/// Text for a process, which ends it at a NUL byte.
Result<std::string> process_text(const Field& field) {
  BERTH_ASSIGN(std::string text, field.text());
  if (text.find('\0') != std::string::npos) return field.error("cannot contain a NUL byte");
  return text;
}

Result<Duration> duration_of(const Field& field) {
  constexpr auto kLongest = std::chrono::days(36'500);  // added to any clock it still fits
  BERTH_ASSIGN(const Duration duration, field.duration());
  if (duration > kLongest) return field.error("expected at most 36500d");
  return duration;
}

Result<Duration> time_limit_of(const Field& field) {
  BERTH_ASSIGN(const Duration limit, duration_of(field));
  if (limit <= Duration(0))
    return field.error("expected more than 0; where there is to be no limit, leave it out");
  return limit;
}

Result<GpuMemOver> gpu_mem_over_named(std::string_view text) {
  const auto choices = std::span(kGpuMemOverNames.all()).subspan(1);
  const auto found = std::ranges::find(choices, text);
  if (found != choices.end())
    return static_cast<GpuMemOver>(1 + std::distance(choices.begin(), found));
  const auto meant = nearest(text, choices);
  return fail(ErrorKind::invalid, "expected warn or kill, got '{}'{}", clip(text),
              meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

Status read_gpu_mem_over(const Field& map, GpuMemOver& over) {
  const auto field = map.find("gpu_mem_over");
  if (!field) return {};
  BERTH_ASSIGN(const std::string text, field->text());
  const auto named = gpu_mem_over_named(text);
  if (!named) return field->error(named.error());
  over = *named;
  return {};
}

Result<std::int64_t> integer_within(const Field& field, std::int64_t least, std::int64_t most) {
  BERTH_ASSIGN(const std::int64_t value, field.integer());
  if (value < least || value > most)
    return field.error(fmt::format("expected {} to {}, got {}", least, most, value));
  return value;
}

Result<bool> read_enforce(const Field& map, bool otherwise) {
  const auto field = map.find("enforce");
  if (!field) return otherwise;
  BERTH_ASSIGN(const std::size_t choice, field->choice(kEnforceNames));
  return choice == 1;
}

Result<std::optional<std::int64_t>> read_amount(const std::string& resource, const Field& field) {
  BERTH_ASSIGN(const std::string text, field.text());
  const auto amount = parse_amount(resource, text);
  const auto meant = meant_resource(resource);
  if (!amount && !meant.empty())
    return field.error(
        fmt::format("did you mean '{}'? '{}' would be a custom resource, in numbers such as 2",
                    meant, resource));
  if (!amount) return field.error(amount.error());
  return *amount;
}

Result<bool> read_on_failure(const Field& map, bool otherwise) {
  const auto field = map.find("on_failure");
  if (!field) return otherwise;
  BERTH_ASSIGN(const std::size_t choice, field->choice(kOnFailureNames));
  return choice == 1;
}

Result<std::int64_t> allow_failures_of(std::string_view text) {
  if (text == "true") return kAnyFailures;
  if (text == "false") return 0;
  const auto number = parse_integer(text);
  if (!number || *number < 0 || *number > kMostAllowedFailures)
    return fail(ErrorKind::invalid,
                "expected a number from 0 to {}, or true for any number; got '{}'",
                kMostAllowedFailures, clip(text));
  return *number;
}

Result<std::int64_t> read_allow_failures(const Field& map, std::int64_t otherwise) {
  const auto field = map.find("allow_failures");
  if (!field) return otherwise;
  BERTH_ASSIGN(const std::string text, field->text());
  const auto allowed = allow_failures_of(text);
  if (!allowed) return field->error(allowed.error());
  return *allowed;
}

Result<bool> read_resources(const Field& field, Resources& resources,
                            machine::DeviceSelection& selection, const AmountReader& read) {
  bool named = false, no_devices = false;
  BERTH_ASSIGN(const auto entries, field.entries());
  for (const auto& [name, value] : entries) {
    if (!valid_resource_name(name))
      return value.error("a resource's name is made of a-z, 0-9 and _, and begins with a letter");
    BERTH_ASSIGN(const bool selects, machine::read_selection(name, value, selection));
    if (selects) continue;
    BERTH_ASSIGN(const auto amount, read(name, value));
    resources.set(name, amount.value_or(0));
    named = true;
    no_devices = no_devices || (name == berth::name(Known::gpu) && amount == 0);
  }
  const auto implied = machine::imply_devices(selection, no_devices, resources);
  if (!implied) return field.error(implied.error());
  return named || !resources.empty();
}

Result<std::vector<std::string>> read_names(const Field& field) {
  std::vector<Field> items{field};
  if (!field.is_scalar()) {
    BERTH_ASSIGN(items, field.items());
  }
  std::vector<std::string> names;
  for (const auto& item : items) {
    BERTH_ASSIGN(auto name, item.text());
    if (name.empty()) return item.error("expected a name");
    names.push_back(std::move(name));
  }
  return names;
}

Result<exec::Command> read_command(const Field& field) {
  exec::Command command;
  if (field.is_list()) {
    BERTH_ASSIGN(const auto items, field.items());
    for (const auto& item : items) {
      BERTH_ASSIGN(std::string text, process_text(item));
      command.words.push_back(std::move(text));
    }
    if (command.words.empty()) return field.error("the command is empty");
  } else {
    BERTH_ASSIGN(command.text, process_text(field));
    if (trim(command.text).empty()) return field.error("the command is empty");
  }
  return command;
}

Result<std::vector<std::string>> read_shell(const Field& map,
                                            const std::vector<std::string>& otherwise) {
  const auto field = map.find("shell");
  if (!field) return words_of_shell(otherwise);
  if (field->is_list()) {
    BERTH_ASSIGN(auto command, read_command(*field));
    return std::move(command.words);
  }
  if (field->is_scalar() && std::ranges::find(kShellNames, field->node().text) == kShellNames.end())
    return field->error(
        fmt::format("expected bash, sh or a list of words such as [{0}, -c]; got "
                    "'{0}'",
                    clip(field->node().text, 60)));
  BERTH_ASSIGN(const std::size_t choice, field->choice(kShellNames));
  if (choice == 0) return words_of_shell({});
  return std::vector<std::string>(kPlainShell.begin(), kPlainShell.end());
}

namespace {

/// true, false, or the paths that a sandbox shows beside the task's directory.
Status read_sandbox(const Field& field, Container& container) {
  constexpr std::array<std::string_view, 2> kNoYes{"false", "true"};
  container.shown.clear();
  if (!field.is_list()) {
    const auto choice = field.choice(kNoYes);
    if (!choice)
      return field.error("expected true, false, or a list of the paths that it shows, as [/data]");
    container.sandbox = *choice == 1;
    return {};
  }
  BERTH_ASSIGN(const auto items, field.items());
  for (const auto& item : items) {
    BERTH_ASSIGN(std::string path, process_text(item));
    if (!path.starts_with('/') && !path.starts_with("~/"))
      return item.error(
          fmt::format("expected a path from / or ~/ that tasks may read in addition to their "
                      "inputs; got '{}'; declare a file of the flow's folder as an input with `in`",
                      clip(path)));
    container.shown.push_back(std::move(path));
  }
  container.sandbox = true;
  return {};
}

}  // namespace

Status read_container(const Field& map, Container& container) {
  constexpr std::array<std::string_view, 2> kNetwork{"false", "true"};
  if (const auto field = map.find("image")) {
    BERTH_ASSIGN(container.image, process_text(*field));
    if (!valid_image(container.image))
      return field->error(fmt::format("{}; got '{}'", kImageName, clip(container.image)));
  }
  if (const auto field = map.find("sandbox")) BERTH_TRY(read_sandbox(*field, container));
  const auto field = map.find("network");
  if (!field) return {};
  BERTH_ASSIGN(const std::size_t choice, field->choice(kNetwork));
  container.network = choice == 1;
  if (!container.network && !container.isolated())
    return field->error("without an image or a sandbox, tasks have the machine's network");
  return {};
}

Status read_environment(const Field& field, Environment& environment) {
  BERTH_ASSIGN(const auto entries, field.entries());
  std::set<std::string_view> names;
  for (const auto& [name, value] : entries) names.insert(name);
  std::erase_if(environment, [&](const auto& earlier) { return names.contains(earlier.first); });
  for (const auto& [name, value] : entries) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos)
      return value.error("not a name of an environment variable");
    BERTH_ASSIGN(std::string text, process_text(value));
    environment.emplace_back(name, std::move(text));
  }
  return {};
}

}  // namespace berth::exec
