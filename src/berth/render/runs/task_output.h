// The output of tasks as text: the bytes of one task as it printed them, and those of a whole run
// line by line, each with the label of its task. The text may be limited to its end.
//
// Threads: one.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "berth/engine/queries/task_output.h"

namespace berth::render {

/// The end of an output: this many lines or bytes.
struct Tail {
  std::size_t size = 0;
  bool is_in_lines = false;
};
/// "20" is a number of lines, "200K" one of bytes; nullopt for "". Errors: usage.
Result<std::optional<Tail>> parse_tail(const std::string& text);

class OutputText {
 public:
  using Put = std::function<void(exec::Stream stream, std::string_view text)>;
  /// `tail` limits what both streams have before put_end(); nullopt: no limit.
  OutputText(const engine::OutputSource& source, std::optional<Tail> tail, Put put)
      : source_(source), tail_(tail), put_(std::move(put)) {}

  /// Receives "attempt 2" before the output of each attempt of a task that had several.
  std::function<void(std::string_view name)> on_attempt = {};

  void add(const engine::OutputPart& part);
  /// Puts the end of the output so far; later output is put immediately.
  void put_end();
  /// Puts the lines that have no end, and the end of the output.
  void finish();

 private:
  struct Line {
    std::string label, text;
  };
  void put(exec::Stream stream, std::string_view text);
  void keep(exec::Stream stream, std::string_view text);
  std::size_t size_of(std::string_view text) const;

  const engine::OutputSource source_;
  std::optional<Tail> tail_;
  Put put_;
  Token shown_;
  std::deque<std::pair<exec::Stream, std::string>> kept_;
  std::size_t kept_size_ = 0;  // lines or bytes
  std::map<std::pair<Token, exec::Stream>, Line> partial_;
};

}  // namespace berth::render
