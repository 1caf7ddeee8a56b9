#include "berth/render/runs/run_plan.h"

#include "berth/base/json_writer.h"
#include "berth/base/ranges.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/render/machines/machine.h"

namespace berth::render {
namespace {

std::string block_text(const machine::Block& block) {
  std::vector<int> cores;
  for (const auto& share : block.cores) cores.push_back(share.core);
  std::string text = cores.empty() ? "" : "cores " + ranges_text(cores);
  for (const auto& device : block.devices)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", device.uuid,
                        device.whole ? "whole" : format_amount("gpu_mem", device.memory));
  return text.empty() ? "anywhere" : text;
}

/// Such as "advisory: not delegated" or "enforced: by cgroup v2".
std::string limits_text(const engine::TrialsPlan& plan) {
  const bool enforced = !plan.enforced.empty();
  std::string text = enforced ? "enforced: " + plan.enforced : "advisory";
  if (!plan.because.empty()) text += (enforced ? ", " : ": ") + plan.because;
  return text;
}

std::string text_of(const engine::TrialsPlan& plan, const View&) {
  constexpr std::size_t kShown = 16;
  std::string text =
      fmt::format("{}: {} task{}, each {}{}\n", plan.name, plan.tasks, plan.tasks == 1 ? "" : "s",
                  to_string(plan.resources), machine::text_of(plan.selection));
  text +=
      fmt::format("in parallel: {} now, {} on the empty machine\n", plan.now.size(), plan.empty);
  for (std::size_t i = 0; i < plan.now.size() && i < kShown; ++i)
    text += fmt::format("  {}: {}\n", i + 1, block_text(plan.now[i]));
  if (has_limits(plan.resources))
    text += fmt::format("limits: {}; berth machine --probe tries it\n", limits_text(plan));
  if (plan.now.size() > kShown) text += fmt::format("  … and {} more\n", plan.now.size() - kShown);
  if (plan.waiting_before > 0)
    text += fmt::format("{} wait for the machine ahead of it\n", plan.waiting_before);
  if (!plan.why_no_more.empty()) text += fmt::format("limited by {}\n", plan.why_no_more);
  return text;
}

std::string count_text(std::int64_t files) {
  return fmt::format("{} file{}", files, files == 1 ? "" : "s");
}

bool is_utf8(std::string_view text) {
  return valid_utf8(text) == text;
}

/// Whether the text has a backslash, x and two digits, as name_text() writes bytes.
bool has_escape(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  for (std::size_t at = 0; (at = text.find("\\x", at)) != text.npos; ++at)
    if (at + 3 < text.size() && is_digit(text[at + 2]) && is_digit(text[at + 3])) return true;
  return false;
}

/// A file's name as UTF-8, different where the names are: other bytes as \xff, and in a name that
/// has any such, or looks like it, the backslash too.
std::string name_text(std::string_view name) {
  if (is_utf8(name) && !has_escape(name)) return std::string(name);
  constexpr std::size_t kLongest = 4;  // bytes of a character
  std::string text;
  while (!name.empty()) {
    std::size_t length = 1;
    while (length < kLongest && length < name.size() && !is_utf8(name.substr(0, length))) ++length;
    const bool plain = name.front() != '\\' && is_utf8(name.substr(0, length));
    if (!plain) length = 1;
    text += plain ? std::string(name.substr(0, length))
                  : fmt::format("\\x{:02x}", static_cast<unsigned char>(name.front()));
    name.remove_prefix(length);
  }
  return text;
}

std::string text_of(const engine::SendingPlan& plan, const View&) {
  const auto& [clusters, folder, warnings] = plan;
  const bool one = clusters.size() == 1;
  std::string text = fmt::format(
      "a plan does not contact {}; to see what {} room for: berth cluster probe {}\n"
      "the trials take the folder {} along: {}, {}; a host that sees the same folder uses it in "
      "place\n",
      join(clusters, " and "), one ? "it has" : "they have", join(clusters, " "), folder.path,
      count_text(folder.files), format_bytes(folder.bytes));
  if (!folder.left_out.empty()) {
    constexpr std::size_t kPathShown = 4096;  // all of it, its control characters made visible
    Table table({"left out", "files", "size", "because of"});
    for (const auto& left : folder.left_out) {
      const std::string_view more = left.more ? ">" : "";
      table.add({clip(name_text(left.path), kPathShown), fmt::format("{}{}", more, left.files),
                 fmt::format("{}{}", more, format_bytes(left.bytes)), left.why});
    }
    text += to_text(table);
  }
  for (const auto& warning : warnings) text += warning + "\n";
  return text;
}

std::string text_of(const engine::FlowPlan& plan, const View& view) {
  using Step = engine::FlowPlan::Step;
  const auto count = [](std::int64_t number) {
    return number == 0 ? "-" : fmt::format("{}", number);
  };
  const std::vector<Field<Step>> fields{
      {"step", [](const Step& step) { return step.name; }},
      {"cached", [&](const Step& step) { return count(step.cached); }},
      {"run", [&](const Step& step) { return count(step.runs); }},
      {"later", [&](const Step& step) { return step.unfolded ? count(step.later) : "?"; }},
      {"skipped", [&](const Step& step) { return count(step.skipped); }},
      {"each", [](const Step& step) { return to_string(step.resources); }},
      {"in parallel", [](const Step& step) { return fmt::format("{}", step.in_parallel); }}};
  std::string text = to_text(table_of(fields, plan.steps), view);
  text +=
      "cached: found in the cache; run: would start immediately; later: after these (?: how many "
      "is not known yet)\n";
  for (const auto& step : plan.steps)
    for (const auto& note : step.asks) text += fmt::format("{}: {}\n", step.name, note);
  std::size_t rows = 0;
  for (const auto& step : plan.steps)
    for (const auto& task : step.tasks)
      if (++rows <= kMostRows)
        text +=
            fmt::format("\n{}: {}\n  {}\n", task.name, task.command, join(task.because, "\n  "));
  if (rows > kMostRows) text += fmt::format("\n… {} more: --json\n", rows - kMostRows);
  for (const auto& step : plan.steps)
    for (const auto& why : step.refused)
      text += fmt::format("{}: would be refused: {}\n", step.name, why);
  for (const auto& step : plan.steps)
    for (const auto& [url, size, there] : step.urls)
      text += fmt::format("{}: {}, {}\n", url, size < 0 ? "size not known" : format_bytes(size),
                          there ? "downloaded already" : "would be downloaded");
  for (const auto& image : plan.missing_images)
    text += fmt::format("image {} is not on this machine: it would be downloaded first\n", image);
  return text;
}

void write(JsonWriter& json, const engine::TrialsPlan& plan) {
  json.add("name", plan.name).add("tasks", plan.tasks);
  json.key("resources").raw(to_json(plan.resources));
  json.key("selection").raw(machine::to_json(plan.selection)).key("limits").object();
  json.add("enforced", !plan.enforced.empty()).add("because", plan.because).add("probed", false);
  json.end().key("side_by_side").object().add("now", plan.now.size());
  json.add("empty_machine", plan.empty).end().key("places").array();
  for (const auto& block : plan.now) {
    json.object().key("cores").array();
    for (const auto& share : block.cores) json.value(share.core);
    json.end().key("devices").raw(to_json(block.devices)).end();
  }
  json.end().add("waiting_before", plan.waiting_before).add("why_no_more", plan.why_no_more);
}

void write(JsonWriter& json, const engine::FlowPlan::Step& step) {
  json.object().add("step", step.name).add("cached", step.cached).add("run", step.runs);
  json.add("skipped", step.skipped).key("later");
  step.unfolded ? json.value(step.later) : json.raw("null");
  json.key("resources").raw(to_json(step.resources));
  json.key("selection").raw(machine::to_json(step.selection));
  json.add("side_by_side", step.in_parallel).key("tasks").array();
  for (const auto& task : step.tasks)
    json.object()
        .add("task", task.name)
        .add("command", task.command)
        .key("because")
        .list(task.because)
        .end();
  json.end();
  if (!step.asks.empty()) json.key("asks").list(step.asks);
  if (!step.refused.empty()) json.key("refused").list(step.refused);
  if (!step.urls.empty()) json.key("urls").array();
  for (const auto& [url, size, there] : step.urls) {
    json.object().add("url", url).key("size");
    (size < 0 ? json.raw("null") : json.value(size)).add("fetched", there).end();
  }
  if (!step.urls.empty()) json.end();
  json.end();
}

void write(JsonWriter& json, const engine::FlowPlan& plan) {
  json.add("name", plan.name).key("steps").array();
  for (const auto& step : plan.steps) write(json, step);
  json.end();
  if (!plan.missing_images.empty()) json.key("missing_images").list(plan.missing_images);
}

void write(JsonWriter& json, const engine::SendingPlan& plan) {
  const auto& folder = plan.folder;
  json.add("cluster", plan.clusters.front()).key("clusters").list(plan.clusters);
  json.add("folder", name_text(folder.path));
  json.add("files", folder.files).add("bytes", folder.bytes).key("sent").array();
  for (const auto& entry : folder.entries)
    if (entry.kind != os::TreeEntry::Kind::directory) json.value(name_text(entry.path));
  json.end().key("left_out").array();
  for (const auto& left : folder.left_out)
    json.object()
        .add("path", name_text(left.path))
        .add("why", name_text(left.why))
        .add("files", left.files)
        .add("bytes", left.bytes)
        .add("counted", !left.more)
        .end();
  json.end().key("warnings").list(plan.warnings);
}

}  // namespace

std::string to_text(const engine::RunPlan& plan, const View& view) {
  return std::visit([&](const auto& each) { return text_of(each, view); }, plan);
}

std::string to_json(const engine::RunPlan& plan) {
  JsonWriter json;
  json.object().add("version", 1);
  std::visit([&](const auto& each) { write(json, each); }, plan);
  return json.end().take() + "\n";
}

std::string to_text(const engine::CheckedFile& checked, const View&) {
  return fmt::format("{}: {}: valid; to see what would run: berth run --plan {}\n", checked.file,
                     checked.is_flow ? "a flow" : "an experiment", checked.file);
}

std::string to_json(const engine::CheckedFile& checked) {
  JsonWriter json;
  json.object().add("version", 1).add("file", checked.file);
  return json.add("kind", checked.is_flow ? "flow" : "experiment").end().take() + "\n";
}

}  // namespace berth::render
