#include "berth/flow/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::flow {
namespace {

using Kind = Expression::Kind;
using Operation = Expression::Operation;

constexpr int kDeepest = 64;
constexpr std::size_t kLongestExpression = 1000;
constexpr std::string_view kWanted = "expected numbers, {attempt}, parameters, + - * /, min, max";

struct Quantity {
  double value = 0;
  bool has_unit = false;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// "2", "2G", "1h30m", "0.5".
Result<Quantity> read_number(std::string_view text, Unit unit) {
  const bool plain = text.find_first_not_of("0123456789.") == std::string_view::npos;
  if (plain) {
    const auto number = parse_number(text);
    if (!number) return std::unexpected(number.error());
    return Quantity{*number, false};
  }
  switch (unit) {
    case Unit::none: return fail(ErrorKind::invalid, "'{}' is not a number", clip(text));
    case Unit::bytes: {
      BERTH_ASSIGN(const auto bytes, parse_bytes(text));
      return Quantity{static_cast<double>(bytes), true};
    }
    case Unit::time: {
      BERTH_ASSIGN(const Duration time, parse_duration(text));
      return Quantity{std::chrono::duration<double>(time).count(), true};
    }
  }
  return Quantity{};
}

class Parser {
 public:
  Parser(std::string_view text, Unit unit, const ExpressionNames& names)
      : rest_(text), unit_(unit), names_(names) {}

  Result<Expression> parse() {
    BERTH_TRY(sum());
    skip_blanks();
    if (!rest_.empty()) return unexpected_text();
    return std::move(expression_);
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t'))
      rest_.remove_prefix(1);
  }

