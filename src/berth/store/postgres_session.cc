#include "berth/store/postgres_session.h"

#include <unistd.h>

#include <array>
#include <random>

#include "berth/base/backoff.h"
#include "berth/store/causes_by_name.h"

namespace berth::store {
namespace {

constexpr const char* kPostgresSchema =
#include "berth/store/postgres_schema.inc"
    ;
/// Whoever begins is told soon that no server answers; one that starts is waited for, and whoever
/// is at work waits for longer.
constexpr auto kOpensWithin = std::chrono::seconds(8);
constexpr int kFirstVersion = 6;
/// SQL that brings a database of version kFirstVersion + i to the next; postgres_schema.sql is what
/// all of them lead to.
constexpr std::array kSchemaUpgrades = {
    // 6 to 7: a flow's task that was done without an attempt was skipped.
    "ALTER TABLE berth.run ADD COLUMN skipped BIGINT NOT NULL DEFAULT 0 CHECK (skipped >= 0);"
    "ALTER TABLE berth.task DROP CONSTRAINT task_state_check;"
    "ALTER TABLE berth.task ADD CONSTRAINT task_state_check"
    " CHECK (state IN ('waiting', 'running', 'done', 'cached', 'skipped', 'failed', 'stopped'));"
    "UPDATE berth.task SET state = 'skipped' FROM berth.run WHERE run.id = task.run_id"
    " AND run.kind = 'flow' AND task.state = 'done' AND task.token = 0;"
    "UPDATE berth.run SET skipped = n, done = done - n FROM (SELECT run_id, count(*) AS n"
    " FROM berth.task WHERE state = 'skipped' GROUP BY run_id) AS gone WHERE id = run_id",
    // 7 to 8: the cause of an end was what people read of it, "exit 3" or "time limit".
    "ALTER TABLE berth.attempt ADD COLUMN signal BIGINT NOT NULL DEFAULT 0;"
    "UPDATE attempt SET cause = 'exit_code',"
    " exit_code = coalesce(exit_code, substr(cause, 6)::bigint) WHERE cause ~ '^exit -?[0-9]+$';"
    "UPDATE attempt SET cause = 'signal', signal = substring(cause FROM '[0-9]+')::bigint"
    " WHERE cause ~ '^signal [0-9]+ \\(.*\\)$';" BERTH_CAUSES_BY_NAME,
    // 8 to 9
    "ALTER TABLE berth.attempt ADD COLUMN lease_ns BIGINT",
    // 9 to 10: SQLite's rows have sums.
    "SELECT 1",
};

/// A server of which some settings would lose what was acknowledged, or hold up everybody for long.
constexpr const char* kGreeting =
    "SELECT pg_backend_pid()::text,"
    " (SELECT extract(epoch FROM backend_start)::text FROM pg_stat_activity"
    "  WHERE pid = pg_backend_pid()),"
    " EXISTS (SELECT FROM pg_tables WHERE schemaname = 'berth' AND tablename = 'store'),"
    " set_config('search_path', 'berth, pg_catalog', false),"
    " set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN"
    "  ('off', 'local') THEN 'on' ELSE current_setting('synchronous_commit') END, false),"
    " set_config('lock_timeout', '60s', false),"
    " set_config('idle_in_transaction_session_timeout', '60s', false),"
    " set_config('tcp_keepalives_idle', '15', false),"
    " set_config('tcp_keepalives_interval', '5', false),"
    " set_config('tcp_keepalives_count', '3', false)";

constexpr const char* kNumber =
    "INSERT INTO writer (id, transaction) VALUES ($1, $2)"
    " ON CONFLICT (id) DO UPDATE SET transaction = excluded.transaction, at = now()";
/// Waits for the end of a transaction that wrote the row and has not ended; its number is smaller
/// than that of any.
constexpr const char* kLastNumber =
    "INSERT INTO writer (id, transaction) VALUES ($1, 0)"
    " ON CONFLICT (id) DO UPDATE SET at = now() RETURNING transaction";

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) ^ device();
}

bool is_true(const std::string& text) {
  return text == "t";
}

}  // namespace

bool Patience::pause(const Error& why) {
  if (spent() >= most_ || wait_.given_up()) return false;
  constexpr Backoff kAskAgain{std::chrono::milliseconds(50), std::chrono::seconds(2)};
  wait_.pause(why, std::chrono::floor<std::chrono::milliseconds>(
                       kAskAgain.pause(++pauses_, chance_.next())));
  return !wait_.given_up();
}

int Session::schema_version() {
  return kFirstVersion + static_cast<int>(kSchemaUpgrades.size());
}

Session::Session(Address address, std::chrono::milliseconds patience, std::uint64_t seed)
    : address_(std::move(address)),
      patience_(patience),
      chance_(seed),
      writer_(fmt::format("{:016x}{:016x}", chance_.next(), chance_.next())) {}

