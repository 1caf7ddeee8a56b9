// A MetricReader finds the reports in a task's output. Two forms count: "::berth loss=0.4
// accuracy=0.93" on standard output; and "#Auptimizer:0.93,12" on either stream, since Auptimizer's
// own module writes it on standard error. The first value of the latter is called score, the others
// score_2, score_3, ….
//
// A carriage return ends a line as a newline does, so that a progress bar does not hide a report.
// Escape sequences of a terminal are ignored. A report begins its line, after blanks at most; after
// other text it is one only if everything from its mark to the end of the line can be read.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/exec/messages.h"

namespace berth::exec {

/// Whether a metric may have the name: letters, digits and any of "_-./@", at most 128 of them.
bool valid_metric_name(std::string_view name);
/// "auc: nan is not a finite number, and was recorded as missing"; `text` is the value as reported.
std::string missing_note(std::string_view name, std::string_view text);
/// "nan", "inf" or "-inf".
std::string_view non_finite_text(double value);

/// Splits a stream into lines and returns the reports in them. Its memory is bounded: a report of
/// more than 64 KiB is not read, which Reading::unreadable says.
class MetricReader {
 public:
  explicit MetricReader(Stream stream = Stream::out) : stream_(stream) {}

  struct Reading {
    /// A value that is not finite is missing: the metric has no value from then on.
    std::vector<std::pair<std::string, double>> metrics;
    std::string unreadable;  ///< The first report that is malformed, in part at least.
    std::string because;     ///< What was expected and found there.
    std::string missing;     ///< A sentence about the first value that is not finite.
    std::string lookalike;   ///< The first line that looks like a report and is not one, and why.
  };
  Reading feed(std::string_view bytes);
  /// Reads the last line, which may lack its newline, when the stream has ended.
  Reading finish();

 private:
  void add(std::string_view piece);
  void end_line(Reading& reading);
  void read_line(Reading& reading) const;
  void note_overlong(Reading& reading) const;

  Stream stream_;
  std::string partial_;
  bool cut_ = false;  // text before partial_ was dropped
  bool overlong_ = false;
};

/// Collects what the user should know about the reports of one attempt.
class MetricNotes {
 public:
  void take(const MetricReader::Reading& reading);
  /// The first of each kind; a line that only looks like a report where there was no report at all.
  std::string text() const;

 private:
  std::string unreadable_, missing_, lookalike_;
  bool has_metrics_ = false;
};

}  // namespace berth::exec
