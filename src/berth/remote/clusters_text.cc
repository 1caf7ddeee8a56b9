#include "berth/remote/clusters_text.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"

namespace berth::remote {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Behind the quoted text that begins at `at`; '' and \" within it are characters.
std::size_t behind_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at++];
  for (; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || at + 1 == text.size() || text[at + 1] != quote) return at + 1;
      ++at;
    }
  }
  return text.size();
}

/// Behind blanks and comments.
std::size_t behind_blanks(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (text[at] == '#')
      at = std::min(text.find('\n', at), text.size());
    else if (is_blank(text[at]))
      ++at;
    else
      break;
  }
  return at;
}

/// What stands in braces or brackets: where its parts begin and end, and the commas behind them.
struct FlowSpan {
  struct Part {
    std::size_t begin = 0, end = 0;
    std::optional<std::size_t> comma = {};
  };
  std::vector<Part> parts;
  std::size_t close = 0;  // the closing bracket
};

/// Of the bracket at `open`; nullopt where it is not closed.
std::optional<FlowSpan> flow_span(std::string_view text, std::size_t open) {
  FlowSpan span;
  std::size_t depth = 0;
  std::optional<std::size_t> begin;
  std::size_t end = open + 1;
  for (std::size_t at = open + 1; at < text.size();) {
    const bool fresh = is_blank(text[at - 1]) || std::string_view("[{,:").contains(text[at - 1]);
    if (is_blank(text[at]) || (text[at] == '#' && fresh)) {
      at = behind_blanks(text, at);
      continue;
    }
    const char c = text[at];
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
      if (begin) span.parts.push_back({*begin, end});
      begin.reset();
      span.close = at;
      if (c != ',') return span;
      if (!span.parts.empty()) span.parts.back().comma = at;
      ++at;
      continue;
    }
    if (!begin) begin = at;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    at = fresh && (c == '"' || c == '\'') ? behind_quoted(text, at) : at + 1;
    end = at;
  }
  return std::nullopt;
}

/// Where the document's own content begins.
std::size_t content_begin(std::string_view text) {
  std::size_t at = behind_blanks(text, 0);
  while (at < text.size() && (text[at] == '%' || text.substr(at).starts_with("---"))) {
    at = text[at] == '%' ? std::min(text.find('\n', at), text.size()) : at + 3;
    at = behind_blanks(text, at);
  }
  return at;
}

/// The brace with which the document begins, where its map is in flow style.
std::optional<std::size_t> flow_begin(std::string_view text) {
  const std::size_t at = content_begin(text);
  return at < text.size() && text[at] == '{' ? std::optional(at) : std::nullopt;
}

/// The value behind `name:`, quoted or not, at the beginning of the text.
std::optional<std::size_t> behind_key(std::string_view text, const std::string& name) {
  for (const auto& key : {name, "\"" + name + "\"", "'" + name + "'"}) {
    if (!text.starts_with(key)) continue;
    const std::size_t colon = behind_blanks(text, key.size());
    if (colon < text.size() && text[colon] == ':') return colon + 1;
  }
  return std::nullopt;
}

std::size_t line_end(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size() - 1) + 1;
}

std::string_view line_break(std::string_view text) {
  const std::size_t at = text.find('\n');
  return at != text.npos && at > 0 && text[at - 1] == '\r' ? "\r\n" : "\n";
}

/// Without the word for nothing, where the document is that alone.
std::string without_null(std::string_view text) {
  std::string now(text);
  const std::size_t at = content_begin(text);
  for (const std::string_view word : {"null", "Null", "NULL", "~"}) {
    std::size_t end = at + word.size();
    if (!text.substr(at).starts_with(word) || behind_blanks(text, end) < text.size()) continue;
    const std::size_t line = line_end(text, at);
    const bool whole = at == 0 || text[at - 1] == '\n';
    if (whole && trim(text.substr(end, line - end)).empty()) end = line;
    return now.erase(at, end - at);
  }
  return now;
}

/// Behind the last line of the entry in block style whose value begins at `at`.
std::size_t block_end(std::string_view text, std::size_t at) {
  const std::size_t value = behind_blanks(text, at);
  if (value < text.size() && text[value] == '{')
    if (const auto span = flow_span(text, value)) return line_end(text, span->close);
  std::size_t end = at = line_end(text, at);
  while (at < text.size()) {
    const std::size_t next = line_end(text, at);
    const auto line = text.substr(at, next - at);
    const bool empty = trim(line).empty() || line.front() == '#';
    if (!empty && line.front() != ' ' && line.front() != '\t') break;
    if (!empty) end = next;
    at = next;
  }
  return end;
}

std::optional<std::string> cut_from_flow(std::string_view text, std::size_t open,
                                         const std::string& name) {
  const auto span = flow_span(text, open);
  if (!span) return std::nullopt;
  const auto& parts = span->parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!behind_key(text.substr(parts[i].begin, parts[i].end - parts[i].begin), name)) continue;
    // With the comma behind it, or that before; with the comment behind it, and with its lines
    // where nothing else stands there.
    std::string now(text);
    std::size_t begin = parts[i].begin, end = parts[i].comma.value_or(parts[i].end - 1) + 1;
    const std::size_t rest = std::min(text.find_first_not_of(" \t", end), text.size());
    const std::size_t before = text.find_last_not_of(" \t", begin - 1);
    const bool comment = text.substr(rest).starts_with('#');
    const auto behind = text.substr(rest);
    const bool whole =
        text[before] == '\n' && (comment || behind.starts_with('\n') || behind.starts_with("\r\n"));
    if (whole) begin = before + 1;
    if (whole || comment)
      end = line_end(text, rest);
    else if (parts[i].comma)
      end = rest;
    const bool last = !parts[i].comma && i > 0;
    const std::size_t comma = last ? *parts[i - 1].comma : 0;
    const bool joined = last && before == comma;
    if (joined) begin = comma;
    now.erase(begin, end - begin);
    if (last && !joined) now.erase(comma, 1);
    return now;
  }
  return std::nullopt;
}

}  // namespace

std::string add_entry(std::string_view text, const std::string& name,
                      const std::vector<std::string>& hosts) {
  std::string now(text);
  const auto open = flow_begin(text);
  if (const auto span = open ? flow_span(text, *open) : std::nullopt) {
    const std::size_t at = span->parts.empty() ? *open + 1 : span->parts.back().end;
    JsonWriter json(JsonWriter::Style::spaced);
    json.object().add("kind", "ssh").key("hosts").list(hosts).end();
    const std::string entry = fmt::format("{}: {}", json_quote(name), json.take());
    now.insert(at, (span->parts.empty() ? "" : ", ") + entry);
    return now;
  }
  now = without_null(text);
  const std::string_view end = line_break(text);
  if (!now.empty() && now.back() != '\n') now += end;
  now += fmt::format("{0}:{1}  kind: ssh{1}  hosts:{1}", name, end);
  for (const auto& host : hosts) now += fmt::format("    - {}{}", json_quote(host), end);
  return now;
}

std::optional<std::string> cut_entry(std::string_view text, const std::string& name) {
  if (const auto open = flow_begin(text)) return cut_from_flow(text, *open, name);
  for (std::size_t at = 0; at < text.size(); at = line_end(text, at)) {
    const auto value = behind_key(text.substr(at), name);
    if (!value) continue;
    const std::size_t end = block_end(text, at + *value);
    return std::string(text.substr(0, at)) + std::string(text.substr(end));
  }
  return std::nullopt;
}

}  // namespace berth::remote
