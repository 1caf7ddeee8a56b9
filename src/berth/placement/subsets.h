// Sets of devices as bits: their order, and an enumeration of all subsets of a size.
#pragma once

#include <bit>
#include <string>

#include "berth/placement/placement.h"

namespace berth::placement {

inline int size(DeviceSet set) {
  return std::popcount(set);
}

inline DeviceSet one(int device) {
  return DeviceSet{1} << device;
}

/// The first so many devices; 0 to 64.
inline DeviceSet first(int devices) {
  return devices == kMostDevices ? ~DeviceSet{0} : one(devices) - 1;
}

inline DeviceSet lowest(DeviceSet set) {
  return set & (~set + 1);
}

inline int lowest_index(DeviceSet set) {
  return std::countr_zero(set);
}

/// Whether of two sets of one size the ascending list of `a` is the smaller.
inline bool before(DeviceSet a, DeviceSet b) {
  return (lowest(a ^ b) & a) != 0;
}

/// "{0,2,5}"
std::string text(DeviceSet set);

template <class Visit>
void for_each(DeviceSet set, const Visit& visit) {
  for (; set != 0; set &= set - 1) visit(lowest_index(set));
}

/// Calls visit(taken + subset) for every subset of `count` devices of `pool`, which has `devices`
/// of them, until visit() returns false. True if it never did. The lowest devices change fastest,
/// so that tables indexed by the bits of a set are read with locality.
template <class Visit>
bool each_subset(DeviceSet pool, int devices, int count, DeviceSet taken, const Visit& visit) {
  if (count == 0) return visit(taken);
  if (count == 1) {
    for (; pool != 0; pool &= pool - 1) {
      if (!visit(taken | lowest(pool))) return false;
    }
    return true;
  }
  for (; devices >= count; --devices) {
    const DeviceSet next = std::bit_floor(pool);
    pool ^= next;
    if (!each_subset(pool, devices - 1, count - 1, taken | next, visit)) return false;
  }
  return true;
}

}  // namespace berth::placement
