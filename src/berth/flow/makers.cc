// Which step makes a file that another names as one of the world, and what is said of files that
// are not there.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/flow/elsewhere.h"
#include "berth/flow/graph.h"
#include "berth/flow/notation.h"
#include "berth/flow/pattern.h"

namespace berth::flow {
namespace {

/// What is below a folder on the way to a path; nullopt: it is not below it.
std::optional<std::string_view> part_below(std::string_view path, std::string_view folder) {
  if (path == folder) return "";
  if (!path.starts_with(folder) || path[folder.size()] != '/') return std::nullopt;
  return path.substr(folder.size() + 1);
}

std::string folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash + 1));
}

/// Whether a path with names in braces has enough letters of its own to be known by.
bool says_enough(std::string_view path) {
  constexpr std::size_t kLetters = 3;
  const std::string glob = glob_of(path);
  return static_cast<std::size_t>(std::ranges::count_if(glob, [](char c) {
           return std::string_view("*?/").find(c) == std::string_view::npos;
         })) >= kLetters;
}

}  // namespace

std::optional<TaskIndex> Graph::Impl::writer_of(const std::string& path) const {
  if (const auto found = writers_.find(path); found != writers_.end())
    return TaskIndex{found->second};
  if (const auto found = folders_.find(path); found != folders_.end())
    return TaskIndex{found->second};
  for (auto slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1))
    if (const auto found = writers_.find(path.substr(0, slash)); found != writers_.end())
      return TaskIndex{found->second};
  return std::nullopt;
}

/// "x.txt is made by step split (out.x): write split.x"; `below` is the way within that output.
std::string Graph::Impl::made_by(const std::string& path, const Step& step, const Output& output,
                                 std::string_view below) const {
  return fmt::format("{} is made by step {} (out.{}): write {}.{}{}{}", shown_path(output, path),
                     step.name, output.name, step.name, output.name, below.empty() ? "" : "/",
                     below);
}

/// Who makes that path, of the steps whose tasks are not known yet.
std::string Graph::Impl::declared_maker_of(const std::string& path) const {
  for (auto end = path.size(); end != std::string::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    const auto [first, last] = declared_.equal_range(std::string_view(path).substr(0, end));
    for (auto found = first; found != last; ++found) {
      const auto& [i, output] = found->second;
      if (states_[i].first < 0 && (end == path.size() || output->directory))
        return made_by(path, flow_.steps[i], *output,
                       end == path.size() ? "" : std::string_view(path).substr(end + 1));
    }
  }
  return {};
}

/// Who makes that path or, of a pattern, a file that matches it; empty: nobody. `missing`: it is
/// not there, so that a step of which only the form of its outputs is known may be meant.
std::string Graph::Impl::maker_of(const std::string& path, bool missing) const {
  if (const auto task = writer_of(path)) {
    const Step& by = step(*task);
    for (const auto& output : by.out)
      if (const auto below = part_below(path, output_path(*task, output)))
        return made_by(path, by, output, *below);
    for (const auto& output : by.out)  // a folder, and the output lies in it
      if (part_below(output_path(*task, output), path)) return made_by(path, by, output, "");
  }
  if (auto maker = declared_maker_of(path); !maker.empty() || !missing) return maker;
  for (std::size_t i = 0; i < flow_.steps.size(); ++i)
    for (const auto& output : flow_.steps[i].out)
      if (states_[i].first < 0 && says_enough(output.path) &&
          fileset::matches(glob_of(output.path), path))
        return made_by(path, flow_.steps[i], output, "");
  if (!fileset::is_pattern(path)) return {};
  for (std::size_t i = 0; i < flow_.steps.size(); ++i)
    for (const auto& output : flow_.steps[i].out) {
      const auto matches = [&](const std::string& made) { return fileset::matches(path, made); };
      bool found =
          states_[i].first < 0 &&
          matches(expand(output.path, [](std::string_view name) { return std::string(name); }));
      for (std::int64_t task = 0; task < std::max<std::int64_t>(states_[i].count, 0); ++task)
        found = found || matches(output_path(task_of(i, task), output));
      if (found) return made_by(path, flow_.steps[i], output, "");
    }
  return {};
}

/// A file that a step makes is named by that step: else nothing would make its reader wait.
Status Graph::Impl::check_path(const Step& step, const std::string& path, int line) const {
  const auto maker = maker_of(path, false);
  if (maker.empty()) return {};
  return wrong(step, line, maker);
}

/// What is said of a source that names no file.
std::string Graph::Impl::missing_file(const Source& source, const std::string& path) const {
  if (auto maker = maker_of(path, true); !maker.empty()) return maker;
  if (const auto named = by_name_.find(path); named != by_name_.end()) {
    const Step& of = flow_.steps[named->second];
    if (of.out.empty())
      return fmt::format("there is no file {0}, and the step {0} has no outputs", path);
    return fmt::format("there is no file {}; to name an output of the step: {}.{}", path, of.name,
                       of.out.front().name);
  }
  const std::string missing = fmt::format("there is no file {}", path);
  if (fileset::is_pattern(path)) return missing + " (nothing matches it)";
  Words candidates;
  if (!source.text.contains('/'))
    for (const auto& step : flow_.steps)
      for (const auto& output : step.out)
        candidates.push_back(fmt::format("{}.{}", step.name, output.name));
  return missing + nearest_file(path, std::move(candidates));
}

/// "; did you mean data/a.txt?": of the candidates and the files in that folder the nearest; ""
/// where none is near.
std::string Graph::Impl::nearest_file(const std::string& path, Words candidates) const {
  const auto folder = folder_of(path);
  if (const auto beside = world_.glob(fileset::literal_pattern(folder) + "*"))
    std::ranges::copy(*beside, std::back_inserter(candidates));
  const auto meant = nearest_of(path, candidates);
  return meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
}

}  // namespace berth::flow