Result<std::unique_ptr<Session>> Session::open(const std::string& url,
                                               std::chrono::milliseconds patience) {
  BERTH_ASSIGN(auto address, read_address(url));
  std::unique_ptr<Session> session(new Session(std::move(address), patience, random_seed()));
  Patience waits(patience, session->chance_, *session->wait_);
  BERTH_TRY(session->reconnect(waits, kOpensWithin));
  return session;
}

std::int64_t Session::round_trips() const {
  return connection_->round_trips();
}

/// Until it is connected, `patience` is at its end, no server has answered for `unanswered`, or the
/// server says no.
Status Session::reconnect(Patience& patience, std::chrono::milliseconds unanswered) {
  for (;;) {
    auto status = connect();
    if (status || mend_ == Mend::nothing) return status;
    const bool answered = status.error().message.find("FATAL") != std::string::npos;
    if ((answered || patience.spent() < unanswered) && patience.pause(status.error())) continue;
    status.error().message +=
        fmt::format(" (tried for {} s)",
                    std::chrono::duration_cast<std::chrono::seconds>(patience.spent()).count());
    return status;
  }
}

Status Session::connect() {
  connection_.reset();
  mend_ = Mend::nothing;
  auto opened = Connection::open(address_, mend_, wait_);
  if (!opened) {
    address_.rotate();
    return std::unexpected(opened.error());
  }
  connection_ = *std::move(opened);
  const auto greeted = greet();
  if (!greeted) {
    mend_ = connection_->mend();
    connection_.reset();
  }
  return greeted;
}

Status Session::greet() {
  Statements greeting;
  add(greeting, kGreeting);
  BERTH_ASSIGN(auto rows, connection_->run(greeting));
  if (connection_->server_version() < 140000)
    return fail(ErrorKind::impossible, "{}: its server is older than PostgreSQL 14", place());
  if (connection_->encoding() != "UTF8")
    return fail(
        ErrorKind::impossible,
        "{}: the encoding of the database is {}; make it with: createdb -E UTF8 -T template0",
        place(), connection_->encoding());
  BERTH_TRY(end_former_self());
  std::string there;
  rows[0].next();
  BERTH_TRY(rows[0].read(backend_, since_, there));
  if (id_.empty() || !is_true(there)) BERTH_TRY(bring_to_current());
  return take_locks();
}

/// The server may not have noticed that our last connection broke. That one holds our locks, and
/// may be within a transaction.
Status Session::end_former_self() {
  if (backend_.empty()) return {};
  constexpr const char* kEnd =
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
      " WHERE pid = $1::integer AND extract(epoch FROM backend_start)::text = $2";
  Statements statements;
  add(statements, kEnd, backend_, since_);
  BERTH_TRY(connection_->run(statements));
  return {};
}

Status Session::bring_to_current() {
  constexpr const char* kVersion = "SELECT schema_version, id FROM berth.store";
  // to_regclass() would tell what this session remembers from before the lock.
  constexpr const char* kIsThere =
      "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'berth' AND tablename = 'store')";
  constexpr const char* kTurn = "SELECT pg_advisory_xact_lock(1114797160)";
  const int current = schema_version();
  std::int64_t version = 0;
  const auto look = [&]() -> Status {
    Statements statements;
    add(statements, kVersion);
    BERTH_ASSIGN(auto rows, connection_->run(statements));
    if (!rows[0].next()) return fail(ErrorKind::corrupt, "{}: it has no version", place());
    BERTH_TRY(rows[0].read(version, id_));
    if (version < kFirstVersion)
      return fail(ErrorKind::corrupt, "{}: the version of its schema is {}: restore the database",
                  place(), version);
    if (version > current)
      return fail(ErrorKind::corrupt,
                  "{}: written by a newer Berth (schema {}, this one knows {}): upgrade Berth",
                  place(), version, current);
    return {};
  };
  const auto is_there = [&](const Statements& statements) -> Result<bool> {
    std::string there;
    BERTH_ASSIGN(auto rows, connection_->run(statements));
    rows.back().next();
    BERTH_TRY(rows.back().read(there));
    return is_true(there);
  };
  Statements statements;
  add(statements, kIsThere);
  BERTH_ASSIGN(bool there, is_there(statements));
  if (there) BERTH_TRY(look());
  if (version == current) return {};

  // Another process may be about to do the same, or have done it while this one waited.
  statements.insert(statements.begin(), {{"BEGIN", {}}, {kTurn, {}}});
  BERTH_ASSIGN(there, is_there(statements));
  if (there) {
    BERTH_TRY(look());
    for (auto step = version; step < current; ++step)
      BERTH_TRY(connection_->run_script(
          kSchemaUpgrades.at(static_cast<std::size_t>(step - kFirstVersion))));
  } else {
    BERTH_TRY(connection_->run_script(kPostgresSchema));
  }
  statements.clear();
  add(statements,
      "INSERT INTO berth.store (schema_version) VALUES ($1)"
      " ON CONFLICT (one) DO UPDATE SET schema_version = excluded.schema_version",
      current);
  add(statements, "COMMIT");
  BERTH_TRY(connection_->run(statements));
  return look();
}

