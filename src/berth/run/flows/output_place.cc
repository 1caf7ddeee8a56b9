#include "berth/run/flows/output_place.h"

#include <algorithm>

namespace berth::run {
namespace {

constexpr mode_t kModes = 07777;

std::string within_place(const std::string& place, const std::string& path) {
  return path == "." ? place : place + "/" + path;
}

/// Removes bits from the mode of one file or directory.
Status remove_bits(os::Env& env, const std::string& path, mode_t bits) {
  const auto status = env.status(path);
  if (!status || (status->mode & bits) == 0) return {};
  return env.stamp(path, status->mode & kModes & ~bits, status->modified);
}

bool is_link(const fileset::Fileset& content, const std::string& path) {
  const auto found = std::ranges::lower_bound(content.entries, path, {}, &fileset::Entry::path);
  return found != content.entries.end() && found->path == path &&
         found->kind == fileset::Entry::Kind::link;
}

}  // namespace

bool is_protected(os::Env& env, const std::string& place) {
  constexpr mode_t kOwnerWrites = 0200;
  const auto status = env.status(place);
  return status && (status->mode & kOwnerWrites) == 0;
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

std::string place_in(const std::string& folder, const std::string& path) {
  return path.starts_with('/') ? path : folder + "/" + path;
}

Result<std::string> behind_links(os::Env& env, const std::string& place) {
  constexpr int kMostLinks = 40;
  for (std::string folder = parent_of(place); folder.size() > 1 && !env.status(folder);
       folder = parent_of(folder))
    if (const auto target = env.link_target(folder))
      return fail(ErrorKind::impossible,
                  "{} is a link to {}, which is missing: make that folder, or remove the link",
                  folder, *target);
  std::string at = place;
  for (int nth = 0;; ++nth) {
    const auto target = env.link_target(at);
    if (!target) break;
    if (nth == kMostLinks)
      return fail(ErrorKind::impossible, "{}: its symbolic links lead in a circle; remove them",
                  place);
    at = target->starts_with('/') ? *target : parent_of(at) + "/" + *target;
    while (at.size() > 1 && at.ends_with('/')) at.pop_back();
  }
  if (at == place) return at;
  const std::string folder = parent_of(at);
  const auto status = env.status(folder);
  if (!status || status->kind != os::FileStatus::Kind::directory)
    return fail(
        ErrorKind::impossible,
        "{} is a link to {}, but there is no folder {}: make that folder, or remove the link",
        place, at, folder);
  if (!env.may_write(folder))
    return fail(ErrorKind::impossible,
                "{} is a link to {}, but this user may not write in {}: outputs are replaced as a "
                "whole; link to a path in a writable folder, or remove the link",
                place, at, folder);
  return at;
}

Status make_read_only(os::Env& env, const fileset::Fileset& content, const std::string& place) {
  constexpr mode_t kWrite = 0222;
  // Files first: nothing can be changed in a directory that is read-only.
  const auto paths = fileset::paths(content);
  for (auto path = paths.rbegin(); path != paths.rend(); ++path)
    if (!is_link(content, *path)) BERTH_TRY(remove_bits(env, place + "/" + *path, kWrite));
  return remove_bits(env, place, kWrite);
}

Status narrow_modes(os::Env& env, const fileset::Fileset& content, const std::string& place) {
  constexpr mode_t kOthers = 0077;
  const mode_t left = kOthers & ~env.mask();  // what the umask leaves of what is not the owner's
  for (const auto& entry : content.entries) {
    if (entry.kind == fileset::Entry::Kind::link) continue;
    const mode_t full = entry.kind == fileset::Entry::Kind::file ? 0666U : 0777U;
    if (const mode_t denied = full & left & ~entry.mode; denied != 0)
      BERTH_TRY(remove_bits(env, within_place(place, entry.path), denied));
  }
  for (const auto& folder : content.folders)
    if (const mode_t denied = left & ~folder.mode; denied != 0)
      BERTH_TRY(remove_bits(env, within_place(place, folder.path), denied));
  return {};
}

}  // namespace berth::run
