#include <algorithm>
#include <span>

#include "berth/base/text.h"
#include "berth/fileset/fileset.h"

namespace berth::fileset {
namespace {

/// Where a bracket expression that begins at `open` ends (its ']'); npos: it is a plain '['.
std::size_t bracket_end(std::string_view pattern, std::size_t open) {
  std::size_t at = open + 1;
  if (at < pattern.size() && pattern[at] == '!') ++at;
  return pattern.find(']', at + 1);  // a ']' in front is one of the characters
}

bool in_bracket(std::string_view inside, char c) {
  const bool negated = inside.starts_with('!');
  if (negated) inside.remove_prefix(1);
  const auto code = [](char of) { return static_cast<unsigned char>(of); };
  bool found = false;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (i + 2 < inside.size() && inside[i + 1] == '-') {
      found = found || (code(inside[i]) <= code(c) && code(c) <= code(inside[i + 2]));
      i += 2;
    } else {
      found = found || inside[i] == c;
    }
  }
  return found != negated;
}

/// One name. Linear in name × stars: the last star alone is tried again.
bool name_matches(std::string_view pattern, std::string_view name) {
  if (name.starts_with('.') && !pattern.starts_with('.')) return false;
  constexpr auto kNone = std::string_view::npos;
  std::size_t p = 0, n = 0, star = kNone, from = 0;
  while (n < name.size()) {
    const auto end = p < pattern.size() && pattern[p] == '[' ? bracket_end(pattern, p) : kNone;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (end != kNone && in_bracket(pattern.substr(p + 1, end - p - 1), name[n])) {
      p = end + 1;
      ++n;
    } else if (end == kNone && p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != kNone) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

using Names = std::span<const std::string_view>;

/// As name_matches(), of names instead of characters; ** is the star.
bool names_match(Names patterns, Names names) {
  constexpr auto kNone = std::string_view::npos;
  std::size_t p = 0, n = 0, star = kNone, from = 0;
  while (n < names.size()) {
    if (p < patterns.size() && patterns[p] == "**") {
      star = p++;
      from = n;
    } else if (p < patterns.size() && name_matches(patterns[p], names[n])) {
      ++p;
      ++n;
    } else if (star != kNone && !names[from].starts_with('.')) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return p == patterns.size();
}

/// At its end, ** is all below.
std::vector<std::string_view> pattern_names(std::string_view pattern) {
  auto names = split(pattern, '/');
  if (names.back() == "**") names.emplace_back("*");
  return names;
}

/// Adds what matches patterns[at…] below `folder` (empty: where the pattern begins).
Status walk(os::Env& env, const std::string& folder, const std::string& below, Names patterns,
            std::vector<std::string>& found) {
  const auto joined = [&](std::string_view name) {
    return below.empty() || below.ends_with('/') ? below + std::string(name)
                                                 : fmt::format("{}/{}", below, name);
  };
  const auto full = [&](const std::string& path) {
    if (path.starts_with('/')) return path;
    return path.empty() ? folder : folder + "/" + path;
  };
  if (!is_pattern(patterns[0])) {
    const std::string path = joined(patterns[0]);
    if (!env.status(full(path))) return {};
    if (patterns.size() > 1) return walk(env, folder, path, patterns.subspan(1), found);
    found.push_back(path);
    return {};
  }
  if (patterns[0] == "**") {
    const auto entries = env.tree(full(below), kMostEntries);
    if (!entries)
      return entries.error().kind == ErrorKind::full ? Status(std::unexpected(entries.error()))
                                                     : Status();
    for (const auto& entry : *entries)
      if (names_match(patterns, split(entry.path, '/'))) found.push_back(joined(entry.path));
    return {};
  }
  const auto names = env.list(full(below));
  if (!names) return {};  // no directory, or none that may be read: as the shell has it
  for (const auto& name : *names) {
    if (!name_matches(patterns[0], name)) continue;
    if (patterns.size() == 1)
      found.push_back(joined(name));
    else
      BERTH_TRY(walk(env, folder, joined(name), patterns.subspan(1), found));
    if (found.size() > kMostEntries)
      return fail(ErrorKind::full, "more than {} files match", kMostEntries);
  }
  return {};
}

}  // namespace

bool is_pattern(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

std::string literal_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (is_pattern({&c, 1}))
      pattern += fmt::format("[{}]", c);
    else
      pattern += c;
  }
  return pattern;
}

bool matches(std::string_view pattern, std::string_view path) {
  return names_match(pattern_names(pattern), split(path, '/'));
}

Result<std::vector<std::string>> glob(os::Env& env, const std::string& folder,
                                      const std::string& pattern) {
  std::vector<std::string> found;
  const bool absolute = pattern.starts_with('/');
  const auto names = pattern_names(std::string_view(pattern).substr(absolute ? 1 : 0));
  BERTH_TRY(walk(env, folder, absolute ? "/" : "", names, found));
  std::ranges::sort(found);
  return found;
}

}  // namespace berth::fileset
