// The output of tasks, as the run's log recorded it and as it grows.
#pragma once

#include <functional>
#include <memory>
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
  std::string path;  ///< "RUN" or "RUN/TASK".
  int attempt = 0;   ///< Only this attempt of the task; 0: all.
};

struct OutputSource {
  bool has_one_task = false;
  bool has_attempts = false;  ///< The task had several attempts.
};

/// Reads the output of a run or a task as far as it was printed, a few MiB at a time. Refers to the
/// context.
class OutputReader {
 public:
  /// Errors: not_found; usage, if an attempt of a whole run is requested.
  static Result<OutputReader> open(Context& context, const OutputRequest& request);
  OutputReader(OutputReader&& other) noexcept;
  ~OutputReader();

  const OutputSource& source() const;
  /// Passes on the next parts. Returns false at the present end, from where a later call continues.
  Result<bool> read_some(const std::function<void(const OutputPart&)>& on_part);
  /// Returns true if more output may follow the present end.
  Result<bool> is_growing() const;

 private:
  struct State;
  explicit OutputReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::engine
