// The images of a flow's containers, before its tasks start: which image a name means, and whether
// it has to be fetched. A run keeps what was found when it was submitted, so that all its tasks,
// those of a resume too, run in the same image.
#pragma once

#include <functional>
#include <string>

#include "berth/run/flows/flow_run.h"

namespace berth::run {

/// Asks this machine's engine what the images of the flow are, and keeps the answers. Returns the
/// names of those that are not on this machine. Images in files are beside the flow's file, in
/// `folder`. Where the flow runs elsewhere (not `here`), a machine without an engine is as good as
/// one without the images. Errors: impossible, where there is no engine; not_found, of a file; the
/// engine's own.
Result<flow::Words> find_images(Context& context, FlowProgram& program, const std::string& folder,
                                bool here);

/// Has the engine fetch `images`, one after the other, and keeps what they are. `tell` gets what
/// people should see meanwhile. Errors: not_found, with the engine's last words, its command, and
/// what to do; interrupted, by a stop signal.
Status pull_images(Context& context, FlowProgram& program, const flow::Words& images,
                   const std::function<void(const std::string&)>& tell);

}  // namespace berth::run
