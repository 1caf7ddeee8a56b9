// What went into a task, and what differs between two such records.
#include <algorithm>
#include <map>

#include "berth/base/text.h"
#include "berth/base/url.h"
#include "berth/flow/flow.h"

namespace berth::flow {
namespace {

constexpr std::string_view kHeader = "berth task 1\n";
constexpr std::string_view kDependency = "dependency";

/// One line whatever it holds.
std::string escaped(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c == '\\')
      line += "\\\\";
    else if (c == '\n')
      line += "\\n";
    else
      line += c;
  }
  return line;
}

std::string unescaped(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool escape = line[i] == '\\' && i + 1 < line.size();
    if (escape) ++i;
    text += escape && line[i] == 'n' ? '\n' : line[i];
  }
  return text;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

void add_pairs(std::string& text, std::string_view what, Pairs pairs) {
  std::ranges::sort(pairs);
  for (const auto& [name, value] : pairs)
    text += fmt::format("{} {}={}\n", what, escaped(name), escaped(value));
}

/// Calls take(what, rest) for each line "what rest"; where that is false, the line cannot be read.
template <class Take>
Status each_line(std::string_view text, Take take) {
  const auto corrupt = [](std::size_t line) {
    return fail(ErrorKind::corrupt, "the record of a task, line {}: cannot be read", line);
  };
  if (!text.starts_with(kHeader) || !text.ends_with('\n')) return corrupt(1);
  text.remove_prefix(kHeader.size());
  for (std::size_t number = 2; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) return corrupt(number);
    if (!take(std::string(line.substr(0, blank)), line.substr(blank + 1))) return corrupt(number);
  }
  return {};
}

/// By what it is ("input") and which ("data/a.txt").
using RecordParts = std::map<std::pair<std::string, std::string>, std::string>;

Result<RecordParts> parse(std::string_view text) {
  RecordParts parts;
  Words command;
  BERTH_TRY(each_line(text, [&](const std::string& what, std::string_view rest) {
    if (what == "run") {
      command.push_back(unescaped(rest));
      return true;
    }
    if (what == "script") {
      parts[{what, ""}] = unescaped(rest);
      return true;
    }
    // The digest of an input has no '='; names of variables and parameters have none either.
    const bool is_file = what == "input" || what == kDependency;
    const auto separator = rest.find(is_file ? ' ' : '=');
    if (separator == std::string_view::npos) return false;
    std::string first = unescaped(rest.substr(0, separator));
    std::string second = unescaped(rest.substr(separator + 1));
    if (is_file) std::swap(first, second);  // digest, then place: it may hold blanks
    parts[{what, std::move(first)}] = std::move(second);
    return true;
  }));
  // As a person wrote it: without the words that call the shell, which are an item of their own.
  if (const auto script = exec::text_for_shell(command)) {
    parts[{"command", ""}] = *script;
    command.pop_back();
    parts[{"shell", ""}] = join(command, " ");
    return parts;
  }
  for (auto& word : command) word = shell_quote(word);
  parts[{"command", ""}] = join(command, " ");
  return parts;
}

}  // namespace

std::string record(const TaskSpec& spec, std::span<const Digest> inputs) {
  BERTH_ASSERT(inputs.size() == spec.inputs.size());
  std::string text(kHeader);
  for (const auto& word : spec.command) text += fmt::format("run {}\n", escaped(word));
  if (!spec.script.empty()) text += fmt::format("script {}\n", escaped(spec.script));
  if (!spec.image.empty()) add_pairs(text, "image", {{"", spec.image}});
  if (spec.sandbox) add_pairs(text, "sandbox", {{"", ""}});
  for (const auto& path : spec.shown) add_pairs(text, "sandbox", {{path, ""}});
  if (!spec.depfile.empty()) add_pairs(text, "depfile", {{"", spec.depfile}});
  add_pairs(text, "environment", spec.environment);
  add_pairs(text, "parameter", spec.params);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    text += fmt::format("input {} {}\n", to_hex(inputs[i]), escaped(spec.inputs[i].place));
  Pairs outputs;
  for (const auto& output : spec.outputs)
    outputs.emplace_back(output.name, output.path + (output.directory ? "/" : ""));
  add_pairs(text, "output", std::move(outputs));
  return text;
}

std::string record_with(std::string_view record, std::span<const Found> found) {
  const std::string begin = fmt::format("\n{} ", kDependency);
  std::string text(record.substr(0, record.find(begin)));
  if (!text.ends_with('\n')) text += '\n';
  for (const auto& [path, digest] : found)
    text += fmt::format("{} {} {}\n", kDependency, to_hex(digest), escaped(path));
  return text;
}

Result<RecordedTask> read_record(std::string_view text) {
  RecordedTask recorded;
  BERTH_TRY(each_line(text, [&](const std::string& what, std::string_view rest) {
    if (what == "run") recorded.command.push_back(unescaped(rest));
    if (what != "parameter" && what != "environment" && what != "output") return true;
    const auto separator = rest.find('=');
    if (separator == std::string_view::npos) return false;
    std::string value = unescaped(rest.substr(separator + 1));
    if (what == "output")
      recorded.outputs.push_back(std::move(value));
    else
      (what == "parameter" ? recorded.params : recorded.environment)
          .emplace_back(unescaped(rest.substr(0, separator)), std::move(value));
    return true;
  }));
  return recorded;
}

Result<std::vector<Change>> changes(std::string_view before, std::string_view after) {
  BERTH_ASSIGN(const RecordParts old, parse(before));
  BERTH_ASSIGN(const RecordParts now, parse(after));
  RecordParts all = old;
  all.insert(now.begin(), now.end());
  std::vector<Change> result;
  for (const auto& [key, unused] : all) {
    const auto was = old.find(key), is = now.find(key);
    if (was != old.end() && is != now.end() && was->second == is->second) continue;
    result.push_back({.what = key.first,
                      .name = key.second,
                      .before = was == old.end() ? "" : was->second,
                      .after = is == now.end() ? "" : is->second,
                      .is_new = was == old.end(),
                      .is_gone = is == now.end()});
  }
  return result;
}

std::string to_string(const Change& change) {
  const std::string what = change.name.empty() ? change.what
                           : change.what == kDependency
                               ? clip(change.name)
                               : fmt::format("{} {}", change.what, clip(change.name));
  if (change.is_new) return what + " is new";
  if (change.is_gone) return what + " is gone";
  if (change.what == "input" || change.what == "script" || change.what == kDependency)
    return what + " changed";
  return fmt::format("{}: {} -> {}", what, clip(without_secrets(change.before)),
                     clip(without_secrets(change.after)));
}

}  // namespace berth::flow
