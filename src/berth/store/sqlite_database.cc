#include "berth/store/sqlite_database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "berth/base/text.h"

namespace berth::store {
namespace {

constexpr const char* kSqliteSchema =
#include "berth/store/schema.inc"
    ;
constexpr int kApplicationId = 0x42727468;  // as in schema.sql
constexpr int kBusyTimeout_ms = 60'000;     // a hundred runs that begin at once take turns

// Of the connection, not of the file. The cache, in KiB, holds the index of 100,000 labels, which
// is filled out of order.
constexpr std::array kSettings = {
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -32000",
};

struct ResultCodeMeaning {
  int code;
  ErrorKind kind;
  const char* advice;
};

constexpr const char* kFreeSpace = "free some space on its volume and try again";
constexpr const char* kRestore =
    "berth doctor says what is damaged; restore the file from a copy, or move it away (sqlite3's "
    ".recover may save some)";
constexpr const char* kPermitFile = "check who may write this file and its directory";

// Extended codes before the primary code that they refine.
constexpr std::array kResultCodeMeanings = {
    ResultCodeMeaning{SQLITE_IOERR_SHMSIZE, ErrorKind::full, kFreeSpace},
    ResultCodeMeaning{SQLITE_FULL, ErrorKind::full, kFreeSpace},
    ResultCodeMeaning{SQLITE_NOMEM, ErrorKind::full, "free some memory and try again"},
    ResultCodeMeaning{SQLITE_BUSY, ErrorKind::busy, "another process is writing: try again"},
    ResultCodeMeaning{SQLITE_LOCKED, ErrorKind::busy, "another process is writing: try again"},
    ResultCodeMeaning{SQLITE_CORRUPT, ErrorKind::corrupt, kRestore},
    ResultCodeMeaning{SQLITE_NOTADB, ErrorKind::corrupt, "this is not a Berth store: move it away"},
    ResultCodeMeaning{SQLITE_PERM, ErrorKind::denied, kPermitFile},
    ResultCodeMeaning{SQLITE_READONLY, ErrorKind::denied, kPermitFile},
    ResultCodeMeaning{SQLITE_CANTOPEN, ErrorKind::io,
                      "check that its directory exists and can be read"},
};

constexpr ResultCodeMeaning kUnknownResultCode = {0, ErrorKind::io,
                                                  "check its volume and the system's log"};

std::unexpected<Error> open_failed(const std::string& file, int error_number) {
  constexpr std::array denied = {EACCES, EPERM, EROFS};
  constexpr std::array full = {ENOSPC, EDQUOT, EMFILE, ENFILE};
  const auto among = [&](const auto& numbers) {
    return std::find(numbers.begin(), numbers.end(), error_number) != numbers.end();
  };
  const ErrorKind kind = among(denied) ? ErrorKind::denied
                         : among(full) ? ErrorKind::full
                                       : ErrorKind::io;
  return fail(kind, "{}: cannot open the store: {}", file, std::strerror(error_number));
}

bool may_only_be_read(const std::string& file, const std::string& directory) {
  return ::access(file.c_str(), R_OK) == 0 &&
         (::access(file.c_str(), W_OK) != 0 || ::access(directory.c_str(), W_OK | X_OK) != 0);
}

/// Only a file that was not there is opened: closing a descriptor of a file drops all locks that
/// this process has on it, those of another store handle too.
Status create_private(const std::filesystem::path& file, const std::string& directory) {
  // SQLite would open what it may only read, and fail at the first change.
  if (::access(directory.c_str(), W_OK | X_OK) != 0) return open_failed(file, errno);
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) {
    ::close(fd);
    return {};
  }
  if (errno != EEXIST || ::access(file.c_str(), R_OK | W_OK) != 0) return open_failed(file, errno);
  return {};
}

Status refuse_network(const std::string& file, const std::string& directory) {
  struct statfs volume{};
  if (::statfs(directory.c_str(), &volume) != 0) return open_failed(file, errno);
  if (is_network_file_system(static_cast<std::uint64_t>(volume.f_type)))
    return fail(ErrorKind::impossible,
                "{}: SQLite loses data on a network file system; name a file on a local disk in "
                "BERTH_DB",
                file);
  return {};
}

int pragma(SQLite::Database& db, const char* query) {
  return db.execAndGet(query).getInt();
}

/// 0 for an empty file.
Result<int> schema_version(SQLite::Database& db, const std::string& file, int current) {
  const int version = pragma(db, "PRAGMA user_version");
  const bool empty = version == 0 && pragma(db, "SELECT count(*) FROM sqlite_schema") == 0;
  if (!empty && pragma(db, "PRAGMA application_id") != kApplicationId)
    return fail(ErrorKind::corrupt, "{}: another program's database, not a Berth store", file);
  if (version < 0)
    return fail(ErrorKind::corrupt, "{}: the version of its schema is {}; {}", file, version,
                kRestore);
  if (version > current)
    return fail(ErrorKind::corrupt,
                "{}: written by a newer Berth (schema {}, this one knows {}): upgrade Berth", file,
                version, current);
  return version;
}

/// Of several processes that make the file at the same time, SQLite sends all but one away at once
/// instead of letting them wait.
std::string switch_to_wal(SQLite::Database& db) {
  constexpr int kPause_ms = 10;
  for (int waited_ms = 0;; waited_ms += kPause_ms) {
    try {
      return db.execAndGet("PRAGMA journal_mode = WAL").getString();
    } catch (const SQLite::Exception& error) {
      if (error.getErrorCode() != SQLITE_BUSY || waited_ms >= kBusyTimeout_ms) throw;
      sqlite3_sleep(kPause_ms);
    }
  }
}

Status bring_to_current(SQLite::Database& db, const std::string& file, Migrations migrations) {
  const int current = 1 + static_cast<int>(migrations.size());
  BERTH_ASSIGN(int version, schema_version(db, file, current));
  if (version == 0) db.exec("PRAGMA auto_vacuum = INCREMENTAL");  // only an empty file takes it
  if (const std::string mode = switch_to_wal(db); mode != "wal")
    return fail(ErrorKind::io, "{}: its file system does not support a write-ahead log (mode {})",
                file, mode);
  for (const char* setting : kSettings) db.exec(setting);
  if (version == current) return {};

  Transaction::Statements statements(db);
  Transaction transaction(statements, statements.write);
  // Another process may have been here while this one waited.
  BERTH_ASSIGN(version, schema_version(db, file, current));
  try {
    if (version == 0) {
      db.exec(kSqliteSchema);
    } else {
      for (const char* step : migrations.subspan(static_cast<std::size_t>(version - 1)))
        db.exec(step);
    }
  } catch (const SQLite::Exception& error) {
    if (error.getErrorCode() != SQLITE_ERROR) throw;
    return fail(ErrorKind::corrupt,
                "{}: its tables are not those of schema {}, which it names ({}); {}", file, version,
                error.what(), kRestore);
  }
  db.exec(fmt::format("PRAGMA user_version = {}", current));
  transaction.commit();
  return {};
}

/// SQLite reads a file with a log only beside a file of its own; where there is no log, nobody
/// writes, or else another user would have to be running it now.
Result<std::unique_ptr<SQLite::Database>> open_to_read(const std::string& file,
                                                       Migrations migrations) {
  std::string url = "file:";
  for (const char c : file)
    url += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", static_cast<int>(c))
                                            : std::string(1, c);
  if (::access((file + "-wal").c_str(), F_OK) != 0) url += "?immutable=1";
  auto db = std::make_unique<SQLite::Database>(url, SQLite::OPEN_READONLY | SQLite::OPEN_URI,
                                               kBusyTimeout_ms);
  const int current = 1 + static_cast<int>(migrations.size());
  BERTH_ASSIGN(const int version, schema_version(*db, file, current));
  if (version != current)
    return fail(ErrorKind::denied,
                "{}: written by an older Berth, and read-only for you: any command of a user who "
                "may write it upgrades it",
                file);
  return db;
}

}  // namespace

