#include "berth/flow/attempt_request.h"

#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/fields.h"

namespace berth::flow {
namespace {

constexpr double kMostAmount = 4e18;  // below 2^62: sums of two fit
constexpr double kWhole = 1e-6;       // a count this near to an integer is one
constexpr double kLongestSeconds = 36'500.0 * 24 * 3600;

constexpr std::string_view kNotAdvised = "auto is for mem, cpu and timeout; expected an amount";

bool is_advised(std::string_view resource) {
  return resource == kTimeLimit || resource == name(Known::mem) || resource == name(Known::cpu);
}

Unit unit_of_resource(std::string_view resource) {
  if (resource == kTimeLimit) return Unit::time;
  return measure(resource) == Measure::bytes ? Unit::bytes : Unit::none;
}

/// In the counts of Resources; of a time limit in milliseconds.
Result<std::int64_t> amount_of(const ScaledAmount& scaled, std::int64_t attempt) {
  BERTH_ASSIGN(double value, evaluate(scaled.amount, attempt));
  const bool time = scaled.resource == kTimeLimit;
  if (time && (value <= 0 || value > kLongestSeconds))
    return fail(ErrorKind::invalid,
                "attempt {} would have a time limit of {} s, expected more than 0", attempt,
                format_number(value));
  if (value < 0)
    return fail(ErrorKind::invalid, "attempt {} would request a negative amount ({})", attempt,
                format_number(value));
  const bool counted = !time && measure(scaled.resource) == Measure::count;
  if (counted && std::abs(value - std::round(value)) > kWhole)
    return fail(ErrorKind::invalid, "attempt {} would ask for {}, and {} is counted in whole ones",
                attempt, format_number(value), scaled.resource);
  if (time || measure(scaled.resource) == Measure::milli) value *= 1000;
  if (value > kMostAmount)
    return fail(ErrorKind::invalid, "attempt {} would request too much", attempt);
  return round_amount(value);
}

std::string amount_text(std::string_view resource, std::int64_t amount) {
  if (resource == kTimeLimit) return format_duration(from_ms(amount));
  return measure(resource) == Measure::bytes ? written_bytes(amount)
                                             : format_amount(resource, amount);
}

class RequestReader {
 public:
  RequestReader(const std::vector<std::pair<std::string, Words>>& params,
                const std::vector<Advised>& advice, Step& step)
      : params_(params), advice_(advice), step_(step) {}

  /// What the first attempt asks for; nullopt: nothing, as nothing is known of it.
  Result<std::optional<std::int64_t>> read(const std::string& resource, const Field& field) {
    BERTH_ASSIGN(const std::string text, field.text());
    const Advised* known = advised(resource);
    bool automatic = trim(text) == "auto";
    if (!automatic && !looks_computed(text)) return exec::read_amount(resource, field);
    if (automatic && !is_advised(resource)) return field.error(kNotAdvised);
    if (automatic) {
      note(resource, known, known != nullptr ? known->amount : 0, known == nullptr);
      return known == nullptr ? std::nullopt : std::optional(known->amount);
    }
    const ExpressionNames names{.parameter = [&](std::string_view name) { return parameter(name); },
                                .known = known == nullptr
                                             ? std::nullopt
                                             : std::optional(plain_value(resource, known->amount)),
                                .takes_auto = true,
                                .uses_auto = &automatic};
    auto expression = parse_expression(text, unit_of_resource(resource), names);
    if (!expression) return field.error(expression.error());
    ScaledAmount scaled{resource, *std::move(expression), field.node().line};
    for (std::int64_t attempt = 1; attempt <= step_.retries + 1; ++attempt)
      if (const auto amount = amount_of(scaled, attempt); !amount)
        return field.error(amount.error());
    if (automatic && !is_advised(resource)) return field.error(kNotAdvised);
    const std::int64_t first = *amount_of(scaled, 1);
    if (automatic) note(resource, known, first, false);
    if (scaled.amount.names_attempt()) step_.scaled.push_back(std::move(scaled));
    return first;
  }

 private:
  const Advised* advised(std::string_view resource) const {
    const auto found = std::ranges::find_if(advice_, [&](const Advised& each) {
      return each.step == step_.name && each.resource == resource;
    });
    return found == advice_.end() ? nullptr : &*found;
  }

