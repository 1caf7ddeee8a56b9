// A commented first file for the files of a folder: an experiment, a flow or a fleet.
#pragma once

#include <string>

#include "berth/os/env.h"

namespace berth::engine {

struct NewFileRequest {
  std::string file;    ///< The file to write; "": sweep.yaml, flow.yaml or fleet.json.
  std::string kind;    ///< "experiment", "flow" or "fleet"; "": according to the folder.
  std::string script;  ///< The script of an experiment; "": the first one in the folder.
  /// The folder of the file, to which relative paths refer; "": the working directory.
  std::string directory = {};
};
struct NewFile {
  std::string kind, file;
  std::string check;  ///< The command that shows what the file does: "berth run --plan".
};
/// Writes a file for the folder. Errors: usage, if the file exists already; invalid, if
/// the script cannot be executed.
Result<NewFile> write_new_file(os::Env& env, const NewFileRequest& request);

}  // namespace berth::engine
