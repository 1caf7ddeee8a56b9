// The documents that --json prints. Their shapes are stable; each is one line with "version": 1 and
// ends with a newline.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/engine/cache.h"
#include "berth/store/store.h"

namespace berth::cli {


/// A list under the name `what`: {"version":1,"removed":["digits-1"]}.
std::string names_json(std::string_view what, const std::vector<std::string>& names);


/// {"version":1,…}: what the cache of flows has.
std::string cache_json(const engine::CacheReport& report);

/// A plan of berth plan --sweep, at one value of what is varied.
struct SweepStep {
  double at = 0;
  double cost = 0, value = 0, gap = 0;
  std::map<int, int> unserved;  ///< Servers without accelerators, by priority.
};
/// A sweep: {"version":1,"path","sweep":[{"at","cost","value","gap","unserved_by_priority"}]}.
std::string sweep_json(const std::string& path, const std::vector<SweepStep>& steps);

}  // namespace berth::cli
