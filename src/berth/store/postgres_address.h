// Where a PostgreSQL store is: a URL taken apart by libpq, what it leaves open filled in, and a
// name for it in messages that holds no secret.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"

namespace berth::store {

struct Address {
  /// libpq's words and their values; the password, if the URL has one, is among them and nowhere
  /// else.
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string place;  // "postgresql://ada@db.lab:5432/berth"

  std::string& operator[](const std::string& word);
  /// The next of several hosts becomes the first: one that is dead is not waited for twice.
  void rotate();
};

/// usage: no URL of PostgreSQL; impossible: libpq is missing. No message repeats what may be part
/// of a password.
Result<Address> read_address(const std::string& url);

}  // namespace berth::store
