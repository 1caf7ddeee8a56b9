#include "berth/store/postgres_connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "berth/base/text.h"

namespace berth::store {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kConnectPatience = std::chrono::seconds(10);
/// A server that says nothing for so long is taken for dead. Statements wait for locks up to a
/// minute.
constexpr auto kAnswerPatience = std::chrono::seconds(90);

struct SqlstateMeaning {
  std::string_view state;  // or how it begins
  ErrorKind kind;
  Mend mend;
  const char* advice;
};

constexpr const char* kServerAway = "check that the server runs and can be reached";
constexpr const char* kPermitUser =
    "check the user and the password, which are read from ~/.pgpass, PGPASSFILE or the URL";

// What is listed first counts.
constexpr std::array kSqlstateMeanings = {
    SqlstateMeaning{"", ErrorKind::io, Mend::reconnect, kServerAway},
    SqlstateMeaning{"40", ErrorKind::busy, Mend::again, "try again"},
    SqlstateMeaning{"55P03", ErrorKind::busy, Mend::nothing,
                    "another process is writing: try again"},
    SqlstateMeaning{"57014", ErrorKind::busy, Mend::nothing,
                    "another process cancelled it: try again"},
    SqlstateMeaning{"25006", ErrorKind::io, Mend::reconnect, "this server is read-only"},
    SqlstateMeaning{"53300", ErrorKind::io, Mend::reconnect, "the server has too many connections"},
    SqlstateMeaning{"53400", ErrorKind::full, Mend::nothing, "raise the server's limit"},
    SqlstateMeaning{"53", ErrorKind::full, Mend::nothing,
                    "free some space on the server and try again"},
    SqlstateMeaning{"28", ErrorKind::denied, Mend::nothing, kPermitUser},
    SqlstateMeaning{
        "42501", ErrorKind::denied, Mend::nothing,
        "the user needs the rights on this database that docs/how-to/postgres.md names"},
    SqlstateMeaning{"3D000", ErrorKind::not_found, Mend::nothing,
                    "make it with: createdb -E UTF8 NAME"},
    SqlstateMeaning{"XX", ErrorKind::corrupt, Mend::nothing, "see the server's log"},
    SqlstateMeaning{"42", ErrorKind::corrupt, Mend::nothing,
                    "the tables of the schema berth are incomplete: restore them from a copy"},
    SqlstateMeaning{"3F", ErrorKind::corrupt, Mend::nothing, "the schema berth is gone"},
    SqlstateMeaning{"54", ErrorKind::invalid, Mend::nothing, "it is too long for PostgreSQL"},
    SqlstateMeaning{"08", ErrorKind::io, Mend::reconnect, kServerAway},
    SqlstateMeaning{"57", ErrorKind::io, Mend::reconnect, kServerAway},
    SqlstateMeaning{"25", ErrorKind::io, Mend::reconnect, kServerAway},
};
constexpr SqlstateMeaning kUnknownSqlstate = {"", ErrorKind::io, Mend::nothing,
                                              "see the server's log"};

const SqlstateMeaning& meaning_of(std::string_view state) {
  const auto found = std::ranges::find_if(kSqlstateMeanings, [&](const SqlstateMeaning& each) {
    return each.state.empty() ? state.empty() : state.starts_with(each.state);
  });
  return found == kSqlstateMeanings.end() ? kUnknownSqlstate : *found;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const auto word : words(text)) line += (line.empty() ? "" : " ") + std::string(word);
  return line;
}

/// From a verbose message "…FATAL:  28P01: password authentication failed…": what libpq tells in
/// no other way of a connection that was refused. The last one counts, of several servers.
std::string state_within(std::string_view message) {
  std::string state;
  for (auto at = message.find(":  "); at != std::string_view::npos;
       at = message.find(":  ", at + 1)) {
    const auto code = message.substr(at + 3, 6);
    const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
    if (code.size() == 6 && code[5] == ':' && std::ranges::all_of(code.substr(0, 5), letter))
      state = code.substr(0, 5);
  }
  return state;
}

