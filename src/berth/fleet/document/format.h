// The format of fleet documents as tables: what read_documents() takes, and what `berth schema
// fleet` prints. The keys of a document may be in any case, and other keys are passed over with a
// note; the tables spell each key as the format does.
#pragma once

#include "berth/base/format.h"

namespace berth::fleet {

/// A document, and what may stand below its `system`.
extern const MapFormat kFleetFormat, kSystemFormat;
extern const MapFormat kAcceleratorFormat, kPowerFormat, kCapacityFormat, kPurchaseFormat;
extern const MapFormat kModelFormat, kPerformanceFormat, kTransferFormat;
extern const MapFormat kClassFormat, kTargetFormat;
extern const MapFormat kServerFormat, kAllocationFormat, kLoadFormat, kBinFormat, kStartFormat;
extern const MapFormat kOptimizerFormat;

}  // namespace berth::fleet
