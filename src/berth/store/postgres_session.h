// A session is a PostgreSQL database as a store needs it: it has the current schema, and its reads,
// transactions and locks outlive restarts of the server.
//
// A transaction takes two round trips: one for what it reads, under its locks, and one for what it
// writes, together with COMMIT. Its first statement writes the transaction's number into the
// session's row of `writer`. When the connection breaks during the second round trip, a new
// connection looks at that row, which the old transaction holds until it has ended either way.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "berth/base/rng.h"
#include "berth/store/postgres_connection.h"

namespace berth::store {

/// The patience with a server that is away: pauses that grow, and differ from client to client.
class Patience {
 public:
  Patience(std::chrono::milliseconds most, Rng& chance, ServerWait& wait)
      : most_(most), chance_(chance), wait_(wait) {}
  /// Pauses. Returns false, at once, when the patience is at its end.
  bool pause(const Error& why);
  std::chrono::milliseconds spent() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 began_);
  }

 private:
  std::chrono::milliseconds most_;
  Rng& chance_;
  ServerWait& wait_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  int pauses_ = 0;
};

class Session {
 public:
  /// Opens a session and waits for a server that is away. Errors are those of postgres_store().
  static Result<std::unique_ptr<Session>> open(const std::string& url,
                                               std::chrono::milliseconds patience);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& place() const { return address_.place; }
  /// The id that this database keeps for good.
  const std::string& id() const { return id_; }
  std::int64_t round_trips() const;

  void wait_with(WaitForStore wait) { wait_->wait_with(std::move(wait)); }

  /// Executes statements that all see one state of the database; returns the answer to each.
  Result<std::vector<Rows>> read(const Statements& statements);

  /// Executes a transaction. `plan` gets the answers to `first` and adds what is to be written; all
  /// of it happens, or nothing. `plan` is called again after a transaction that was undone.
  template <class Plan>
  auto write(const Statements& first, Plan plan) {
    using Answer = decltype(plan(std::declval<std::vector<Rows>&>(), std::declval<Statements&>()));
    Answer answer = std::unexpected(Error{});
    const Status done = write_with(first, [&](std::vector<Rows>& rows, Statements& last) -> Status {
      answer = plan(rows, last);
      return answer ? Status() : std::unexpected(answer.error());
    });
    return done ? std::move(answer) : Answer(std::unexpected(done.error()));
  }

  /// A plan that writes more than memory should hold executes a part of its transaction by this.
  Result<std::vector<Rows>> step(const Statements& statements) {
    return connection_->run(statements);
  }

  /// Takes a lock by number for this session. After a broken connection it is taken again, unless
  /// another session has it then. busy: another session has it.
  Status lock(std::int64_t key);
  void unlock(std::int64_t key);
  /// Notices that the connection broke, and takes the locks again. stale: another session has one.
  /// In how long this is to be called again; none: there are no locks.
  Result<std::optional<Duration>> keep_locks();

  /// The version of the schema of this program; SQLite files have the same number.
  static int schema_version();

 private:
  using Plan = std::function<Status(std::vector<Rows>&, Statements&)>;

  Session(Address address, std::chrono::milliseconds patience, std::uint64_t seed);
  Status write_with(const Statements& first, const Plan& plan);
  Result<bool> try_write(const Statements& first, const Plan& plan, bool& unknown);
  Result<bool> was_committed();
  Error final(Error error) const;
  Mend recover();
  Status reconnect(Patience& patience,
                   std::chrono::milliseconds unanswered = std::chrono::milliseconds::max());
  Status connect();
  Status greet();
  Status bring_to_current();
  Status end_former_self();
  Status take_locks();

  Address address_;
  std::chrono::milliseconds patience_;
  Rng chance_;
  std::string writer_;  // The key of our row of `writer`.
  std::int64_t transaction_ = 0;
  std::string id_;
  std::string backend_, since_;  // the server's process of this connection, and when it started
  std::set<std::int64_t> locks_;
  bool robbed_ = false;                           // of a lock, while the connection was broken
  std::chrono::steady_clock::time_point kept_{};  // when they were looked after last
  std::shared_ptr<ServerWait> wait_ = std::make_shared<ServerWait>();
  std::unique_ptr<Connection> connection_;
  Mend mend_ = Mend::nothing;  // of an attempt to connect
};

}  // namespace berth::store
