// Resources within Berth: the public face (berth/resources.h), and the known names in order. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/resources.h"

namespace berth {

inline constexpr auto kKnownNames = names<Known>({{Known::gpu, "gpu"},
                                                  {Known::gpu_slots, "gpu_slots"},
                                                  {Known::gpu_mem, "gpu_mem"},
                                                  {Known::cpu, "cpu"},
                                                  {Known::mem, "mem"},
                                                  {Known::disk, "disk"}});

/// Returns an amount in the unit that a user most likely wrote: "400G" for 400 * 10^9 bytes, whose
/// format_amount() is "372.5 GiB"; otherwise as format_amount() does.
std::string requested_amount(std::string_view resource, std::int64_t amount);
/// Returns an amount with its noun: "9 cores", "23.5 GiB of memory".
std::string amount_text(std::string_view resource, std::int64_t amount);
/// Returns a requested amount with its noun: "9 cores", "400G of memory", "1 GPU", "2 of
/// 'licence'".
std::string requested_text(std::string_view resource, std::int64_t amount);
/// Returns an available amount: format_amount(), or "none" for 0.
std::string available_text(std::string_view resource, std::int64_t amount);

}  // namespace berth
