// The report of a run as a document: its results, failures and timeline.
#pragma once

#include "berth/engine/context.h"
#include "berth/render/document.h"
#include "berth/store/store.h"

namespace berth::render {

/// Reads the run and its tasks from the store. Errors: those of the store; corrupt, if the run's
/// record cannot be read.
Result<Document> report_of_run(engine::Context& context, const store::RunRecord& record);

}  // namespace berth::render
