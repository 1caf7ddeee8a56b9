#include <algorithm>
#include <ranges>

#include "berth/exec/fields.h"
#include "berth/flow/advice.h"
#include "berth/flow/elsewhere.h"
#include "berth/flow/format.h"
#include "berth/flow/notation.h"
#include "berth/flow/read_life.h"
#include "berth/flow/read_step.h"
#include "berth/resource/resources.h"

namespace berth::flow {
namespace {

using exec::process_text;

Status read_outputs(const Field& field, const std::string& directory, Step& step) {
  if (!field.is_map()) return field.error(advice_on_names("out", field));
  BERTH_ASSIGN(const auto entries, field.entries());
  for (const auto& [name, value] : entries) {
    if (!valid_step_name(name)) return value.error(kStepName);
    BERTH_ASSIGN(const std::string text, process_text(value));
    if (is_url(text)) {
      BERTH_ASSIGN(std::string place, s3_place(text, value));
      step.out.push_back({name, std::move(place), text.ends_with('/'), value.node().line, true});
      continue;
    }
    if (is_foreign_url(text))
      return value.error("an output goes to s3:// or into the flow's folder");
    const auto plain = plain_path(text);
    if (!plain) return value.error(plain.error());
    if (!stays_inside(*plain))
      return value.error("an output stays in the folder of the flow's file");
    step.out.push_back({name, directory + *plain, text.ends_with('/'), value.node().line});
  }
  return {};
}

std::string stem(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);  // of npos, too
  return std::string(file.substr(0, file.find('.')));
}

/// What a file says of all its steps; where it says nothing, that of the file that takes it in
/// holds.
Status read_settings(const Field& root, KnownFlow& known) {
  BERTH_ASSIGN(known.shell, exec::read_shell(root, known.shell));
  BERTH_ASSIGN(known.enforce, exec::read_enforce(root, known.enforce));
  if (const auto env = root.find("env")) BERTH_TRY(exec::read_environment(*env, known.environment));
  BERTH_TRY(exec::read_gpu_mem_over(root, known.gpu_mem_over));
  BERTH_TRY(exec::read_container(root, known.container));
  BERTH_ASSIGN(known.stops_run, exec::read_on_failure(root, known.stops_run));
  if (const auto defaults = root.find("defaults")) {
    BERTH_TRY(defaults->expect_keys(kDefaultsFormat));
    known.defaults = known.defaults ? defaults->with_defaults(*known.defaults) : *defaults;
  }
  return {};
}

/// What is said of a run of it.
Status read_run(const Field& root, Flow& flow) {
  if (const auto name = root.find("name")) {
    BERTH_ASSIGN(flow.name, name->text());
    if (!valid_step_name(flow.name)) return name->error(kStepName);
  } else if (!valid_step_name(flow.name)) {
    flow.name = "flow";
  }
  BERTH_TRY(exec::read_labels(root, flow.labels));
  BERTH_ASSIGN(flow.notify, exec::read_notify(root));
  BERTH_ASSIGN(flow.allow_failures, exec::read_allow_failures(root, 0));
  if (const auto cluster = root.find("cluster")) {
    BERTH_ASSIGN(flow.clusters, exec::read_names(*cluster));
  }
  return {};
}

/// What each file says of its steps.
Result<std::vector<KnownFlow>> known_of_files(const FlowOptions& options, const FlowFiles& files,
                                              const std::vector<Step>& steps) {
  std::vector<KnownFlow> all;
  for (const auto& file : files.files) {
    KnownFlow known =
        file.parent
            ? all[*file.parent]
            : KnownFlow{.options = options, .files = files, .steps = steps, .shell = options.shell};
    known.scope = file.scope;
    BERTH_TRY(read_settings(file.root, known));
    all.push_back(std::move(known));
  }
  return all;
}

/// What scopes call by names of their own, whether anybody reads it or not.
Status check_aliases(const FlowFiles& files, const std::vector<KnownFlow>& known) {
  for (const auto& scope : files.scopes)
    for (const auto* aliases : {&scope.in, &scope.out})
      for (const auto& alias : *aliases | std::views::values) {
        if (alias.text.empty()) continue;
        KnownFlow of = known.front();
        of.scope = alias.scope;
        BERTH_TRY(read_source(alias.text, of, *alias.field));
      }
  return {};
}

}  // namespace

Result<Flow> read_flow(std::string_view text, const std::string& file, const FlowOptions& options,
                       const ReadFile& read) {
  BERTH_ASSIGN(FlowFiles files, read_files(text, file, options, read));
  const Field& root = files.files.front().root;
  Flow flow{.name = stem(file), .file = file, .steps = {}};
  BERTH_TRY(read_run(root, flow));
  flow.steps.reserve(files.steps.size());
  for (const auto& [name, field, of] : files.steps) {
    Step& step = flow.steps.emplace_back();
    step.name = name;
    step.file = files.files[of].name;
    if (const auto out = field.find("out"))
      BERTH_TRY(read_outputs(*out, files.scopes[files.files[of].scope].directory, step));
  }
  for (auto& scope : files.scopes)
    if (scope.call)
      if (const auto needs = scope.call->find("needs")) {
        BERTH_ASSIGN(scope.needs, read_needs(*needs, files, flow.steps, *scope.parent));
      }
  BERTH_ASSIGN(const auto known, known_of_files(options, files, flow.steps));
  BERTH_TRY(read_on_end(root, known.front().shell, flow));
  BERTH_TRY(check_aliases(files, known));
  for (std::size_t i = 0; i < files.steps.size(); ++i) {
    const auto& [name, own, of] = files.steps[i];
    const auto& defaults = known[of].defaults;
    BERTH_TRY(read_step(defaults ? own.with_defaults(*defaults) : own, known[of], flow.steps[i]));
  }
  BERTH_TRY(check_temporary(flow));
  BERTH_TRY(check_conditions(flow));
  BERTH_TRY(apply_options(options, flow));
  BERTH_TRY(check_cycles(flow));
  return flow;
}

}  // namespace berth::flow
