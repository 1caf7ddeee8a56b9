// A MetricReader finds the metric lines in a task's output. Two forms count: "::berth loss=0.4
// accuracy=0.93" on standard output; and "#Auptimizer:0.93,12" on either stream, since Auptimizer's
// own module writes it on standard error. The first value of the latter is called score, the others
// score_2, score_3, ….
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/exec/messages.h"

namespace berth::exec {

/// Whether a metric may have the name: letters, digits and any of "_-./@", at most 128 of them.
bool valid_metric_name(std::string_view name);

/// Splits a stream into lines as it comes and returns what its metric lines say. It is bounded: a
/// line longer than 64 KiB is no metric line.
class MetricReader {
 public:
  explicit MetricReader(Stream stream = Stream::out) : stream_(stream) {}

  struct Reading {
    std::vector<std::pair<std::string, double>> metrics;
    std::string unreadable;  ///< The first metric line that is malformed, or has no finite number.
    std::string because;     ///< What was wanted and found there.
  };
  Reading feed(std::string_view bytes);
  /// Reads the last line, which may lack its newline, when the stream has ended.
  Reading finish();

 private:
  void read_line(std::string_view line, Reading& reading) const;

  Stream stream_;
  std::string partial_;
  bool overlong_ = false;
};

}  // namespace berth::exec
