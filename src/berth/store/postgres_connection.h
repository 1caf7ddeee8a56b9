// A connection to a PostgreSQL server sends statements together and gets their answers together, in
// one round trip. Its errors say what to do.
#pragma once

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "berth/store/database.h"
#include "berth/store/postgres_address.h"
#include "berth/store/postgres_library.h"
#include "berth/store/postgres_values.h"

namespace berth::store {

/// The answer to one statement.
class Rows {
 public:
  Rows(const Libpq& pq, PGresult* result) : pq_(&pq), result_(result, pq.PQclear) {}

  /// Whether there is another row.
  bool next() { return ++row_ < pq_->PQntuples(result_.get()); }
  /// How many rows the statement changed.
  std::int64_t changed() const;
  /// Reads the row's columns in order. corrupt: a column is not of the type.
  template <class... Columns>
  Status read(Columns&... values) {
    int column = 0;
    if ((get(column++, values) && ...)) return {};
    return unreadable(column - 1);
  }
  /// The server has checksums of its own.
  template <class... Values>
  Status check(const char* /*what*/, const Values&...) {
    return {};
  }

 private:
  std::string_view text(int column) const {
    return {pq_->PQgetvalue(result_.get(), row_, column),
            static_cast<std::size_t>(pq_->PQgetlength(result_.get(), row_, column))};
  }
  template <class Value>
  bool get(int column, Value& value) {
    return from_sql(text(column), value);
  }
  template <class Value>
  bool get(int column, std::optional<Value>& value) {
    value.reset();
    return is_null(column) || get(column, value.emplace());
  }
  /// SQLite has no NaN; what came from there is NULL.
  bool get(int column, double& value) {
    value = std::numeric_limits<double>::quiet_NaN();
    return is_null(column) || from_sql(text(column), value);
  }
  bool is_null(int column) const { return pq_->PQgetisnull(result_.get(), row_, column) != 0; }
  Status unreadable(int column) const;

  const Libpq* pq_;
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
  int row_ = -1;
};

/// What has to be done after an error before another try.
enum class Mend : std::uint8_t {
  nothing,
  again,      ///< The transaction can be tried again: the server undid it for another one's sake.
  reconnect,  ///< The connection is gone, or its server is about to be.
};

/// The meaning of an error of the server. `state` is an SQLSTATE of five characters, or "" when the
/// connection failed.
struct Explained {
  Error error;
  Mend mend;
};
Explained explain_postgres(const std::string& place, std::string_view state,
                           std::string_view message);

/// The waits for a server: they sleep, or call what wait_with() was given.
class ServerWait {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Returns whether the socket became readable, or `writable`, in time.
  bool until_ready(const std::string& place, int socket, bool writable, Time until);
  void pause(const Error& why, std::chrono::milliseconds time);
  bool given_up() const { return given_up_; }
  void wait_with(WaitForStore wait) { wait_ = std::move(wait); }

 private:
  WaitForStore wait_;
  bool given_up_ = false;
};

class Connection {
 public:
  /// Tries to connect once. denied, not_found: the server refused; io: there is no server, or it
  /// does not answer. `mend` then says whether another try may help.
  static Result<std::unique_ptr<Connection>> open(
      const Address& address, Mend& mend,
      std::shared_ptr<ServerWait> server_wait = std::make_shared<ServerWait>());

  /// Executes the statements in one round trip. The error is that of the first statement that
  /// failed; those behind it were not executed, and an open transaction waits for its ROLLBACK.
  Result<std::vector<Rows>> run(const Statements& statements);
  /// Executes a text of several statements, which have no values.
  Status run_script(const char* sql);

  /// What has to be done after the last error.
  Mend mend() const { return mend_; }
  bool lost() const { return mend_ == Mend::reconnect; }
  int server_version() const { return pq_.PQserverVersion(connection_.get()); }
  std::string encoding() const;
  std::int64_t round_trips() const { return round_trips_; }

 private:
  using Handle = std::unique_ptr<PGconn, void (*)(PGconn*)>;
  Connection(const Libpq& pq, Handle connection, std::string place,
             std::shared_ptr<ServerWait> server_wait)
      : pq_(pq),
        connection_(std::move(connection)),
        place_(std::move(place)),
        wait_(std::move(server_wait)) {}

  Status wait(bool writable);
  Status flush();
  Result<PGresult*> next_result();
  Status failed(std::string_view state, std::string_view message);
  Status broken();
  Status check(PGresult* result);

  const Libpq& pq_;
  Handle connection_;
  std::string place_;
  std::shared_ptr<ServerWait> wait_;
  Mend mend_ = Mend::nothing;
  std::int64_t round_trips_ = 0;
};

}  // namespace berth::store
