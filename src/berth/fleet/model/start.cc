#include "berth/fleet/model/start.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/fleet/model/bounds.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostStartTexts = 1000;
constexpr std::size_t kMostNameBytes = 63, kMostSubdomainBytes = 253;
constexpr std::string_view kLowerAndDigits = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kLettersAndDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Of letters from `ends`, within them also of those in `middle`.
bool is_made_of(std::string_view text, std::string_view ends, std::string_view middle) {
  const auto is_in = [](std::string_view letters, char c) {
    return letters.find(c) != std::string_view::npos;
  };
  return !text.empty() && is_in(ends, text.front()) && is_in(ends, text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_in(ends, c) || is_in(middle, c); });
}

bool is_subdomain(std::string_view text) {
  return text.size() <= kMostSubdomainBytes && std::ranges::all_of(split(text, '.'), is_dns_label);
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && !(text.front() >= '0' && text.front() <= '9') &&
         std::ranges::all_of(text, [](char c) {
           return c == '_' || kLettersAndDigits.find(c) != std::string::npos;
         });
}

/// No argument and no variable of a process has a byte 0.
Status check_texts(std::string_view field, const std::vector<std::string>& texts) {
  if (texts.size() > kMostStartTexts)
    return fail(ErrorKind::invalid, "{0}: expected at most {2} words, got {1}", field, texts.size(),
                kMostStartTexts);
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (texts[i].find('\0') != std::string::npos)
      return fail(ErrorKind::invalid, "{}[{}]: has a byte 0", field, i);
  return {};
}

}  // namespace

Start combine(const Start& own, const Start& general) {
  Start both = own;
  if (both.image.empty()) both.image = general.image;
  if (both.command.empty()) both.command = general.command;
  if (both.args.empty()) both.args = general.args;
  if (both.port == 0) both.port = general.port;
  if (both.cpu == 0) both.cpu = general.cpu;
  if (both.memory_gb == 0) both.memory_gb = general.memory_gb;
  both.environment.insert(general.environment.begin(), general.environment.end());
  return both;
}

Status check(const Start& start) {
  const auto within_bounds = [](std::string_view field, double value, double most) -> Status {
    if (value >= 0 && value <= most) return {};
    return fail(ErrorKind::invalid, "{}: {}, expected 0 to {}", field, value, most);
  };
  BERTH_TRY(within_bounds("port", start.port, kMostPort));
  BERTH_TRY(within_bounds("cpu", start.cpu, kMostCores));
  BERTH_TRY(within_bounds("memSize", start.memory_gb, kMostGigabytes));
  if (!std::ranges::all_of(start.image, [](char c) { return c > ' ' && c <= '~'; }))
    return fail(ErrorKind::invalid, "image: '{}' is not the name of an image", clip(start.image));
  if (!start.command.empty() && start.command.front().empty())
    return fail(ErrorKind::invalid, "command[0]: the name of the program is empty");
  BERTH_TRY(check_texts("command", start.command));
  BERTH_TRY(check_texts("args", start.args));
  std::vector<std::string> values;
  for (const auto& [name, value] : start.environment) {
    if (!is_variable_name(name))
      return fail(ErrorKind::invalid, "env: '{}' is not the name of a variable", clip(name));
    values.push_back(value);
  }
  return check_texts("env", values);
}

bool is_dns_label(std::string_view text) {
  return text.size() <= kMostNameBytes && is_made_of(text, kLowerAndDigits, "-");
}

bool is_label_value(std::string_view text) {
  return text.empty() ||
         (text.size() <= kMostNameBytes && is_made_of(text, kLettersAndDigits, "-_."));
}

bool is_qualified_name(std::string_view text) {
  const auto slash = text.find('/');
  if (slash != std::string_view::npos && !is_subdomain(text.substr(0, slash))) return false;
  const auto name = slash == std::string_view::npos ? text : text.substr(slash + 1);
  return !name.empty() && is_label_value(name);
}

}  // namespace berth::fleet
