// What went into a task, and what differs between two such records.
#include <algorithm>
#include <map>

#include "berth/base/text.h"
#include "berth/flow/flow.h"

namespace berth::flow {
namespace {

constexpr std::string_view kHeader = "berth task 1\n";

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

/// By what it is ("input") and which ("data/a.txt").
using Parts = std::map<std::pair<std::string, std::string>, std::string>;

Result<Parts> parse(std::string_view text) {
  const auto corrupt = [](std::size_t line) {
    return fail(ErrorKind::corrupt, "the record of a task, line {}: cannot be read", line);
  };
  if (!text.starts_with(kHeader) || !text.ends_with('\n')) return corrupt(1);
  text.remove_prefix(kHeader.size());
  Parts parts;
  for (std::size_t number = 2; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) return corrupt(number);
    const std::string what(line.substr(0, blank));
    const auto rest = line.substr(blank + 1);
    if (what == "run") {
      auto& command = parts[{"command", ""}];
      command += (command.empty() ? "" : " ") + shell_quote(unescaped(rest));
      continue;
    }
    // The digest of an input has no '='; names of variables and parameters have none either.
    const auto separator = rest.find(what == "input" ? ' ' : '=');
    if (separator == std::string_view::npos) return corrupt(number);
    std::string first = unescaped(rest.substr(0, separator));
    std::string second = unescaped(rest.substr(separator + 1));
    if (what == "input") std::swap(first, second);  // digest, then place: it may hold blanks
    parts[{what, std::move(first)}] = std::move(second);
  }
  return parts;
}

}  // namespace

std::string record(const TaskSpec& spec, std::span<const Digest> inputs) {
  BERTH_ASSERT(inputs.size() == spec.inputs.size());
  std::string text(kHeader);
  for (const auto& word : spec.command) text += fmt::format("run {}\n", escaped(word));
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

Result<std::vector<Change>> changes(std::string_view before, std::string_view after) {
  BERTH_ASSIGN(const Parts old, parse(before));
  BERTH_ASSIGN(const Parts now, parse(after));
  Parts all = old;
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
  const std::string what =
      change.name.empty() ? change.what : fmt::format("{} {}", change.what, clip(change.name));
  if (change.is_new) return what + " is new";
  if (change.is_gone) return what + " is gone";
  if (change.what == "input") return what + " changed";
  return fmt::format("{}: {} -> {}", what, clip(change.before), clip(change.after));
}

}  // namespace berth::flow
