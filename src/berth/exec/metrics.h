// Finds metric lines in a task's output: "::berth loss=0.4 accuracy=0.93" on standard output; on
// either stream, since Auptimizer's own module writes them on standard error,
// "#Auptimizer:0.93,12", whose first value is called score and the others score_2, score_3, ….
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/exec/messages.h"

namespace berth::exec {

/// Splits a stream into lines as it comes and hands on what its metric lines say. Bounded: a line
/// longer than 64 KiB is no metric line.
class MetricReader {
 public:
  explicit MetricReader(Stream stream = Stream::out) : stream_(stream) {}

  struct Reading {
    std::vector<std::pair<std::string, double>> metrics;
    std::string unreadable;  // the first metric line that was malformed, or held no finite number
  };
  Reading feed(std::string_view bytes);
  /// The stream has ended: its last line may lack the newline.
  Reading finish();

 private:
  void read_line(std::string_view line, Reading& reading) const;

  Stream stream_;
  std::string partial_;
  bool overlong_ = false;
};

}  // namespace berth::exec
