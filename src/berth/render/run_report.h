// What a report says of a run: what it came to, what failed, where its time went.
#pragma once

#include "berth/engine/context.h"
#include "berth/render/document.h"
#include "berth/store/store.h"

namespace berth::render {

/// Errors: those of the store; corrupt, where the run's record cannot be read.
Result<Document> report_of_run(engine::Context& context, const store::RunRecord& record);

}  // namespace berth::render
