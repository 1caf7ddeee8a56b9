// The labels of a run and who is told of it, as they stand in what it was submitted with.
#pragma once

#include "berth/exec/labels.h"
#include "berth/exec/notify.h"
#include "berth/store/store.h"

namespace berth::run {

/// None where the run has none, or its program cannot be read.
exec::Labels labels_of(const store::RunRecord& record);
/// The same of who is told what becomes of it.
std::vector<exec::Notify> notify_of(const store::RunRecord& record);

/// What was requested, as a command line: the file or command, and its arguments. To be shown only:
/// URLs are without their secrets.
struct Invocation {
  std::string program;  // "flow.yaml", "./train.py --lr {lr}"
  std::vector<std::string>
      arguments;  // targets, "--set depth=3", "--only map/A"; a command's words
  std::vector<std::pair<std::string, std::vector<std::string>>> parameters;  // that were set
};
Invocation invocation_of(const store::RunRecord& record);

}  // namespace berth::run
