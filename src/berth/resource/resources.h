// Resources within Berth: the public face (berth/resources.h), and the known names in order. Pure.
#pragma once

#include "berth/base/result.h"
#include "berth/resources.h"

namespace berth {

inline constexpr auto kKnownNames = names<Known>({{Known::gpu, "gpu"},
                                                  {Known::gpu_slots, "gpu_slots"},
                                                  {Known::gpu_mem, "gpu_mem"},
                                                  {Known::cpu, "cpu"},
                                                  {Known::mem, "mem"},
                                                  {Known::disk, "disk"}});

}  // namespace berth
