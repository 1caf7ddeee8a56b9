#include "berth/run/flows/dependencies.h"

#include <algorithm>
#include <set>

#include "berth/base/text.h"
#include "berth/exec/container.h"
#include "berth/flow/depfile.h"
#include "berth/run/flows/delivery.h"

namespace berth::run {
namespace {

constexpr std::string_view kLists = "berth dependencies 1";
constexpr std::size_t kMostLists = 4;
constexpr std::size_t kLargestDepfile = 16U << 20;
constexpr std::size_t kLargestDependency = 256U << 20;

/// A list a paragraph, a path a line: a depfile can name none that has a newline.
std::string text_of(const std::vector<flow::Words>& lists) {
  std::string text(kLists);
  text += '\n';
  for (const auto& list : lists) {
    text += '\n';
    for (const auto& path : list) text += path + "\n";
  }
  return text;
}

/// One that cannot be read is as good as none.
std::vector<flow::Words> parse_lists(std::string_view text) {
  std::vector<flow::Words> lists;
  const auto lines = split(text, '\n');
  if (lines.empty() || lines[0] != kLists) return lists;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    if (lines[i].empty())
      lists.emplace_back();
    else if (!lists.empty())
      lists.back().emplace_back(lines[i]);
  }
  return lists;
}

bool is_same(const os::FileStatus& a, const os::FileStatus& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size &&
         a.modified == b.modified && a.changed == b.changed;
}

/// Whether the path is an input or lies in one.
bool is_declared(const flow::TaskSpec& spec, std::string_view path) {
  return std::ranges::any_of(spec.inputs, [&](const flow::TaskInput& input) {
    const std::string_view place = input.place;
    return path == place || (path.starts_with(place) && path[place.size()] == '/') ||
           path == input.world;
  });
}

bool is_output(const flow::TaskSpec& spec, std::string_view path) {
  return std::ranges::any_of(spec.outputs, [&](const flow::TaskOutput& output) {
    return path == output.path || (path.starts_with(output.path + "/"));
  });
}

void add_parents(std::string_view path, std::set<std::string>& parents) {
  if (path.starts_with("_root/") || path.starts_with("_up/")) return;
  for (auto slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = path.rfind('/', slash - 1))
    parents.insert(std::string(path.substr(0, slash)));
}

/// Whether only its container has it, whose image counts as a whole.
bool is_of_image(os::Env& env, const flow::TaskSpec& spec, std::string_view path) {
  return !spec.image.empty() && path.starts_with('/') &&
         std::ranges::none_of(spec.shown, [&](const std::string& shown) {
           return exec::is_within(path, exec::with_home(shown, env.environment()));
         });
}

}  // namespace

std::string lists_of(std::string_view declared) {
  return fmt::format("{}\n{}", kLists, declared);
}

Dependencies::Dependencies(os::Env& env, store::Store& store, std::string folder, WriterOf writer)
    : env_(env), store_(store), folder_(std::move(folder)), writer_(std::move(writer)) {}

Result<std::vector<flow::Words>> Dependencies::lists(const std::string& key) {
  const auto kept = store_.result(key);
  if (kept) return parse_lists(kept->outputs);
  if (kept.error().kind == ErrorKind::not_found) return std::vector<flow::Words>{};
  return std::unexpected(kept.error());
}

Result<std::vector<std::string>> Dependencies::records(const std::string& key,
                                                       const std::string& declared) {
  BERTH_ASSIGN(const auto known, lists(key));
  std::vector<std::string> records;
  for (const auto& list : known) {
    std::vector<flow::Found> found;
    for (const auto& path : list)
      if (const auto digest = digest_of(path, std::nullopt)) found.emplace_back(path, *digest);
    // One that is gone makes another record, of which nobody has kept a result.
    records.push_back(flow::record_with(declared, found));
  }
  return records;
}

