// The move of all runs from SQLite to a PostgreSQL database.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::engine {

struct Migration {
  std::string database;  ///< Its URL, without a password.
  std::string state_directory;
  std::string old_database;  ///< The SQLite file, which is read-only from now on.
  bool was_there = false;    ///< An earlier migration had copied everything already.
  std::vector<std::pair<std::string, std::int64_t>> rows;  ///< The number of rows of each table.
};

/// Copies the store of the environment to the database at `url`. `on_progress` receives the name of
/// each table and the number of its rows. Errors: busy, if a runner drives a run; not_found, if
/// there is no SQLite file; usage, if the URL contains a password; exists, if the database has
/// other runs, or the runs are in a database already.
Result<Migration> migrate(
    os::Env& env, const std::string& url,
    const std::function<void(const std::string& table, std::int64_t rows)>& on_progress);

}  // namespace berth::engine
