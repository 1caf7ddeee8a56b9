// What a plan gives to whoever runs it: so many replicas of a server on an accelerator, and how one
// is started.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

/// The replicas of one server on one accelerator; a mix or a split has one ReplicaGroup for each of
/// its parts.
struct ReplicaGroup {
  std::string server, model, accelerator;
  Role role = Role::whole;
  bool is_part = false;  // of a mix or a split
  int replicas = 0;
  int batch = 0;         // of a replica
  int accelerators = 1;  // units of the accelerator's type that a replica takes
  Start start;           // the server's own before that of its model; the texts as written
};

/// What the plan's servers have, by server, then by accelerator. Servers without replicas have
/// none.
std::vector<ReplicaGroup> replica_groups(const System& system, const Plan& plan);

/// What Kubernetes calls it: the document's `resource`; else amd.com/gpu for AMD's Instinct cards
/// (types that begin with MI and a digit), nvidia.com/gpu for all others.
std::string resource_of(const Accelerator& accelerator);

/// The names that texts of a Start may have in braces, and what they stand for. {port} is not
/// among them where there is no port.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;
NamedTexts names_of(const ReplicaGroup& group);

/// The text with each {name} replaced. Other braces stay, and so does what follows a '$'.
std::string fill(std::string_view text, const NamedTexts& names);
/// Does the same to every text of the start. Errors: invalid, with the field, for a name of
/// `missing` that stands in one: it would stay as it is.
Result<Start> fill(const Start& start, const NamedTexts& names,
                   const std::vector<std::string>& missing = {});

}  // namespace berth::fleet