Error explain(const std::string& file, int code, std::string_view message) {
  const auto fits = [code](const ResultCodeMeaning& meaning) {
    return meaning.code == code || meaning.code == (code & 0xff);
  };
  const auto* known = std::find_if(kResultCodeMeanings.begin(), kResultCodeMeanings.end(), fits);
  const ResultCodeMeaning& meaning =
      known == kResultCodeMeanings.end() ? kUnknownResultCode : *known;
  return {meaning.kind, fmt::format("{}: {}; {}", file, message, meaning.advice)};
}

Error explain(const std::string& file, const SQLite::Exception& error) {
  // Exceptions that are not SQLite's own have no extended code.
  const int extended = error.getExtendedErrorCode();
  return explain(file, extended > 0 ? extended : error.getErrorCode(), error.what());
}

bool is_network_file_system(std::uint64_t type) {
  // NFS, SMB, CIFS, SMB2, Lustre, GPFS, Ceph, AFS, 9P, BeeGFS: from magic(5) and their sources.
  constexpr std::array<std::uint64_t, 10> magic = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                                                   0x0bd00bd0, 0x47504653, 0x00c36400, 0x5346414f,
                                                   0x01021997, 0x19830326};
  return std::find(magic.begin(), magic.end(), type & 0xffffffffU) != magic.end();
}

