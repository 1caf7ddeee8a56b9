// This is the store that several machines may share, in a PostgreSQL database, and what sharing
// takes: claims on runs, and waiting for a server that does not answer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "berth/store/store.h"

namespace berth::store {

/// The right to drive or remove a run, for as long as the object lives.
class Claim {
 public:
  virtual ~Claim() = default;
};

/// Only the holder of the claim, of all processes on all machines, drives or removes the run. busy:
/// another process holds it. In a store that one machine uses alone a claim excludes nobody; there
/// a lock of that machine does.
Result<std::unique_ptr<Claim>> claim(Store& store, RunId run);
/// A process that holds claims calls this again within the time that is returned, since a claim
/// ends with its connection, whose loss it would not notice for hours; none: there is nothing to
/// keep. stale: another process took a claim meanwhile.
Result<std::optional<Duration>> keep_claims(Store& store);

/// What a store waits for while its server does not answer.
struct StoreWait {
  std::string why;        // "postgresql://ada@db.lab:5432/berth: it does not answer"
  int fd = -1;            ///< It is ready when the server answers; -1: this is a pause.
  bool writable = false;  ///< Whether to watch it for being writable, besides being readable.
  Duration most{};
};
/// The function is called in place of a wait, and may return before the wait is over. False gives
/// the store up: every call that would wait for the server fails as interrupted from now on. The
/// function must not use the store.
using WaitForStore = std::function<bool(const StoreWait&)>;
/// Sets that function; without one the store sleeps. Stores without a server never wait for long.
void wait_with(Store& store, WaitForStore wait);

/// Whether the text is postgresql://… or postgres://….
bool is_database_url(std::string_view text);
/// Whether such a URL holds a password: then tasks do not inherit it, and no command takes it.
bool holds_password(std::string_view url);

struct Database {
  std::string id;     ///< The database keeps it for good.
  std::string place;  ///< Its URL without secrets.
  std::unique_ptr<Store> store;
};
/// The store in the schema "berth" of the database of that URL; the tables are made when they do
/// not exist. `host` names this machine to others. A server that is away is waited for as long as
/// `patience`, at the opening and in every call, then io. denied; not_found: there is no such
/// database; usage: it is no URL; corrupt: it is of a newer version, or damaged; impossible: libpq
/// is missing, or the server is too old. No error holds a password. apply() refuses (stale) when
/// another store has taken the run over since this one did.
Result<Database> postgres_store(const std::string& url, const std::string& host,
                                Duration patience = std::chrono::minutes(1));

}  // namespace berth::store
