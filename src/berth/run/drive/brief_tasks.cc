#include "berth/run/drive/brief_tasks.h"

#include <algorithm>

namespace berth::run {
namespace {

constexpr Duration kBrief = std::chrono::milliseconds(50);
constexpr int kEnough = 8;  // in a row
constexpr Duration kLeast = std::chrono::microseconds(500);
constexpr int kRemembered = 8;  // the last of so many weighs as much as those before together

}  // namespace

std::string_view series_of(std::string_view task_name) {
  const auto slash = task_name.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == task_name.size()) return {};
  const auto number = task_name.substr(slash + 1);
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return task_name.substr(0, slash);
}

void BriefTasks::began(Token token, std::string_view task_name, Mono now) {
  const auto series = series_of(task_name);
  if (!series.empty()) begun_.try_emplace(token.value, Begun{std::string(series), now});
}

void BriefTasks::ended(Token token, Mono now) {
  const auto begun = begun_.extract(token.value);
  if (!begun) return;
  const Duration took = std::max(kLeast, now - begun.mapped().at);
  Series& series = series_[begun.mapped().series];
  if (took >= kBrief) return set(series, 0);
  series.typical += (took - series.typical) / (series.in_a_row == 0 ? 1 : kRemembered);
  set(series, std::min(series.in_a_row + 1, kEnough));
}

bool BriefTasks::overdue(Token token, Mono now) const {
  const auto begun = begun_.find(token.value);
  return begun != begun_.end() && now - begun->second.at >= kBrief;
}

void BriefTasks::set(Series& series, int in_a_row) {
  brief_series_ += (in_a_row == kEnough ? 1 : 0) - (series.in_a_row == kEnough ? 1 : 0);
  series.in_a_row = in_a_row;
}

Duration BriefTasks::typical(std::string_view task_name) const {
  const auto found = series_.find(std::string(series_of(task_name)));
  if (found == series_.end() || found->second.in_a_row < kEnough) return {};
  return found->second.typical;
}

}  // namespace berth::run
