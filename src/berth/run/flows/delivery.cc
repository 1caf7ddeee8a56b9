#include "berth/run/flows/delivery.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/os/failpoint.h"
#include "berth/remote/transfer/elsewhere.h"

namespace berth::run {
namespace {

constexpr std::int64_t kLarge = 4 << 20;
constexpr std::size_t kMany = 64;  // files

bool is_file(const fileset::Fileset& fileset) {
  const auto& entries = fileset.entries;
  return entries.size() == 1 && entries[0].path == "." &&
         entries[0].kind != fileset::Entry::Kind::directory;
}

/// Inputs are shared with other tasks and read-only, which who owns them can undo: what was written
/// into is wrong for all of them, and this task says nothing about what it was to be.
Status check_inputs(fileset::ObjectStore& cache, const Delivery& delivery) {
  for (std::size_t i = 0; i < delivery.inputs.size(); ++i) {
    const auto hold = cache.hold(delivery.inputs[i]);
    if (!hold && hold.error().kind == ErrorKind::not_found)
      return fail(ErrorKind::invalid, "its input {} was changed: {}; a task must change a copy",
                  delivery.spec.inputs[i].name, delivery.spec.inputs[i].place);
  }
  return {};
}

/// The next output, to S3. Not there is not gone from the cache.
Status upload_next(os::Env& env, fileset::ObjectStore& cache, const Delivery& delivery) {
  if (delivery.no_cloud) return std::unexpected(*delivery.no_cloud);
  BERTH_ASSERT(delivery.cloud != nullptr);
  BERTH_ASSIGN(const Url url, parse_url(delivery.spec.outputs[delivery.placed].url));
  remote::TransferProgress unseen;
  remote::Elsewhere elsewhere(env, *delivery.cloud);
  auto status = elsewhere.put(cache, delivery.outputs[delivery.placed], url,
                              delivery.progress ? *delivery.progress : unseen);
  if (!status && status.error().kind == ErrorKind::not_found)
    return fail(ErrorKind::invalid, "{}", status.error().message);
  return status;
}

/// Returns true if the place has a protected output that the run did not put there itself.
bool is_protected_from(os::Env& env, const Delivery& delivery, const std::string& place) {
  constexpr std::int64_t kMostBytes = 64 << 20;
  if (!is_protected(env, place)) return false;
  const auto own = env.read_file(delivery.protected_file, kMostBytes);
  if (!own) return true;
  const auto lines = split(*own, '\n');
  return std::ranges::find(lines, place) == lines.end();
}

/// Records that the run is about to put a protected output at the place.
Status record_protected(os::Env& env, const Delivery& delivery, const std::string& place) {
  BERTH_ASSIGN(const auto file, env.open_append(delivery.protected_file, 0600));
  return env.write_all(file, fmt::format("\n{}\n", place));  // a torn line before it ends here
}

/// The next output. false: see Delivery::there.
Result<bool> place_next(os::Env& env, fileset::ObjectStore& cache, PlacedOutputs& placed,
                        Delivery& delivery) {
  if (!delivery.spec.outputs[delivery.placed].url.empty()) {
    BERTH_TRY(upload_next(env, cache, delivery));
    return true;
  }
  const std::string& path = delivery.spec.outputs[delivery.placed].path;
  const fileset::Fileset& content = delivery.outputs[delivery.placed];
  const bool protect = delivery.spec.outputs[delivery.placed].protect;
  BERTH_ASSIGN(const std::string to, behind_links(env, place_in(delivery.folder, path)));
  const auto there = env.status(to);
  const bool folder = there && there->kind == os::FileStatus::Kind::directory;
  if (there && (folder || !is_file(content) || there->size == content.entries[0].size)) {
    auto found = cache.read(to, *there);
    if (found && *found == content) {
      if (!delivery.directory.empty()) BERTH_TRY(narrow_modes(env, content, to));
      if (protect) BERTH_TRY(make_read_only(env, content, to));
      BERTH_TRY(placed.record(env, to, content));
      return true;
    }
    if (folder && !found)
      return fail(ErrorKind::exists, "{}: it cannot be replaced: {}", to, found.error().message);
    if (folder && !delivery.ours && !delivery.overwrite && !placed.has(env, to) &&
        !without(found->entries, content).empty()) {
      delivery.there = *std::move(found);
      return false;
    }
  }
  if (protect && !delivery.overwrite && is_protected_from(env, delivery, to))
    return fail(ErrorKind::exists, "{}: {}", to, kProtected);
  if (there && !delivery.overwrite) BERTH_TRY(check_unedited(env, cache, placed, to));
  if (const auto parent = parent_of(to); !env.status(parent))
    BERTH_TRY(env.make_user_directory(parent, 0777));
  BERTH_TRY(placed.record(env, to, content));
  if (protect) BERTH_TRY(record_protected(env, delivery, to));
  BERTH_TRY(cache.publish(content, to, fileset::Publish::copies));
  if (protect) BERTH_TRY(make_read_only(env, content, to));
  return true;
}

}  // namespace

fileset::Fileset all_of(const std::vector<fileset::Fileset>& filesets) {
  fileset::Fileset all;
  for (const auto& each : filesets)
    all.entries.insert(all.entries.end(), each.entries.begin(), each.entries.end());
  return all;
}

std::vector<fileset::Entry> without(std::vector<fileset::Entry> entries,
                                    const fileset::Fileset& known) {
  std::erase_if(entries, [&](const fileset::Entry& entry) {
    return entry.path == "." ||
           std::ranges::binary_search(known.entries, entry.path, {}, &fileset::Entry::path);
  });
  return entries;
}

bool takes_long(const fileset::Fileset& fileset) {
  return fileset.entries.size() > kMany || fileset::total_bytes(fileset) > kLarge;
}

std::string place_of(const Delivery& delivery, const flow::TaskOutput& output) {
  return output.url.empty() ? place_in(delivery.folder, output.path) : output.url;
}

bool takes_long(os::Env& env, const Delivery& delivery) {
  const auto goes_to_s3 = [](const flow::TaskOutput& output) { return !output.url.empty(); };
  if (std::ranges::any_of(delivery.spec.outputs, goes_to_s3)) return true;
  if (delivery.directory.empty())
    return std::ranges::any_of(delivery.outputs,
                               [](const fileset::Fileset& output) { return takes_long(output); });
  return std::ranges::any_of(delivery.spec.outputs, [&](const flow::TaskOutput& output) {
    const auto status = env.status(delivery.directory + "/" + output.path);
    return status && (status->kind == os::FileStatus::Kind::directory || status->size > kLarge);
  });
}

Status gather(fileset::ObjectStore& cache, Delivery& delivery) {
  BERTH_TRY(check_inputs(cache, delivery));
  for (const auto& output : delivery.spec.outputs) {
    auto captured = cache.capture(delivery.directory + "/" + output.path, fileset::Expect::fresh);
    if (!captured && captured.error().kind == ErrorKind::not_found)
      return fail(ErrorKind::not_found, "it did not write out.{}: {}", output.name, output.path);
    if (!captured) return std::unexpected(within("out." + output.name, captured.error()));
    if (is_file(captured->fileset) == output.directory)
      return fail(ErrorKind::invalid, "out.{}: {} is {}, expected {}", output.name, output.path,
                  output.directory ? "a file" : "a directory",
                  output.directory ? "a directory" : "a file (the path of a directory ends in /)");
    delivery.outputs.push_back(std::move(captured->fileset));
    delivery.holds.push_back(std::move(captured->hold));
  }
  delivery.gathered = true;
  os::failpoint("outputs captured");
  return {};
}

Status check_unedited(os::Env& env, fileset::ObjectStore& cache, PlacedOutputs& placed,
                      const std::string& place) {
  const auto status = env.status(place);
  if (!status || !placed.has(env, place)) return {};
  const auto there = cache.read(place, *status, true);
  if (!there) return {};  // nothing that Berth would replace
  if (const auto edit = placed.find_edit(env, place, *there))
    return fail(ErrorKind::exists,
                "{}: {}, and would be lost: move it away, or use --overwrite (with berth run, "
                "resume or retry)",
                edit->path,
                edit->is_added ? "not written by this step" : "it was edited since Berth wrote it");
  return {};
}

Status check_places(os::Env& env, fileset::ObjectStore& cache, PlacedOutputs& placed,
                    const Delivery& delivery) {
  for (const auto& output : delivery.spec.outputs) {
    if (!output.url.empty()) continue;
    const auto check = [&]() -> Status {
      BERTH_ASSIGN(const auto place, behind_links(env, place_in(delivery.folder, output.path)));
      if (delivery.overwrite) return {};
      if (output.protect && is_protected_from(env, delivery, place))
        return fail(ErrorKind::exists, "{}: {}", place, kProtected);
      return check_unedited(env, cache, placed, place);
    };
    if (const auto status = check(); !status)
      return std::unexpected(within("out." + output.name, status.error()));
  }
  return {};
}

bool check_takes_long(os::Env& env, const Delivery& delivery) {
  return !delivery.overwrite &&
         std::ranges::any_of(delivery.spec.outputs, [&](const flow::TaskOutput& output) {
           if (!output.url.empty()) return false;
           const auto status = env.status(place_in(delivery.folder, output.path));
           return status &&
                  (status->kind == os::FileStatus::Kind::directory || status->size > kLarge);
         });
}

Result<bool> place(os::Env& env, fileset::ObjectStore& cache, PlacedOutputs& placed,
                   Delivery& delivery) {
  for (; delivery.placed < delivery.outputs.size(); ++delivery.placed) {
    const auto done = place_next(env, cache, placed, delivery);
    if (!done)
      return std::unexpected(
          within("out." + delivery.spec.outputs[delivery.placed].name, done.error()));
    if (!*done) return false;
    delivery.ours = false;
  }
  os::failpoint("outputs published");
  return true;
}

}  // namespace berth::run
