// All that a state directory's SQLite file holds into a PostgreSQL database, which the directory
// belongs to from then on. The file stays, and refuses changes.
#pragma once

#include <functional>
#include <string>

#include "berth/os/env.h"
#include "berth/run/site.h"
#include "berth/store/database.h"
#include "berth/store/migrate.h"

namespace berth::run {

/// Where the runs of a state directory are, if in a database.
std::optional<std::string> marked_database(os::Env& env, const std::string& state);
/// Notes in a state directory that its runs are in that database, durably.
Status mark_database(os::Env& env, const std::string& state, const store::Database& database);

/// busy: a run is driven; not_found: there is no such file; usage: the URL has a password, which
/// everybody has seen by now; exists: the database has other runs, or the
/// directory's are in one already.
Result<store::Migrated> migrate(
    os::Env& env, const std::string& url,
    const std::function<void(const std::string& table, std::int64_t rows)>& on_progress);

}  // namespace berth::run
