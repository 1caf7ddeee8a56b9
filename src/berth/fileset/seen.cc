#include "berth/fileset/seen.h"

#include <algorithm>

namespace berth::fileset {
namespace {

constexpr std::size_t kMostLine = 256;

std::string place(const std::string& seen, const os::FileStatus& file) {
  return fmt::format("{}/{:x}-{:x}", seen, file.device, file.inode);
}

/// All that tells one state of a file from another, but for where it is.
std::string state(const os::FileStatus& file) {
  return fmt::format("{} {} {}", file.size, file.modified.time_since_epoch().count(),
                     file.changed.time_since_epoch().count());
}

/// Of "STATE DIGEST\n".
std::optional<Digest> digest_in(std::string_view line) {
  const auto blank = line.rfind(' ');
  if (blank == std::string_view::npos || !line.ends_with('\n')) return std::nullopt;
  const auto digest = parse_digest(line.substr(blank + 1, line.size() - blank - 2));
  return digest ? std::optional(*digest) : std::nullopt;
}

}  // namespace

std::optional<Digest> remembered(os::Env& env, const std::string& seen, const os::FileStatus& now) {
  if (now.inode == 0) return std::nullopt;
  const auto line = env.read_file(place(seen, now), kMostLine);
  if (!line || !line->starts_with(state(now) + " ")) return std::nullopt;
  return digest_in(*line);
}

bool is_old(const os::FileStatus& file, Wall began, Duration racy) {
  return began - std::max(file.modified, file.changed) >= racy;
}

void remember(os::Env& env, const std::string& seen, const os::FileStatus& before,
              const os::FileStatus& after, Wall began, const Digest& digest, Duration racy) {
  const bool same =
      before.device == after.device && before.inode == after.inode && state(before) == state(after);
  if (same && is_old(after, began, racy) && after.inode != 0)
    (void)env.replace_file(place(seen, after), fmt::format("{} {}\n", state(after), to_hex(digest)),
                           0600);
}

void forget(os::Env& env, const std::string& seen, const os::FileStatus& file) {
  (void)env.remove_file(place(seen, file));
}

Status forget_unless(os::Env& env, const std::string& seen,
                     const std::function<bool(const Digest&)>& needed) {
  BERTH_ASSIGN(const auto names, env.list(seen));
  for (const auto& name : names) {
    const std::string path = seen + "/" + name;
    const auto line = env.read_file(path, kMostLine);
    const auto digest = line ? digest_in(*line) : std::nullopt;
    if (!digest || !needed(*digest)) (void)env.remove_file(path);
  }
  return {};
}

}  // namespace berth::fileset
