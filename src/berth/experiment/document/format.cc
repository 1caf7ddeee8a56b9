#include "berth/experiment/document/format.h"

#include <array>

#include "berth/exec/formats.h"
#include "berth/exec/notify.h"
#include "berth/experiment/document/reading.h"
#include "berth/experiment/program.h"

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
    {"scale", f::one_of(Parameter::kScaleNames.all()), "the scale of the values", "linear"},
    {"type", f::one_of(kNumberTypes), "whole numbers (int) or any numbers (float)", "float"},
    {"step", f::number_between(0), "only `min` and values that are whole steps away from it",
     "any value"},
    {"n", f::whole(1, kTrialsMost), "the points of a grid", "for an int range, each integer"},
    {"when", kConditions, "is used only if earlier parameters have these values", "always"},
};
constexpr KeyFormat kChoicesKeys[] = {
    {"choices", kOneOrMore, "one of these values", "", true},
    {"when", kConditions, "is used only if earlier parameters have these values", "always"},
};
constexpr KeyFormat kBudgetKeys[] = {
    {"param", f::text(), "the name of the parameter that sets the budget, such as epochs", "",
     true},
    {"max", f::number_between(0), "the maximum budget", "", true},
    {"min", f::number_between(0), "the minimum budget of halving and hyperband", ""},
    {"every", f::number_between(0), "for pbt: the budget that each trial gets at a time", ""},
    {"reduction", f::whole(2, 1000), "one of N trials continues, with N times the budget", "3"},
};
constexpr ValueFormat kPoint = f::entries_of(kAnyValue);
constexpr KeyFormat kSearchKeys[] = {
    {"method", f::one_of(Search::kMethodNames.all()), "the search method",
     "grid; with samples: chosen automatically"},
    {"samples", f::whole(1, kTrialsMost), "the number of trials",
     "required, except by grid and sequence"},
    {"seed", f::whole(0, ValueFormat::kUnbounded), "the seed of the random numbers", "0"},
    {"points", f::list_of(kPoint, 1), "for sequence: the points in order", ""},
    {"file", f::text(), "for sequence: the file with the points", ""},
    {"budget", f::map_of(kBudgetFormat), "for halving, hyperband and pbt: the budget of trials",
     ""},
    {"model", f::one_of(kModels), "for halving and hyperband: draw new trials as tpe does", "tpe"},
    {"explore", exec::kNamesFormat, "for pbt: the parameters that a copy changes",
     "ranges of floats"},
    {"run", exec::kCommandFormat, "for external: the program that proposes trials", ""},
    {"patience", f::duration(), "for external: the maximum time for an answer", "10m"},
};
constexpr KeyFormat kGoalKeys[] = {
    {"metric", f::text(), "the metric to optimize", "", true},
    {"direction", f::one_of(kDirections), "whether the highest or the lowest value is best", "max"},
    {"score", f::one_of(Goal::kScoreNames.all()), "which report of a trial is its score", "last"},
};

constexpr std::string_view kWarmup = "the number of first reports of a trial that never end it";
constexpr std::string_view kEvery = "the number of reports between two checks of a trial";
template <std::size_t kIndex>
constexpr KeyFormat kPolicyKey{
    "policy", f::one_of(std::span(EarlyStop::kPolicyNames.all()).subspan(kIndex, 1)),
    "which trials are stopped", "", true};
constexpr KeyFormat kMedianKeys[] = {kPolicyKey<0>,
                                     {"warmup", f::whole(0, kTrialsMost), kWarmup, "3"},
                                     {"every", f::whole(1, kTrialsMost), kEvery, "1"}};
constexpr KeyFormat kBanditKeys[] = {
    kPolicyKey<1>,
    {"warmup", f::whole(0, kTrialsMost), kWarmup, "3"},
    {"every", f::whole(1, kTrialsMost), kEvery, "1"},
    {"slack", f::number(0), "the allowed distance from the best value, as a fraction of that value",
     "0.1"}};
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
    {"probability", f::number_between(0, 1),
     "stop a trial whose probability of being the best is lower", "0.05"},
    {"steps", f::whole(1, kTrialsMost), "the reports of a whole trial",
     "as many as the longest trial"}};

constexpr ValueFormat kParameters[] = {f::text(), f::list_of(kAnyValue, 1), f::map_of(kRangeFormat),
                                       f::map_of(kChoicesFormat)};
