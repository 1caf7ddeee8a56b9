#include "berth/fileset/fileset.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "berth/fileset/paths.h"

namespace berth::fileset {
namespace {

constexpr std::string_view kHeader = "berth fileset 1\n";

void append_escaped(std::string& text, std::string_view path) {
  for (const char c : path) {
    if (c == '\\')
      text += "\\\\";
    else if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else
      text += c;
  }
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\t') return std::nullopt;
    if (text[i] != '\\') {
      path += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    const auto at = std::string_view("\\nt").find(text[i]);
    if (at == std::string_view::npos) return std::nullopt;
    path += "\\\n\t"[at];
  }
  return path;
}

bool is_file(const Entry& entry) {
  return entry.kind == Entry::Kind::file || entry.kind == Entry::Kind::executable;
}

/// The next part of a line, up to a blank, which is dropped too.
std::string_view take_word(std::string_view& line) {
  const auto blank = std::min(line.find(' '), line.size());
  const auto word = line.substr(0, blank);
  line.remove_prefix(std::min(blank + 1, line.size()));
  return word;
}

/// The mode in the first word of a line, behind its letter.
std::optional<mode_t> parse_mode(std::string_view word) {
  constexpr std::size_t kMostDigits = 3;
  constexpr mode_t kOctal = 8;
  if (word.size() == 1) return kAnyMode;
  if (word.size() > 1 + kMostDigits) return std::nullopt;
  mode_t mode = 0;
  for (const char digit : word.substr(1)) {
    if (digit < '0' || digit > '7') return std::nullopt;
    mode = mode * kOctal + static_cast<mode_t>(digit - '0');
  }
  return mode;
}

void append_mode(std::string& text, char kind, mode_t mode) {
  text += kind;
  if (mode != kAnyMode) text += fmt::format("{:o}", mode);
  text += ' ';
}

std::optional<Folder> parse_folder(std::string_view line) {
  const auto mode = parse_mode(take_word(line));
  auto path = unescaped(line);
  if (!mode || !path || (*path != "." && !safe_path(*path))) return std::nullopt;
  return Folder{*std::move(path), *mode};
}

std::optional<Entry> parse_entry(std::string_view line) {
  const auto kind = std::string_view("fxdl").find(line.substr(0, 1));
  if (line.size() < 3 || kind == std::string_view::npos) return std::nullopt;
  const auto mode = parse_mode(take_word(line));
  if (!mode) return std::nullopt;
  Entry entry{.path = {}, .kind = static_cast<Entry::Kind>(kind), .digest = {}, .target = {}};
  if (entry.kind == Entry::Kind::link && *mode != kAnyMode) return std::nullopt;
  entry.mode = *mode;
  if (is_file(entry)) {
    const auto digest = parse_digest(take_word(line));
    const auto size_text = take_word(line);
    const auto size = parse_integer(size_text);
    if (!digest || !size || *size < 0 || fmt::format("{}", *size) != size_text) return std::nullopt;
    entry.digest = *digest;
    entry.size = *size;
  }
  const auto tab = entry.kind == Entry::Kind::link ? line.find('\t') : line.size();
  if (tab == std::string_view::npos) return std::nullopt;
  auto path = unescaped(line.substr(0, tab));
  if (!path || (*path != "." && !safe_path(*path))) return std::nullopt;
  entry.path = *std::move(path);
  if (entry.kind == Entry::Kind::link) {
    auto target = unescaped(line.substr(tab + 1));
    if (!target || entry.path == "." || !valid_target(*target)) return std::nullopt;
    entry.target = *std::move(target);
  }
  return entry;
}

/// Whether `path` is the entry's own or lies below it.
bool at_or_below(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

/// A path at or below `root`, relative to it.
std::string below(std::string_view path, std::string_view root) {
  return path.size() == root.size() ? "." : std::string(path.substr(root.size() + 1));
}

/// Whether an entry stands where another has a directory: below the entry's own path. All such
/// paths follow it in bytewise order, though "a.b" may stand between "a" and "a/c".
bool any_below(const std::vector<Entry>& entries, std::string_view path) {
  const std::string first = std::string(path) + "/";
  const auto at = std::ranges::lower_bound(entries, first, {}, &Entry::path);
  return at != entries.end() && at->path.starts_with(first);
}

std::string text_of(const Fileset& fileset, bool modes) {
  std::string text(kHeader);
  for (const auto& entry : fileset.entries) {
    append_mode(text, "fxdl"[static_cast<std::size_t>(entry.kind)], modes ? entry.mode : kAnyMode);
    if (is_file(entry)) text += fmt::format("{} {} ", to_hex(entry.digest), entry.size);
    append_escaped(text, entry.path);
    if (entry.kind == Entry::Kind::link) {
      text += '\t';
      append_escaped(text, entry.target);
    }
    text += '\n';
  }
  if (!modes) return text;
  for (const auto& folder : fileset.folders) {
    append_mode(text, 'D', folder.mode);
    append_escaped(text, folder.path);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string to_text(const Fileset& fileset) {
  return text_of(fileset, true);
}

Result<Fileset> parse_fileset(std::string_view text) {
  const auto wrong = [](std::size_t line, std::string_view what) {
    return fail(ErrorKind::invalid, "fileset, line {}: {}", line, what);
  };
  if (text.size() > kMostText) return wrong(1, "too long");
  if (!text.starts_with(kHeader) || !text.ends_with('\n')) return wrong(1, "not a whole fileset");
  text.remove_prefix(kHeader.size());
  Fileset fileset;
  std::int64_t total = 0;
  std::size_t line = 1;
  for (; !text.empty(); text.remove_prefix(text.find('\n') + 1)) {
    ++line;
    if (auto& folders = fileset.folders; !fileset.entries.empty() && text.starts_with('D')) {
      auto folder = parse_folder(text.substr(0, text.find('\n')));
      if (!folder) return wrong(line, "not a folder");
      if (folders.size() == kMostEntries) return wrong(line, "too many folders");
      if (!folders.empty() && folders.back().path >= folder->path)
        return wrong(line, "out of order");
      folders.push_back(*std::move(folder));
      continue;
    }
    if (!fileset.folders.empty()) return wrong(line, "not a folder");
    auto entry = parse_entry(text.substr(0, text.find('\n')));
    if (!entry) return wrong(line, "not an entry");
    if (fileset.entries.size() == kMostEntries) return wrong(line, "too many entries");
    if (!fileset.entries.empty() && fileset.entries.back().path >= entry->path)
      return wrong(line, "out of order");
    const auto sum = checked_add(total, entry->size);
    if (!sum) return wrong(line, "too large");
    total = *sum;
    fileset.entries.push_back(*std::move(entry));
  }
  const auto& entries = fileset.entries;
  if (entries.empty()) return wrong(1, "no entries");
  for (std::size_t i = 0; i < entries.size(); ++i)
    if ((entries[i].path == "." && entries.size() > 1) || any_below(entries, entries[i].path))
      return wrong(i + 2, "another entry lies within it");
  return fileset;
}

Digest digest(const Fileset& fileset) {
  return sha256(text_of(fileset, false));
}

std::int64_t total_bytes(const Fileset& fileset) {
  std::int64_t total = 0;
  for (const auto& entry : fileset.entries) total += entry.size;
  return total;
}

Result<Fileset> part(const Fileset& fileset, std::string_view path) {
  if (path == ".") return fileset;
  Fileset result;
  const auto& entries = fileset.entries;
  for (auto at = std::ranges::lower_bound(entries, path, {}, &Entry::path);
       at != entries.end() && at->path.starts_with(path); ++at) {
    if (!at_or_below(at->path, path)) continue;
    Entry entry = *at;
    entry.path = below(entry.path, path);
    // A link within the whole tree must not become one that leads out of this smaller tree.
    if (entry.kind == Entry::Kind::link && safe_target(at->path, entry.target) &&
        !safe_target(entry.path, entry.target))
      return fail(ErrorKind::invalid, "{}: a link that leads out of {}", at->path, path);
    result.entries.push_back(std::move(entry));
  }
  for (const auto& folder : fileset.folders)
    if (at_or_below(folder.path, path))
      result.folders.push_back({below(folder.path, path), folder.mode});
  if (result.entries.empty()) return fail(ErrorKind::not_found, "no {} in the fileset", path);
  if (result.entries[0].path == "." && result.entries[0].kind == Entry::Kind::link)
    return fail(ErrorKind::invalid, "{}: a link by itself is not a fileset", path);
  return result;
}

std::vector<std::string> paths(const Fileset& fileset) {
  std::vector<std::string> result;
  std::string_view before;  // the path of the last entry
  for (const auto& entry : fileset.entries) {
    if (entry.path == ".") continue;
    for (auto slash = entry.path.find('/'); slash != std::string::npos;
         slash = entry.path.find('/', slash + 1))
      if (!before.starts_with(std::string_view(entry.path).substr(0, slash + 1)))
        result.push_back(entry.path.substr(0, slash));
    result.push_back(entry.path);
    before = entry.path;
  }
  std::ranges::sort(result);
  return result;
}

void add_live(std::unordered_set<Digest>& live, const Fileset& fileset) {
  for (const auto& entry : fileset.entries)
    if (is_file(entry)) live.insert(entry.digest);
}

Status remove_all(os::Env& env, const std::string& path) {
  return env.remove_tree(path);
}

}  // namespace berth::fileset