Status Session::take_locks() {
  if (locks_.empty()) return {};
  Statements statements;
  for (const auto key : locks_) add(statements, "SELECT pg_try_advisory_lock($1)", key);
  BERTH_ASSIGN(auto rows, connection_->run(statements));
  auto row = rows.begin();
  for (auto key = locks_.begin(); key != locks_.end(); ++row) {
    std::string taken;
    row->next();
    BERTH_TRY(row->read(taken));
    robbed_ = robbed_ || !is_true(taken);
    key = is_true(taken) ? std::next(key) : locks_.erase(key);
  }
  return {};
}

Status Session::lock(std::int64_t key) {
  if (locks_.contains(key))
    return fail(ErrorKind::busy, "{}: this process already has the lock", place());
  Statements statements;
  add(statements, "SELECT pg_try_advisory_lock($1)", key);
  BERTH_ASSIGN(auto rows, read(statements));
  std::string taken;
  rows[0].next();
  BERTH_TRY(rows[0].read(taken));
  if (!is_true(taken)) return fail(ErrorKind::busy, "{}: another process has the lock", place());
  locks_.insert(key);
  return {};
}

void Session::unlock(std::int64_t key) {
  if (locks_.erase(key) == 0 || !connection_) return;
  Statements statements;
  add(statements, "SELECT pg_advisory_unlock($1)", key);
  (void)connection_->run(statements);  // with a broken connection goes the lock too
}

/// What helps after the last error of the connection, which goes back to where a transaction can
/// begin, or goes.
Mend Session::recover() {
  const Mend mend = connection_->mend();
  if (!connection_->lost()) (void)connection_->run({{"ROLLBACK", {}}});
  if (connection_->lost()) connection_.reset();
  return mend;
}

Result<std::optional<Duration>> Session::keep_locks() {
  constexpr auto kEvery = std::chrono::seconds(5);
  const auto now = std::chrono::steady_clock::now();
  if (locks_.empty() && !robbed_) return std::nullopt;
  if (now - kept_ < kEvery) return kept_ + kEvery - now;
  kept_ = now;
  BERTH_TRY(read({{"SELECT 1", {}}}));
  if (robbed_)
    return fail(ErrorKind::stale, "{}: while the connection was broken, another process took over",
                place());
  return kEvery;
}

Result<std::vector<Rows>> Session::read(const Statements& statements) {
  Patience patience(patience_, chance_, *wait_);
  Statements all = statements;
  const bool several = all.size() > 1;
  if (several) {
    all.insert(all.begin(), {"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", {}});
    add(all, "COMMIT");
  }
  for (;;) {
    if (!connection_)
      if (auto status = reconnect(patience); !status)
        return std::unexpected(final(std::move(status).error()));
    auto rows = connection_->run(all);
    if (!rows && recover() != Mend::nothing && patience.pause(rows.error())) continue;
    if (!rows) return std::unexpected(final(std::move(rows).error()));
    if (several) {
      rows->pop_back();
      rows->erase(rows->begin());
    }
    return rows;
  }
}

Status Session::write_with(const Statements& first, const Plan& plan) {
  ++transaction_;
  Patience patience(patience_, chance_, *wait_);
  for (bool unknown = false;;) {
    if (!connection_)
      if (auto status = reconnect(patience); !status)
        return std::unexpected(final(std::move(status).error()));
    const auto done = unknown ? was_committed() : try_write(first, plan, unknown);
    if (done && *done) return {};
    if (done)
      unknown = false;  // nothing came of it: once more
    else if (const Mend mend = recover(); mend == Mend::nothing || !patience.pause(done.error()))
      return std::unexpected(final(done.error()));
  }
}

/// What is told of it when it is not tried again.
Error Session::final(Error error) const {
  if (wait_->given_up()) error.kind = ErrorKind::interrupted;
  return error;
}

/// True, or an error; `unknown`: it may have been committed all the same.
Result<bool> Session::try_write(const Statements& first, const Plan& plan, bool& unknown) {
  Statements opening;
  add(opening, "BEGIN");
  add(opening, kNumber, writer_, transaction_);
  const auto of_ours = static_cast<std::ptrdiff_t>(opening.size());
  opening.insert(opening.end(), first.begin(), first.end());
  BERTH_ASSIGN(auto rows, connection_->run(opening));
  rows.erase(rows.begin(), rows.begin() + of_ours);
  Statements last;
  BERTH_TRY(plan(rows, last));
  add(last, "COMMIT");
  const auto committed = connection_->run(last);
  unknown = connection_->lost();
  if (!committed) return std::unexpected(committed.error());
  return true;
}

Result<bool> Session::was_committed() {
  Statements statements;
  add(statements, kLastNumber, writer_);
  BERTH_ASSIGN(auto rows, connection_->run(statements));
  std::int64_t last = 0;
  rows[0].next();
  BERTH_TRY(rows[0].read(last));
  return last == transaction_;
}

}  // namespace berth::store
