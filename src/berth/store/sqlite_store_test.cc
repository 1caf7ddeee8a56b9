// What SQLite adds to the contract: a file that outlives the process, other processes beside it,
// damage, permissions and full disks.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "berth/store/sqlite_database.h"
#include "berth/testing/store.h"
#include "paths.h"

namespace berth::store {
namespace {

namespace fs = std::filesystem;

class SqliteStoreTest : public testing::Test {
 protected:
  std::unique_ptr<Store> open() {
    auto opened = sqlite_store(file_);
    if (!opened) ADD_FAILURE() << opened.error().message;
    return opened ? *std::move(opened) : memory_store();
  }
  Error open_error() {
    const auto opened = sqlite_store(file_);
    return opened ? Error{ErrorKind::usage, "it opened"} : opened.error();
  }
  void overwrite(std::string_view bytes) { std::ofstream(file_, std::ios::binary) << bytes; }
  int query(const std::string& sql) {
    SQLite::Database db(file_, SQLite::OPEN_READONLY);
    return db.execAndGet(sql).getInt();
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_ / "berth.db";
};

TEST_F(SqliteStoreTest, KeepsEverythingWhenTheProcessIsKilled) {
  std::string before;
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = sqlite_store(file_).value();
    const RunId run = store->submit(new_run("a"))->id;
    const std::vector<Change> changes = {started(1, 1), seen(1, 1, "loss", 1), ended(1, 1),
                                         started(2, 2)};
    if (!store->apply(run, changes)) _exit(1);
    const std::string all = everything(*store);
    if (write(pipe_ends[1], all.data(), all.size()) < 0) _exit(1);
    kill(getpid(), SIGKILL);
  }
  close(pipe_ends[1]);
  char buffer[4096];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    before.append(buffer, static_cast<std::size_t>(n));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_FALSE(before.empty());
  EXPECT_EQ(everything(*open()), before);
}

TEST_F(SqliteStoreTest, TwoHandlesSeeEachOther) {
  const auto one = open();
  const auto two = open();
  EXPECT_EQ(one->submit(new_run("a"))->name, "a-1");
  const auto run = two->submit(new_run("a"));
  EXPECT_EQ(run->name, "a-2");
  const std::vector<Change> start = {started(1, 1)};
  EXPECT_TRUE(one->apply(run->id, start));
  EXPECT_EQ(two->apply(run->id, start).error().kind, ErrorKind::stale);
  EXPECT_EQ(everything(*one), everything(*two));
}

TEST_F(SqliteStoreTest, WhatIsWrittenToAStoreThatIsGoneIsAnError) {
  const auto remove = [&] { fs::remove(file_); };
  const auto remove_log = [&] { fs::remove(file_ + "-wal"); };
  const auto replace = [&] {
    fs::rename(file_, file_ + ".old");
    overwrite("another");
  };
  for (const std::function<void()>& spoil :
       {std::function<void()>(remove), {remove_log}, {replace}}) {
    for (const char* part : {"", "-wal", "-shm"}) fs::remove(file_ + part);
    const auto store = open();
    ASSERT_TRUE(store->submit(new_run("a")));
    spoil();
    const auto written = store->submit(new_run("a"));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().kind, ErrorKind::stale);
    EXPECT_NE(written.error().message.find("removed or replaced"), std::string::npos);
  }
}

TEST_F(SqliteStoreTest, WhatCannotBeLookedAtIsNotSaidToBeGone) {
  const auto store = open();
  const fs::path directory = fs::path(file_).parent_path(), away = directory.string() + ".away";
  fs::rename(directory, away);
  fs::create_symlink(directory, directory);  // leads to itself
  const auto written = store->submit(new_run("a"));
  fs::remove(directory);
  fs::rename(away, directory);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::io);
  EXPECT_NE(written.error().message.find("cannot be inspected: Too many levels"), std::string::npos)
      << written.error().message;
  EXPECT_TRUE(store->submit(new_run("a")));
}

