// For tests of what the object store collects.
#pragma once

#include <unordered_set>
#include <utility>

#include "berth/fileset/fileset.h"

namespace berth::fileset {

/// Only these objects are in use.
inline ObjectStore::AddLive keep(std::unordered_set<Digest> live) {
  return [live = std::move(live)](std::unordered_set<Digest>& all) -> Status {
    all.insert(live.begin(), live.end());
    return {};
  };
}

}  // namespace berth::fileset
