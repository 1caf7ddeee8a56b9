#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/flow/advice.h"
#include "berth/flow/elsewhere.h"
#include "berth/flow/notation.h"
#include "berth/flow/read_life.h"
#include "berth/flow/read_step.h"

namespace berth::flow {
namespace {

using exec::process_text;

Status read_outputs(const Field& field, Step& step) {
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
      return value.error("an output goes to s3:// or beside the flow's file");
    const auto plain = plain_path(text);
    if (!plain) return value.error(plain.error());
    if (!stays_inside(*plain))
      return value.error("an output stays in the folder of the flow's file");
    step.out.push_back({name, *plain, text.ends_with('/'), value.node().line});
  }
  return {};
}

std::string stem(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);  // of npos, too
  return std::string(file.substr(0, file.find('.')));
}

}  // namespace

Result<Flow> read_flow(std::string_view text, const std::string& file, const FlowOptions& options) {
  BERTH_ASSIGN(const Field root, Field::parse(text, file));
  if (root.is_null()) return root.error("the file is empty");
  BERTH_TRY(root.expect_keys({"name", "steps", "params", "env", "cluster", "enforce",
                              "gpu_mem_over", "shell", "image", "network", "labels", "on_failure",
                              "on_end", "defaults"}));
  Flow flow{.name = stem(file), .file = file, .steps = {}};
  if (const auto name = root.find("name")) {
    BERTH_ASSIGN(flow.name, name->text());
    if (!valid_step_name(flow.name)) return name->error(kStepName);
  } else if (!valid_step_name(flow.name)) {
    flow.name = "flow";
  }
  KnownFlow known{.options = options, .of = &flow.steps};
  if (const auto params = root.find("params")) {
    BERTH_ASSIGN(known.params, read_params(*params));
  }
  BERTH_TRY(set_params(options, known.params));
  BERTH_ASSIGN(known.shell, exec::read_shell(root, options.shell));
  BERTH_ASSIGN(known.enforce, exec::read_enforce(root, false));
  if (const auto env = root.find("env")) BERTH_TRY(exec::read_environment(*env, known.environment));
  BERTH_TRY(exec::read_gpu_mem_over(root, known.gpu_mem_over));
  BERTH_TRY(exec::read_container(root, known.image, known.network));
  BERTH_ASSIGN(known.stops_run, exec::read_on_failure(root, false));
  BERTH_TRY(read_on_end(root, known.shell, flow));
  BERTH_TRY(exec::read_labels(root, flow.labels));
  if (const auto cluster = root.find("cluster")) {
    BERTH_ASSIGN(flow.clusters, exec::read_names(*cluster));
  }
  BERTH_ASSIGN(const Field steps, root.get("steps"));
  if (steps.is_list())
    return steps.error(
        "wanted names and their steps, found a list: write 'NAME:' in place of '- '");
  BERTH_ASSIGN(const auto entries, steps.entries());
  if (entries.empty()) return steps.error("there is no step");
  for (const auto& [name, field] : entries) {
    if (!valid_step_name(name)) return field.error(kStepName);
    known.steps.emplace(name, flow.steps.size());
    Step& step = flow.steps.emplace_back();
    step.name = name;
    if (const auto out = field.find("out")) BERTH_TRY(read_outputs(*out, step));
  }
  const auto defaults = root.find("defaults");
  if (defaults)
    BERTH_TRY(defaults->expect_keys({"resources", "env", "timeout", "retries", "priority", "shell",
                                     "image", "network", "enforce", "gpu_mem_over", "on_failure"}));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Field& own = entries[i].second;
    BERTH_TRY(read_step(defaults ? own.with_defaults(*defaults) : own, known, flow.steps[i]));
  }
  BERTH_TRY(check_temporary(flow));
  BERTH_TRY(check_conditions(flow));
  BERTH_TRY(apply_options(options, flow));
  BERTH_TRY(check_cycles(flow));
  return flow;
}

Status check_fits(const Flow& flow, const Resources& total) {
  for (const auto& step : flow.steps) {
    const auto name = total.first_short(step.resources);
    if (name.empty()) continue;
    return fail(ErrorKind::invalid, "{}:{}: steps.{}.resources: {} {}, where all there is is {}",
                flow.file, step.resources_line > 0 ? step.resources_line : step.line, step.name,
                name, format_amount(name, step.resources.get(name)),
                format_amount(name, total.get(name)));
  }
  return {};
}

}  // namespace berth::flow
