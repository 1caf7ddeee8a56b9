// The store that several machines may share, in a PostgreSQL database, and what sharing takes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "berth/store/store.h"

namespace berth::store {

/// While it lives.
class Claim {
 public:
  virtual ~Claim() = default;
};

/// Nobody on any machine drives or removes the run but who has this. busy: another has it. Of a
/// store that one machine alone uses it is empty: there a lock of the machine's own does that.
Result<std::unique_ptr<Claim>> claim(Store& store, RunId run);
/// Who holds claims calls this again and again: a claim goes with its connection, which nobody else
/// would miss for hours. stale: somebody took it meanwhile.
Status keep_claims(Store& store);

/// A store's server does not answer at once.
struct StoreWait {
  std::string why;        // "postgresql://ada@db.lab:5432/berth: it does not answer"
  int fd = -1;            // ready as soon as it does; -1: a pause before another try
  bool writable = false;  // what the descriptor is watched for, besides being readable
  Duration most{};
};
/// What is done meanwhile, and may do less than wait for all of it. False: the store is given up,
/// and every call that would wait for its server is interrupted from now on. Must not use the
/// store.
using WaitForStore = std::function<bool(const StoreWait&)>;
/// In place of sleeping; none: sleeps. Stores without a server never wait for long.
void wait_with(Store& store, WaitForStore wait);

/// Whether it is postgresql://… or postgres://….
bool is_database_url(std::string_view text);
/// Whether such a URL holds one: tasks do not inherit it then, and no command takes it.
bool holds_password(std::string_view url);

struct Database {
  std::string id;     // its own, for good
  std::string place;  // its URL, without secrets
  std::unique_ptr<Store> store;
};
/// The tables of the schema "berth" in the database of that URL, made when they are not there.
/// `host`: this machine, for others. A server that is away is waited for as long as `patience`, at
/// the opening and in every call, then io; denied; not_found: no such database; usage: no URL;
/// corrupt: of a newer version, or damaged; impossible: libpq is missing, the server too old. No
/// error holds a password. Its apply() refuses (stale) when another store has taken the run over
/// since this one did.
Result<Database> postgres_store(const std::string& url, const std::string& host,
                                Duration patience = std::chrono::minutes(1));

}  // namespace berth::store
