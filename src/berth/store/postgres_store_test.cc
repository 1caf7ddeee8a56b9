// What PostgreSQL adds to the contract: machines that share it, connections that break, servers
// that are away, and secrets. tests/postgres_server.py starts the server.
#include <gtest/gtest.h>

#include <SQLiteCpp/SQLiteCpp.h>

#include <map>
#include <thread>

#include "berth/store/postgres_session.h"
#include "berth/store/sqlite_database.h"
#include "berth/testing/cutting_proxy.h"
#include "berth/testing/postgres.h"
#include "berth/testing/store.h"

namespace berth::store {
namespace {

using std::chrono::milliseconds;

class PostgresStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_server().empty()) GTEST_SKIP() << "no server: tests/postgres_server.py starts one";
    database_.emplace();
  }
  std::unique_ptr<Store> open() { return test_store(database_->url()).value(); }
  Error open_error(const std::string& url, Duration patience = milliseconds(100)) {
    const auto opened = postgres_store(url, "ada-desk", patience);
    return opened ? Error{ErrorKind::usage, "it opened"} : opened.error();
  }
  /// What somebody else does to the database.
  void sql(const std::string& text) {
    const auto done = test_connection(database_->url())->run_script(text.c_str());
    ASSERT_TRUE(done) << done.error().message;
  }
  /// As when the server ends a session.
  void end_other_sessions() {
    sql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()");
  }
  std::uint16_t server_port() {
    auto address = read_address(database_->url()).value();
    return static_cast<std::uint16_t>(std::stoi(address["port"]));
  }
  std::string url_through(std::uint16_t port) {
    return fmt::format("postgresql://ada@127.0.0.1:{}/{}", port, database_->name());
  }

  std::optional<TestDatabase> database_;
};

TEST_F(PostgresStoreTest, ARunnerOfAnOlderEpochIsRefused) {
  const auto one = open();
  const auto two = open();
  const RunId run = one->submit(new_run("a"))->id;
  ASSERT_TRUE(one->take_over(run, 1, 1, at_s(5), {}));
  const std::vector<Change> moved_on = {RunMoved{RunState::running, at_s(6), {}}};
  EXPECT_TRUE(one->apply(run, moved_on));
  ASSERT_TRUE(two->take_over(run, 2, 2, at_s(7), {}));
  const std::string before = everything(*two);
  EXPECT_EQ(one->apply(run, moved_on).error().kind, ErrorKind::stale);
  EXPECT_EQ(everything(*two), before);
  EXPECT_TRUE(two->apply(run, moved_on));
  EXPECT_TRUE(open()->apply(run, moved_on)) << "who took nothing over is no runner";
}

TEST_F(PostgresStoreTest, OneClaimsARunAtATime) {
  const auto one = open();
  const auto two = open();
  const RunId run = one->submit(new_run("a"))->id;
  auto first = claim(*one, run);
  ASSERT_TRUE(first);
  EXPECT_EQ(claim(*two, run).error().kind, ErrorKind::busy);
  EXPECT_EQ(claim(*one, run).error().kind, ErrorKind::busy);
  first->reset();
  EXPECT_TRUE(claim(*two, run));
}

TEST_F(PostgresStoreTest, AClaimOutlivesItsConnection) {
  const auto one = open();
  const RunId run = one->submit(new_run("a"))->id;
  const auto ours = claim(*one, run);
  end_other_sessions();
  EXPECT_TRUE(keep_claims(*one));
  const auto two = open();
  EXPECT_EQ(claim(*two, run).error().kind, ErrorKind::busy);
}

TEST_F(PostgresStoreTest, AClaimThatSomebodyTookMeanwhileIsLost) {
  const auto one = open();
  const RunId run = one->submit(new_run("a"))->id;
  const auto ours = claim(*one, run);
  end_other_sessions();
  const auto two = open();
  const auto theirs = claim(*two, run);
  ASSERT_TRUE(theirs);
  EXPECT_EQ(keep_claims(*one).error().kind, ErrorKind::stale);
}

