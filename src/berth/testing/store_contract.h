// The contract suites of store.h share this fixture, on every implementation.
#pragma once

#include <gtest/gtest.h>

#include "berth/testing/postgres.h"
#include "berth/testing/store.h"

namespace berth::store {

enum class Backend : std::uint8_t { memory, sqlite, postgres };

class StoreTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (GetParam() == Backend::postgres) database_.emplace();
    open();
  }

  void open() {
    store_.reset();
    auto opened = opened_store();
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }
  Result<std::unique_ptr<Store>> opened_store() {
    switch (GetParam()) {
      case Backend::memory: return memory_store();
      case Backend::sqlite: return sqlite_store(directory_ / "berth.db");
      case Backend::postgres: return test_store(database_->url());
    }
    return memory_store();
  }
  /// What a later process sees; a memory store has no later.
  void reopen() {
    if (GetParam() != Backend::memory) open();
  }

  RunId submit(const std::string& name, int tasks = 3) {
    return store_->submit(new_run(name, tasks)).value().id;
  }
  Result<Applied> apply(RunId run, std::vector<Change> changes) {
    return store_->apply(run, changes);
  }
  std::int64_t refused(RunId run, std::vector<Change> changes) {
    return apply(run, std::move(changes)).value().refused;
  }
  TaskRecord task(RunId run, std::int64_t number) {
    return store_->tasks(run).value().at(static_cast<std::size_t>(number - 1));
  }
  std::string counts() { return text(store_->runs().value().at(0).counts); }

  TemporaryDirectory directory_;
  std::optional<TestDatabase> database_;
  std::unique_ptr<Store> store_;
};

inline auto backends() {
  std::vector<Backend> all{Backend::memory, Backend::sqlite};
  if (!test_server().empty()) all.push_back(Backend::postgres);
  return testing::ValuesIn(all);
}
inline std::string backend_name(const testing::TestParamInfo<Backend>& test) {
  constexpr const char* kNames[] = {"memory", "sqlite", "postgres"};
  return kNames[static_cast<std::size_t>(test.param)];
}

}  // namespace berth::store
