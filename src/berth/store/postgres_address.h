// An address says where a PostgreSQL store is: libpq takes the URL apart and fills in what it
// leaves open. Messages name the place without its secrets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"

namespace berth::store {

struct Address {
  /// The keywords of libpq and their values. A password of the URL is here and nowhere else.
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string place;  // "postgresql://ada@db.lab:5432/berth"

  std::string& operator[](const std::string& word);
  /// Moves the first of several hosts to the end, so that a dead one is not waited for twice.
  void rotate();
};

/// usage: the text is no URL of PostgreSQL; impossible: libpq is missing. No message repeats what
/// may be part of a password.
Result<Address> read_address(const std::string& url);

}  // namespace berth::store
