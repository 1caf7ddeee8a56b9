// The parts of read_program() for the keys search, params and goal.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "berth/base/document.h"
#include "berth/experiment/program.h"

namespace berth::experiment {

inline constexpr std::array<std::string_view, 2> kNoYes{"false", "true"};
inline constexpr std::array<std::string_view, 2> kModels{"tpe", "none"};
inline constexpr std::array<std::string_view, 2> kNumberTypes{"float", "int"};
inline constexpr std::array<std::string_view, 4> kDirections{"max", "min", "maximize", "minimize"};
inline constexpr std::size_t kMostGoals = 8, kMostConstraints = 8;

bool valid_parameter_name(std::string_view name);
/// The index of the choice under `key`; 0 where it is absent.
Result<std::size_t> choice_or(const Field& map, std::string_view key,
                              std::span<const std::string_view> choices);
/// Reads the value that the name under `key` has; where it is absent `value` stays as it is.
template <class Enum, std::size_t kCount>
Status read_choice(const Field& map, std::string_view key, const Names<Enum, kCount>& names,
                   Enum& value) {
  const auto field = map.find(key);
  if (!field) return {};
  BERTH_ASSIGN(value, field->choice(names));
  return {};
}

/// What is wrong with a file. A reader goes on after an error wherever it can read what follows
/// without what it did not get, so that a person is told of everything at once.
class Faults {
 public:
  /// Returns whether the part was read.
  bool add(const Status& read) {
    if (!read) errors_.push_back(read.error());
    return read.has_value();
  }
  template <class T, class Read>
  bool take(T& value, Result<Read> read) {
    if (read) value = *std::move(read);
    return add(read ? Status() : std::unexpected(std::move(read).error()));
  }
  void add(std::vector<Error> errors) { std::ranges::move(errors, std::back_inserter(errors_)); }
  bool none() const { return errors_.empty(); }
  /// One error with a line for each, in the order of the file.
  Status status() const;

 private:
  std::vector<Error> errors_;
};

/// The values of one point: {lr: 0.1, net: deep}. Notes in `types` the texts that would be
/// something else without their quotes, and the values that are JSON.
Result<Values> read_point(const Field& field, ValueTypes& types);
/// A null, a list or a map as JSON in one line. Errors: invalid.
Result<std::string> json_text(const Field& field);
/// The text of a parameter's value; of a null, a list or a map its JSON.
Result<std::string> read_value(const std::string& name, const Field& field, ValueTypes& types);
/// invalid: a value without quotes has the text of one that is in quotes somewhere else.
Status check_type(const std::string& name, const Field& value, const ValueTypes& types);
Status read_params(const Field& params, Program& program);
/// After read_params().
Status read_search(const Field& root, Program& program);
/// Reads the goals and early stopping.
Status read_goals(const Field& root, Program& program);

}  // namespace berth::experiment
