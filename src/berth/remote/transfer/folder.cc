#include "berth/remote/transfer/folder.h"

#include <algorithm>
#include <utility>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fileset/paths.h"
#include "berth/ignore/ignore.h"

namespace berth::remote {
namespace {

using Kind = os::TreeEntry::Kind;

constexpr std::size_t kRulesMost = 1 << 20;    // bytes of one file
constexpr std::size_t kCountedMost = 100'000;  // files that are left out, for their size
constexpr Duration kReplacedWithin = std::chrono::milliseconds(100);  // a file, by an editor
constexpr std::string_view kGone = "removed before it was read";
constexpr std::string_view kOwn = ".berth-";  // by which shared folders are found: remote_worker.cc

std::string below(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : fmt::format("{}/{}", folder, name);
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// The folder of the repository that this one is in; itself where there is none.
std::string repository_of(os::Env& env, const std::string& path) {
  for (std::string at = path; !at.empty(); at = parent_of(at))
    if (env.status(at + "/.git")) return at;
  return path;
}

class FolderReader {
 public:
  FolderReader(os::Env& env, std::string path, const std::string& state)
      : env_(env),
        root_(repository_of(env, path)),
        state_(env.real_path(state).value_or(state)),
        prefix_(path.substr(root_.size())) {
    if (prefix_.starts_with('/')) prefix_.erase(0, 1);
    folder_.path = std::move(path);
  }

  Result<Folder> read() {
    for (std::string at = folder_.path; at.size() > root_.size();) {
      at = parent_of(at);
      BERTH_TRY(add_rules(at));
    }
    std::vector<std::string> open{""};  // directories yet to be read
    while (!open.empty()) {
      const std::string directory = std::move(open.back());
      open.pop_back();
      BERTH_TRY(read_directory(directory, open));
    }
    std::ranges::sort(folder_.left_out, {}, &LeftOut::path);
    return std::move(folder_);
  }

 private:
  /// Of a directory; one that is a pipe or a link is no such file.
  Status add_rules(const std::string& directory) {
    BERTH_ASSIGN(const auto found, env_.entries(directory));
    return add_rules(directory, found);
  }
  Status add_rules(const std::string& directory, const std::vector<os::TreeEntry>& found) {
    for (std::size_t i = 0; i < ignore::kFileNames.size(); ++i) {
      const auto file = std::ranges::find(found, ignore::kFileNames[i], &os::TreeEntry::path);
      if (file == found.end() || file->kind != Kind::file) continue;
      const auto text = read_rules(directory + "/" + file->path);
      if (!text && text.error().kind == ErrorKind::not_found) continue;  // gone meanwhile
      BERTH_TRY(text);
      const auto place = directory.substr(std::min(root_.size() + 1, directory.size()));
      rules_.add(place, static_cast<ignore::Source>(i), *text);
    }
    return {};
  }

  /// What is there no more may be on its way to being replaced.
  Result<std::string> read_rules(const std::string& file) {
    auto text = env_.read_file(file, kRulesMost);
    if (text || text.error().kind != ErrorKind::not_found) return text;
    BERTH_TRY(env_.wait({}, env_.now() + kReplacedWithin));
    return env_.read_file(file, kRulesMost);
  }

  Status read_directory(const std::string& directory, std::vector<std::string>& open) {
    const std::string full = directory.empty() ? folder_.path : folder_.path + "/" + directory;
    auto found_there = env_.entries(full.empty() ? "/" : full);
    if (!found_there && found_there.error().kind == ErrorKind::not_found && !directory.empty()) {
      folder_.left_out.push_back({.path = directory + "/", .why = std::string(kGone), .files = 0});
      return {};
    }
    BERTH_ASSIGN(auto found, std::move(found_there));
    BERTH_TRY(add_rules(full, found));
    for (auto& entry : found) {
      if (entry.path == ".git" || (directory.empty() && entry.path.starts_with(kOwn))) continue;
      entry.path = below(directory, entry.path);
      const bool is_directory = entry.kind == Kind::directory;
      if (folder_.path + "/" + entry.path == state_) {
        leave_out(entry, "Berth's own state", false);
      } else if (const auto why = rules_.leaves_out(below(prefix_, entry.path), is_directory)) {
        leave_out(entry, why_text(*why), true);
      } else if (entry.kind == Kind::other) {
        leave_out(entry, "a socket, pipe or device", false);
      } else if (entry.kind != Kind::link || judge_link(entry)) {
        if (is_directory) open.push_back(entry.path);
        folder_.files += is_directory ? 0 : 1;
        folder_.bytes += entry.size;
        folder_.entries.push_back(std::move(entry));
      }
    }
    if (folder_.entries.size() > fileset::kMostEntries)
      return fail(
          ErrorKind::invalid,
          "{}: more than {} files would be sent: list files that no task needs in {}/.berthignore",
          folder_.path, fileset::kMostEntries, folder_.path);
    return {};
  }

  /// As seen from the folder.
  std::string why_text(const std::string& why) const {
    if (prefix_.empty()) return why;
    if (why.starts_with(prefix_ + "/")) return why.substr(prefix_.size() + 1);
    return root_ + "/" + why;
  }

  void leave_out(const os::TreeEntry& entry, std::string why, bool by_rule) {
    LeftOut left{.path = entry.path, .why = std::move(why), .by_rule = by_rule};
    left.bytes = entry.size;
    if (entry.kind == Kind::directory) {
      left.path += '/';
      const auto tree = env_.tree(folder_.path + "/" + entry.path, kCountedMost - counted_);
      left.more = !tree;
      left.files = 0;
      if (tree) {
        counted_ += tree->size();
        for (const auto& each : *tree) {
          left.files += each.kind == Kind::directory ? 0 : 1;
          left.bytes += each.size;
        }
      }
    }
    folder_.left_out.push_back(std::move(left));
  }

  /// Whether it goes; it may have become what goes in its place.
  bool judge_link(os::TreeEntry& link) {
    const std::string inside = folder_.path + "/";
    if (link.target.starts_with(inside)) {
      const auto depth = std::ranges::count(link.path, '/');
      std::string up;
      for (int i = 0; i < depth; ++i) up += "../";
      link.target = up + link.target.substr(inside.size());
    }
    if (fileset::safe_target(link.path, link.target)) return true;
    if (take_interpreter(link)) return true;
    leave_out(link, fmt::format("a link to {}, outside of the folder", clip(link.target)), false);
    return false;
  }

  bool take_interpreter(os::TreeEntry& link) {
    const std::string environment = parent_of(parent_of(link.path));
    const std::string path = folder_.path + "/" + link.path;
    if (!env_.status(below(folder_.path + "/" + environment, "pyvenv.cfg"))) return false;
    const auto status = env_.status(path);
    const auto real = env_.real_path(path);
    if (!status || !real || status->kind != os::FileStatus::Kind::file) return false;
    link.kind = Kind::file;
    link.size = status->size;
    link.executable = status->executable;
    link.target.clear();
    folder_.interpreters.push_back(*real);
    return true;
  }

  os::Env& env_;
  const std::string root_;   // of the rules
  const std::string state_;  // Berth's own
  std::string prefix_;       // from there to the folder
  ignore::Rules rules_;
  Folder folder_;
  std::size_t counted_ = 0;
};

std::string sized(const LeftOut& left) {
  return fmt::format("{} ({}{}, {})", clip(left.path), left.more ? "more than " : "",
                     format_bytes(left.bytes), left.why);
}

}  // namespace

Result<Folder> read_folder(os::Env& env, const std::string& path, const std::string& state) {
  return FolderReader(env, path == "/" ? "" : path, state).read();
}

Status check_unasked(os::Env& env, const std::string& path) {
  const auto home = env.variable("HOME");
  const auto real = home && !home->empty() ? env.real_path(*home) : Result<std::string>("");
  const bool is_home = real && (*real + "/").starts_with(path == "/" ? path : path + "/");
  if (path != "/" && !is_home) return {};
  return fail(ErrorKind::unconfirmed,
              "the experiment's folder is {}{}, and all of it would be sent; put the file into a "
              "separate folder",
              path, path == real.value_or("") ? ", a home directory" : "");
}

Status check_unasked(const Folder& folder) {
  if (folder.bytes <= kLargeFolder) return {};
  return fail(ErrorKind::unconfirmed,
              "{} in {} files would be sent along with {}, which is more than {}; list files that "
              "no task needs in {}/.berthignore",
              format_bytes(folder.bytes), folder.files, folder.path, format_bytes(kLargeFolder),
              folder.path);
}

std::string left_out_text(const Folder& folder) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  std::int64_t files = 0, bytes = 0;
  bool more = false, by_rule = false;
  std::vector<std::string> named;
  for (const auto& left : folder.left_out) {
    files += left.files;
    bytes += left.bytes;
    more = more || left.more;
    by_rule = by_rule || left.by_rule;
    if (named.size() < kNamed) named.push_back(sized(left));
  }
  if (folder.left_out.size() > kNamed) named.push_back("…");
  if (!named.empty())
    text =
        fmt::format("not sent from {}: {}{} file{}, {}: {}", folder.path, more ? "more than " : "",
                    files, files == 1 && !more ? "" : "s", format_bytes(bytes), join(named, ", "));
  if (by_rule)
    text += fmt::format(
        "; to send files that a task needs, add a line to {}/.berthignore, such as {}", folder.path,
        clip(ignore::line_bringing_back(
            std::ranges::find(folder.left_out, true, &LeftOut::by_rule)->path)));
  if (named.size() > kNamed) text += "; berth run --plan lists all";
  for (const auto& interpreter : folder.interpreters)
    text += fmt::format(
        "{}{} is sent for its virtual environment, which works only where that Python's library is "
        "installed; otherwise create one on the host, in the cluster's prescript",
        text.empty() ? "" : "; ", interpreter);
  return text;
}

Result<ReadyFolder> prepare_folder(os::Env& env, const std::string& path, const std::string& store,
                                   bool confirmed, FolderProgress& progress) {
  if (!confirmed) BERTH_TRY(check_unasked(env, path));
  BERTH_ASSIGN(auto objects, fileset::ObjectStore::open(env, store));
  BERTH_ASSIGN(auto folder, read_folder(env, path, parent_of(store)));
  if (!confirmed) BERTH_TRY(check_unasked(folder));
  progress.total = folder.bytes;
  progress.read = 0;
  auto captured = objects.capture(path, std::exchange(folder.entries, {}),
                                  [&](std::int64_t bytes) { progress.read += bytes; });
  if (!captured && captured.error().kind == ErrorKind::stale)
    return fail(ErrorKind::stale,
                "{}; wait until the writing program stops, or let it write to another folder; to "
                "leave out files that no task needs, list them in {}/.berthignore",
                captured.error().message, path);
  if (!captured) return std::unexpected(std::move(captured).error());
  for (auto& gone : captured->gone)
    folder.left_out.push_back({.path = std::move(gone), .why = std::string(kGone)});
  std::ranges::sort(folder.left_out, {}, &LeftOut::path);
  return ReadyFolder{*std::move(captured), left_out_text(folder)};
}

}  // namespace berth::remote