TEST_F(PostgresStoreTest, GoesOnWhenTheServerEndedItsSession) {
  const auto store = open();
  const RunId run = store->submit(new_run("a"))->id;
  for (std::int64_t token = 1; token <= 5; ++token) {
    end_other_sessions();
    const std::vector<Change> changes = {started(1, token), ended(1, token, TaskState::waiting)};
    EXPECT_TRUE(store->apply(run, changes));
    end_other_sessions();
    EXPECT_EQ(store->attempts(run, TaskNumber{1})->size(), static_cast<std::size_t>(token));
  }
}

/// Every message of a submission and of a batch is the one at which the connection breaks.
class PostgresCutTest : public PostgresStoreTest,
                        public testing::WithParamInterface<CuttingProxy::Cut> {};
INSTANTIATE_TEST_SUITE_P(Cuts, PostgresCutTest,
                         testing::Values(CuttingProxy::Cut::before, CuttingProxy::Cut::after,
                                         CuttingProxy::Cut::unnoticed));

TEST_P(PostgresCutTest, WhereverTheConnectionBreaksEverythingHappensOnce) {
  CuttingProxy proxy(server_port());
  const auto through = test_store(url_through(proxy.port())).value();
  const auto beside = open();
  int cuts = 0;
  for (int nth = 1; nth < 100; ++nth) {
    proxy.arm(nth, GetParam());
    const auto run = through->submit(new_run("a"));
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->name, fmt::format("a-{}", nth));
    EXPECT_EQ(text(*run), text(*beside->find_run(run->name)));
    EXPECT_EQ(beside->runs()->size(), static_cast<std::size_t>(nth));
    const auto taken = through->take_over(run->id, 4711, 1, at_s(5), {});
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(taken->epoch, 1);
    const auto token = (std::int64_t{1} << 32) + 1;
    const std::vector<Change> changes = {started(1, token), seen(1, token, "loss", 0.5),
                                         ended(1, token), RunMoved{RunState::done, at_s(9), {}}};
    const auto applied = through->apply(run->id, changes);
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_EQ(applied->refused, 0);
    EXPECT_EQ(beside->attempts(run->id, {1})->size(), 1U);
    EXPECT_EQ(beside->metrics(run->id, {1})->size(), 1U);
    EXPECT_EQ(text(beside->find_run(run->name)->counts), "2w 0r 1d 0c 0f 0s");
    if (!proxy.cut()) break;
    ++cuts;
  }
  EXPECT_GE(cuts, 12) << "two round trips a transaction, each there and back";
}