constexpr ValueFormat kParameter = f::either(kParameters);
constexpr ValueFormat kGoal = f::map_of(kGoalFormat);
constexpr ValueFormat kGoals[] = {kGoal, f::list_of(kGoal, 1, kMostGoals)};
constexpr ValueFormat kStops[] = {f::map_of(kEarlyStopFormats[0]), f::map_of(kEarlyStopFormats[1]),
                                  f::map_of(kEarlyStopFormats[2]), f::map_of(kEarlyStopFormats[3])};

constexpr KeyFormat kKeys[] = {
    {"name", f::text(), "the name of the run; a number is added", "the file's name"},
    {"run", exec::kCommandFormat, "the command of a trial, with `{parameters}` in braces", ""},
    {"shell", exec::kShellFormat, "the shell for commands with shell characters",
     "bash -euo pipefail -c"},
    {"params", f::entries_of(kParameter), "the search space: names with choices, values or ranges",
     "one trial"},
    {"search", f::map_of(kSearchFormat), "how the points of the search space are chosen", "grid"},
    {"save_best", f::flag(),
     "whether to run the best trial once more at the end, with saving turned on", "false"},
    {"checkpoints", f::flag(), "whether each trial has a directory that its attempts share",
     "where the command names it"},
    {"resources", f::map_of(exec::kResources), "the resources of each trial", "cpu: 1"},
    {"goal", f::either(kGoals), "the metric to optimize, or a list of metrics",
     "none: run all trials"},
    {"constraints", f::list_of(f::kText, 1, kMostConstraints),
     "bounds that the best trial must meet, such as `latency <= 50`", "none"},
    {"early_stop", f::either(kStops), "the policy that stops unpromising trials", "none"},
    {"parallel", f::whole(1, kTrialsMost), "the maximum number of parallel trials",
     "as many as fit"},
    {"timeout", f::duration(), "time limit of a trial", "none"},
    {"enforce", f::one_of(exec::kEnforceNames), "whether the machine must enforce a trial's limits",
     "advisory"},
    {"grace", f::duration(), "the time between TERM and KILL when a trial is stopped", "5s"},
    {"retries", f::whole(0, exec::kMostRetries), "how many times to retry a failed trial", "0"},
    {"on_failure", f::one_of(exec::kOnFailureNames), "what to do after a trial failed permanently",
     "continue"},
    {"allow_failures", exec::kAllowFailuresFormat,
     "how many trials may fail in a successful run; true: any number", "0"},
    {"priority", f::whole(-exec::kMostPriority, exec::kMostPriority), "higher goes first", "0"},
    {"gpu_mem_over", exec::kGpuMemOverFormat,
     "what to do with a trial that exceeds its share of GPU memory", "warn"},
    {"env", exec::kVariablesFormat, "environment variables of the trials", "none"},
    {"stdin", f::text(), "the file that is each trial's standard input", "it is empty"},
    {"passive", f::flag(), "another process runs the trials and reports their scores", "false"},
    {"cluster", exec::kNamesFormat, "where it runs: names from `berth cluster list`",
     "this machine"},
    {"labels", exec::kVariablesFormat, "names and values for finding the run", "none"},
    {"notify", exec::kNotifyFormat, "who is notified when the run ends or a task fails", "no one"},
};
constexpr std::string_view kRunOrPassive[] = {"run", "passive"};

}  // namespace

constinit const MapFormat kRangeFormat{"range", "A range of numbers from min to max.", kRangeKeys};
constinit const MapFormat kChoicesFormat{"choices", "One of several values.", kChoicesKeys};
constinit const MapFormat kBudgetFormat{"budget", "The budget of trials, which grows.",
                                        kBudgetKeys};
constinit const MapFormat kSearchFormat{"search", "The search method.", kSearchKeys};
constinit const MapFormat kGoalFormat{"goal", "The goal of a search.", kGoalKeys};
constinit const std::array<MapFormat, 4> kEarlyStopFormats{
    {{"median", "Stops trials that are worse than the median of the others after as many reports.",
      kMedianKeys},
     {"bandit", "Stops trials that are farther from the best than the slack.", kBanditKeys},
     {"truncation", "Stops the worst part of the trials that have as many reports.",
      kTruncationKeys},
     {"curve", "Stops trials that are unlikely to become the best.", kCurveKeys}}};
constinit const MapFormat kExperimentFormat{
    .name = "experiment",
    .meaning = "A Berth experiment: a command that runs with many values of its parameters.",
    .keys = kKeys,
    .any_of = kRunOrPassive};

}  // namespace berth::experiment
