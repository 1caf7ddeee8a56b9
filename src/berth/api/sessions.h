// Who has come in by a link or a token: each link is good once, and whoever opens it is known by a
// cookie from then on, with the link's role, as long as the server lives.
//
// Threads: any number at once. Neither links nor cookies are kept anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "berth/api/routes.h"

namespace berth::api {

class Sessions {
 public:
  /// `random` returns what nobody can foretell; it is called by one thread at a time.
  explicit Sessions(std::function<std::uint64_t()> random);

  /// A new secret that a link may bear, for whoever is to have the role.
  std::string invite(Role role);
  /// The cookie for whoever brings the secret, which is spent; "" where there is no such secret.
  std::string open(std::string_view secret);
  /// The cookie for whoever has shown to have the role.
  std::string enter(Role role);
  /// The role of whom a Cookie header names; none: of nobody.
  Role role(std::string_view cookies) const;

 private:
  std::string secret();

  mutable std::mutex mutex_;
  const std::function<std::uint64_t()> random_;
  const std::string
      cookie_;  // "berth-3f…=": a browser keeps those of several servers of a host apart
  std::map<std::string, Role, std::less<>> invited_, open_;
};

}  // namespace berth::api
