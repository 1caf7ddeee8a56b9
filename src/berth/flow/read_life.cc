#include "berth/flow/read_life.h"

#include <algorithm>

#include "berth/exec/fields.h"

namespace berth::flow {

Result<std::vector<std::string>> read_depfile_key(const Field& step_field, const KnownNames& known,
                                                  Step& step) {
  const auto field = step_field.find("depfile");
  if (!field) return std::vector<std::string>{};
  BERTH_ASSIGN(step.depfile, exec::process_text(*field));
  step.depfile_line = field->node().line;
  if (step.out.empty())
    return field->error("a step without outputs runs each time: there is nothing to find out");
  KnownNames all = known;
  for (const auto& output : step.out) all.values.push_back("out." + output.name);
  for (const auto& input : step.in) all.values.push_back("in." + input.name);
  BERTH_TRY(check_names(step.depfile, all, *field));
  return names_in(step.depfile);
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
    const std::string_view elsewhere = !step.image.empty()      ? "in a container (image)"
                                       : !flow.clusters.empty() ? "on other machines (cluster)"
                                                                : "";
    if (!elsewhere.empty())
      return fail(ErrorKind::invalid,
                  "{}:{}: steps.{}.depfile: a task with a depfile reads what is beside the flow's "
                  "file, which is not there {}; declare what it reads in `in`",
                  flow.file, step.depfile_line, step.name, elsewhere);
  }
  return {};
}

}  // namespace berth::flow
