// berth schema: the JSON Schema of a file format, for editors.
#include <array>
#include <string_view>

#include "berth/base/format.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/experiment/document/format.h"
#include "berth/fleet/document/format.h"
#include "berth/flow/format.h"

namespace berth::cli {
namespace {

struct NamedFormat {
  std::string_view name, title;
  const MapFormat* format;
};
constexpr std::array<NamedFormat, 3> kFormats{
    {{"experiment", "Berth experiment", &experiment::kExperimentFormat},
     {"flow", "Berth flow", &flow::kFlowFormat},
     {"fleet", "Berth fleet", &fleet::kFleetFormat}}};

struct SchemaOptions {
  std::string format;

  void add_to(Options& options) {
    std::vector<std::string> names;
    for (const auto& each : kFormats) names.emplace_back(each.name);
    options.value("FORMAT", format, "Format: experiment, flow or fleet").required().one_of(names);
    options.always_json();
    options.example("berth schema flow > flow.schema.json");
  }
};

Result<int> print_schema(os::Env&, const SchemaOptions& options) {
  for (const auto& each : kFormats)
    if (each.name == options.format) print(json_schema(each.title, *each.format));
  return 0;
}

}  // namespace

Command schema_command() {
  return command("schema", "Print a JSON Schema for editors", print_schema);
}

}  // namespace berth::cli
