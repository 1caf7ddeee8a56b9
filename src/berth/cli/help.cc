#include <algorithm>

#include "berth/base/text.h"
#include "berth/cli/command_help.h"

namespace berth::cli {
namespace {

constexpr std::size_t kNarrowest = 40, kWidest = 120;
constexpr std::size_t kWidestTag = 24;

/// Characters of UTF-8 text; continuation bytes do not count.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Appends the words of `text`, which begin at column `at`; further lines are indented to `indent`.
void wrap(std::string& to, std::string_view text, std::size_t at, std::size_t indent,
          std::size_t width) {
  bool first = true;
  for (const auto word : split(text, ' ')) {
    if (!first && at + 1 + columns(word) > width) {
      to += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      to += ' ';
      ++at;
    }
    to += word;
    at += columns(word);
    first = false;
  }
  to += '\n';
}

struct Row {
  std::string tag, text;
};

/// A heading and its rows, with the texts in one column.
struct Section {
  std::string title;
  std::vector<Row> rows;
};

/// The column at which texts begin: behind the widest tag that is not too wide.
std::size_t text_column(const std::vector<Section>& sections) {
  std::size_t widest = 0;
  for (const auto& section : sections)
    for (const auto& row : section.rows)
      if (columns(row.tag) <= kWidestTag) widest = std::max(widest, columns(row.tag));
  return widest + 4;
}

std::string text_of(const std::vector<Section>& sections, std::size_t width) {
  const std::size_t column = text_column(sections);
  std::string text;
  for (const auto& section : sections) {
    if (section.rows.empty()) continue;
    text += "\n" + section.title + ":\n";
    for (const auto& row : section.rows) {
      text += "  " + row.tag;
      std::size_t at = columns(row.tag) + 2;
      if (row.text.empty()) {
        text += '\n';
        continue;
      }
      if (at + 2 > column) {
        text += '\n';
        at = 0;
      }
      text += std::string(column - at, ' ');
      wrap(text, row.text, column, column, width);
    }
  }
  return text;
}

Section& section(std::vector<Section>& sections, const std::string& title) {
  const auto found = std::ranges::find(sections, title, &Section::title);
  return found != sections.end() ? *found : sections.emplace_back(title);
}

std::string tag_of(const OptionHelp& option) {
  std::string tag;
  for (const auto name : split(option.names, ','))
    tag += (tag.empty() ? "" : ", ") + std::string(name);
  if (!option.positional && !option.value.empty()) tag += " " + option.value;
  return tag + option.optional + (option.repeats ? "..." : "");
}

/// The help of an option, with the accepted values where the help does not name them all.
std::string help_of(const OptionHelp& option) {
  const bool named = std::ranges::all_of(
      option.words, [&](const auto& word) { return option.help.find(word) != std::string::npos; });
  if (named) return option.help;
  return fmt::format("{} ({})", option.help, join(option.words, ", "));
}

std::vector<Section> option_sections(const CommandHelp& command) {
  constexpr const char* kArguments = "Arguments";
  const bool grouped = std::ranges::any_of(
      command.options, [](const auto& option) { return !option.group.empty(); });
  const char* const general = grouped ? "General options" : "Options";
  std::vector<Section> sections{{kArguments, {}}};
  Section last{general, {}};
  for (const auto& option : command.options) {
    Section& to = option.positional      ? sections.front()
                  : option.group.empty() ? last
                                         : section(sections, option.group);
    to.rows.push_back({tag_of(option), help_of(option)});
  }
  sections.push_back(std::move(last));
  return sections;
}

/// The commands that `command` lists: of berth, all but actions; of a command, its actions.
std::vector<Section> command_sections(const CommandHelp& command,
                                      std::span<const CommandHelp> all) {
  std::vector<Section> sections;
  const std::string before = command.name + " ";
  for (const auto& each : all) {
    if (each.name.empty() || each.hidden) continue;
    const bool is_action = each.name.find(' ') != std::string::npos;
    if (command.name.empty() && !is_action)
      section(sections, each.group).rows.push_back({each.name, each.summary});
    if (!command.name.empty() && each.name.starts_with(before))
      section(sections, "Actions").rows.push_back({each.name.substr(before.size()), each.summary});
  }
  return sections;
}

}  // namespace

std::string help_text(const CommandHelp& command, std::span<const CommandHelp> all, int width) {
  const auto fit = std::clamp(static_cast<std::size_t>(std::max(width, 0)), kNarrowest, kWidest);
  std::string text;
  wrap(text, command.summary, 0, 0, fit);
  text += '\n';
  const auto usages = split(command.usage, '\n');
  for (std::size_t i = 0; i < usages.size(); ++i) {
    text += i == 0 ? "Usage: " : "       ";
    wrap(text, usages[i], 7, 11, fit);
  }
  if (!command.aliases.empty()) text += "Alias: " + join(command.aliases, ", ") + "\n";
  auto sections = command_sections(command, all);
  std::ranges::move(option_sections(command), std::back_inserter(sections));
  text += text_of(sections, fit);
  if (command.footer.empty()) return text;
  text += '\n';
  for (const auto line : split(command.footer, '\n')) {
    const auto indent = std::min(line.find_first_not_of(' '), line.size());
    text += line.substr(0, indent);
    wrap(text, line.substr(indent), indent, indent + (indent > 0 ? 4 : 0), fit);
  }
  return text;
}

}  // namespace berth::cli
