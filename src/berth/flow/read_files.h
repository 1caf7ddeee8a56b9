// The files of a flow: its own, those that it includes, and those of its sub-flows. Pure: whoever
// asks has the texts read.
//
// A scope is what has names of its own: the flow, or one of its sub-flows. Steps of a sub-flow are
// called by its name and theirs, "align.map"; within it they are called "map".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/base/document.h"
#include "berth/flow/flow_options.h"

namespace berth::flow {

inline constexpr std::size_t kMostFiles = 1000;  // of one flow

struct FlowFile {
  Field root;
  std::string name;                   // as errors call it
  std::string path;                   // beside the flow's own, as ReadFile takes it
  std::optional<std::size_t> parent;  // which includes it, or has it as a sub-flow
  std::size_t scope = 0;
};

/// A source of files that another scope calls by a name: an input of a sub-flow, or an output.
struct Alias {
  std::string text;  // in its own scope; empty: an input that is to be given
  std::size_t scope = 0;
  std::optional<Field> field = {};  // where it stands
};
using Aliases = std::map<std::string, Alias, std::less<>>;

struct Scope {
  std::string prefix;                 // of the names of its steps: "", "align."
  std::optional<std::size_t> parent;  // in which it is a sub-flow
  std::optional<Field> call;          // the step there that it is,
  std::size_t caller = 0;             // of that file
  std::string directory;              // in which its outputs lie, with a '/'; or empty
  Params params;
  std::vector<StepIndex> needs{};  // of all its steps
  bool has_inputs = false;         // whether its file has `in`
  Aliases in, out;
};

struct StepEntry {
  std::string name;  // in full
  Field field;
  std::size_t file = 0;
};

struct FlowFiles {
  std::vector<FlowFile> files;   // each after its parent
  std::vector<Scope> scopes;     // each after its parent
  std::vector<StepEntry> steps;  // those of included files first, else in the order of the files
  /// By the names in full; below 0 for a sub-flow, whose scope is -1 - that number.
  std::unordered_map<std::string, std::int64_t> names;
};

/// Reads all of them, and what they say of parameters, inputs and outputs of scopes. Errors:
/// invalid, with the file and line that are wrong: broken, missing, including itself, names that
/// are used twice.
Result<FlowFiles> read_files(std::string_view text, const std::string& file,
                             const FlowOptions& options, const ReadFile& read);

/// The text with the parameters of a scope in it; other names in braces stay.
std::string with_params(std::string_view text, const Params& params);

}  // namespace berth::flow
