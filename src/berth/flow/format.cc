#include "berth/flow/format.h"

#include "berth/exec/formats.h"
#include "berth/exec/notify.h"

namespace berth::flow {
namespace {

namespace f = format;
using exec::kMostPriority;
using exec::kMostRetries;

constexpr MapFormat kResourcesFormat{
    "resources",
    "Resources of a task, also as expressions of {attempt} and parameters, and which GPUs; other "
    "names are custom resources.",
    exec::kResourceKeys<f::kText>, &f::kText};

constexpr KeyFormat kUrlKeys[] = {
    {"url", f::text(), "https://…, http://… or s3://BUCKET/KEY", "", true},
    {"sha256", f::text(), "the required digest of its content", "any content"},
};
constexpr KeyFormat kTableKeys[] = {
    {"table", f::text(), "a .csv or .tsv file, whose first line names the columns", "", true},
};
constexpr ValueFormat kSources[] = {f::text(), f::list_of(f::kText, 1), f::map_of(kTableFormat)};
constexpr ValueFormat kSource = f::either(kSources);
constexpr ValueFormat kVariables = f::entries_of(kSource);
constexpr KeyFormat kCombineKeys[] = {
    {"vars", kVariables, "variables and their values", "", true},
    {"by", exec::kNamesFormat, "the names whose values group the elements", "their keys"},
    {"optional", exec::kNamesFormat, "for join: variables that may lack a partner", "none"},
};

constexpr ValueFormat kInputs[] = {f::text(), f::map_of(kUrlFormat)};
constexpr ValueFormat kInputItem = f::either(kInputs);
constexpr ValueFormat kInputChoices[] = {f::text(), f::map_of(kUrlFormat),
                                         f::list_of(kInputItem, 1)};
constexpr ValueFormat kInput = f::either(kInputChoices);
constexpr ValueFormat kValue = f::either(f::kTextOrTexts);
constexpr ValueFormat kTextOrNothing[] = {f::text(), f::nothing()};
constexpr ValueFormat kDeclaredInput = f::either(kTextOrNothing);
constexpr ValueFormat kShell = f::either(f::kTextOrTexts);  // of a script any program

constexpr KeyFormat kResources{"resources", f::map_of(kResourcesFormat),
                               "the resources of each task", "cpu: 1"};
constexpr KeyFormat kEnv{"env", exec::kVariablesFormat, "environment variables", "none"};
constexpr KeyFormat kTimeout{"timeout", f::text(),
                             "time limit of a task, also as an expression of {attempt}, or auto",
                             "none"};
constexpr KeyFormat kRetries{"retries", f::whole(0, kMostRetries),
                             "how many times to retry a failed task", "0"};
constexpr KeyFormat kPriority{"priority", f::whole(-kMostPriority, kMostPriority),
                              "higher goes first", "0"};
constexpr KeyFormat kImage{"image", f::text(), "the container image in which commands run",
                           "the machine itself"};
constexpr KeyFormat kSandbox{
    "sandbox", exec::kSandboxFormat,
    "whether tasks see only their inputs and the system; or a list of further paths", "false"};
constexpr KeyFormat kNetwork{"network", f::flag(),
                             "whether a container or sandbox has the machine's network", "false"};
constexpr KeyFormat kEnforce{"enforce", f::one_of(exec::kEnforceNames),
                             "whether the machine must enforce a task's limits", "advisory"};
constexpr KeyFormat kGpuMemOver{"gpu_mem_over", exec::kGpuMemOverFormat,
                                "what to do with a task that exceeds its share of GPU memory",
                                "warn"};
constexpr KeyFormat kOnFailure{"on_failure", f::one_of(exec::kOnFailureNames),
                               "what to do after a task failed permanently", "continue"};
constexpr KeyFormat kParams{"params", f::entries_of(kValue),
                            "values by name, for steps that use them in braces", "none"};

constexpr KeyFormat kDefaultsKeys[] = {
    kResources, kEnv,        kTimeout,
    kRetries,   kPriority,   {"shell", kShell, "the shell for commands"},
    kImage,     kSandbox,    kNetwork,
    kEnforce,   kGpuMemOver, kOnFailure};

constexpr KeyFormat kStepKeys[] = {
    {"run", exec::kCommandFormat, "the command, with `{names}` in braces", ""},
    {"script", f::text(), "a script of several lines for the program in `shell`", ""},
    {"shell", kShell, "the shell for the command or the script", "bash -euo pipefail -c"},
    {"in", f::entries_of(kInput), "inputs by name: paths, patterns, outputs of steps or URLs",
     "none"},
    {"out", f::entries_of(f::kText), "outputs by name: paths below the file's folder, or s3://…",
     "none: never cached"},
    {"foreach", kVariables, "one task for each element, or for each combination", "one task"},
    {"zip", kVariables, "one task for each position of several sources", ""},
    {"join", f::map_of(kCombineFormat), "one task for the elements that match", ""},
    {"group", f::map_of(kCombineFormat), "one task for all elements with the same value", ""},
    {"key", f::text(), "the key that names a task", "the keys of its elements"},
    {"needs", exec::kNamesFormat, "steps that must be done first, whose files are not read",
     "none"},
    kParams,
    kEnv,
    {"when", f::text(), "a condition; a task for which it is false is skipped", "always"},
    kResources,
    kTimeout,
    kRetries,
    kPriority,
    kEnforce,
    kGpuMemOver,
    kImage,
    kSandbox,
    kNetwork,
    {"depfile", f::text(), "the file in which the command lists what it has read", "none"},
    kOnFailure,
    {"temp", f::flag(), "whether outputs are removed when the last task that reads them is done",
     "false"},
    {"protect", f::flag(), "whether outputs are read-only and not overwritten without --overwrite",
     "false"},
};
constexpr std::string_view kRunOrScript[] = {"run", "script"};

constexpr KeyFormat kSubFlowKeys[] = {
    {"flow", f::text(), "the file whose steps this one represents", "", true},
    {"params", f::entries_of(kValue), "values for the parameters of that file", "its own"},
    {"in", f::entries_of(f::kText), "sources for the inputs of that file", "its own"},
    {"needs", exec::kNamesFormat, "steps that must be done first", "none"},
    {"dir", f::text(), "a folder for its outputs", "the file's"},
};

constexpr ValueFormat kSteps[] = {f::map_of(kStepFormat), f::map_of(kSubFlowFormat)};
constexpr ValueFormat kAnyStep = f::either(kSteps);
constexpr KeyFormat kFlowKeys[] = {
    {"name", f::text(), "the name of the run; a number is added", "the file's name"},
    {"steps", f::entries_of(kAnyStep), "the steps by name", "those of included files"},
    kParams,
    kEnv,
    {"cluster", exec::kNamesFormat, "where it runs: names from `berth cluster list`",
     "this machine"},
    kEnforce,
    kGpuMemOver,
    {"shell", exec::kShellFormat, "the shell for commands with shell characters",
     "bash -euo pipefail -c"},
    kImage,
    kSandbox,
    kNetwork,
    {"labels", exec::kVariablesFormat, "names and values for finding the run", "none"},
    {"notify", exec::kNotifyFormat, "who is notified when the run ends or a task fails", "no one"},
    kOnFailure,
    {"allow_failures", exec::kAllowFailuresFormat,
     "how many tasks may fail in a successful run; true: any number", "0"},
    {"on_end", exec::kCommandFormat, "a command that runs on this machine when the run has ended",
     "none"},
    {"defaults", f::map_of(kDefaultsFormat), "default values for all steps", "none"},
    {"include", exec::kNamesFormat, "files whose steps are included", "none"},
    {"in", f::entries_of(kDeclaredInput),
     "for a sub-flow: its inputs; leave the value empty if the caller gives it", "none"},
    {"out", f::entries_of(f::kText),
     "for a sub-flow: its outputs, each an output of one of its steps", "none"},
};
constexpr std::string_view kStepsOrInclude[] = {"steps", "include"};

}  // namespace

constinit const MapFormat kUrlFormat{"url", "A file at a URL.", kUrlKeys};
constinit const MapFormat kTableFormat{"table", "The rows of a table.", kTableKeys};
constinit const MapFormat kCombineFormat{"combine", "Elements of several sources.", kCombineKeys};
constinit const MapFormat kDefaultsFormat{"defaults", "Default values for all steps.",
                                          kDefaultsKeys};
constinit const MapFormat kStepFormat{.name = "step",
                                      .meaning = "A command that reads files and writes files.",
                                      .keys = kStepKeys,
                                      .any_of = kRunOrScript};
constinit const MapFormat kSubFlowFormat{"sub_flow", "All steps of another file.", kSubFlowKeys};
constinit const MapFormat kFlowFormat{
    .name = "flow",
    .meaning = "A Berth flow: steps that read files and write files.",
    .keys = kFlowKeys,
    .any_of = kStepsOrInclude};

}  // namespace berth::flow
