// Amounts of a step that are computed: '{attempt} * 2G', 'min({attempt} * 10m, 1h)'. Numbers, with
// the units of what is asked for, + - * /, min, max, parentheses, {attempt}, parameters, and
// auto(…). Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"

namespace berth::flow {

/// What the numbers of an expression may have behind them: 2G, 10m, or nothing.
enum class Unit : std::uint8_t { none, bytes, time };

/// An expression whose names but `attempt` have their values already, in postfix order.
struct Expression {
  enum class Kind : std::uint8_t { number, attempt, add, subtract, multiply, divide, least, most };
  struct Operation {
    Kind kind = Kind::number;
    double value = 0;       // of a number: bytes, seconds or as it stands
    bool has_unit = false;  // a number's
  };
  std::vector<Operation> operations;

  bool names_attempt() const;
};

/// What the names of an expression stand for.
struct ExpressionNames {
  /// The text of a parameter; nullopt: there is none of that name.
  std::function<std::optional<std::string>(std::string_view name)> parameter;
  /// What auto(OTHERWISE) is, in bytes, seconds or as it stands; nullopt: OTHERWISE.
  std::optional<double> known{};
  bool takes_auto = false;    // whether auto may stand there
  bool* uses_auto = nullptr;  // set where it does
};

/// Whether a text that is no plain amount is meant as an expression.
bool looks_computed(std::string_view text);

/// Errors: invalid, with what is wrong with the text, for Field::error(); units that do not go
/// together too.
Result<Expression> parse_expression(std::string_view text, Unit unit, const ExpressionNames& names);

/// Bytes, seconds, or a plain number. Errors: invalid: a division by 0, or no finite number.
Result<double> evaluate(const Expression& expression, std::int64_t attempt);

}  // namespace berth::flow
