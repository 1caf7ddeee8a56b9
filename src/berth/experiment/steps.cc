#include "berth/experiment/steps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

namespace berth::experiment {
namespace {

__extension__ using Digits = __int128;

constexpr double kTolerance = 1e-9;  // part of a step

/// digits * 10^exponent.
struct Decimal {
  Digits digits = 0;
  int exponent = 0;
};

/// The shortest decimal number that reads back as the same double.
Decimal decimal_of(double value) {
  std::array<char, 32> text{};
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), std::abs(value),
                                        std::chars_format::scientific)
                              .ptr;
  Decimal decimal;
  bool fraction = false;
  const char* at = text.data();
  for (; at != end && *at != 'e'; ++at) {
    if (*at == '.') {
      fraction = true;
      continue;
    }
    decimal.digits = decimal.digits * 10 + (*at - '0');
    if (fraction) --decimal.exponent;
  }
  decimal.exponent += std::atoi(std::string(at + 1, end).c_str());
  if (value < 0) decimal.digits = -decimal.digits;
  return decimal;
}

/// False: it has more digits than fit.
bool set_exponent(Decimal& decimal, int exponent) {
  for (; decimal.exponent > exponent; --decimal.exponent)
    if (__builtin_mul_overflow(decimal.digits, Digits{10}, &decimal.digits)) return false;
  return true;
}

/// Gives both the lower of their exponents. False: they have more digits than fit.
bool align(Decimal& one, Decimal& other) {
  if (one.digits == 0) one.exponent = other.exponent;
  if (other.digits == 0) other.exponent = one.exponent;
  const int exponent = std::min(one.exponent, other.exponent);
  return set_exponent(one, exponent) && set_exponent(other, exponent);
}

double double_of(const Decimal& decimal) {
  std::string text;
  Digits rest = decimal.digits < 0 ? -decimal.digits : decimal.digits;
  for (; rest != 0; rest /= 10)
    text.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
  if (text.empty()) return 0;
  if (decimal.digits < 0) text.push_back('-');
  std::ranges::reverse(text);
  return std::strtod((text + 'e' + std::to_string(decimal.exponent)).c_str(), nullptr);
}

std::optional<std::int64_t> decimal_steps(double min, double max, double step) {
  Decimal low = decimal_of(min), high = decimal_of(max), by = decimal_of(step);
  if (!align(low, high) || !align(low, by) || !align(high, by) || !align(low, high))
    return std::nullopt;
  Digits range = 0;
  if (by.digits <= 0 || __builtin_sub_overflow(high.digits, low.digits, &range))
    return std::nullopt;
  const auto rest = static_cast<double>(range % by.digits);
  const Digits whole = range / by.digits;
  if (whole > Digits{INT64_MAX - 1}) return std::nullopt;
  const bool last = rest >= static_cast<double>(by.digits) * (1 - kTolerance);
  return static_cast<std::int64_t>(whole) + (last ? 1 : 0);
}

}  // namespace

std::int64_t whole_steps(double min, double max, double step) {
  if (const auto steps = decimal_steps(min, max, step)) return *steps;
  return static_cast<std::int64_t>(std::min((max - min) / step + kTolerance, 9e18));
}

double step_point(double min, double step, std::int64_t index) {
  Decimal sum = decimal_of(step);
  Decimal from = decimal_of(min);
  if (!__builtin_mul_overflow(sum.digits, Digits{index}, &sum.digits) && align(sum, from) &&
      !__builtin_add_overflow(sum.digits, from.digits, &sum.digits))
    return double_of(sum);
  return min + static_cast<double>(index) * step + 0.0;
}

}  // namespace berth::experiment
