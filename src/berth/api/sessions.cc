#include "berth/api/sessions.h"

#include "berth/base/text.h"

namespace berth::api {
namespace {

constexpr std::string_view kCookie = "berth=";

}  // namespace

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
  return std::string(kCookie) + *open_.insert(this->secret()).first;
}

bool Sessions::knows(std::string_view cookies) const {
  const std::lock_guard lock(mutex_);
  for (const auto each : split(cookies, ';')) {
    const auto cookie = trim(each);
    if (cookie.starts_with(kCookie) && open_.contains(cookie.substr(kCookie.size()))) return true;
  }
  return false;
}

}  // namespace berth::api
