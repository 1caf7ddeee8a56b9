#include "berth/api/sessions.h"

#include <fmt/format.h>

#include "berth/base/text.h"

namespace berth::api {

Sessions::Sessions(std::function<std::uint64_t()> random)
    : random_(std::move(random)), cookie_(fmt::format("berth-{:016x}=", random_())) {}

std::string Sessions::secret() {
  std::string text;
  for (int i = 0; i < 3; ++i) text += fmt::format("{:016x}", random_());
  return text;
}

std::string Sessions::invite() {
  const std::lock_guard lock(mutex_);
  return *invited_.insert(secret()).first;
}

std::string Sessions::open(std::string_view secret) {
  const std::lock_guard lock(mutex_);
  const auto found = invited_.find(secret);
  if (found == invited_.end()) return "";
  invited_.erase(found);
  return cookie_ + *open_.insert(this->secret()).first;
}

bool Sessions::knows(std::string_view cookies) const {
  const std::lock_guard lock(mutex_);
  for (const auto each : split(cookies, ';')) {
    const auto cookie = trim(each);
    if (cookie.starts_with(cookie_) && open_.contains(cookie.substr(cookie_.size()))) return true;
  }
  return false;
}

}  // namespace berth::api