Result<std::unique_ptr<SQLite::Database>> open_database(const std::string& file,
                                                        Migrations migrations) {
  // Absolute, because SQLite takes ":memory:" and "file:…" for something else.
  const auto path = std::filesystem::absolute(file);
  BERTH_TRY(refuse_network(path, path.parent_path()));
  try {
    if (may_only_be_read(path, path.parent_path())) return open_to_read(path, migrations);
    BERTH_TRY(create_private(path, path.parent_path()));
    auto db =
        std::make_unique<SQLite::Database>(path.string(), SQLite::OPEN_READWRITE, kBusyTimeout_ms);
    BERTH_TRY(bring_to_current(*db, file, migrations));
    return db;
  } catch (const SQLite::Exception& error) {
    return std::unexpected(explain(file, error));
  }
}

Status check_in_place(SQLite::Database& db, const std::string& file) {
  sqlite3* const handle = db.getHandle();
  int moved = 0;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  const char* log = sqlite3_filename_wal(sqlite3_db_filename(handle, "main"));
  const bool has_log = ::access(log, F_OK) == 0;
  const int why = errno;
  if (moved == 0 && has_log) return {};
  if (!has_log && why != ENOENT && why != ENOTDIR)
    return fail(ErrorKind::io, "{}: cannot be inspected: {}", log, std::strerror(why));
  return fail(ErrorKind::stale,
              "{}: this store was removed or replaced while it was in use; what was not shown "
              "before is not recorded: put it back, or run everything again",
              file);
}

void shrink(SQLite::Database& db) {
  constexpr int kStep = 1024, kMostSteps = 64;  // pages; other writers get their turn in between
  constexpr int kMostToCopy = 25'600;           // pages: 100 MiB take about a second
  constexpr int kIncremental = 2;               // of PRAGMA auto_vacuum
  const auto free_pages = [&] { return pragma(db, "PRAGMA freelist_count"); };
  try {
    if (pragma(db, "PRAGMA auto_vacuum") != kIncremental) {
      const int pages = pragma(db, "PRAGMA page_count"), unused = free_pages();
      if (2 * std::int64_t{unused} < pages || pages - unused > kMostToCopy) return;
      db.exec("PRAGMA auto_vacuum = INCREMENTAL");
      db.exec("VACUUM");
    }
    for (int step = 0; step < kMostSteps && free_pages() > 0; ++step)
      db.exec(fmt::format("PRAGMA incremental_vacuum({})", kStep));
  } catch (const SQLite::Exception&) {  // the volume is full, say; the next removal tries again
  }
}

void Query::throw_wrong_type() {
  throw SQLite::Exception("a row has a value of a type that its column cannot have",
                          SQLITE_CORRUPT);
}

void Query::throw_damaged(const char* what, const std::string& which) {
  throw RowDamaged(fmt::format("{} {} is not what Berth wrote", what, clip(which)), SQLITE_CORRUPT);
}

void Query::column(int index, double& value) {
  const SQLite::Column found = statement_.getColumn(index);
  value = found.isNull() ? std::numeric_limits<double>::quiet_NaN() : found.getDouble();
}

void Query::column(int index, RunState& value) {
  const auto state = run_state(statement_.getColumn(index).getText());
  if (!state) throw SQLite::Exception("no state of a run", SQLITE_CORRUPT);
  value = *state;
}

void Query::column(int index, TaskState& value) {
  const auto state = task_state(statement_.getColumn(index).getText());
  if (!state) throw SQLite::Exception("no state of a task", SQLITE_CORRUPT);
  value = *state;
}

void Query::column(int index, Phase& value) {
  const auto found = phase(statement_.getColumn(index).getText());
  if (!found) throw SQLite::Exception("no phase of a run", SQLITE_CORRUPT);
  value = *found;
}

void Query::column(int index, Values& value) {
  auto values = values_from_json(statement_.getColumn(index).getString());
  if (!values) throw SQLite::Exception(values.error().message, SQLITE_CORRUPT);
  value = *std::move(values);
}

Transaction::~Transaction() {
  // Some errors (a full disk) have rolled back already; a second rollback would be one more.
  if (sqlite3_get_autocommit(statements_.db.getHandle()) != 0) return;
  statements_.rollback.tryExecuteStep();
  statements_.rollback.tryReset();
}

}  // namespace berth::store
