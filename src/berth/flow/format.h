// The format of flow files as tables: what read_flow() accepts, and what `berth schema flow`
// prints.
#pragma once

#include "berth/base/format.h"

namespace berth::flow {

extern const MapFormat kFlowFormat, kDefaultsFormat, kStepFormat, kSubFlowFormat;
extern const MapFormat kCombineFormat, kTableFormat, kUrlFormat;

}  // namespace berth::flow