/// Of a file's content, which a task that has `started` has read. Errors: not_found: there is none;
/// stale: it may have read another.
Result<Digest> Dependencies::digest_of(const std::string& path, std::optional<Wall> started) {
  if (const auto writer = writer_(path)) {
    if (writer->digest) return *writer->digest;
    return fail(ErrorKind::not_found, "{}: not written yet", path);
  }
  const std::string place = place_in(folder_, path);
  BERTH_ASSIGN(const auto status, env_.status(place));
  auto known = known_.find(path);
  if (known == known_.end() || !is_same(known->second.status, status)) {
    if (status.kind != os::FileStatus::Kind::file)
      return fail(ErrorKind::invalid, "{}: it is not a file", place);
    const Wall now = env_.wall();
    BERTH_ASSIGN(const auto text, env_.read_file(place, kLargestDependency));
    const Digest digest = sha256(text);
    const bool as_before = known != known_.end() && known->second.digest == digest;
    const Wall since = as_before ? known->second.since : now;
    known = known_.insert_or_assign(path, Known{status, digest, since}).first;
  }
  if (started && status.changed > *started && known->second.since > *started)
    return fail(ErrorKind::stale, "{}: it was changed while the task ran", place);
  return known->second.digest;
}

Result<std::vector<flow::Found>> Dependencies::found(const Task& task) {
  const auto wrong = [&](const Error& error) {
    return fail(error.kind, "depfile {}: {}", task.spec.depfile, error.message);
  };
  const auto text =
      env_.read_file(fmt::format("{}/{}", task.directory, task.spec.depfile), kLargestDepfile);
  if (!text && text.error().kind == ErrorKind::not_found)
    return fail(ErrorKind::not_found,
                "it did not write its depfile {} (gcc and clang write one with -MMD -MF)",
                task.spec.depfile);
  if (!text) return wrong(text.error());
  const auto names = flow::read_depfile(*text);
  if (!names) return wrong(names.error());
  BERTH_ASSIGN(const std::string real, env_.real_path(task.directory));
  std::vector<flow::Found> found;
  for (const auto& name : *names) {
    const std::string path = flow::place_of_dependency(name, task.directory, folder_);
    if (is_declared(task.spec, path) || is_output(task.spec, path)) continue;
    if (is_of_image(env_, task.spec, path)) continue;
    // What the task itself has made on the way.
    const std::string own = place_in(task.directory, path);
    if (env_.status(own))
      if (const auto at = env_.real_path(own); at && at->starts_with(real + "/")) continue;
    if (const auto writer = writer_(path); writer && !task.waits_for(writer->task))
      return fail(ErrorKind::invalid,
                  "depfile {}: the task read {}, which another step writes, without waiting for "
                  "it; name that step in `needs`, or its output in `in`",
                  task.spec.depfile, path);
    const auto digest = digest_of(path, task.started);
    if (!digest) return wrong(digest.error());
    found.emplace_back(path, *digest);
  }
  std::ranges::sort(found);
  const auto again = std::ranges::unique(found);
  found.erase(again.begin(), again.end());
  return found;
}

Result<store::ResultKept> Dependencies::again(const std::string& key) {
  BERTH_ASSIGN(auto kept, store_.result(key));
  return store::ResultKept{key, std::move(kept.outputs), std::move(kept.origin), env_.wall()};
}

Result<store::ResultKept> Dependencies::with(const std::string& key,
                                             const std::vector<flow::Found>& found,
                                             std::string origin) {
  flow::Words latest;
  for (const auto& each : found) latest.push_back(each.first);
  BERTH_ASSIGN(auto all, lists(key));
  std::erase(all, latest);
  all.insert(all.begin(), std::move(latest));
  if (all.size() > kMostLists) all.resize(kMostLists);
  return store::ResultKept{key, text_of(all), std::move(origin), env_.wall()};
}

Status show_folder(os::Env& env, const flow::TaskSpec& spec, const std::string& folder,
                   const std::string& directory) {
  std::set<std::string> own{spec.depfile}, parents{""};
  add_parents(spec.depfile, parents);
  for (const auto& input : spec.inputs) add_parents(input.place, parents);
  for (const auto& output : spec.outputs) {
    own.insert(output.path);
    add_parents(output.path, parents);
  }
  for (const auto& parent : parents) {
    const std::string below = parent.empty() ? "" : parent + "/";
    const auto in = [&](const std::string& root) {
      return parent.empty() ? root : fmt::format("{}/{}", root, parent);
    };
    BERTH_TRY(env.make_directory(in(directory), 0700));
    const auto names = env.list(in(folder));
    if (!names) continue;
    BERTH_ASSIGN(const auto there, env.list(in(directory)));
    for (const auto& name : *names) {
      const std::string path = below + name;
      if (own.contains(path) || parents.contains(path) || std::ranges::binary_search(there, name))
        continue;
      BERTH_TRY(env.symbolic_link(fmt::format("{}/{}", folder, path),
                                  fmt::format("{}/{}", directory, path)));
    }
  }
  return {};
}

}  // namespace berth::run
