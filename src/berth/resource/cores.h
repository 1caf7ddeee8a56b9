// Which cores a request gets. Cores are lent in thousandths: a request for whole cores gets whole
// free ones while there are any, near together (one NUMA node) while it fits; a fraction is packed
// onto the fullest core that still has it. Pure; the same input gives the same cores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace berth {

struct CoreShare {
  int core = 0;
  int node = 0;   // NUMA
  int milli = 0;  // of this core: free, or lent, as the holder of the struct says
  bool operator==(const CoreShare&) const = default;
};

/// Takes `milli` thousandths in all out of `free` (ascending by core, 0..1000 each): the shares
/// taken, ascending by core. Empty when the free shares do not add up to `milli`, or it is 0. In
/// this order of preference: whole cores and at most one broken one on node `near` (-1: none), on
/// one other node, on several nodes with `near` first; else pieces of one node; else pieces.
std::vector<CoreShare> choose_cores(std::span<const CoreShare> free, std::int64_t milli,
                                    int near = -1);

}  // namespace berth
