// A Delivery brings the outputs of one task out of the task's directory into the object store, and
// from there to their places beside the flow's file. It is plain data with functions on it, so that
// another thread than the loop's can bring gigabytes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/fileset/fileset.h"
#include "berth/flow/flow.h"
#include "berth/run/flows/output_place.h"
#include "berth/run/flows/placed_outputs.h"

namespace berth::remote {
struct Cloud;
struct TransferProgress;
}  // namespace berth::remote

namespace berth::run {

struct Delivery {
  flow::TaskSpec spec;
  std::string folder;                      ///< Of the flow.
  std::string directory{};                 ///< Of the task; "": the outputs are known already.
  std::vector<fileset::Fileset> inputs{};  ///< As the task was given them.
  std::vector<fileset::Fileset> outputs{};
  flow::Metrics metrics{};             ///< That were kept with the outputs.
  std::vector<fileset::Hold> holds{};  ///< They keep the outputs' objects in the store.
  bool gathered = false;
  std::size_t placed = 0;  ///< So many outputs are in their places.
  /// The folder that stands in the place of the next output and has files which this task did not
  /// write. Only the store of runs knows whether an earlier run of the task wrote them; if so, it
  /// is `ours` and may be replaced.
  std::optional<fileset::Fileset> there{};
  bool ours = false;
  bool overwrite = false;                ///< What is protected or was edited, too.
  std::string protected_file{};          ///< Of the run; see layout.h.
  const remote::Cloud* cloud = nullptr;  ///< For outputs that go to S3; none: `no_cloud`.
  std::optional<Error> no_cloud{};
  std::shared_ptr<remote::TransferProgress> progress{};  ///< Of what goes there.
};

/// Where an output goes, as people are told.
std::string place_of(const Delivery& delivery, const flow::TaskOutput& output);

/// Whether another thread has to deal with it: directories, which may hold anything, large files,
/// and what goes to S3.
bool takes_long(const fileset::Fileset& fileset);
bool takes_long(os::Env& env, const Delivery& delivery);

/// Brings what the task wrote into the store, and checks that its inputs are as they were.
Status gather(fileset::ObjectStore& cache, Delivery& delivery);
/// Checks, before a task starts, that each of its outputs can be put at its place. Errors:
/// impossible, as behind_links(); exists, where something is protected or was edited.
Status check_places(os::Env& env, fileset::ObjectStore& cache, PlacedOutputs& placed,
                    const Delivery& delivery);
/// Refuses what a person edited since Berth put it at the place. Errors: exists.
Status check_unedited(os::Env& env, fileset::ObjectStore& cache, PlacedOutputs& placed,
                      const std::string& place);
/// Returns true if another thread has to check the places: they have a directory or a large file.
bool check_takes_long(os::Env& env, const Delivery& delivery);
/// Brings the outputs to their places; one that is there already stays untouched. Returns false
/// where the caller has to judge `there` first. Errors: as check_places().
Result<bool> place(os::Env& env, fileset::ObjectStore& cache, PlacedOutputs& placed,
                   Delivery& delivery);

/// Those of `entries` whose names are not in `known`.
std::vector<fileset::Entry> without(std::vector<fileset::Entry> entries,
                                    const fileset::Fileset& known);

/// The entries of all of them, as one fileset that can be held.
fileset::Fileset all_of(const std::vector<fileset::Fileset>& filesets);

}  // namespace berth::run
