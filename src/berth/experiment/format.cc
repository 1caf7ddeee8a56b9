#include "berth/experiment/format.h"

#include <array>

#include "berth/exec/formats.h"
#include "berth/exec/notify.h"
#include "berth/experiment/program.h"
#include "berth/experiment/reading.h"

namespace berth::experiment {
namespace {

namespace f = format;

constexpr double kTrialsMost = kMostTrials;

constexpr ValueFormat kAnyValue = f::any();
constexpr ValueFormat kChoices[] = {f::text(), f::list_of(kAnyValue, 1)};
constexpr ValueFormat kOneOrMore = f::either(kChoices);
constexpr ValueFormat kConditions = f::entries_of(kOneOrMore);
constexpr KeyFormat kRangeKeys[] = {
    {"min", f::number(), "the lowest value", "", true},
    {"max", f::number(), "the highest value", "", true},
    {"scale", f::one_of(Parameter::kScaleNames.all()), "how values are spread", "linear"},
    {"type", f::one_of(kNumberTypes), "whole numbers, or any", "float"},
    {"step", f::number_between(0), "only `min` and what lies whole steps from it", "any value"},
    {"n", f::whole(1, kTrialsMost), "the points of a grid", "of an int range each integer"},
    {"when", kConditions, "is used only if earlier parameters have these values", "always"},
};
constexpr KeyFormat kChoicesKeys[] = {
    {"choices", kOneOrMore, "one of these values", "", true},
    {"when", kConditions, "is used only if earlier parameters have these values", "always"},
};
constexpr KeyFormat kBudgetKeys[] = {
    {"param", f::text(), "the name by which a trial gets its budget, such as epochs", "", true},
    {"max", f::number_between(0), "the maximum budget", "", true},
    {"min", f::number_between(0), "the minimum budget of halving and hyperband", ""},
    {"every", f::number_between(0), "of pbt: how much each trial gets at a time", ""},
    {"reduction", f::whole(2, 1000), "one of this many continues, with this many times the budget",
     "3"},
};
constexpr ValueFormat kPoint = f::entries_of(kAnyValue);
constexpr KeyFormat kSearchKeys[] = {
    {"method", f::one_of(Search::kMethodNames.all()), "how points are chosen",
     "grid; with samples: what suits it"},
    {"samples", f::whole(1, kTrialsMost), "how many trials", "required but by grid and sequence"},
    {"seed", f::whole(0, ValueFormat::kUnbounded), "what chance begins with", "0"},
    {"points", f::list_of(kPoint, 1), "of sequence: the points, one after the other", ""},
    {"file", f::text(), "of sequence: the file that has the points", ""},
    {"budget", f::map_of(kBudgetFormat), "of halving, hyperband and pbt: what trials get", ""},
    {"model", f::one_of(kModels), "of halving and hyperband: draw new trials as tpe does", "tpe"},
    {"explore", exec::kNamesFormat, "of pbt: the parameters that a copy changes",
     "ranges of floats"},
    {"run", exec::kCommandFormat, "of external: the program that proposes", ""},
    {"patience", f::duration(), "of external: how long an answer may take", "10m"},
};
constexpr KeyFormat kGoalKeys[] = {
    {"metric", f::text(), "the metric that counts", "", true},
    {"direction", f::one_of(kDirections), "whether the highest or the lowest value is best", "max"},
    {"score", f::one_of(Goal::kScoreNames.all()), "which report of a trial counts", "last"},
};

constexpr std::string_view kWarmup = "the number of first reports of a trial that never end it";
constexpr std::string_view kEvery = "the number of reports between two checks of a trial";
template <std::size_t kIndex>
constexpr KeyFormat kPolicyKey{
    "policy", f::one_of(std::span(EarlyStop::kPolicyNames.all()).subspan(kIndex, 1)),
    "which trials are ended", "", true};
constexpr KeyFormat kMedianKeys[] = {kPolicyKey<0>,
                                     {"warmup", f::whole(0, kTrialsMost), kWarmup, "3"},
                                     {"every", f::whole(1, kTrialsMost), kEvery, "1"}};
constexpr KeyFormat kBanditKeys[] = {
    kPolicyKey<1>,
    {"warmup", f::whole(0, kTrialsMost), kWarmup, "3"},
    {"every", f::whole(1, kTrialsMost), kEvery, "1"},
    {"slack", f::number(0), "how far from the best value it may be, as a part of that", "0.1"}};
constexpr KeyFormat kTruncationKeys[] = {
    kPolicyKey<2>,
    {"warmup", f::whole(0, kTrialsMost), kWarmup, "3"},
    {"every", f::whole(1, kTrialsMost), kEvery, "1"},
    {"part", f::number_between(0, 1), "the part of the trials, the worst ones, that is stopped",
     "0.2"}};
constexpr KeyFormat kCurveKeys[] = {
    kPolicyKey<3>,
    {"warmup", f::whole(0, kTrialsMost), kWarmup, "3"},
    {"every", f::whole(1, kTrialsMost), kEvery, "1"},
    {"probability", f::number_between(0, 1), "ends with less of a chance to be the best", "0.05"},
    {"steps", f::whole(1, kTrialsMost), "the reports of a whole trial",
     "as many as the longest had"}};

constexpr ValueFormat kParameters[] = {f::text(), f::list_of(kAnyValue, 1), f::map_of(kRangeFormat),
                                       f::map_of(kChoicesFormat)};
constexpr ValueFormat kParameter = f::either(kParameters);
constexpr ValueFormat kGoal = f::map_of(kGoalFormat);
constexpr ValueFormat kGoals[] = {kGoal, f::list_of(kGoal, 1, kMostGoals)};
constexpr ValueFormat kStops[] = {f::map_of(kEarlyStopFormats[0]), f::map_of(kEarlyStopFormats[1]),
                                  f::map_of(kEarlyStopFormats[2]), f::map_of(kEarlyStopFormats[3])};

constexpr KeyFormat kKeys[] = {
    {"name", f::text(), "what the run is called; its number is added", "the file's name"},
    {"run", exec::kCommandFormat, "the command of a trial, with `{parameters}` in braces", ""},
    {"shell", exec::kShellFormat, "what runs a command that has a shell's characters",
     "bash -euo pipefail -c"},
    {"params", f::entries_of(kParameter), "what is tried: names and choices, values or ranges",
     "one trial"},
    {"search", f::map_of(kSearchFormat), "how the points of that space are chosen", "grid"},
    {"save_best", f::flag(), "at the end, run the best trial once more with saving turned on",
     "false"},
    {"checkpoints", f::flag(), "each trial has a directory that its attempts share",
     "where the command names it"},
    {"resources", f::map_of(exec::kResources), "what each trial gets of its machine", "cpu: 1"},
    {"goal", f::either(kGoals), "the metric to optimize, or a list of metrics",
     "just run them all"},
    {"constraints", f::list_of(f::kText, 1, kMostConstraints),
     "bounds of metrics, such as `latency <= 50`, that the best trial keeps", "none"},
    {"early_stop", f::either(kStops), "which running trials are not worth their end", "none"},
    {"parallel", f::whole(1, kTrialsMost), "the maximum number of parallel trials",
     "as many as fit"},
    {"timeout", f::duration(), "time limit of a trial", "none"},
    {"enforce", f::one_of(exec::kEnforceNames),
     "whether a machine that cannot enforce a trial's limits may run it", "advisory"},
    {"grace", f::duration(), "between TERM and KILL when a trial is stopped", "5s"},
    {"retries", f::whole(0, exec::kMostRetries), "further attempts of a trial that fails", "0"},
    {"on_failure", f::one_of(exec::kOnFailureNames), "what to do after a trial failed permanently",
     "continue"},
    {"allow_failures", exec::kAllowFailuresFormat,
     "how many trials may fail in a run that is done; true: any number", "0"},
    {"priority", f::whole(-exec::kMostPriority, exec::kMostPriority), "higher goes first", "0"},
    {"gpu_mem_over", exec::kGpuMemOverFormat, "for a trial that has more of a GPU than its share",
     "warn"},
    {"env", exec::kVariablesFormat, "environment variables of the trials", "none"},
    {"stdin", f::text(), "the file that each trial gets as its standard input", "it is empty"},
    {"passive", f::flag(), "another process runs the trials and reports their scores", "false"},
    {"cluster", exec::kNamesFormat, "where it runs: names of `berth cluster list`", "this machine"},
    {"labels", exec::kVariablesFormat, "names and values that the run is found by", "none"},
    {"notify", exec::kNotifyFormat, "who is notified when the run ends or a task fails", "no one"},
};
constexpr std::string_view kRunOrPassive[] = {"run", "passive"};

}  // namespace

constinit const MapFormat kRangeFormat{"range", "Numbers from min to max.", kRangeKeys};
constinit const MapFormat kChoicesFormat{"choices", "One of several values.", kChoicesKeys};
constinit const MapFormat kBudgetFormat{"budget", "What trials get, little at first.", kBudgetKeys};
constinit const MapFormat kSearchFormat{"search", "How points are chosen.", kSearchKeys};
constinit const MapFormat kGoalFormat{"goal", "What a search is after.", kGoalKeys};
constinit const std::array<MapFormat, 4> kEarlyStopFormats{
    {{"median", "Ends what is worse than the median of the others by then.", kMedianKeys},
     {"bandit", "Ends what is farther from the best than the slack.", kBanditKeys},
     {"truncation", "Stops the worst part of the trials that have as many reports.",
      kTruncationKeys},
     {"curve", "Ends what is unlikely to become the best.", kCurveKeys}}};
constinit const MapFormat kExperimentFormat{
    .name = "experiment",
    .meaning = "An experiment of Berth: a command that is tried with many parameters.",
    .keys = kKeys,
    .any_of = kRunOrPassive};

}  // namespace berth::experiment
