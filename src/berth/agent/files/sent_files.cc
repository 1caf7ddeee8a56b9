#include "berth/agent/files/sent_files.h"

#include <map>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::agent {
namespace {

// An entry of the record ends with a NUL: "t" and a whole path, or "f", a time in nanoseconds, a
// blank and the path of a file.
constexpr char kEnd = '\0';
constexpr char kTree = 't';
constexpr char kFile = 'f';
constexpr std::size_t kRecordMost = fileset::kMostText;

std::int64_t time_of(const os::FileStatus& status) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(status.modified.time_since_epoch())
      .count();
}

struct Record {
  std::set<std::string, std::less<>> trees;
  std::map<std::string, std::int64_t, std::less<>> files;  // times by path

  /// Whether the path or a directory that it is in was recorded as a whole.
  bool has_whole(std::string_view path) const {
    for (auto end = path.size(); end != std::string_view::npos && end > 0;
         end = path.rfind('/', end - 1))
      if (trees.contains(path.substr(0, end))) return true;
    return false;
  }
};

Result<Record> parse_record(std::string_view text) {
  Record record;
  for (const auto entry : split(text, kEnd)) {
    if (entry.empty()) continue;
    if (entry.front() == kTree) {
      record.trees.emplace(entry.substr(1));
      continue;
    }
    const auto blank = entry.find(' ');
    if (entry.front() != kFile || blank == std::string_view::npos)
      return fail(ErrorKind::corrupt, "the record of sent files is damaged");
    BERTH_ASSIGN(const auto time, parse_integer(entry.substr(1, blank - 1)));
    record.files.insert_or_assign(std::string(entry.substr(blank + 1)), time);
  }
  return record;
}

bool is_compiled_python(std::string_view path) {
  return path.starts_with("__pycache__/") || path.find("/__pycache__/") != std::string_view::npos;
}

std::string joined(std::string_view directory, std::string_view path) {
  return directory.empty() ? std::string(path) : fmt::format("{}/{}", directory, path);
}

}  // namespace

std::string to_text(const WrittenFiles& written) {
  return fmt::format("{} {}", written.files, written.bytes);
}

Result<WrittenFiles> parse_written(std::string_view text) {
  const auto fields = words(text);
  if (fields.size() != 2) return fail(ErrorKind::invalid, "expected two numbers: {}", clip(text));
  WrittenFiles written;
  BERTH_ASSIGN(written.files, parse_integer(fields[0]));
  BERTH_ASSIGN(written.bytes, parse_integer(fields[1]));
  if (written.files < 0 || written.bytes < 0)
    return fail(ErrorKind::invalid, "expected numbers of at least 0: {}", clip(text));
  return written;
}

SentFiles::SentFiles(os::Env& env, std::string work)
    : env_(env), work_(std::move(work)), record_(work_.substr(0, work_.rfind('/')) + "/sent") {}

std::string SentFiles::in_work(std::string_view path) const {
  return path.empty() ? work_ : fmt::format("{}/{}", work_, path);
}

Status SentFiles::append(std::string_view text) const {
  BERTH_ASSIGN(const auto record, env_.open_append(record_, 0600));
  return env_.write_all(record, text);
}

Status SentFiles::add(std::string_view path) {
  if (!added_.emplace(path).second) return {};
  return append(fmt::format("{}{}{}", kTree, path, kEnd));
}

Status SentFiles::add_files(std::string_view path, const fileset::Fileset& fileset) {
  std::string text;
  for (const auto& entry : fileset.entries) {
    const std::string name = entry.path == "." ? std::string(path) : joined(path, entry.path);
    const auto status = env_.status(in_work(name));
    text += fmt::format("{}{} {}{}", kFile, status ? time_of(*status) : 0, name, kEnd);
  }
  return append(text);
}

Result<WrittenFiles> SentFiles::written(std::string_view path) const {
  auto text = env_.read_file(record_, kRecordMost);
  if (!text && text.error().kind != ErrorKind::not_found) return std::unexpected(text.error());
  BERTH_ASSIGN(const auto record, parse_record(text.value_or("")));
  BERTH_ASSIGN(const auto tree, env_.tree(in_work(path), fileset::kMostEntries));
  WrittenFiles written;
  for (const auto& entry : tree) {
    if (entry.kind == os::TreeEntry::Kind::directory || is_compiled_python(entry.path)) continue;
    const std::string name = joined(path, entry.path);
    if (record.has_whole(name)) continue;
    if (const auto sent = record.files.find(name); sent != record.files.end()) {
      const auto status = env_.status(in_work(name));
      if (!status || entry.kind == os::TreeEntry::Kind::link || time_of(*status) == sent->second)
        continue;
    }
    ++written.files;
    written.bytes += entry.size;
  }
  return written;
}

}  // namespace berth::agent
