#include "berth/base/text.h"
#include "berth/flow/read_step.h"

namespace berth::flow {
namespace {

std::vector<StepIndex> steps_called(const FlowFiles& files, const std::vector<Step>& steps,
                                    const std::string& name) {
  const auto found = files.names.find(name);
  if (found == files.names.end()) return {};
  if (found->second >= 0) return {StepIndex{found->second}};
  std::vector<StepIndex> all;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].name.starts_with(name + ".")) all.push_back({static_cast<std::int64_t>(i)});
  return all;
}

std::string no_step(std::string_view name, const std::string& prefix,
                    const std::vector<Step>& steps) {
  constexpr std::size_t kMostNamed = 10;
  Words names;
  for (const auto& step : steps)
    if (step.name.starts_with(prefix)) names.push_back(step.name.substr(prefix.size()));
  const auto meant = nearest(name.substr(0, name.find('.')),
                             std::vector<std::string_view>(names.begin(), names.end()));
  return fmt::format("no step is called '{}'{}", clip(name),
                     !meant.empty()              ? fmt::format("; did you mean '{}'?", meant)
                     : names.size() > kMostNamed ? ""
                                                 : "; there are " + join(names, ", "));
}

}  // namespace

Result<std::vector<StepIndex>> steps_named(const std::string& name, const Field& at,
                                           const FlowFiles& files, const std::vector<Step>& steps,
                                           std::size_t scope) {
  const std::string& prefix = files.scopes[scope].prefix;
  auto found = steps_called(files, steps, prefix + name);
  if (found.empty()) return at.error(no_step(name, prefix, steps));
  return found;
}

Result<std::vector<StepIndex>> read_needs(const Field& field, const FlowFiles& files,
                                          const std::vector<Step>& steps, std::size_t scope) {
  std::vector<Field> items{field};
  if (field.is_list()) {
    BERTH_ASSIGN(items, field.items());
  }
  std::vector<StepIndex> needs;
  for (const auto& item : items) {
    BERTH_ASSIGN(const std::string name, item.text());
    BERTH_ASSIGN(const auto found, steps_named(name, item, files, steps, scope));
    needs.insert(needs.end(), found.begin(), found.end());
  }
  return needs;
}

}  // namespace berth::flow
