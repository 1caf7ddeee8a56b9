// How a command prints its result.
#pragma once

#include <string_view>

#include "berth/cli/options.h"
#include "berth/cli/print.h"

namespace berth::cli {

/// The form of a command's result: text for people, or JSON for programs (--json). A result type is
/// printed by its overloads of render::to_text(const Result&, const render::View&) and
/// render::to_json(const Result&).
class Output {
 public:
  void add_to(Options& options) { options.json(is_json_); }

  template <typename Result>
  void print(const Result& result) const {
    cli::print(is_json_ ? render::to_json(result) : render::to_text(result, view()));
  }
  /// Prints a line for people on standard output; --json leaves it out.
  void note(std::string_view text) const {
    if (!is_json_) cli::print(text);
  }
  /// Prints a line for people on standard error; --json leaves it out.
  void warn(std::string_view text) const {
    if (!is_json_) print_error(text);
  }
  bool is_json() const { return is_json_; }

 private:
  bool is_json_ = false;
};

}  // namespace berth::cli