  static double plain_value(std::string_view resource, std::int64_t amount) {
    const bool thousandths = resource == kTimeLimit || measure(resource) == Measure::milli;
    return static_cast<double>(amount) / (thousandths ? 1000 : 1);
  }

  std::optional<std::string> parameter(std::string_view name) const {
    const auto found = std::ranges::find(params_, name, &std::pair<std::string, Words>::first);
    if (found == params_.end() || found->second.size() != 1) return std::nullopt;
    return found->second.front();
  }

  /// Says where an amount that is found by itself comes from.
  void note(const std::string& resource, const Advised* known, std::int64_t amount, bool none) {
    step_.automatic.push_back(
        known != nullptr
            ? fmt::format("{}: auto: {}, as {} earlier attempt{} show{}", resource,
                          amount_text(resource, amount), known->attempts,
                          known->attempts == 1 ? "" : "s", known->attempts == 1 ? "s" : "")
            : fmt::format("{}: auto: {}, as no attempt of an earlier run is known", resource,
                          none ? "not limited" : amount_text(resource, amount)));
  }

  const std::vector<std::pair<std::string, Words>>& params_;
  const std::vector<Advised>& advice_;
  Step& step_;
};

}  // namespace

Status read_requests(const Field& field, const std::vector<std::pair<std::string, Words>>& params,
                     const std::vector<Advised>& advice, Step& step) {
  RequestReader reader(params, advice, step);
  bool named = false;
  if (const auto resources = field.find("resources")) {
    step.resources_line = resources->node().line;
    BERTH_ASSIGN(named, exec::read_resources(*resources, step.resources, step.selection,
                                             [&](const std::string& resource, const Field& amount) {
                                               return reader.read(resource, amount);
                                             }));
  }
  if (!named) step.resources.set(Known::cpu, 1000);
  const auto timeout = field.find("timeout");
  if (!timeout) return {};
  BERTH_ASSIGN(const std::string text, timeout->text());
  if (!looks_computed(text) && trim(text) != "auto") {
    BERTH_ASSIGN(step.timeout, exec::time_limit_of(*timeout));
    return {};
  }
  BERTH_ASSIGN(const auto first, reader.read(std::string(kTimeLimit), *timeout));
  step.timeout = from_ms(first.value_or(0));
  return {};
}

Resources resources_of(const Step& step, std::int64_t attempt) {
  Resources resources = step.resources;
  if (attempt == 1) return resources;
  for (const auto& scaled : step.scaled)
    if (const auto amount = amount_of(scaled, attempt); amount && scaled.resource != kTimeLimit)
      resources.set(scaled.resource, *amount);
  return resources;
}

Duration timeout_of(const Step& step, std::int64_t attempt) {
  if (attempt == 1) return step.timeout;
  const auto found = std::ranges::find(step.scaled, kTimeLimit, &ScaledAmount::resource);
  if (found == step.scaled.end()) return step.timeout;
  const auto amount = amount_of(*found, attempt);
  return amount ? from_ms(*amount) : step.timeout;
}

Words request_notes(const Step& step) {
  constexpr int kMostAttempts = 8;
  Words notes = step.automatic;
  for (const auto& scaled : step.scaled) {
    Words amounts;
    for (int attempt = 1; attempt <= std::min(step.retries + 1, kMostAttempts); ++attempt)
      if (const auto amount = amount_of(scaled, attempt))
        amounts.push_back(amount_text(scaled.resource, *amount));
    if (amounts.size() > 1)
      notes.push_back(fmt::format("{}: {}{}, attempt by attempt", scaled.resource,
                                  join(amounts, ", "), step.retries >= kMostAttempts ? ", …" : ""));
  }
  return notes;
}

Status check_attempts(const Step& step) {
  for (const auto& scaled : step.scaled)
    for (std::int64_t attempt = 1; attempt <= step.retries + 1; ++attempt)
      if (const auto amount = amount_of(scaled, attempt); !amount)
        return fail(ErrorKind::invalid, "{}:{}: steps.{}.{}{}: {}", step.file, scaled.line,
                    step.name, scaled.resource == kTimeLimit ? "" : "resources.", scaled.resource,
                    amount.error().message);
  return {};
}

}  // namespace berth::flow
