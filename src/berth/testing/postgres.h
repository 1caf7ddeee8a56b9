// For tests on a real PostgreSQL server, which tests/postgres_server.py starts for them.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "berth/store/database.h"
#include "berth/store/postgres_connection.h"

namespace berth::store {

/// The URL of a database of that server; "" where there is none.
inline std::string test_server() {
  const char* url = std::getenv("BERTH_TEST_POSTGRES");
  return url == nullptr ? "" : url;
}

/// A connection of one's own, beside the store's.
inline std::unique_ptr<Connection> test_connection(const std::string& url) {
  Mend mend{};
  return Connection::open(read_address(url).value(), mend).value();
}

inline Result<std::unique_ptr<Store>> test_store(const std::string& url) {
  BERTH_ASSIGN(auto opened, postgres_store(url, "ada-desk"));
  return std::move(opened.store);
}

/// A database of that server, which goes with it.
class TestDatabase {
 public:
  TestDatabase() {
    static int made = 0;
    name_ = fmt::format("t{}_{}", getpid(), ++made);
    run("CREATE DATABASE " + name_);
    url_ = test_server().substr(0, test_server().rfind('/') + 1) + name_;
  }
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;
  ~TestDatabase() { run("DROP DATABASE " + name_ + " WITH (FORCE)"); }

  const std::string& url() const { return url_; }
  const std::string& name() const { return name_; }

 private:
  static void run(const std::string& sql) {
    const auto done = test_connection(test_server())->run_script(sql.c_str());
    BERTH_ASSERT(done.has_value());
  }

  std::string name_, url_;
};

}  // namespace berth::store