TEST_F(PostgresStoreTest, AServerThatIsAwayIsAnErrorInTheEnd) {
  CuttingProxy proxy(1);  // nobody listens there
  const Error error = open_error(url_through(proxy.port()));
  EXPECT_EQ(error.kind, ErrorKind::io);
  EXPECT_NE(error.message.find("tried for"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("check that the server runs"), std::string::npos) << error.message;
}

TEST_F(PostgresStoreTest, ErrorsOfTheServerSayWhatToDo) {
  auto address = read_address(database_->url()).value();
  const auto url = [&](const char* user, const char* name) {
    return fmt::format("postgresql://{}:s3cret@127.0.0.1:{}/{}", user, address["port"], name);
  };
  const Error nobody = open_error(url("nobody_here", "postgres"));
  EXPECT_EQ(nobody.kind, ErrorKind::denied) << nobody.message;
  const Error nowhere = open_error(url("ada", "no_such_database"));
  EXPECT_EQ(nowhere.kind, ErrorKind::not_found) << nowhere.message;
  EXPECT_NE(nowhere.message.find("createdb"), std::string::npos) << nowhere.message;
  for (const auto& error : {nobody, nowhere}) {
    EXPECT_EQ(error.message.find("s3cret"), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("LOCATION"), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
  }
}

TEST_F(PostgresStoreTest, AUserWithoutRightsIsDenied) {
  sql("CREATE ROLE guest LOGIN; REVOKE ALL ON DATABASE " + database_->name() + " FROM guest");
  const auto url =
      fmt::format("postgresql://guest@127.0.0.1:{}/{}", server_port(), database_->name());
  EXPECT_EQ(open_error(url).kind, ErrorKind::denied) << "may not make the schema";
  open();
  EXPECT_EQ(open_error(url).kind, ErrorKind::denied) << "may not use it";
  sql("DROP ROLE guest");
}

TEST_F(PostgresStoreTest, RefusesANewerVersionAndLeavesIt) {
  open()->submit(new_run("a"));
  sql("UPDATE berth.store SET schema_version = 99");
  const Error error = open_error(database_->url());
  EXPECT_EQ(error.kind, ErrorKind::corrupt);
  EXPECT_NE(error.message.find("upgrade Berth"), std::string::npos) << error.message;
  sql("UPDATE berth.store SET schema_version = 1/(schema_version/99)");
}

TEST_F(PostgresStoreTest, ADatabaseOfTheFirstVersionBecomesTheSameAsANewOne) {
  auto run = new_run("f", 2);
  run.kind = "flow";
  open()->submit(run);
  sql("SET search_path = berth;" + sql_of_old_causes() +
      "ALTER TABLE attempt DROP COLUMN signal, DROP COLUMN lease_ns");
  sql("ALTER TABLE berth.run DROP COLUMN skipped;"
      "ALTER TABLE berth.task DROP CONSTRAINT task_state_check;"
      "ALTER TABLE berth.task ADD CONSTRAINT task_state_check CHECK"
      " (state IN ('waiting', 'running', 'done', 'cached', 'failed', 'stopped'));"
      "UPDATE berth.task SET state = 'done', token = number - 1;"
      "UPDATE berth.run SET waiting = 0, done = 2; UPDATE berth.store SET schema_version = 6");
  const auto store = open();
  const auto now = store->find_run("f-1").value();
  EXPECT_EQ(now.counts, (Counts{.done = 1, .skipped = 1}));
  EXPECT_EQ(store->find_task(now.id, "1")->state, TaskState::skipped);
  expect_old_causes(*store);
  const std::vector<Change> changes{TaskReopened{{2}}, TaskMoved{{2}, TaskState::skipped}};
  ASSERT_TRUE(store->apply(now.id, changes));
}

TEST_F(PostgresStoreTest, RefusesASchemaThatIsNotItsOwn) {
  sql("CREATE SCHEMA berth; CREATE TABLE berth.bookmark (url TEXT)");
  EXPECT_EQ(open_error(database_->url()).kind, ErrorKind::corrupt);
  sql("DROP TABLE berth.bookmark");
}

TEST_F(PostgresStoreTest, ManyOpenANewDatabaseAndWriteAtOnce) {
  constexpr int kWriters = 8;
  std::vector<std::jthread> writers;
  for (int i = 0; i < kWriters; ++i)
    writers.emplace_back([this] {
      const auto store = open();
      const auto run = store->submit(new_run("a"));
      ASSERT_TRUE(run) << run.error().message;
      for (std::int64_t token = 1; token <= 20; ++token) {
        const std::vector<Change> changes = {
            started(1, token), ended(1, token, TaskState::waiting),
            ResultKept{"same", std::to_string(token), run->name, at_s(token)}};
        const auto applied = store->apply(run->id, changes);
        ASSERT_TRUE(applied) << applied.error().message;
      }
    });
  writers.clear();
  const auto store = open();
  const auto runs = store->runs().value();
  EXPECT_EQ(runs.size(), std::size_t{kWriters});
  for (const auto& run : runs) EXPECT_EQ(store->attempts(run.id, {1})->size(), 20U);
  EXPECT_EQ(store->result("same")->sequence, kWriters * 20);
}

TEST_F(PostgresStoreTest, TheTablesAreThoseOfSqlite) {
  open();
  const TemporaryDirectory directory;
  std::multimap<std::string, std::string> ours, theirs;
  const auto file = open_database(directory / "berth.db").value();
  SQLite::Statement columns(*file,
                            "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name)"
                            " c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'"
                            " AND c.name NOT GLOB '*_sum'");
  while (columns.executeStep())
    ours.emplace(columns.getColumn(0).getString(), columns.getColumn(1).getString());
  Statements ask;
  add(ask,
      "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'berth'"
      " AND table_name NOT IN ('store', 'writer')");
  auto rows = test_connection(database_->url())->run(ask).value();
  std::string table, column;
  while (rows[0].next()) {
    ASSERT_TRUE(rows[0].read(table, column));
    theirs.emplace(table, column);
  }
  const auto sorted = [](const auto& all) { return std::set(all.begin(), all.end()); };
  EXPECT_EQ(sorted(theirs), sorted(ours));
  EXPECT_EQ(Session::schema_version(), 1 + static_cast<int>(kMigrations.size()));
}

TEST_F(PostgresStoreTest, ABatchTakesTwoRoundTrips) {
  auto session = Session::open(database_->url(), milliseconds(0)).value();
  const auto before = session->round_trips();
  ASSERT_TRUE(session->write({{"SELECT 1", {}}}, [](auto&, auto&) -> Status { return {}; }));
  EXPECT_EQ(session->round_trips() - before, 2);
}

TEST(PostgresAddress, NoMessageRepeatsAPassword) {
  for (const char* url :
       {"postgresql://ada:s3@cret@h/db", "postgresql://ada:s3cret@host/db?nonsense=1",
        "postgresql://ada:s3cret%@h/db", "mysql://ada:s3cret@host/db"}) {
    const auto address = read_address(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().kind, ErrorKind::usage) << url;
    EXPECT_EQ(address.error().message.find("cret"), std::string::npos) << address.error().message;
  }
  const auto address = read_address("postgresql://ada:s3cret@db.lab:5433/berth?password=s3cret");
  EXPECT_EQ(address->place, "postgresql://ada@db.lab:5433/berth");
}

TEST(PostgresAddress, KnowsUrlsAndWhichHoldAPassword) {
  EXPECT_TRUE(is_database_url("postgres://h/d"));
  EXPECT_FALSE(is_database_url("/home/ada/postgres"));
  EXPECT_TRUE(holds_password("postgresql://ada:s3cret@h/d"));
  EXPECT_TRUE(holds_password("postgresql://h/d?user=ada&password=s3cret"));
  EXPECT_FALSE(holds_password("postgresql://ada@h:5432/d"));
  EXPECT_FALSE(holds_password("/home/ada:b@c"));
}

TEST(PostgresAddress, HostsTakeTurns) {
  auto address = read_address("postgresql://a:1,b:2,c:3/d").value();
  address.rotate();
  EXPECT_EQ(address["host"], "b,c,a");
  EXPECT_EQ(address["port"], "2,3,1");
  EXPECT_EQ(address["target_session_attrs"], "read-write");
}

TEST(PostgresErrors, KindsFollowTheState) {
  const auto kind = [](const char* state) { return explain_postgres("p", state, "m").error.kind; };
  const auto mend = [](const char* state) { return explain_postgres("p", state, "m").mend; };
  EXPECT_EQ(kind("53100"), ErrorKind::full);
  EXPECT_EQ(kind("28P01"), ErrorKind::denied);
  EXPECT_EQ(kind("XX001"), ErrorKind::corrupt);
  EXPECT_EQ(kind("55P03"), ErrorKind::busy);
  EXPECT_EQ(kind("99999"), ErrorKind::io);
  EXPECT_EQ(mend("40P01"), Mend::again);
  EXPECT_EQ(mend("57P01"), Mend::reconnect);
  EXPECT_EQ(mend("57014"), Mend::nothing);
  EXPECT_EQ(mend("25006"), Mend::reconnect);
  EXPECT_EQ(mend(""), Mend::reconnect);
  EXPECT_EQ(mend("53100"), Mend::nothing);
}

}  // namespace
}  // namespace berth::store
