// What the contract suites of store.h share: one fixture, on every implementation.
#pragma once

#include <gtest/gtest.h>

#include "berth/store/store_testing.h"

namespace berth::store {

struct Backend {
  const char* name;
  bool durable;
};
inline void PrintTo(const Backend& backend, std::ostream* out) {
  *out << backend.name;
}

class StoreTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override { open(); }

  void open() {
    store_.reset();
    if (!GetParam().durable) {
      store_ = memory_store();
      return;
    }
    auto opened = sqlite_store(directory_ / "berth.db");
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }
  /// What a later process sees; a memory store has no later.
  void reopen() {
    if (GetParam().durable) open();
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
  std::unique_ptr<Store> store_;
};

inline auto backends() {
  return testing::Values(Backend{"memory", false}, Backend{"sqlite", true});
}
inline std::string backend_name(const testing::TestParamInfo<Backend>& test) {
  return test.param.name;
}

}  // namespace berth::store
