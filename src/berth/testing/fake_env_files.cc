// The files of FakeEnv, and what a machine that loses its power keeps of them.
#include "berth/testing/fake_env.h"

namespace berth::os {
namespace {

/// A path, or one below it, seen from another place.
template <class Map>
void move_keys(Map& map, const std::string& from, const std::string& to) {
  for (auto at = map.lower_bound(from); at != map.end() && at->first.starts_with(from);) {
    auto node = map.extract(at++);
    if (node.key() == from || node.key()[from.size()] == '/')
      node.key() = to + node.key().substr(from.size());
    map.insert(std::move(node));
  }
}

}  // namespace

Result<std::string> FakeEnv::read_file(const std::string& path, std::size_t limit) {
  BERTH_TRY(ask("read_file"));
  const std::string* text = find(path);
  if (text == nullptr) return fail(ErrorKind::not_found, "{}: no such file", path);
  if (text->size() > limit) return fail(ErrorKind::invalid, "{}: too large", path);
  return *text;
}

Status FakeEnv::replace_file(const std::string& path, std::string_view text, mode_t) {
  BERTH_TRY(ask("replace_file"));
  machine_.files[path] = text;
  return {};
}

Status FakeEnv::write_into(const std::string& path, std::string_view text) {
  BERTH_TRY(ask("write_into"));
  if (!machine_.files.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  machine_.files[path] = text;
  return {};
}

Result<std::vector<std::string>> FakeEnv::list(const std::string& directory) {
  BERTH_TRY(ask("list"));
  std::set<std::string> names;
  const std::string prefix = directory + "/";
  const auto gather = [&](const std::string& path) {
    if (path.starts_with(prefix))
      names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
  };
  for (const auto& [path, text] : machine_.files) gather(path);
  for (const auto& path : machine_.directories) gather(path);
  for (const auto& [path, target] : machine_.links) gather(path);
  return std::vector<std::string>(names.begin(), names.end());
}

Result<FileStatus> FakeEnv::status(const std::string& path) {
  BERTH_TRY(ask("status"));
  FileStatus status;
  if (const std::string* text = find(path)) {
    status.kind = FileStatus::Kind::file;
    status.size = static_cast<std::int64_t>(text->size());
    const auto stamp = machine_.stamps.find(path);
    if (stamp != machine_.stamps.end()) status.modified = stamp->second.modified;
    status.mode = stamp == machine_.stamps.end() ? Stamp{}.mode : stamp->second.mode;
    status.executable = (status.mode & 0111U) != 0;
    return status;
  }
  if (!machine_.directories.contains(path))
    return fail(ErrorKind::not_found, "{}: no such file", path);
  status.kind = FileStatus::Kind::directory;
  if (const auto stamp = machine_.stamps.find(path); stamp != machine_.stamps.end())
    status.modified = stamp->second.modified;
  status.owner = uid;
  status.mode = 0755;
  return status;
}

Status FakeEnv::make_directory(const std::string& path, mode_t) {
  BERTH_TRY(ask("make_directory"));
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    machine_.directories.insert(path.substr(0, at));
  if (machine_.directories.insert(path).second) machine_.stamps[path] = {0755, wall()};
  return {};
}

Status FakeEnv::copy_access(const std::string&, const std::string& to, mode_t) {
  BERTH_TRY(ask("copy_access"));
  BERTH_TRY(status(to));
  return {};
}

Result<std::string> FakeEnv::link_target(const std::string& path) {
  const auto link = machine_.links.find(path);
  if (link != machine_.links.end()) return link->second;
  return fail(ErrorKind::invalid, "{}: not a symbolic link", path);
}

Status FakeEnv::remove_file(const std::string& path) {
  BERTH_TRY(ask("remove_file"));
  if (machine_.directories.contains(path)) return fail(ErrorKind::invalid, "{}: a directory", path);
  machine_.stamps.erase(path);
  if (machine_.files.erase(path) + machine_.links.erase(path) == 0)
    return fail(ErrorKind::not_found, "{}: no such file", path);
  return {};
}

Status FakeEnv::remove_directory(const std::string& path) {
  BERTH_TRY(ask("remove_directory"));
  const auto inside = machine_.files.lower_bound(path + "/");
  if (inside != machine_.files.end() && inside->first.starts_with(path + "/"))
    return fail(ErrorKind::io, "{}: not empty", path);
  if (machine_.directories.erase(path) == 0)
    return fail(ErrorKind::not_found, "{}: no such file", path);
  machine_.stamps.erase(path);
  return {};
}

Result<std::vector<TreeEntry>> FakeEnv::tree(const std::string& directory, std::size_t most) {
  BERTH_TRY(ask("tree"));
  if (!machine_.directories.contains(directory))
    return fail(ErrorKind::not_found, "{}: no such directory", directory);
  std::map<std::string, TreeEntry> found;  // by path: a directory stands before what it holds
  const auto add_entry = [&](const std::string& path, TreeEntry entry) {
    if (!path.starts_with(directory + "/")) return;
    entry.path = path.substr(directory.size() + 1);
    found.emplace(entry.path, std::move(entry));
  };
  for (const auto& path : machine_.directories)
    add_entry(path, {.path = {}, .kind = TreeEntry::Kind::directory, .target = {}});
  for (const auto& [path, target] : machine_.links)
    add_entry(path, {.path = {}, .kind = TreeEntry::Kind::link, .target = target});
  for (const auto& [path, text] : machine_.files) {
    const auto stamp = machine_.stamps.find(path);
    const mode_t mode = stamp == machine_.stamps.end() ? Stamp{}.mode : stamp->second.mode;
    add_entry(path, {.path = {},
                     .kind = TreeEntry::Kind::file,
                     .size = static_cast<std::int64_t>(text.size()),
                     .executable = (mode & 0100U) != 0,
                     .target = {}});
  }
  if (found.size() > most) return fail(ErrorKind::full, "{}: more than {}", directory, most);
  std::vector<TreeEntry> entries;
  for (auto& [path, entry] : found) entries.push_back(std::move(entry));
  return entries;
}

Result<std::vector<TreeEntry>> FakeEnv::entries(const std::string& directory) {
  BERTH_ASSIGN(auto found, tree(directory, machine_.files.size() + machine_.links.size() +
                                               machine_.directories.size()));
  std::erase_if(found, [](const TreeEntry& entry) { return entry.path.contains('/'); });
  return found;
}

Status FakeEnv::remove_tree(const std::string& path) {
  BERTH_TRY(ask("remove_tree"));
  const auto within = [&](const std::string& each) {
    return each == path || each.starts_with(path + "/");
  };
  const auto erase = [&](auto& all) {
    std::erase_if(all, [&](const auto& each) { return within(each.first); });
  };
  erase(machine_.files);
  erase(machine_.stamps);
  erase(machine_.links);
  std::erase_if(machine_.directories, within);
  return {};
}

Status FakeEnv::free_place(const std::string& path) {
  if (machine_.files.contains(path) || machine_.links.contains(path) ||
      machine_.directories.contains(path))
    return fail(ErrorKind::exists, "{}: is there already", path);
  return {};
}

Result<std::optional<Content>> FakeEnv::copy_file(const std::string& from, const std::string& to,
                                                  mode_t mode) {
  BERTH_TRY(ask("copy_file"));
  if (!machine_.files.contains(from)) return fail(ErrorKind::not_found, "{}: no such file", from);
  BERTH_TRY(free_place(to));
  const std::string& text = machine_.files[to] = machine_.files.at(from);
  machine_.stamps[to].mode = mode;
  return Content{sha256(text), static_cast<std::int64_t>(text.size())};
}

Status FakeEnv::hard_link(const std::string& from, const std::string& to) {
  BERTH_TRY(ask("hard_link"));
  if (!machine_.files.contains(from)) return fail(ErrorKind::not_found, "{}: no such file", from);
  BERTH_TRY(free_place(to));
  machine_.files[to] = machine_.files.at(from);
  machine_.stamps[to] = machine_.stamps[from];
  return {};
}

Status FakeEnv::symbolic_link(const std::string& target, const std::string& path) {
  BERTH_TRY(ask("symbolic_link"));
  BERTH_TRY(free_place(path));
  machine_.links[path] = target;
  return {};
}

void FakeEnv::move(const std::string& from, const std::string& to) {
  move_keys(machine_.files, from, to);
  move_keys(machine_.stamps, from, to);
  move_keys(machine_.links, from, to);
  std::set<std::string> moved;
  for (const auto& path : machine_.directories)
    moved.insert(path == from || path.starts_with(from + "/") ? to + path.substr(from.size())
                                                              : path);
  machine_.directories = std::move(moved);
}

Status FakeEnv::rename(const std::string& from, const std::string& to) {
  BERTH_TRY(ask("rename"));
  if (free_place(from)) return fail(ErrorKind::not_found, "{}: no such file", from);
  if (machine_.directories.contains(from) != machine_.directories.contains(to) && !free_place(to))
    return fail(ErrorKind::invalid, "{}: a directory is not a file", to);
  if (machine_.directories.contains(to) && !list(to)->empty())
    return fail(ErrorKind::io, "{}: not empty", to);
  machine_.files.erase(to);
  machine_.stamps.erase(to);
  machine_.links.erase(to);
  move(from, to);
  return {};
}

Status FakeEnv::exchange(const std::string& a, const std::string& b) {
  BERTH_TRY(ask("exchange"));
  if (free_place(a) || free_place(b)) return fail(ErrorKind::not_found, "{}: no such file", b);
  move(a, a + ".exchanged");
  move(b, a);
  move(a + ".exchanged", b);
  return {};
}

Status FakeEnv::stamp(const std::string& path, mode_t mode, Wall modified) {
  BERTH_TRY(ask("stamp"));
  if (!machine_.files.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  machine_.stamps[path] = {mode, modified};
  return {};
}

Result<VolumeSpace> FakeEnv::volume(const std::string&) {
  BERTH_TRY(ask("volume"));
  return VolumeSpace{1'000'000'000'000, 500'000'000'000, 1'000'000, 900'000};
}

Result<Fd> FakeEnv::open_append(const std::string& path, mode_t) {
  BERTH_TRY(ask("open_append"));
  machine_.files.try_emplace(path);
  return add({.kind = Open::Kind::file, .path = path});
}

Result<Fd> FakeEnv::open_read(const std::string& path) {
  BERTH_TRY(ask("open_read"));
  if (!machine_.files.contains(path)) return fail(ErrorKind::not_found, "{}: no such file", path);
  return add({.kind = Open::Kind::file, .path = path});
}

Result<Fd> FakeEnv::open_write(const std::string& path) {
  return open_read(path);
}

Result<std::string> FakeEnv::read_at(const Fd& fd, std::int64_t offset, std::size_t most) {
  BERTH_TRY(ask("read_at"));
  const std::string& text = machine_.files.at(at(fd.number()).path);
  if (offset >= static_cast<std::int64_t>(text.size())) return std::string();
  return text.substr(static_cast<std::size_t>(offset), most);
}

Status FakeEnv::truncate(const Fd& fd, std::int64_t size) {
  BERTH_TRY(ask("truncate"));
  machine_.files.at(at(fd.number()).path).resize(static_cast<std::size_t>(size));
  return {};
}

Status FakeEnv::sync(const std::string& path) {
  BERTH_TRY(ask("sync"));
  if (const std::string* text = find(path)) machine_.synced[path] = *text;
  return {};
}

Status FakeEnv::sync_all(std::span<const std::string> paths) {
  BERTH_TRY(ask("sync_all"));
  for (const auto& path : paths) BERTH_TRY(sync(path));
  return {};
}

Status FakeEnv::sync_volume(const std::string&) {
  BERTH_TRY(ask("sync_volume"));
  machine_.synced = machine_.files;
  return {};
}

void FakeEnv::lose_power() {
  for (auto at = machine_.files.begin(); at != machine_.files.end();) {
    const auto synced = machine_.synced.find(at->first);
    const std::string safe = synced == machine_.synced.end() ? "" : synced->second;
    std::string& text = at->second;
    const bool grown = text.starts_with(safe);
    if (grown)  // any part of what was appended may have reached the disk
      text.resize(safe.size() + world_.rng.below(text.size() - safe.size() + 1));
    else if (world_.rng.below(2) == 0)
      text = safe;
    ++at;
  }
  machine_.locked.clear();
  ++machine_.boots;
}

}  // namespace berth::os