/// Such a message without what is for PostgreSQL's developers.
std::string plain(std::string_view verbose, const std::string& state) {
  std::string text;
  for (const auto line : split(verbose, '\n'))
    if (!line.starts_with("LOCATION:")) text += std::string(line) + "\n";
  if (const auto at = text.find(state + ": "); !state.empty() && at != std::string::npos)
    text.erase(at, state.size() + 2);
  return text;
}

bool poll_one(int socket, bool writable, Clock::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd watch{socket, static_cast<short>(POLLIN | (writable ? POLLOUT : 0)), 0};
    const int ready = ::poll(&watch, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

/// What is answered at once is not worth asking others what they do meanwhile.
bool ServerWait::until_ready(const std::string& place, int socket, bool writable, Time until) {
  constexpr auto kAtOnce = std::chrono::milliseconds(100);
  const bool asks = wait_ || given_up_;
  if (poll_one(socket, writable, asks ? std::min(until, Clock::now() + kAtOnce) : until))
    return true;
  while (wait_ && !given_up_ && Clock::now() < until) {
    given_up_ = !wait_({place + ": it does not answer", socket, writable, until - Clock::now()});
    if (poll_one(socket, writable, Clock::now())) return true;
  }
  return false;
}

void ServerWait::pause(const Error& why, std::chrono::milliseconds time) {
  if (!wait_ && !given_up_) ::poll(nullptr, 0, static_cast<int>(time.count()));
  for (const auto until = Clock::now() + time; wait_ && !given_up_ && Clock::now() < until;)
    given_up_ = !wait_({.why = why.message, .most = until - Clock::now()});
}

std::int64_t Rows::changed() const {
  std::int64_t count = 0;
  (void)from_sql(pq_->PQcmdTuples(result_.get()), count);
  return count;
}

Status Rows::unreadable(int column) const {
  return fail(ErrorKind::corrupt, "the database contains data that Berth did not write: '{}'",
              clip(text(column)));
}

Explained explain_postgres(const std::string& place, std::string_view state,
                           std::string_view message) {
  const SqlstateMeaning& meaning = meaning_of(state);
  return {{meaning.kind, fmt::format("{}: {}; {}", place, one_line(message), meaning.advice)},
          meaning.mend};
}

Result<std::unique_ptr<Connection>> Connection::open(const Address& address, Mend& mend,
                                                     std::shared_ptr<ServerWait> server_wait) {
  BERTH_ASSIGN(const Libpq* const pq, libpq());
  std::vector<const char*> words, values;
  for (const auto& [word, value] : address.parameters) {
    words.push_back(word.c_str());
    values.push_back(value.c_str());
  }
  words.push_back(nullptr);
  values.push_back(nullptr);
  Handle handle(pq->PQconnectStartParams(words.data(), values.data(), 0), pq->PQfinish);
  if (!handle) return fail(ErrorKind::full, "{}: no memory for a connection", address.place);
  pq->PQsetErrorVerbosity(handle.get(), PQERRORS_VERBOSE);
  pq->PQsetNoticeProcessor(handle.get(), [](void*, const char*) {}, nullptr);

  const auto until = Clock::now() + kConnectPatience;
  auto state =
      pq->PQstatus(handle.get()) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  bool late = false;
  while (state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED && !late) {
    late = !server_wait->until_ready(address.place, pq->PQsocket(handle.get()),
                                     state == PGRES_POLLING_WRITING, until);
    if (!late) state = pq->PQconnectPoll(handle.get());
  }
  if (state != PGRES_POLLING_OK) {
    const std::string verbose = late ? "it does not answer" : pq->PQerrorMessage(handle.get());
    std::string code = late ? "" : state_within(verbose);
    if (pq->PQconnectionNeedsPassword(handle.get()) != 0) code = "28P01";
    auto explained = explain_postgres(address.place, code, plain(verbose, code));
    mend = explained.mend;
    return std::unexpected(std::move(explained.error));
  }
  pq->PQsetErrorVerbosity(handle.get(), PQERRORS_DEFAULT);
  pq->PQsetnonblocking(handle.get(), 1);
  pq->PQenterPipelineMode(handle.get());
  return std::unique_ptr<Connection>(
      new Connection(*pq, std::move(handle), address.place, std::move(server_wait)));
}

std::string Connection::encoding() const {
  const char* encoding = pq_.PQparameterStatus(connection_.get(), "server_encoding");
  return encoding == nullptr ? "" : encoding;
}

Status Connection::failed(std::string_view state, std::string_view message) {
  auto explained = explain_postgres(place_, state, message);
  mend_ = explained.mend;
  return std::unexpected(std::move(explained.error));
}

Status Connection::broken() {
  return failed("", pq_.PQerrorMessage(connection_.get()));
}

Status Connection::wait(bool writable) {
  if (wait_->until_ready(place_, pq_.PQsocket(connection_.get()), writable,
                         Clock::now() + kAnswerPatience))
    return {};
  return failed("", "the server has stopped answering");
}

Status Connection::flush() {
  for (;;) {
    const int left = pq_.PQflush(connection_.get());
    if (left < 0) return broken();
    if (left == 0) return {};
    // The server may wait for us to read before it reads on.
    BERTH_TRY(wait(true));
    if (pq_.PQconsumeInput(connection_.get()) == 0) return broken();
  }
}

Result<PGresult*> Connection::next_result() {
  while (pq_.PQisBusy(connection_.get()) != 0) {
    BERTH_TRY(wait(false));
    if (pq_.PQconsumeInput(connection_.get()) == 0) return std::unexpected(broken().error());
  }
  return pq_.PQgetResult(connection_.get());
}

/// Ok unless it tells of an error.
Status Connection::check(PGresult* result) {
  const auto status = pq_.PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_PIPELINE_SYNC)
    return {};
  const char* state = pq_.PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* primary = pq_.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return failed(state == nullptr ? "" : state,
                primary == nullptr ? pq_.PQresultErrorMessage(result) : primary);
}

Result<std::vector<Rows>> Connection::run(const Statements& statements) {
  mend_ = Mend::nothing;
  ++round_trips_;
  for (const Statement& statement : statements) {
    std::vector<const char*> values;
    for (const auto& value : statement.values) values.push_back(value ? value->c_str() : nullptr);
    if (pq_.PQsendQueryParams(connection_.get(), statement.sql, static_cast<int>(values.size()),
                              nullptr, values.data(), nullptr, nullptr, 0) == 0)
      return std::unexpected(broken().error());
  }
  if (pq_.PQpipelineSync(connection_.get()) == 0) return std::unexpected(broken().error());
  BERTH_TRY(flush());

  std::vector<Rows> answers;
  Status first;
  for (;;) {
    BERTH_ASSIGN(PGresult* const result, next_result());
    if (result == nullptr) {
      if (pq_.PQstatus(connection_.get()) == CONNECTION_BAD)
        return std::unexpected(broken().error());
      continue;  // between two statements
    }
    Rows rows(pq_, result);
    const auto status = pq_.PQresultStatus(result);
    if (status == PGRES_PIPELINE_SYNC) break;
    if (first && status != PGRES_PIPELINE_ABORTED) first = check(result);
    if (lost()) break;
    answers.push_back(std::move(rows));
  }
  if (!first) return std::unexpected(first.error());
  return answers;
}

Status Connection::run_script(const char* sql) {
  mend_ = Mend::nothing;
  if (pq_.PQexitPipelineMode(connection_.get()) == 0 ||
      pq_.PQsendQuery(connection_.get(), sql) == 0)
    return broken();
  BERTH_TRY(flush());
  Status first;
  for (;;) {
    BERTH_ASSIGN(PGresult* const result, next_result());
    if (result == nullptr) break;
    const Rows rows(pq_, result);
    if (first) first = check(result);
    if (lost()) break;
  }
  if (first && pq_.PQenterPipelineMode(connection_.get()) == 0) return broken();
  return first;
}

}  // namespace berth::store
