#include "berth/flow/read_files.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/flow/advice.h"
#include "berth/flow/format.h"
#include "berth/flow/notation.h"

namespace berth::flow {
namespace {

/// What is said of a run, and so once, in the flow's own file.
constexpr std::array<std::string_view, 4> kOfRun{"cluster", "labels", "notify", "on_end"};

/// A path that stands in a file, which is named beside the flow's own.
std::string path_from(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

const Words* find_param(const Params& params, std::string_view name) {
  const auto found = std::ranges::find(params, name, &Params::value_type::first);
  return found == params.end() ? nullptr : &found->second;
}

class FilesReader {
 public:
  FilesReader(const std::string& file, const FlowOptions& options, const ReadFile& read)
      : file_(file), options_(options), read_(read) {}

  Result<FlowFiles> all(std::string_view text) {
    BERTH_ASSIGN(Field root, Field::parse(text, file_));
    files_.scopes.push_back({});
    const std::string own = file_.substr(file_.rfind('/') + 1);  // of npos, too
    BERTH_TRY(take({std::move(root), file_, own, {}, 0}));
    if (files_.steps.empty()) return files_.files.front().root.error("there is no step");
    for (std::size_t i = 0; i < files_.scopes.size(); ++i) BERTH_TRY(fill(files_.scopes[i], i));
    return std::move(files_);
  }

 private:
  const FlowFile& file(std::size_t index) const { return files_.files[index]; }

  /// Takes in a file with all that it names.
  Status take(FlowFile read) {
    if (read.root.is_null()) return read.root.error("the file is empty");
    BERTH_TRY(read.root.expect_keys(kFlowFormat));
    const std::size_t index = files_.files.size();
    const std::size_t scope = read.scope;
    const bool heads = !read.parent || file(*read.parent).scope != scope;  // the first of its scope
    if (read.parent)
      for (const auto key : kOfRun)
        if (const auto field = read.root.find(key))
          return field->error("belongs to the whole run: write it in the flow's main file, " +
                              file_);
    if (!heads)
      for (const std::string_view key : {"in", "out"})
        if (const auto field = read.root.find(key))
          return field->error("belongs in the file of a sub-flow, not in an included file");
    const Field root = read.root;
    files_.files.push_back(std::move(read));
    BERTH_TRY(take_params(root, index, heads));
    if (const auto include = root.find("include")) BERTH_TRY(take_included(*include, index));
    BERTH_TRY(take_steps(root, index));
    return heads ? take_aliases(root, scope) : Status();
  }

  Status take_params(const Field& root, std::size_t index, bool heads) {
    const auto field = root.find("params");
    if (!field) return {};
    BERTH_ASSIGN(auto read, read_params(*field));
    auto& scope = files_.scopes[file(index).scope];
    if (heads) {
      scope.params = std::move(read);
    } else {
      for (auto& [name, words] : read) {
        const auto known = origins_.find({file(index).scope, name});
        if (known == origins_.end()) {
          scope.params.emplace_back(name, std::move(words));
        } else if (!includes(known->second, index)) {
          return field->find(name)->error(fmt::format(
              "{} gives it, too; give it where both are included", file(known->second).name));
        }
      }
    }
    for (const auto& entry : field->node().children)
      origins_.try_emplace({file(index).scope, std::string(entry.key)}, index);
    return {};
  }

  bool includes(std::size_t outer, std::size_t inner) const {
    for (std::optional<std::size_t> at = inner; at; at = file(*at).parent)
      if (*at == outer) return true;
    return false;
  }

  Status take_included(const Field& field, std::size_t index) {
    std::vector<Field> items{field};
    if (field.is_list()) {
      BERTH_ASSIGN(items, field.items());
    }
    for (const auto& item : items) {
      BERTH_ASSIGN(auto read, open(item, index));
      read.scope = file(index).scope;
      if (std::ranges::any_of(files_.files, [&](const FlowFile& other) {
            return other.path == read.path && other.scope == read.scope;
          }))
        continue;  // what two others include is there once
      BERTH_TRY(take(std::move(read)));
    }
    return {};
  }

  /// Reads the file that a field names.
  Result<FlowFile> open(const Field& field, std::size_t parent) {
    BERTH_ASSIGN(const std::string named, exec::process_text(field));
    if (named.empty() || named.contains('\0')) return field.error("is not the path of a file");
    const std::string path = path_from(file(parent).path, named);
    std::string chain = file(parent).path;
    for (std::optional<std::size_t> at = parent; at; at = file(*at).parent) {
      if (at != parent) chain = file(*at).path + " -> " + chain;
      if (file(*at).path == path)
        return field.error(fmt::format("a file within itself: {} -> {}", chain, path));
    }
    if (files_.files.size() == kMostFiles)
      return field.error(fmt::format("a flow can have at most {} files", kMostFiles));
    auto text =
        read_ ? read_(path) : fail(ErrorKind::not_found, "it is read only in the main file");
    const std::string name = path_from(file_, path);
    if (!text)
      return field.error(text.error().kind == ErrorKind::not_found
                             ? fmt::format("there is no file {} (a path here begins where {} lies)",
                                           name, file(parent).name)
                             : text.error().message);
    BERTH_ASSIGN(Field root, Field::parse(*text, name));
    return FlowFile{std::move(root), name, path, parent, 0};
  }

  Status take_steps(const Field& root, std::size_t index) {
    const auto steps = root.find("steps");
    if (!steps && root.find("include")) return {};
    if (!steps) {
      // A file of parameters, say; the flow's own has steps.
      const bool only_included =
          file(index).parent && file(*file(index).parent).scope == file(index).scope;
      return only_included ? Status() : root.error("'steps' is missing");
    }
    if (steps->is_list())
      return steps->error(
          "expected names and their steps, got a list: write 'NAME:' in place of '- '");
    BERTH_ASSIGN(const auto entries, steps->entries());
    if (entries.empty()) return steps->error("there is no step");
    for (const auto& [name, field] : entries) {
      if (!valid_step_name(name)) return field.error(kStepName);
      const std::string full = files_.scopes[file(index).scope].prefix + name;
      const auto flow = field.find("flow");
      const auto number = flow ? -1 - static_cast<std::int64_t>(files_.scopes.size())
                               : static_cast<std::int64_t>(files_.steps.size());
      if (const auto [known, is_new] = files_.names.try_emplace(full, number); !is_new)
        return field.error("a step of this name is in " + place_of(known->second) + ", too");
      if (flow)
        BERTH_TRY(take_sub_flow(field, *flow, index, full));
      else
        files_.steps.push_back({full, field, index});
    }
    return {};
  }

  std::string place_of(std::int64_t step) const {
    const Scope* scope = step < 0 ? &files_.scopes[static_cast<std::size_t>(-1 - step)] : nullptr;
    const StepEntry* entry = scope ? nullptr : &files_.steps[static_cast<std::size_t>(step)];
    return fmt::format("{}:{}", file(scope ? scope->caller : entry->file).name,
                       (scope ? *scope->call : entry->field).node().line);
  }

  Status take_sub_flow(const Field& field, const Field& flow, std::size_t index,
                       const std::string& name) {
    for (const auto key : kCombineNames.all())
      if (const auto found = field.find(key))
        return found->error(
            fmt::format("a sub-flow is taken in once; its steps may have a {}", key));
    for (const std::string_view key : {"run", "script"})
      if (const auto found = field.find(key)) return found->error("a step has either this or flow");
    BERTH_TRY(field.expect_keys(kSubFlowFormat));
    BERTH_ASSIGN(auto read, open(flow, index));
    read.scope = files_.scopes.size();
    Scope& scope = files_.scopes.emplace_back();
    scope.prefix = name + ".";
    scope.parent = file(index).scope;
    scope.call = field;
    scope.caller = index;
    return take(std::move(read));
  }

  Status take_aliases(const Field& root, std::size_t index) {
    Scope& scope = files_.scopes[index];
    for (auto [key, aliases] : {std::pair("in", &scope.in), std::pair("out", &scope.out)}) {
      const auto field = root.find(key);
      if (!field) continue;
      if (!field->is_map()) return field->error(advice_on_names(key, *field));
      BERTH_ASSIGN(const auto entries, field->entries());
      for (const auto& [name, value] : entries) {
        if (!valid_step_name(name)) return value.error(kStepName);
        Alias alias{.text = {}, .scope = index, .field = value};
        if (aliases == &scope.out || !value.is_null()) {
          BERTH_ASSIGN(alias.text, exec::process_text(value));
        }
        aliases->emplace(name, std::move(alias));
      }
    }
    scope.has_inputs = root.find("in").has_value();
    if (scope.has_inputs && files_.names.contains(scope.prefix + "in"))
      return root.find("in")->error("the file has a step called in, too: in.x would mean both");
    return {};
  }

  /// What a scope is given by the one around it, which has all of its own, and by --set.
  Status fill(Scope& scope, std::size_t index) {
    if (scope.parent) {
      const Scope& outer = files_.scopes[*scope.parent];
      scope.directory = outer.directory;
      if (const auto params = scope.call->find("params")) BERTH_TRY(give(*params, outer, scope));
      if (const auto in = scope.call->find("in")) BERTH_TRY(give_inputs(*in, outer, scope));
      if (const auto dir = scope.call->find("dir")) {
        BERTH_ASSIGN(std::string text, exec::process_text(*dir));
        BERTH_TRY(check_params(text, outer, *dir));
        const auto plain = plain_path(with_params(text, outer.params));
        if (!plain) return dir->error(plain.error());
        if (!stays_inside(*plain))
          return dir->error("an output stays in the folder of the flow's file");
        scope.directory += *plain + "/";
      }
    }
    BERTH_TRY(set_params(options_, scope.prefix, scope.params));
    for (auto* aliases : {&scope.in, &scope.out})
      for (auto& [name, alias] : *aliases)
        if (alias.scope == index) alias.text = with_params(alias.text, scope.params);
    return {};
  }

  static Status check_params(std::string_view text, const Scope& scope, const Field& at) {
    KnownNames known;
    for (const auto& param : scope.params) known.values.push_back(param.first);
    return check_names(text, known, at);
  }

  static std::string meant_text(std::string_view name, const Words& known) {
    const auto meant = nearest(name, std::vector<std::string_view>(known.begin(), known.end()));
    return !meant.empty()  ? fmt::format("did you mean '{}'?", meant)
           : known.empty() ? "there are none"
                           : "it has " + join(known, ", ");
  }

  Status give(const Field& field, const Scope& outer, Scope& scope) const {
    BERTH_ASSIGN(const auto given, read_params(field));
    Words known;
    for (const auto& param : scope.params) known.push_back(param.first);
    for (const auto& [name, words] : given) {
      const auto at = *field.find(name);
      const auto param = std::ranges::find(scope.params, name, &Params::value_type::first);
      if (param == scope.params.end())
        return at.error(
            fmt::format("the sub-flow has no parameter of this name; {}", meant_text(name, known)));
      param->second.clear();
      for (const auto& word : words) {
        BERTH_TRY(check_params(word, outer, at));
        const bool whole = word.starts_with('{') && word.ends_with('}');
        const auto* list =
            whole ? find_param(outer.params, std::string_view(word).substr(1, word.size() - 2))
                  : nullptr;
        if (list != nullptr)
          std::ranges::copy(*list, std::back_inserter(param->second));
        else
          param->second.push_back(with_params(word, outer.params));
      }
    }
    return {};
  }

  Status give_inputs(const Field& field, const Scope& outer, Scope& scope) const {
    if (!field.is_map()) return field.error(advice_on_names("in", field));
    BERTH_ASSIGN(const auto given, field.entries());
    Words known;
    for (const auto& input : scope.in) known.push_back(input.first);
    for (const auto& [name, value] : given) {
      const auto input = scope.in.find(name);
      if (input == scope.in.end())
        return value.error(
            fmt::format("the sub-flow has no input of this name; {}", meant_text(name, known)));
      BERTH_ASSIGN(const std::string text, exec::process_text(value));
      input->second = {with_params(text, outer.params), *scope.parent, value};
    }
    return {};
  }

  const std::string& file_;
  const FlowOptions& options_;
  const ReadFile& read_;
  FlowFiles files_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> origins_;  // the file of a parameter
};

}  // namespace

std::string with_params(std::string_view text, const Params& params) {
  return expand(text, [&](std::string_view name) -> std::optional<std::string> {
    const auto* words = find_param(params, name);
    return words == nullptr ? std::nullopt : std::optional(join(*words, " "));
  });
}

Result<FlowFiles> read_files(std::string_view text, const std::string& file,
                             const FlowOptions& options, const ReadFile& read) {
  return FilesReader(file, options, read).all(text);
}

}  // namespace berth::flow
