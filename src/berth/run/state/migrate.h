// migrate() copies everything from the SQLite file of a state directory into a PostgreSQL database,
// to which the directory belongs from then on. The file stays, and refuses changes.
#pragma once

#include <functional>
#include <string>

#include "berth/os/env.h"
#include "berth/run/state/context.h"
#include "berth/store/database.h"
#include "berth/store/migrate.h"

namespace berth::run {

/// The address of the database that has a state directory's runs; nullopt where they are in its
/// file.
std::optional<std::string> marked_database(os::Env& env, const std::string& state);
/// Marks a state directory durably: its runs are in that database.
Status mark_database(os::Env& env, const std::string& state, const store::Database& database);

/// Failure: busy, where a runner drives a run; not_found, where there is no such file; usage, where
/// the URL has a password, which everybody has seen by now; exists, where the database has other
/// runs, or the directory's runs are in a database already.
Result<store::Migrated> migrate(
    os::Env& env, const std::string& url,
    const std::function<void(const std::string& table, std::int64_t rows)>& on_progress);

}  // namespace berth::run
