#include "berth/engine/new_file.h"

#include <algorithm>
#include <array>
#include <map>

#include "berth/base/text.h"
#include "berth/engine/first_file.h"
#include "berth/experiment/program.h"

namespace berth::engine {
namespace {

/// What the folder has that a first file can use.
struct Surroundings {
  std::string name;                  // of the folder, as a run may be called
  std::vector<std::string> scripts;  // Python programs with options, then other programs
  std::string extension;             // of the most files that have one in common, and are data
};

constexpr std::size_t kMostScriptBytes = 1 << 20;

std::string run_name(std::string_view path) {
  std::string name;
  for (const char c : path.substr(path.find_last_of('/') + 1))
    if (experiment::valid_name(name + c)) name += c;
  return name.empty() ? "first" : name;
}

bool is_data(std::string_view extension) {
  constexpr std::array<std::string_view, 17> kOthers{"py",   "sh",  "yaml", "yml",  "json", "md",
                                                     "toml", "cfg", "ini",  "txt~", "c",    "h",
                                                     "cc",   "cpp", "o",    "lock", "log"};
  return !extension.empty() && extension.size() <= 8 &&
         std::ranges::find(kOthers, extension) == kOthers.end() &&
         std::ranges::all_of(extension,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

Result<Surroundings> look_around(os::Env& env, const std::string& folder) {
  Surroundings found{.name = run_name(folder), .scripts = {}, .extension = {}};
  BERTH_ASSIGN(const auto entries, env.entries(folder));
  std::map<std::string, int> extensions;
  std::vector<std::string> programs;
  for (const auto& entry : entries) {
    if (entry.kind != os::TreeEntry::Kind::file || entry.path.starts_with('.')) continue;
    const auto dot = entry.path.find_last_of('.');
    const std::string extension = dot == std::string::npos ? "" : entry.path.substr(dot + 1);
    const std::string path = folder + "/" + entry.path;
    if (extension == "py") {
      const auto text = env.read_file(path, kMostScriptBytes);
      if (text && !options_of_script(*text).empty()) found.scripts.push_back(entry.path);
    } else if (entry.executable) {
      const auto text = env.read_file(path, kMostScriptBytes);
      if (text && text->starts_with("#!")) programs.push_back(entry.path);
    } else if (is_data(extension)) {
      ++extensions[extension];
    }
  }
  found.scripts.insert(found.scripts.end(), programs.begin(), programs.end());
  int most = 1;
  for (const auto& [extension, count] : extensions)
    if (count > most) {
      most = count;
      found.extension = extension;
    }
  return found;
}

Result<Script> read_script(os::Env& env, const std::string& folder, const std::string& file) {
  const std::string path = file.starts_with('/') ? file : folder + "/" + file;
  BERTH_ASSIGN(const auto text, env.read_file(path, kMostScriptBytes));
  BERTH_ASSIGN(const auto status, env.status(path));
  const std::string quoted = shell_quote(file);
  const bool python = file.ends_with(".py");
  const std::string here = file.find('/') == std::string::npos ? "./" + quoted : quoted;
  if (!python && !status.executable)
    return fail(ErrorKind::invalid, "{}: not executable (chmod +x {})", file, quoted);
  Script script{.file = file, .command = python ? "python3 " + quoted : here};
  if (python) script.options = options_of_script(text);
  script.metric = metric_of_script(text);
  return script;
}

Result<std::pair<NewFile, std::string>> first_file(os::Env& env, const std::string& folder,
                                                   const NewFileRequest& request) {
  BERTH_ASSIGN(const auto around, look_around(env, folder));
  std::string kind = request.kind;
  const bool scripted = !request.script.empty() || !around.scripts.empty();
  if (kind.empty()) kind = !scripted && !around.extension.empty() ? "flow" : "experiment";
  if (kind != "experiment" && !request.script.empty())
    return fail(ErrorKind::usage, "--script is only for an experiment");
  if (kind == "fleet") return std::pair{NewFile{kind, "fleet.json", "berth plan"}, first_fleet()};
  if (kind == "flow")
    return std::pair{NewFile{kind, "flow.yaml", "berth run --plan"},
                     first_flow(around.name, around.extension)};
  std::optional<Script> script;
  if (scripted) {
    BERTH_ASSIGN(
        script,
        read_script(env, folder, request.script.empty() ? around.scripts.front() : request.script));
  }
  return std::pair{NewFile{kind, "sweep.yaml", "berth run --plan"},
                   first_experiment(around.name, script)};
}

}  // namespace

Result<NewFile> write_new_file(os::Env& env, const NewFileRequest& request) {
  BERTH_ASSIGN(const std::string folder,
               env.real_path(request.directory.empty() ? "." : request.directory));
  BERTH_ASSIGN(auto first, first_file(env, folder, request));
  auto& [made, text] = first;
  if (!request.file.empty()) made.file = request.file;
  if (!request.directory.empty() && !made.file.starts_with('/'))
    made.file = folder + "/" + made.file;
  if (env.status(made.file))
    return fail(ErrorKind::usage, "{}: already exists and was not changed; name another file",
                made.file);
  BERTH_TRY(env.replace_user_file(made.file, text));
  return std::move(made);
}

}  // namespace berth::engine
