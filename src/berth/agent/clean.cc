#include "berth/agent/clean.h"

#include <algorithm>

#include "berth/agent/files/files.h"
#include "berth/agent/layout.h"
#include "berth/agent/pool.h"
#include "berth/agent/protocol/connection.h"
#include "berth/agent/protocol/frames.h"
#include "berth/agent/protocol/line_stream.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fileset/fileset.h"

namespace berth::agent {
namespace {

constexpr Duration kYoungest = std::chrono::minutes(1);  // what is just being made has no lock yet
constexpr Duration kYoungestPart = std::chrono::seconds(1);  // a part has its lock from the start

/// Names in a directory; none where it does not exist.
Result<std::vector<std::string>> names_of(os::Env& env, const std::string& directory) {
  auto names = env.list(directory);
  if (!names && names.error().kind == ErrorKind::not_found) return std::vector<std::string>{};
  return names;
}

/// Keeps whoever would use it out while it is removed. nullopt: somebody does.
std::optional<os::Fd> claim(os::Env& env, const std::string& lock) {
  auto held = env.lock_existing(lock);
  if (held) return *std::move(held);
  if (held.error().kind == ErrorKind::not_found) return os::Fd();
  return std::nullopt;
}

Status clean_leases(os::Env& env, Wall before, bool dry_run, Cleaned& cleaned) {
  BERTH_ASSIGN(const auto leases, leases_directory(env));
  BERTH_ASSIGN(const auto names, names_of(env, leases));
  for (const auto& name : names) {
    const std::string lease_directory = leases + "/" + name;
    const auto status = env.status(lease_directory);
    if (!status || status->modified >= before) continue;
    const auto claimed = claim(env, lock_file(agent_directory(lease_directory)));
    if (!claimed) continue;
    if (const auto files = env.tree(lease_directory, fileset::kMostEntries))
      for (const auto& file : *files) cleaned.lease_bytes += file.size;
    ++cleaned.leases;
    if (!dry_run) BERTH_TRY(fileset::remove_all(env, lease_directory));
  }
  return {};
}

Status clean_parts(os::Env& env, const std::string& store, Wall before, bool dry_run,
                   Cleaned& cleaned) {
  const std::string incoming = store + "/incoming";
  BERTH_ASSIGN(const auto names, names_of(env, incoming));
  for (const auto& name : names) {
    const std::string part = incoming + "/" + name;
    const auto status = env.status(part);
    if (!status || status->modified >= before) continue;
    const auto claimed = claim(env, part);
    if (!claimed) continue;
    ++cleaned.objects;
    cleaned.object_bytes += status->size;
    if (!dry_run) BERTH_TRY(env.remove_file(part));
  }
  return {};
}

/// Removes "agent-DIGEST.PID", copies of this program whose transfer was broken off.
Status clean_agent_parts(os::Env& env, const std::string& cache, Wall before, bool dry_run,
                         Cleaned& cleaned) {
  BERTH_ASSIGN(const auto names, names_of(env, cache));
  for (const auto& name : names) {
    if (!name.starts_with("agent-") || name.find('.') == std::string::npos) continue;
    const auto status = env.status(cache + "/" + name);
    if (!status || status->modified >= before) continue;
    ++cleaned.objects;
    cleaned.object_bytes += status->size;
    if (!dry_run) BERTH_TRY(env.remove_file(cache + "/" + name));
  }
  return {};
}

Status clean_objects(os::Env& env, Wall before, bool dry_run, Cleaned& cleaned) {
  BERTH_ASSIGN(const auto directory, objects_directory(env));
  BERTH_TRY(clean_agent_parts(env, directory.substr(0, directory.rfind('/')),
                              std::min(before, env.wall() - kYoungest), dry_run, cleaned));
  if (!env.status(directory)) return {};
  BERTH_TRY(
      clean_parts(env, directory, std::min(before, env.wall() - kYoungestPart), dry_run, cleaned));
  BERTH_ASSIGN(auto store, fileset::ObjectStore::open(env, directory));
  const auto none_live = [](std::unordered_set<Digest>&) { return Status(); };
  BERTH_ASSIGN(const auto freed,
               store.collect(none_live, {.came_before = before, .dry_run = dry_run}));
  cleaned.objects += freed.objects;
  cleaned.object_bytes += freed.bytes;
  return {};
}

}  // namespace

Result<Cleaned> clean(os::Env& env, const CleanOptions& options) {
  const Wall before = env.wall() - options.older_than;
  Cleaned cleaned;
  BERTH_TRY(clean_leases(env, std::min(before, env.wall() - kYoungest), options.dry_run, cleaned));
  BERTH_TRY(clean_objects(env, before, options.dry_run, cleaned));
  return cleaned;
}

std::string encode(const Cleaned& cleaned) {
  return fmt::format("cleaned {} {} {} {}", cleaned.leases, cleaned.lease_bytes, cleaned.objects,
                     cleaned.object_bytes);
}

Result<Cleaned> decode_cleaned(std::string_view line) {
  if (line.starts_with("error ")) return std::unexpected(parse_error(line.substr(6)));
  const auto fields = words(line);
  if (fields.size() != 5 || fields[0] != "cleaned")
    return fail(ErrorKind::invalid, "expected what was cleaned, got {}", clip(line));
  Cleaned cleaned;
  std::size_t at = 0;
  for (auto* into :
       {&cleaned.leases, &cleaned.lease_bytes, &cleaned.objects, &cleaned.object_bytes}) {
    BERTH_ASSIGN(*into, parse_integer(fields[++at]));
    if (*into < 0) return fail(ErrorKind::invalid, "less than nothing was cleaned: {}", clip(line));
  }
  return cleaned;
}

Status serve_clean(os::Env& env, const CleanOptions& options) {
  const os::Fd out(env, 1);
  BERTH_TRY(env.write_all(out, fmt::format("\n{}\n", kHere)));
  Status status;
  LineStream asked(env, [&](Status now) { status = std::move(now); });
  asked.open(os::Fd(env, 0));
  while (!asked.next()) {
    if (!status || asked.ended()) return status;
    BERTH_TRY(env.loop().turn());
  }
  const auto cleaned = clean(env, options);
  return env.write_all(out,
                       (cleaned ? encode(*cleaned) : "error " + to_text(cleaned.error())) + "\n");
}

}  // namespace berth::agent
