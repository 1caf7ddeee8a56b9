#include "berth/flow/read_life.h"

#include <algorithm>
#include <array>

#include "berth/exec/fields.h"

namespace berth::flow {

Result<std::vector<std::string>> read_depfile_key(const Field& step_field, const KnownNames& known,
                                                  Step& step) {
  const auto field = step_field.find("depfile");
  if (!field) return std::vector<std::string>{};
  BERTH_ASSIGN(step.depfile, exec::process_text(*field));
  step.depfile_line = field->node().line;
  if (step.out.empty())
    return field->error("a step without outputs runs each time: nothing can be cached");
  KnownNames all = known;
  for (const auto& output : step.out) all.values.push_back("out." + output.name);
  for (const auto& input : step.in) all.values.push_back("in." + input.name);
  BERTH_TRY(check_names(step.depfile, all, *field));
  return names_in(step.depfile);
}

Status read_lifetimes(const Field& step_field, Step& step) {
  constexpr std::array<std::string_view, 2> kNoYes{"false", "true"};
  for (const auto& [key, flag] :
       {std::pair("temp", &Step::temp), std::pair("protect", &Step::protect)}) {
    const auto field = step_field.find(key);
    if (!field) continue;
    BERTH_ASSIGN(const std::size_t choice, field->choice(kNoYes));
    step.*flag = choice == 1;
    if (step.*flag && step.out.empty()) return field->error("the step has no outputs");
    if (step.*flag && std::ranges::any_of(step.out, &Output::s3))
      return field->error("this is for outputs in the flow's folder, and one output goes to s3://");
    if (step.temp && step.protect)
      return field->error(
          "temporary outputs are removed and protected outputs are kept: choose one");
  }
  return {};
}

Status check_temporary(const Flow& flow) {
  for (std::size_t i = 0; i < flow.steps.size(); ++i) {
    const Step& step = flow.steps[i];
    const StepIndex index{static_cast<std::int64_t>(i)};
    if (step.temp && std::ranges::none_of(flow.steps, [&](const Step& other) {
          return std::ranges::find(other.after, index) != other.after.end();
        }))
      return fail(
          ErrorKind::invalid,
          "{}:{}: steps.{}.temp: no step reads its outputs: they would be removed immediately",
          step.file, step.line, step.name);
  }
  return {};
}

Status read_on_end(const Field& root, const Words& shell, Flow& flow) {
  const auto field = root.find("on_end");
  if (!field) return {};
  BERTH_ASSIGN(flow.on_end, exec::read_command(*field));
  flow.on_end.shell = shell;
  return {};
}

Status check_depfiles(const Flow& flow) {
  for (const auto& step : flow.steps) {
    if (step.depfile.empty()) continue;
    if (!flow.clusters.empty())
      return fail(ErrorKind::invalid,
                  "{}:{}: steps.{}.depfile: a task with a depfile reads the flow's folder, which "
                  "is not on other machines (cluster); declare what it reads with `in`",
                  step.file, step.depfile_line, step.name);
  }
  return {};
}

}  // namespace berth::flow
