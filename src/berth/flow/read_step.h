// Steps of a flow's file, and what their inputs name. Pure.
#pragma once

#include <unordered_map>

#include "berth/base/document.h"
#include "berth/flow/flow_options.h"

namespace berth::flow {

/// What a step is read against: the steps and outputs of the whole file, known before any is read.
struct KnownFlow {
  const FlowOptions& options;
  std::unordered_map<std::string, std::size_t> steps{};
  std::vector<Step>* of = nullptr;
  Params params{};                  // of the flow
  exec::Environment environment{};  // of the flow
  Words shell{};                    // of the flow
  bool enforce = false;             // of the flow
  exec::GpuMemOver gpu_mem_over = exec::GpuMemOver::warn;
  std::string image{};     // of the flow
  bool network = false;    // of the flow
  bool stops_run = false;  // of the flow
};

/// Fills a step whose name and outputs are known. Errors: invalid, at the key that is wrong.
Status read_step(const Field& field, const KnownFlow& known, Step& step);

/// What a text stands for where files are named: "map.bam" for an output of a step that there is,
/// "split.parts/*" for files below one that is a directory, else a path beside the flow's file.
/// Errors: invalid, at `field`.
Result<Source> read_source(std::string text, const KnownFlow& known, const Field& field);

}  // namespace berth::flow
