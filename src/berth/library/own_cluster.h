// A cluster of a program's own (berth/run.h) as a source of a run: an OwnCluster leases for the
// runner, and an OwnWorker starts the attempts of one alloc.
//
// Ownership: both refer to the program's Cluster, which outlives them. Threads: one, but that a
// Reporter may be used from any. Failure: what the Cluster throws is an error that it returns.
#pragma once

#include "berth/run.h"
#include "berth/run/drive/source.h"

namespace berth::library {

/// The cluster as the only source of the run's allocs.
run::Sources own_sources(os::Env& env, berth::Cluster& cluster);

}  // namespace berth::library
