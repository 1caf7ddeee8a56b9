// The types of berth/machine.h from and to those within. Pure.
#pragma once

#include "berth/machine.h"
#include "berth/machine/block.h"
#include "berth/machine/ledger.h"

namespace berth::library {

MachinePart part_of(const machine::Block& block);
/// Errors: invalid for a selection of no device, and for policies and objectives that are none.
Result<machine::AllocRequest> ask_of(const Request& request);

}  // namespace berth::library