TEST_F(SqliteStoreTest, ReaderIsNotHeldUpByAWriter) {
  const auto store = open();
  store->submit(new_run("a"));
  SQLite::Database other(file_, SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE; UPDATE run SET error = 'half done'");
  EXPECT_EQ(store->find_run("a-1")->error, "");
  EXPECT_EQ(open()->runs()->size(), 1U) << "nor is one who opens";
}

TEST_F(SqliteStoreTest, WriterWaitsForAnother) {
  const auto store = open();
  SQLite::Database other(file_, SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  std::jthread release([&other] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    other.exec("COMMIT");
  });
  EXPECT_TRUE(store->submit(new_run("a")));
}

TEST_F(SqliteStoreTest, ManyOpenANewFileAndWriteAtOnce) {
  constexpr int kProcesses = 8;
  constexpr std::int64_t kAttempts = 50;
  const auto work = [this] {
    auto store = sqlite_store(file_);
    auto run = store ? (*store)->submit(new_run("a")) : std::unexpected(store.error());
    Status status = run ? Status() : std::unexpected(run.error());
    for (std::int64_t token = 1; status && token <= kAttempts; ++token) {
      const std::vector<Change> changes = {started(1, token), ended(1, token, TaskState::waiting)};
      if (const auto applied = (*store)->apply(run->id, changes); !applied)
        status = std::unexpected(applied.error());
    }
    if (!status) fmt::print(stderr, "{}\n", status.error().message);
    return status ? 0 : 1;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(work());
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(open()->runs()->size(), static_cast<std::size_t>(kProcesses));
  EXPECT_EQ(query("SELECT count(*) FROM attempt"), kProcesses * kAttempts);
}

TEST_F(SqliteStoreTest, FileIsTheUsersAlone) {
  const mode_t before = umask(0);
  const auto store = open();
  store->submit(new_run("a"));
  umask(before);
  for (const auto& entry : fs::directory_iterator(directory_.path()))
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write)
        << entry.path();
}

TEST_F(SqliteStoreTest, SyncsEveryCommit) {
  auto db = open_database(file_).value();
  EXPECT_EQ(db->execAndGet("PRAGMA synchronous").getInt(), 2);
  EXPECT_EQ(db->execAndGet("PRAGMA journal_mode").getString(), "wal");
  EXPECT_EQ(db->execAndGet("PRAGMA foreign_keys").getInt(), 1);
}

TEST_F(SqliteStoreTest, RemoveLeavesNoRowButTheCounter) {
  const auto store = open();
  const RunId run = store->submit(new_run("a"))->id;
  const std::vector<Change> changes = {started(1, 1), seen(1, 1, "loss", 1), ended(1, 1)};
  ASSERT_TRUE(store->apply(run, changes));
  ASSERT_TRUE(store->remove(run));
  for (const std::string table : {"run", "run_spec", "task", "attempt", "metric", "metric_last"})
    EXPECT_EQ(query("SELECT count(*) FROM " + table), 0) << table;
  EXPECT_EQ(query("SELECT issued FROM name_counter"), 1);
}

TEST_F(SqliteStoreTest, RefusesAFileThatIsNoStore) {
  overwrite(std::string(10'000, 'x'));
  const Error garbage = open_error();
  EXPECT_EQ(garbage.kind, ErrorKind::corrupt);
  EXPECT_NE(garbage.message.find(file_), std::string::npos) << garbage.message;
  EXPECT_NE(garbage.message.find("move it away"), std::string::npos) << garbage.message;

  fs::remove(file_);
  SQLite::Database(file_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE bookmark (url); PRAGMA user_version = 70");
  const Error other = open_error();
  EXPECT_EQ(other.kind, ErrorKind::corrupt);
  EXPECT_NE(other.message.find("another program's"), std::string::npos) << other.message;
  EXPECT_EQ(query("SELECT count(*) FROM sqlite_schema"), 1) << "and leaves it as it is";
}

TEST_F(SqliteStoreTest, RefusesATruncatedFile) {
  open()->submit(new_run("a", 2000));
  const auto size = fs::file_size(file_);
  for (const auto kept : {size / 2, size - 4096, std::uintmax_t{4096}, std::uintmax_t{100}}) {
    fs::resize_file(file_, kept);
    const Error error = open_error();
    EXPECT_EQ(error.kind, ErrorKind::corrupt) << kept << ": " << error.message;
    EXPECT_NE(error.message.find(file_), std::string::npos);
  }
}

TEST_F(SqliteStoreTest, DamageWithinIsAnErrorWhenItIsMet) {
  const RunId run = open()->submit(new_run("a", 2000))->id;
  const auto size = fs::file_size(file_);
  std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
  for (std::uintmax_t page = 16 * 4096; page + 4096 <= size; page += 4096) {
    file.seekp(static_cast<std::streamoff>(page));
    file << std::string(4096, '\xee');
  }
  file.close();
  const auto tasks = open()->tasks(run);
  ASSERT_FALSE(tasks);
  EXPECT_EQ(tasks.error().kind, ErrorKind::corrupt);
}

TEST_F(SqliteStoreTest, WrongWordsInTheFileAreCorrupt) {
  const RunId run = open()->submit(new_run("a"))->id;
  {
    SQLite::Database db(file_, SQLite::OPEN_READWRITE);
    db.exec("PRAGMA ignore_check_constraints = ON; UPDATE task SET state = 'gone'");
  }
  EXPECT_EQ(open()->tasks(run).error().kind, ErrorKind::corrupt);
  {
    SQLite::Database db(file_, SQLite::OPEN_READWRITE);
    db.exec("UPDATE task SET state = 'waiting', params_json = '[1]'");
  }
  const Error error = open()->tasks(run).error();
  EXPECT_EQ(error.kind, ErrorKind::corrupt);
  EXPECT_NE(error.message.find(file_), std::string::npos) << error.message;
}

TEST_F(SqliteStoreTest, WhatAnOlderRunnerStillWritesIsUnderstood) {
  const auto store = open();
  const RunId run = store->submit(new_run("a"))->id;
  const std::vector<Change> changes = {started(1, 1), ended(1, 1, TaskState::failed)};
  ASSERT_TRUE(store->apply(run, changes));
  const auto written = [&](const std::string& cause, const char* exit_code) {
    SQLite::Database(file_, SQLite::OPEN_READWRITE)
        .exec("UPDATE attempt SET cause = '" + cause +
              "', end_sum = NULL, exit_code = " + exit_code);
    const auto attempt = store->attempts(run, {1})->front();
    EXPECT_EQ(attempt.cause, store->find_task(run, "1")->cause);
    return text_of_cause(attempt) + attempt.detail;
  };
  for (const char* cause : {"ok", "time limit", "signal 11 (Segmentation fault)", "runner lost"})
    EXPECT_EQ(written(cause, "NULL"), cause);
  EXPECT_EQ(written("exit 3", "3"), "exit 3");
  EXPECT_EQ(written("the moon", "3"), "the moon") << "as the detail";
}

TEST_F(SqliteStoreTest, RefusesANewerVersionAndLeavesIt) {
  open()->submit(new_run("a"));
  {
    SQLite::Database(file_, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
  }
  const Error error = open_error();
  EXPECT_EQ(error.kind, ErrorKind::corrupt);
  EXPECT_NE(error.message.find("upgrade Berth"), std::string::npos) << error.message;
  EXPECT_EQ(query("PRAGMA user_version"), 99);
}

TEST_F(SqliteStoreTest, MigratesStepByStepAllOrNothing) {
  open()->submit(new_run("a"));
  const auto now = static_cast<int>(1 + kMigrations.size());
  std::vector<const char*> steps(kMigrations.begin(), kMigrations.end());
  steps.push_back("ALTER TABLE run ADD COLUMN note TEXT");
  std::vector<const char*> broken = steps;
  broken.push_back("UPDATE nothing SET note = 1");
  EXPECT_FALSE(open_database(file_, broken));
  EXPECT_EQ(query("PRAGMA user_version"), now);
  EXPECT_TRUE(open_database(file_, steps));
  EXPECT_EQ(query("PRAGMA user_version"), now + 1);
  steps.push_back("UPDATE run SET note = 'moved'");
  EXPECT_TRUE(open_database(file_, steps)) << "only the step that is missing";
  EXPECT_EQ(query("SELECT count(*) FROM run WHERE note = 'moved'"), 1);
  EXPECT_EQ(query("PRAGMA user_version"), now + 2);
  EXPECT_EQ(open_error().kind, ErrorKind::corrupt) << "newer than this program";
}

TEST_F(SqliteStoreTest, AFileOfAnyOlderVersionBecomesTheSameAsANewOne) {
  open();
  const auto shape = [&] {
    SQLite::Database db(file_, SQLite::OPEN_READONLY);
    SQLite::Statement columns(db,
                              "SELECT m.name, c.name, c.type, c.dflt_value FROM sqlite_schema m, "
                              "pragma_table_info(m.name)"
                              " c WHERE m.type = 'table' ORDER BY m.name, c.name");
    std::string text;
    while (columns.executeStep())
      for (int i = 0; i < 4; ++i) text += columns.getColumn(i).getString() + ",";
    return text;
  };
  const std::string wanted = shape();
  fs::remove(file_);
  {
    std::ifstream old(tests::source_path("src/berth/store/testdata/schema_1.sql"));
    std::stringstream sql;
    sql << old.rdbuf();
    SQLite::Database db(file_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec(sql.str());
    db.exec("PRAGMA user_version = 1");
    db.exec(
        "INSERT INTO run (id, name, kind, directory, priority, created_ns, done, cached)"
        " VALUES (1, 'f-1', 'flow', '/', 0, 0, 2, 0), (2, 'e-1', 'experiment', '/', 0, 0, 1, 0);"
        "INSERT INTO task (run_id, number, label, state, token, params_json) VALUES"
        " (1, 1, 'a', 'done', 7, '{}'), (1, 2, 'b', 'done', 0, '{}'),"
        " (2, 1, '1', 'done', 0, '{}')");
  }
  open();
  EXPECT_EQ(shape(), wanted);
  EXPECT_EQ(query("SELECT count(*) FROM task WHERE state = 'skipped' AND label = 'b'"), 1);
  EXPECT_EQ(query("SELECT done * 10 + skipped FROM run WHERE id = 1"), 11);
  EXPECT_EQ(query("SELECT done * 10 + skipped FROM run WHERE id = 2"), 10);
}

TEST_F(SqliteStoreTest, CausesOfAnyOlderVersionGetTheirNames) {
  std::ifstream old(tests::source_path("src/berth/store/testdata/schema_1.sql"));
  std::stringstream first;
  first << old.rdbuf();
  for (std::size_t version = 1; version <= 7; ++version) {
    SCOPED_TRACE(version);
    file_ = directory_ / fmt::format("{}.db", version).c_str();
    {
      SQLite::Database db(file_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      db.exec(first.str());
      db.exec("PRAGMA user_version = 1");
    }
    ASSERT_TRUE(open_database(file_, kMigrations.first(version - 1)));
    {
      SQLite::Database db(file_, SQLite::OPEN_READWRITE);
      db.exec(
          "INSERT INTO run (id, name, kind, directory, priority, created_ns, waiting)"
          " VALUES (1, 'e-1', 'experiment', '/', 0, 0, 1);"
          "INSERT INTO task (run_id, number, label, params_json) VALUES (1, 1, 'a', '{}');");
      db.exec(sql_of_old_causes());
    }
    const auto store = open();
    expect_old_causes(*store);
    EXPECT_FALSE(store->find_task({1}, "a")->cause) << "of the last attempt";
  }
}

TEST_F(SqliteStoreTest, MissingDirectoryIsAnError) {
  file_ = directory_ / "none" + "/berth.db";
  const Error error = open_error();
  EXPECT_EQ(error.kind, ErrorKind::io);
  EXPECT_NE(error.message.find("No such file"), std::string::npos) << error.message;
}

TEST_F(SqliteStoreTest, ReadOnlyDirectoryIsDenied) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::permissions(directory_.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(open_error().kind, ErrorKind::denied);
}

TEST_F(SqliteStoreTest, ErrorsSayWhatToDo) {
  const auto kind = [](int code) { return explain("f", code, "m").kind; };
  EXPECT_EQ(kind(SQLITE_FULL), ErrorKind::full);
  EXPECT_EQ(kind(SQLITE_IOERR_SHMSIZE), ErrorKind::full);
  EXPECT_EQ(kind(SQLITE_NOMEM), ErrorKind::full);
  EXPECT_EQ(kind(SQLITE_BUSY_SNAPSHOT), ErrorKind::busy);
  EXPECT_EQ(kind(SQLITE_LOCKED), ErrorKind::busy);
  EXPECT_EQ(kind(SQLITE_CORRUPT_INDEX), ErrorKind::corrupt);
  EXPECT_EQ(kind(SQLITE_READONLY_DBMOVED), ErrorKind::denied);
  EXPECT_EQ(kind(SQLITE_IOERR_FSYNC), ErrorKind::io);
  EXPECT_EQ(kind(SQLITE_CONSTRAINT), ErrorKind::io);
  EXPECT_EQ(explain("/s/berth.db", SQLITE_FULL, "database or disk is full").message,
            "/s/berth.db: database or disk is full; free some space on its volume and try again");
}

TEST_F(SqliteStoreTest, KnowsNetworkFileSystems) {
  EXPECT_TRUE(is_network_file_system(0x6969));
  EXPECT_TRUE(is_network_file_system(0xffffffffff534d42U)) << "sign-extended, as statfs has it";
  EXPECT_FALSE(is_network_file_system(0xef53)) << "ext4";
  EXPECT_FALSE(is_network_file_system(0x01021994)) << "tmpfs";
}

/// A volume of 1 MB that goes with the test.
class SmallVolume {
 public:
  explicit SmallVolume(const fs::path& place) : place_(place) {
    fs::create_directory(place_);
    mounted_ = mount("tmpfs", place_.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  SmallVolume(const SmallVolume&) = delete;
  SmallVolume& operator=(const SmallVolume&) = delete;
  ~SmallVolume() {
    if (mounted_) umount2(place_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  fs::path place_;
  bool mounted_ = false;
};

class FullDiskTest : public SqliteStoreTest {
 protected:
  void SetUp() override {
    if (!volume_.mounted()) GTEST_SKIP() << "may not mount a small volume";
    file_ = directory_ / "small" + "/berth.db";
  }
  SmallVolume volume_{directory_.path() / "small"};
};

TEST_F(FullDiskTest, KeepsWhatWasAcknowledged) {
  auto store = open();
  const RunId run = store->submit(new_run("kept", 100))->id;
  const Error whole = store->submit(new_run("large", 100'000)).error();
  EXPECT_EQ(whole.kind, ErrorKind::full) << whole.message;

  std::size_t attempts = 0;
  Result<Applied> applied;
  for (std::int64_t token = 1; token < 100'000; ++token) {
    const std::vector<Change> changes = {started(1, token), seen(1, token, "loss", 0.5),
                                         ended(1, token, TaskState::waiting)};
    applied = store->apply(run, changes);
    if (!applied) break;
    ++attempts;
  }
  ASSERT_FALSE(applied) << "1 MB was never full";
  EXPECT_EQ(applied.error().kind, ErrorKind::full) << applied.error().message;
  EXPECT_GT(attempts, 0U);
  EXPECT_EQ(store->attempts(run, TaskNumber{1})->size(), attempts);
  EXPECT_EQ(store->runs()->size(), 1U);
  const std::string acknowledged = everything(*store);
  store.reset();
  EXPECT_EQ(everything(*open()), acknowledged);
}

TEST_F(FullDiskTest, OpensOnceThereIsSpaceAgain) {
  std::string acknowledged;
  {
    const auto store = open();
    store->submit(new_run("kept", 100));
    acknowledged = everything(*store);
  }
  const std::string ballast = file_ + ".ballast";
  std::ofstream(ballast) << std::string(4 << 20, 'x') << std::flush;
  const auto opened = sqlite_store(file_);
  const auto submitted = opened ? (*opened)->submit(new_run("a", 1000))
                                : Result<RunRecord>(std::unexpected(opened.error()));
  EXPECT_EQ(submitted.error().kind, ErrorKind::full) << submitted.error().message;
  fs::remove(ballast);
  EXPECT_EQ(everything(*open()), acknowledged);
  EXPECT_EQ(open()->submit(new_run("a", 10))->name, "a-1");
}

}  // namespace
}  // namespace berth::store
