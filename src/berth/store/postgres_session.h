// A PostgreSQL database as a store needs it: the current schema, reads and transactions that
// outlive the server's restarts, and locks that do.
//
// A transaction takes two round trips: what it reads, under its locks, and what it writes together
// with COMMIT. Its first statement writes the transaction's number into the session's row of
// `writer`. Where the connection breaks during the second, a new one looks at that row, which the
// old transaction holds until it has ended either way.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "berth/base/rng.h"
#include "berth/store/postgres_connection.h"

namespace berth::store {

/// How long a server that is away is waited for: pauses that grow, no two clients' alike.
class Patience {
 public:
  Patience(std::chrono::milliseconds most, Rng& chance, ServerWait& wait)
      : most_(most), chance_(chance), wait_(wait) {}
  /// False, at once, when it is at its end.
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
  std::chrono::milliseconds next_{50};
};

class Session {
 public:
  /// Waits for a server that is away. Errors as of postgres_store().
  static Result<std::unique_ptr<Session>> open(const std::string& url,
                                               std::chrono::milliseconds patience);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& place() const { return address_.place; }
  /// Of this database, for good.
  const std::string& id() const { return id_; }
  std::int64_t round_trips() const;

  void wait_with(WaitForStore wait) { wait_->wait_with(std::move(wait)); }

  /// All see one state of the database. Rows of each, in order.
  Result<std::vector<Rows>> read(const Statements& statements);

  /// `plan` gets the rows of `first` and names what is to be written; all of it happens or nothing.
  /// It may be called again, after a transaction that was undone.
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

  /// For a plan that writes more than memory should hold: part of its transaction, now.
  Result<std::vector<Rows>> step(const Statements& statements) {
    return connection_->run(statements);
  }

  /// A lock of this session by number, taken again after a broken connection, if nobody else has
  /// it then. busy: another has it.
  Status lock(std::int64_t key);
  void unlock(std::int64_t key);
  /// Notices that the connection broke, and takes the locks again. stale: somebody else has one.
  Status keep_locks();

  /// The version that this program makes and knows, and the same number as SQLite's.
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
  std::string writer_;  // the key of our row
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
