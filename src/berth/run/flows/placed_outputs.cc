#include "berth/run/flows/placed_outputs.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/run/flows/output_place.h"

namespace berth::run {
namespace {

constexpr std::size_t kHalf = 32;  // digits of a digest in a record
constexpr std::size_t kRecord = 2 * kHalf + 1;
constexpr std::size_t kMostFile = 64U << 20;
/// A file is shortened to the latest contents of each name when it has many more records.
constexpr std::size_t kLatest = 4, kRecordsLeast = 64, kRecordsPerName = 8;

std::string half(const Digest& digest) {
  return to_hex(digest).substr(0, kHalf);
}

std::string name_of(const std::string& place) {
  return half(sha256(place.substr(place.rfind('/') + 1)));
}

/// The files without their executable bits.
fileset::Fileset plain(const fileset::Fileset& content) {
  fileset::Fileset files{content.entries};
  for (auto& entry : files.entries)
    if (entry.kind == fileset::Entry::Kind::executable) entry.kind = fileset::Entry::Kind::file;
  return files;
}

bool is_directory(const fileset::Fileset& content) {
  return content.entries[0].path != "." ||
         content.entries[0].kind == fileset::Entry::Kind::directory;
}

std::string record_of(std::string_view content, std::string_view name) {
  return fmt::format("\n{} {}\n", content, name);  // a torn record before it ends here
}

}  // namespace

std::string PlacedOutputs::fileset_file(const Folder& folder, const std::string& name) const {
  return folder.file + "." + name;
}

PlacedOutputs::Folder& PlacedOutputs::folder_of(os::Env& env, const std::string& place) {
  const std::string parent = parent_of(place);
  const auto [found, is_new] = folders_.try_emplace(parent);
  Folder& folder = found->second;
  if (!is_new) return folder;
  folder.path = env.real_path(parent).value_or(parent);
  folder.file = directory_ + "/" + half(sha256(folder.path));
  load(env, folder);
  return folder;
}

void PlacedOutputs::load(os::Env& env, Folder& folder) const {
  const auto text = env.read_file(folder.file, kMostFile);
  if (!text) return;
  folder.size = std::ssize(*text);
  folder.contents.clear();
  std::size_t records = 0;
  for (const auto line : split(*text, '\n')) {
    if (line.size() != kRecord || line[kHalf] != ' ') continue;
    folder.contents[std::string(line.substr(kHalf + 1))].emplace_back(line.substr(0, kHalf));
    ++records;
  }
  if (records > kRecordsLeast + kRecordsPerName * folder.contents.size()) shorten(env, folder);
}

void PlacedOutputs::shorten(os::Env& env, Folder& folder) const {
  const auto alone = env.lock(directory_ + "/lock", false);
  if (!alone) return;  // the next one does it
  const auto status = env.status(folder.file);
  if (!status || status->size != folder.size) return;  // it has grown meanwhile
  std::string text = folder.path + "\n";
  for (auto& [name, contents] : folder.contents) {
    if (contents.size() > kLatest) contents.erase(contents.begin(), contents.end() - kLatest);
    for (const auto& content : contents) text += record_of(content, name);
  }
  if (env.replace_file(folder.file, text, 0600)) folder.size = std::ssize(text);
}

Status PlacedOutputs::record(os::Env& env, const std::string& place,
                             const fileset::Fileset& content) {
  Folder& folder = folder_of(env, place);
  const std::string name = name_of(place);
  const fileset::Fileset files = plain(content);
  const std::string digest = half(fileset::digest(files));
  auto& contents = folder.contents[name];
  if (!contents.empty() && contents.back() == digest) return {};
  BERTH_TRY(env.make_directory(directory_, 0700));
  if (is_directory(content))
    BERTH_TRY(env.replace_file(fileset_file(folder, name), fileset::to_text(files), 0600));
  BERTH_ASSIGN(const auto shared, env.lock_shared(directory_ + "/lock"));
  BERTH_ASSIGN(const auto file, env.open_append(folder.file, 0600));
  BERTH_TRY(env.write_all(
      file, (folder.size == 0 ? folder.path + "\n" : std::string()) + record_of(digest, name)));
  folder.size += 1;  // not empty; the next load() reads it
  contents.push_back(digest);
  return {};
}

bool PlacedOutputs::has(os::Env& env, const std::string& place) {
  const auto& contents = folder_of(env, place).contents;
  const auto found = contents.find(name_of(place));
  return found != contents.end() && !found->second.empty();
}

std::optional<Edit> PlacedOutputs::find_edit(os::Env& env, const std::string& place,
                                             const fileset::Fileset& there) {
  if (!has(env, place)) return std::nullopt;
  Folder& folder = folder_of(env, place);
  const std::string name = name_of(place);
  const fileset::Fileset now = plain(there);
  const std::string digest = half(fileset::digest(now));
  const auto knows = [&] {
    const auto& contents = folder.contents[name];
    return std::ranges::find(contents, digest) != contents.end();
  };
  if (knows()) return std::nullopt;
  load(env, folder);  // another run may have put it there meanwhile
  if (knows()) return std::nullopt;
  if (!is_directory(there)) return Edit{place};
  const auto text = env.read_file(fileset_file(folder, name), fileset::kMostText);
  const auto known = text ? fileset::parse_fileset(*text) : Result<fileset::Fileset>();
  if (!known) return Edit{place};
  for (const auto& entry : now.entries) {
    // A directory is empty once the files in it were removed.
    if (entry.kind == fileset::Entry::Kind::directory) continue;
    const auto same =
        std::ranges::lower_bound(known->entries, entry.path, {}, &fileset::Entry::path);
    const bool is_added = same == known->entries.end() || same->path != entry.path;
    if (is_added || *same != entry) return Edit{fmt::format("{}/{}", place, entry.path), is_added};
  }
  return std::nullopt;
}

Status PlacedOutputs::collect(os::Env& env) {
  if (!env.status(directory_)) return {};
  BERTH_ASSIGN(const auto alone, env.lock(directory_ + "/lock", true));
  BERTH_ASSIGN(const auto names, env.list(directory_));
  for (const auto& name : names) {
    if (name.size() != kHalf) continue;
    const std::string file = directory_ + "/" + name;
    const auto text = env.read_file(file, kMostFile);
    if (!text || env.status(text->substr(0, text->find('\n')))) continue;
    for (const auto& other : names)
      if (other.starts_with(name)) BERTH_TRY(env.remove_file(directory_ + "/" + other));
  }
  return {};
}

}  // namespace berth::run