  bool take(char wanted) {
    skip_blanks();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::unexpected<Error> unexpected_text() const {
    return fail(ErrorKind::invalid, "{}; got {}", kWanted,
                rest_.empty() ? "the end" : fmt::format("'{}'", clip(rest_)));
  }

  void add(Kind kind) { expression_.operations.push_back({.kind = kind}); }

  Status sum() {
    BERTH_TRY(product());
    while (true) {
      const bool adds = take('+');
      if (!adds && !take('-')) return {};
      BERTH_TRY(product());
      add(adds ? Kind::add : Kind::subtract);
    }
  }

  Status product() {
    BERTH_TRY(factor());
    while (true) {
      const bool multiplies = take('*');
      if (!multiplies && !take('/')) return {};
      BERTH_TRY(factor());
      add(multiplies ? Kind::multiply : Kind::divide);
    }
  }

  Status factor() {
    if (++depth_ > kDeepest) return fail(ErrorKind::invalid, "nested more than {} deep", kDeepest);
    BERTH_TRY(plain_factor());
    --depth_;
    return {};
  }

  Status plain_factor() {
    skip_blanks();
    if (take('(')) {
      BERTH_TRY(sum());
      return take(')') ? Status() : unexpected_text();
    }
    if (take('{')) return name();
    const auto end = std::ranges::find_if_not(rest_, is_word);
    const std::string_view word = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    if (word.empty()) return unexpected_text();
    const bool is_number =
        word.front() == '.' || std::isdigit(static_cast<unsigned char>(word.front())) != 0;
    if (!is_number) return function(word);
    BERTH_TRY(number(word));
    rest_.remove_prefix(word.size());
    return {};
  }

  Status number(std::string_view word) {
    const auto quantity = read_number(word, unit_);
    if (!quantity) return std::unexpected(quantity.error());
    expression_.operations.push_back(
        {.kind = Kind::number, .value = quantity->value, .has_unit = quantity->has_unit});
    return {};
  }

  Status name() {
    const auto end = rest_.find('}');
    if (end == std::string_view::npos) return unexpected_text();
    const std::string_view name = trim(rest_.substr(0, end));
    if (const auto value = names_.parameter(name)) {
      if (const auto status = number(trim(*value)); !status)
        return fail(ErrorKind::invalid, "{{{}}}: {}", name, status.error().message);
    } else if (name == "attempt") {
      add(Kind::attempt);
    } else {
      return fail(ErrorKind::invalid,
                  "{{{}}} is not available here: use {{attempt}} or a parameter of one value",
                  clip(name));
    }
    rest_.remove_prefix(end + 1);
    return {};
  }

  Status function(std::string_view word) {
    const bool automatic = word == "auto" && names_.takes_auto;
    if (word != "min" && word != "max" && !automatic) {
      if (word == "attempt" || names_.parameter(word))
        return fail(ErrorKind::invalid, "write names in braces: {{{}}}", word);
      return unexpected_text();
    }
    rest_.remove_prefix(word.size());
    const std::size_t begin = expression_.operations.size();
    if (!take('(')) return fail(ErrorKind::invalid, "expected {}(…)", word);
    BERTH_TRY(sum());
    while (!automatic && take(',')) {
      BERTH_TRY(sum());
      add(word == "min" ? Kind::least : Kind::most);
    }
    if (!take(')')) return unexpected_text();
    if (automatic) use_known(begin);
    return {};
  }

  /// What is known stands for what was written for the case that nothing is.
  void use_known(std::size_t begin) {
    if (names_.uses_auto != nullptr) *names_.uses_auto = true;
    if (!names_.known) return;
    expression_.operations.resize(begin);
    expression_.operations.push_back(
        {.kind = Kind::number, .value = *names_.known, .has_unit = unit_ != Unit::none});
  }

  std::string_view rest_;
  Unit unit_;
  const ExpressionNames& names_;
  Expression expression_;
  int depth_ = 0;
};

/// The unit of what comes of two, or why they do not go together.
Result<bool> unit_of(Kind kind, const Quantity& left, const Quantity& right) {
  if (kind == Kind::multiply && left.has_unit && right.has_unit)
    return fail(ErrorKind::invalid, "two amounts with units cannot be multiplied");
  if (kind == Kind::multiply) return left.has_unit || right.has_unit;
  if (kind == Kind::divide && right.has_unit && !left.has_unit)
    return fail(ErrorKind::invalid, "a number cannot be divided by an amount with a unit");
  if (kind == Kind::divide) return left.has_unit && !right.has_unit;
  if (left.has_unit != right.has_unit)
    return fail(ErrorKind::invalid,
                "an amount with a unit and a number without one cannot be added or compared");
  return left.has_unit;
}

double result_of(Kind kind, double left, double right) {
  switch (kind) {
    case Kind::add: return left + right;
    case Kind::subtract: return left - right;
    case Kind::multiply: return left * right;
    case Kind::divide: return left / right;
    case Kind::least: return std::min(left, right);
    default: return std::max(left, right);
  }
}

}  // namespace

bool Expression::names_attempt() const {
  return std::ranges::find(operations, Kind::attempt, &Operation::kind) != operations.end();
}

bool looks_computed(std::string_view text) {
  return text.find_first_of("{}()*/+") != std::string_view::npos ||
         text.find(" - ") != std::string_view::npos;
}

Result<Expression> parse_expression(std::string_view text, Unit unit,
                                    const ExpressionNames& names) {
  if (text.size() > kLongestExpression)
    return fail(ErrorKind::invalid, "longer than {} letters", kLongestExpression);
  BERTH_ASSIGN(auto expression, Parser(text, unit, names).parse());
  BERTH_TRY(evaluate(expression, 1));
  return expression;
}

Result<double> evaluate(const Expression& expression, std::int64_t attempt) {
  std::vector<Quantity> stack;
  for (const auto& [kind, value, has_unit] : expression.operations) {
    if (kind == Kind::number || kind == Kind::attempt) {
      stack.push_back({kind == Kind::attempt ? static_cast<double>(attempt) : value, has_unit});
      continue;
    }
    const Quantity right = stack.back();
    stack.pop_back();
    Quantity& left = stack.back();
    if (kind == Kind::divide && right.value == 0)
      return fail(ErrorKind::invalid, "attempt {} divides by 0", attempt);
    BERTH_ASSIGN(left.has_unit, unit_of(kind, left, right));
    left.value = result_of(kind, left.value, right.value);
  }
  if (!std::isfinite(stack.back().value))
    return fail(ErrorKind::invalid, "attempt {} asks for more than there are numbers", attempt);
  return stack.back().value;
}

}  // namespace berth::flow
