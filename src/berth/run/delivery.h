// The outputs of one task on their way: out of its directory into the object store, and from there
// to their places beside the flow's file. Plain data and what works on it, so that gigabytes can be
// brought beside the loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/fileset/fileset.h"
#include "berth/flow/flow.h"

namespace berth::run {

struct Delivery {
  flow::TaskSpec spec;
  std::string folder;                      // of the flow
  std::string directory{};                 // of the task, where its outputs are; "": they are known
  std::vector<fileset::Fileset> inputs{};  // as the task was given them
  std::vector<fileset::Fileset> outputs{};
  std::vector<fileset::Hold> holds{};  // of these
  bool gathered = false;
  std::size_t placed = 0;  // so many outputs are in their places
  /// The folder in the place of the next one, which has files that are not this task's; only the
  /// store of runs knows whether an earlier run of it wrote them. It may be replaced once it is
  /// `ours`.
  std::optional<fileset::Fileset> there{};
  bool ours = false;
};

/// What is dealt with beside the loop: directories, which may hold anything, and large files.
bool takes_long(const fileset::Fileset& fileset);
bool takes_long(os::Env& env, const Delivery& delivery);

/// What the task wrote, into the store; what it was given must be as it was.
Status gather(fileset::ObjectStore& cache, Delivery& delivery);
/// Brings outputs to their places; what is there already stays untouched. false: `there` has to be
/// judged first.
Result<bool> place(os::Env& env, fileset::ObjectStore& cache, Delivery& delivery);

/// Those of `entries` that `known` has none of that name for.
std::vector<fileset::Entry> without(std::vector<fileset::Entry> entries,
                                    const fileset::Fileset& known);

std::string parent_of(const std::string& path);

}  // namespace berth::run
