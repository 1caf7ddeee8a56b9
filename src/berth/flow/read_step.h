// Steps of a flow's file, and what their inputs name. Pure.
#pragma once

#include "berth/base/document.h"
#include "berth/flow/read_files.h"

namespace berth::flow {

/// What a step is read against: the steps and outputs of the whole flow, known before any is read,
/// and what holds for the steps of its file.
struct KnownFlow {
  const FlowOptions& options;
  const FlowFiles& files;
  const std::vector<Step>& steps;   // all of them
  std::size_t scope = 0;            // its own
  exec::Environment environment{};  // of the file
  Words shell{};                    // of the file
  bool enforce = false;             // of the file
  exec::GpuMemOver gpu_mem_over = exec::GpuMemOver::warn;
  std::optional<Field> defaults{};  // of the file
  exec::Container container{};      // of the file
  bool stops_run = false;           // of the file
};

/// Fills a step whose name and outputs are known. Errors: invalid, at the key that is wrong.
Status read_step(const Field& field, const KnownFlow& known, Step& step);

/// What a text stands for where files are named: "map.bam" for an output of a step that there is,
/// "split.parts/*" for files below one that is a directory, else a path beside the flow's file.
/// In the file of a sub-flow "in.reads" is what that is given; where a sub-flow is taken in, its
/// outputs are those that it declares ("align.bam") and those of its steps ("align.map.bam").
/// Errors: invalid, at `field`.
Result<Source> read_source(const std::string& text, const KnownFlow& known, const Field& field);

/// The step of that name in a scope, or all of the sub-flow. Errors: invalid, where there is none.
Result<std::vector<StepIndex>> steps_named(const std::string& name, const Field& at,
                                           const FlowFiles& files, const std::vector<Step>& steps,
                                           std::size_t scope);
/// Those that `needs` names.
Result<std::vector<StepIndex>> read_needs(const Field& field, const FlowFiles& files,
                                          const std::vector<Step>& steps, std::size_t scope);

}  // namespace berth::flow
