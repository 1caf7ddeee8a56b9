// How a command prints its result.
#pragma once

#include <string_view>

#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/render/table.h"

namespace berth::cli {

/// The form of a command's result: text for people, or JSON for programs (--json). A result type is
/// printed by its overloads of render::to_text(const Result&, const render::View&) and
/// render::to_json(const Result&).
class Output {
 public:
  void add_to(Options& options) { options.json(is_json_); }

  template <typename Value>
  void print(const Value& result) const {
    const render::Shown<Value> shown{result};
    cli::print(is_json_ ? to_json(shown) : to_text(shown, view()));
  }
  /// Prints a result whose text is that of `make_text`.
  template <typename Value, typename MakeText>
  void print(const Value& result, const MakeText& make_text) const {
    cli::print(is_json_ ? to_json(render::Shown<Value>{result}) : make_text());
  }
  /// Prints the result. Returns the exit code 0, or the error instead of the result.
  template <typename Value>
  Result<int> print_or_fail(const Result<Value>& result) const {
    if (!result) return std::unexpected(result.error());
    print(*result);
    return 0;
  }
  /// Prints a line for people on standard output; --json leaves it out.
  void note(std::string_view text) const {
    if (!is_json_) cli::print(text);
  }
  /// Prints a line for people on standard error; --json leaves it out.
  void hint(std::string_view text) const {
    if (!is_json_) print_error(text);
  }
  bool is_json() const { return is_json_; }

 private:
  bool is_json_ = false;
};

}  // namespace berth::cli
