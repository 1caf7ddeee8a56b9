#include "berth/api/sessions.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/text.h"

namespace berth::api {

Sessions::Sessions(std::function<std::uint64_t()> random)
    : random_(std::move(random)), cookie_(fmt::format("berth-{:016x}=", random_())) {}

std::string Sessions::secret() {
  std::string text;
  for (int i = 0; i < 3; ++i) text += fmt::format("{:016x}", random_());
  return text;
}

std::string Sessions::invite(Role role) {
  const std::lock_guard lock(mutex_);
  return invited_.emplace(secret(), role).first->first;
}

std::string Sessions::open(std::string_view secret) {
  const std::lock_guard lock(mutex_);
  const auto found = invited_.find(secret);
  if (found == invited_.end()) return "";
  const Role role = found->second;
  invited_.erase(found);
  return cookie_ + open_.emplace(this->secret(), role).first->first;
}

std::string Sessions::enter(Role role) {
  const std::lock_guard lock(mutex_);
  return cookie_ + open_.emplace(secret(), role).first->first;
}

Role Sessions::role(std::string_view cookies) const {
  const std::lock_guard lock(mutex_);
  Role most = Role::none;
  for (const auto each : split(cookies, ';')) {
    const auto cookie = trim(each);
    if (!cookie.starts_with(cookie_)) continue;
    const auto found = open_.find(cookie.substr(cookie_.size()));
    if (found != open_.end()) most = std::max(most, found->second);
  }
  return most;
}

}  // namespace berth::api
