// The fleets that the page plans: those of files, and the one that the planner holds.
//
// Threads: any number at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/api/planner.h"
#include "berth/os/env.h"

namespace berth::cli {

/// A fleet document that a command can read, as long as this lives.
struct FleetDocument {
  std::string path;
  std::shared_ptr<void> keeps = {};
};

struct Fleets {
  std::vector<std::string> files;  ///< Of the command line, the only ones that requests may name.
  std::string profile;             ///< Their loads over a day; "": none.
  const api::Planner* planner = nullptr;
  std::string planner_name;  ///< What the planner's fleet is called.

  /// The names of all: the files, then the planner's fleet where it has a server.
  std::vector<std::string> names() const;
  /// The fleet of that number, as it is now. usage: there is none.
  Result<FleetDocument> document(std::string_view number) const;
};

}  // namespace berth::cli
