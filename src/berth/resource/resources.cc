#include "berth/resource/resources.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth {
namespace {

constexpr std::array<Measure, kKnownCount> kMeasures{
    Measure::count, Measure::count, Measure::bytes, Measure::milli, Measure::bytes, Measure::bytes};

std::size_t known_index(std::string_view resource) {
  return static_cast<std::size_t>(kKnownNames.value(resource).value_or(Known{kKnownCount}));
}

auto custom_place(auto& custom, std::string_view resource) {
  return std::ranges::lower_bound(custom, resource, {},
                                  [](const auto& entry) { return std::string_view(entry.first); });
}

}  // namespace

std::string_view name(Known known) {
  return kKnownNames.name(known);
}

Measure measure(std::string_view resource) {
  const std::size_t at = known_index(resource);
  return at < kKnownCount ? kMeasures[at] : Measure::milli;
}

std::int64_t Resources::get(std::string_view resource) const {
  const std::size_t at = known_index(resource);
  if (at < kKnownCount) return known_[at];
  const auto place = custom_place(custom_, resource);
  return place != custom_.end() && place->first == resource ? place->second : 0;
}

void Resources::set(Known known, std::int64_t amount) {
  known_[static_cast<std::size_t>(known)] = std::max<std::int64_t>(amount, 0);
}

void Resources::set(std::string_view resource, std::int64_t amount) {
  amount = std::max<std::int64_t>(amount, 0);
  const std::size_t at = known_index(resource);
  if (at < kKnownCount) {
    known_[at] = amount;
    return;
  }
  const auto place = custom_place(custom_, resource);
  const bool present = place != custom_.end() && place->first == resource;
  if (present && amount == 0)
    custom_.erase(place);
  else if (present)
    place->second = amount;
  else if (amount != 0)
    custom_.emplace(place, resource, amount);
}

bool Resources::empty() const {
  return custom_.empty() && std::ranges::all_of(known_, [](auto amount) { return amount == 0; });
}

bool Resources::covers(const Resources& part) const {
  return first_short(part).empty();
}

std::string_view Resources::first_short(const Resources& part) const {
  for (std::size_t i = 0; i < kKnownCount; ++i)
    if (part.known_[i] > known_[i]) return kKnownNames.all()[i];
  for (const auto& [custom, amount] : part.custom_)
    if (amount > get(custom)) return custom;
  return {};
}

Status Resources::add(const Resources& other) {
  Resources sum = *this;
  for (std::size_t i = 0; i < kKnownCount; ++i) {
    const auto value = checked_add(known_[i], other.known_[i]);
    if (!value)
      return fail(ErrorKind::impossible, "{}: the sum is too large", kKnownNames.all()[i]);
    sum.known_[i] = *value;
  }
  for (const auto& [custom, amount] : other.custom_) {
    const auto value = checked_add(get(custom), amount);
    if (!value) return fail(ErrorKind::impossible, "{}: the sum is too large", custom);
    sum.set(custom, *value);
  }
  *this = std::move(sum);
  return {};
}

Status Resources::subtract(const Resources& other) {
  if (const auto lacking = first_short(other); !lacking.empty())
    return fail(ErrorKind::impossible, "{}: requested {}, have {}", lacking,
                format_amount(lacking, other.get(lacking)), format_amount(lacking, get(lacking)));
  for (std::size_t i = 0; i < kKnownCount; ++i) known_[i] -= other.known_[i];
  for (const auto& [custom, amount] : other.custom_) set(custom, get(custom) - amount);
  return {};
}

Result<Resources> Resources::times(std::int64_t times) const {
  Resources product;
  Status status;
  each([&](std::string_view resource, std::int64_t amount) {
    const auto value = checked_mul(amount, times);
    if (value)
      product.set(resource, *value);
    else
      status = fail(ErrorKind::impossible, "{}: {} times {} is too large", resource, times,
                    format_amount(resource, amount));
  });
  BERTH_TRY(status);
  return product;
}

std::int64_t Resources::fits(const Resources& unit, std::int64_t most) const {
  unit.each([&](std::string_view resource, std::int64_t amount) {
    most = std::min(most, get(resource) / amount);
  });
  return most;
}

bool has_limits(const Resources& resources) {
  return resources.get(Known::mem) > 0 || resources.get(Known::cpu) % 1000 != 0;
}

bool valid_resource_name(std::string_view resource) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !resource.empty() && resource.size() <= 64 && letter(resource.front()) &&
         std::ranges::all_of(resource, [&](char c) { return letter(c) || digit(c) || c == '_'; });
}

Result<std::int64_t> parse_amount(std::string_view resource, std::string_view text) {
  if (trim(text).starts_with('-'))
    return fail(ErrorKind::invalid, "expected an amount of at least 0, got '{}'", clip(text));
  switch (measure(resource)) {
    case Measure::bytes: return parse_bytes(text);
    case Measure::milli: return parse_milli(text);
    case Measure::count: return parse_integer(trim(text));
  }
  return fail(ErrorKind::invalid, "unknown measure");
}

std::string format_amount(std::string_view resource, std::int64_t amount) {
  switch (measure(resource)) {
    case Measure::bytes: return format_bytes(amount);
    case Measure::milli: return format_milli(amount);
    case Measure::count: return fmt::format("{}", amount);
  }
  return {};
}

std::string requested_amount(std::string_view resource, std::int64_t amount) {
  if (measure(resource) != Measure::bytes || amount <= 0) return format_amount(resource, amount);
  std::string text = written_bytes(amount);
  const bool is_decimal = text.ends_with('T') || text.ends_with('G') || text.ends_with('M');
  const auto point = text.find('.');
  const std::size_t fraction = point == text.npos ? 0 : text.size() - point - 2;  // its digits
  return is_decimal && fraction <= 1 ? text : format_amount(resource, amount);
}

namespace {

/// Appends the noun of a resource to an amount: "9 cores".
std::string with_noun(std::string_view resource, const std::string& text) {
  const std::string_view plural = text == "1" ? "" : "s";
  const auto known = kKnownNames.value(resource);
  if (!known) return fmt::format("{} of '{}'", text, resource);
  switch (*known) {
    case Known::cpu: return fmt::format("{} core{}", text, plural);
    case Known::gpu: return fmt::format("{} GPU{}", text, plural);
    case Known::gpu_slots: return fmt::format("{} GPU slot{}", text, plural);
    case Known::gpu_mem: return text + " of GPU memory";
    case Known::mem: return text + " of memory";
    case Known::disk: return text + " of disk space";
  }
  return text;
}

}  // namespace

std::string amount_text(std::string_view resource, std::int64_t amount) {
  return with_noun(resource, format_amount(resource, amount));
}

std::string requested_text(std::string_view resource, std::int64_t amount) {
  return with_noun(resource, requested_amount(resource, amount));
}

std::string available_text(std::string_view resource, std::int64_t amount) {
  return amount == 0 ? "none" : format_amount(resource, amount);
}

std::string to_json(const Resources& resources) {
  JsonWriter json;
  json.object();
  resources.each([&](std::string_view resource, std::int64_t amount) {
    if (measure(resource) == Measure::milli)
      json.key(resource).raw(format_milli(amount));
    else
      json.add(resource, amount);
  });
  return json.end().take();
}

std::string to_string(const Resources& resources) {
  std::string text;
  resources.each([&](std::string_view resource, std::int64_t amount) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", resource, format_amount(resource, amount));
  });
  return text.empty() ? "nothing" : text;
}

}  // namespace berth
