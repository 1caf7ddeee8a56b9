// The output of tasks, as the run's log recorded it and as it grows.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/engine/context.h"
#include "berth/exec/worker.h"

namespace berth::engine {

/// Consecutive bytes that one attempt printed to one stream.
struct OutputPart {
  std::string_view task;  ///< Its label.
  Token token;            ///< Of the attempt.
  std::string attempt;    ///< "attempt 2"; "lost attempt" if it was never recorded.
  bool is_first_attempt = false;
  exec::Stream stream = exec::Stream::out;
  std::string_view bytes;
};

struct OutputRequest {
  std::string path;     ///< "RUN" or "RUN/TASK".
  bool follow = false;  ///< Continue until the run or the task ends.
  int attempt = 0;      ///< Only this attempt of the task; 0: all.
};

struct OutputSource {
  bool has_one_task = false;
  bool has_attempts = false;  ///< The task had several attempts.
};

class OutputObserver {
 public:
  virtual ~OutputObserver() = default;
  /// Is called once, before all other functions.
  virtual Status on_source(const OutputSource& source) = 0;
  virtual void on_part(const OutputPart& part) = 0;
  /// Is called when all output so far was passed on; more follows.
  virtual void on_caught_up() = 0;
};

/// Passes on the output of a run or a task. Errors: not_found; usage, if an attempt of a whole run
/// is requested; those of `observer`; those of the store and of files.
Status read_output(Context& context, const OutputRequest& request, OutputObserver& observer);

}  // namespace berth::engine
