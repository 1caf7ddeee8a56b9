// Finds metric lines in a task's standard output: "::berth loss=0.4 accuracy=0.93".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::exec {

/// Splits a stream into lines as it comes and hands on what its metric lines say. Bounded: a line
/// longer than 64 KiB is no metric line.
class MetricReader {
 public:
  struct Reading {
    std::vector<std::pair<std::string, double>> metrics;
    std::string unreadable;  // the first metric line that was malformed, or held no finite number
  };
  Reading feed(std::string_view bytes);
  /// The stream has ended: its last line may lack the newline.
  Reading finish();

 private:
  void read_line(std::string_view line, Reading& reading);

  std::string partial_;
  bool overlong_ = false;
};

}  // namespace berth::exec
