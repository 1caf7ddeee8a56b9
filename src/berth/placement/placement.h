// Placement within Berth: the public face (berth/placement.h), and the names of its enumerations in
// files. Pure.
#pragma once

#include "berth/base/result.h"
#include "berth/placement.h"

namespace berth::placement {

inline constexpr auto kObjectiveNames =
    names<Objective>({{Objective::sum, "sum"}, {Objective::min, "min"}, {Objective::ring, "ring"}});
inline constexpr auto kPolicyNames = names<PolicyKind>({
    {PolicyKind::packed, "packed"},
    {PolicyKind::best_effort, "best-effort"},
    {PolicyKind::simple, "simple"},
    {PolicyKind::static_dgx1_pascal, "static-dgx1-pascal"},
    {PolicyKind::static_dgx1_volta, "static-dgx1-volta"},
    {PolicyKind::static_dgx2, "static-dgx2"},
});

}  // namespace berth::placement
