// A migration copies all runs of a SQLite file into a PostgreSQL database: everything or nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/store/store.h"

namespace berth::store {

struct Migrated {
  std::string id, place;   ///< Those of the database.
  bool was_there = false;  ///< Whether an earlier migration had brought everything already.
  std::vector<std::pair<std::string, std::int64_t>> rows;  ///< How many rows of each table.
};

struct Migration {
  std::string file, url;
  /// It is called once nobody can write to the file, with the runs that may still be driven. Its
  /// error stops the migration.
  std::function<Status(const std::vector<std::string>& open_runs)> keep_runners_out;
  std::function<void(const std::string& table, std::int64_t rows)> on_progress;
  /// It is called when everything is in the database, before the file refuses all changes.
  std::function<Status(const Migrated&)> conclude;
};

/// exists: the database has other runs. Other errors are those of sqlite_store() and
/// postgres_store().
Result<Migrated> migrate(const Migration& migration);

}  // namespace berth::store
