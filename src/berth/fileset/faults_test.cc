// Every call of an operation fails once, by a full disk and by a broken one: the store stays whole,
// what was published stays as it was, and the same operation goes through afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "berth/fileset/fileset.h"
#include "berth/fileset/objects.h"
#include "berth/testing/fake_env.h"
#include "berth/testing/fileset.h"

namespace berth::fileset {
namespace {

class Faults : public ::testing::TestWithParam<ErrorKind> {
 protected:
  Faults() {
    env_.put("/in/a", "one");
    env_.put("/in/d/b", "two");
    for (int i = 0; i < 20; ++i) env_.put(fmt::format("/many/{:02}", i), fmt::format("m{}", i));
    for (const auto* path : {"/in", "/in/d", "/many", "/out"})
      EXPECT_TRUE(env_.make_directory(path, 0700));
    store_ = *ObjectStore::open(env_, "/store");
  }

  /// Fails the n-th call of `work`, n = 1, 2, …, until a pass without a fault. After each,
  /// `consistent` must hold.
  void fail_each_call(const std::function<Status()>& work,
                      const std::function<void()>& consistent) {
    for (int nth = 1;; ++nth) {
      ASSERT_LT(nth, 2000);
      SCOPED_TRACE(testing::Message() << "call " << nth);
      int calls = 0;
      std::string failed;
      env_.fault = [&](std::string_view call) -> std::optional<Error> {
        if (++calls != nth) return std::nullopt;
        failed = call;
        return Error{GetParam(), "a fault"};
      };
      const auto status = work();
      env_.fault = nullptr;
      SCOPED_TRACE(failed);
      const bool could_clean = failed == "copy_file" || failed == "make_directory";
      EXPECT_FALSE(could_clean && any_left_over());
      consistent();
      if (calls < nth) {
        EXPECT_TRUE(status) << status.error().message;
        return;
      }
    }
  }

  /// Left of a publish that failed half-way.
  bool any_left_over() {
    const auto names = env_.list("/out").value();
    return std::ranges::any_of(names, [](const auto& each) { return each.ends_with(".berth"); });
  }

  /// Each object holds what it is named after.
  void expect_whole() {
    const auto damage = store_.verify();
    ASSERT_TRUE(damage);
    EXPECT_TRUE(damage->empty()) << damage->front().what;
  }

  os::FakeEnv env_;
  ObjectStore store_ = *ObjectStore::open(env_, "/store");
};

INSTANTIATE_TEST_SUITE_P(Kinds, Faults, testing::Values(ErrorKind::full, ErrorKind::io),
                         [](const auto& kind) { return std::string(name(kind.param)); });

TEST_P(Faults, Capture) {
  for (const std::string path : {"/in", "/many"})
    for (const auto expect : {Expect::fresh, Expect::stored}) {
      ASSERT_TRUE(store_.collect(keep({})));
      fail_each_call(
          [&]() -> Status {
            BERTH_ASSIGN(const auto captured, store_.capture(path, expect));
            BERTH_TRY(store_.make_durable());
            return store_.hold(captured.fileset) ? Status() : fail(ErrorKind::io, "not held");
          },
          [&] { expect_whole(); });
      EXPECT_TRUE(store_.capture(path, expect));
      ASSERT_TRUE(store_.collect(keep({})));
      EXPECT_TRUE(env_.list("/store/work")->empty()) << "what faults left is swept";
    }
}

TEST_P(Faults, PublishLeavesTheOldOrTheNew) {
  const auto before = store_.capture("/many", Expect::fresh);
  const auto after = store_.capture("/in", Expect::fresh);
  for (const auto how : {Publish::copies, Publish::links}) {
    ASSERT_TRUE(store_.publish(before->fileset, "/out/x", how));
    fail_each_call([&] { return store_.publish(after->fileset, "/out/x", how); },
                   [&] {
                     expect_whole();
                     const auto found = store_.capture("/out/x", Expect::fresh);
                     ASSERT_TRUE(found) << found.error().message;
                     const auto texts = [](const Fileset& fileset) { return paths(fileset); };
                     EXPECT_TRUE(texts(found->fileset) == texts(before->fileset) ||
                                 texts(found->fileset) == texts(after->fileset));
                     // An object that could not be read was set aside.
                     for (const auto* path : {"/in", "/many"})
                       EXPECT_TRUE(store_.capture(path, Expect::fresh));
                   });
  }
}

TEST_P(Faults, Collect) {
  auto kept = store_.capture("/in", Expect::fresh);
  std::unordered_set<Digest> live;
  add_live(live, kept->fileset);
  kept->hold = {};
  const auto held = store_.capture("/many", Expect::fresh);
  env_.put("/in/c", "three");
  ASSERT_TRUE(ObjectStore::open(env_, "/store")->capture("/in/c", Expect::fresh));  // not needed
  fail_each_call(
      [&]() -> Status {
        const auto freed = store_.collect(keep(live));
        return freed ? Status() : Status(std::unexpected(freed.error()));
      },
      [&] {
        expect_whole();
        EXPECT_TRUE(store_.hold(kept->fileset));
        EXPECT_TRUE(store_.hold(held->fileset));
      });
  EXPECT_EQ(store_.usage()->objects, 22);
}

TEST_P(Faults, VerifyKeepsWhatItCouldNotJudge) {
  const auto captured = store_.capture("/in", Expect::fresh);
  fail_each_call(
      [&]() -> Status {
        const auto damage = store_.verify();
        return damage ? Status() : Status(std::unexpected(damage.error()));
      },
      [&] { (void)store_.capture("/in", Expect::fresh); });
  EXPECT_TRUE(store_.hold(captured->fileset));
}

/// Whoever says what it needs, and whoever removes, has the lock while it looks and does: what one
/// found to be there, another has not removed a moment later.
TEST(StoreLock, IsHeldFromTheLookToTheDeed) {
  os::FakeEnv env;
  auto store = *ObjectStore::open(env, "/store");
  env.put("/f", "text");
  bool looking = false;
  std::map<std::string, int> locked, open;  // by call: how often the lock was taken, and was not
  env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (std::exchange(looking, true)) return std::nullopt;
    const bool busy = !env.lock("/store/lock", false);
    ++(busy ? locked : open)[std::string(call)];
    looking = false;
    return std::nullopt;
  };
  auto captured = store.capture("/f", Expect::fresh);
  EXPECT_EQ(locked["write_all"], 1) << "what is needed is written down";
  EXPECT_EQ(open["write_all"], 0);
  captured->hold = {};
  locked.clear();
  open.clear();
  EXPECT_EQ(store.collect(keep({}))->objects, 1);
  EXPECT_EQ(locked["remove_file"], 1);
  EXPECT_EQ(open["remove_file"], 0);
}

/// A work is only ever added to, also while somebody collects.
TEST(StoreLock, WhatAHoldNamesBetweenTwoLooksIsKept) {
  os::FakeEnv env;
  auto store = *ObjectStore::open(env, "/store");
  env.put("/first", "1");
  env.put("/then", "2");
  auto other = *ObjectStore::open(env, "/store");
  const auto first = other.capture("/first", Expect::fresh);
  std::optional<Captured> then = *ObjectStore::open(env, "/store")->capture("/then", Expect::fresh);
  then->hold = {};
  ASSERT_LT(to_hex(first->fileset.entries[0].digest), to_hex(then->fileset.entries[0].digest));
  int looks = 0;
  bool looking = false;
  Result<Hold> named = fail(ErrorKind::not_found, "not yet");
  env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "lock" || std::exchange(looking, true)) return std::nullopt;
    if (env.lock("/store/lock", false) && ++looks == 2)  // before the second of two folders
      named = other.hold(then->fileset);
    looking = false;
    return std::nullopt;
  };
  EXPECT_EQ(store.collect(keep({}))->objects, 0);
  EXPECT_TRUE(named);
}

/// Each is a fileset of its own, whose one path is "."; the collection failed beside them.
TEST(Collect, SucceedsBesideAHoldOfSeveralFiles) {
  os::FakeEnv env;
  auto store = *ObjectStore::open(env, "/store");
  Fileset both;
  for (const std::string path : {"/a", "/b"}) {
    env.put(path, path);
    both.entries.push_back(store.capture(path, Expect::fresh)->fileset.entries[0]);
  }
  const auto hold = store.hold(both);
  const auto freed = store.collect(keep({}));
  ASSERT_TRUE(freed) << freed.error().message;
  EXPECT_EQ(freed->objects, 0);
}

/// Files that change or go while they are read.
class Restless : public ::testing::Test {
 protected:
  Restless() {
    env_.put("/in/a", "one");
    env_.put("/in/d/b", "one");
    for (const auto* path : {"/in", "/in/d"}) EXPECT_TRUE(env_.make_directory(path, 0700));
  }
  /// Before each call of that name, with how many there were.
  void before(std::string_view wanted, const std::function<void(int)>& change) {
    env_.fault = [&, wanted, change](std::string_view call) -> std::optional<Error> {
      if (call == wanted && !std::exchange(changing_, true)) {
        change(++calls_);
        changing_ = false;
      }
      return std::nullopt;
    };
  }
  std::vector<os::TreeEntry> listed() {
    std::vector<os::TreeEntry> files;
    for (const auto* path : {"a", "d/b"})
      files.push_back({.path = path, .kind = os::TreeEntry::Kind::file, .size = 3, .target = {}});
    return files;
  }
  static std::vector<std::pair<std::string, Digest>> contents(const Captured& captured) {
    std::vector<std::pair<std::string, Digest>> all;
    for (const auto& entry : captured.fileset.entries) all.emplace_back(entry.path, entry.digest);
    return all;
  }
  os::FakeEnv env_;
  ObjectStore store_ = *ObjectStore::open(env_, "/store");
  int calls_ = 0;
  bool changing_ = false;
};

TEST_F(Restless, WhatChangesOnceItWasReadIsWhatItBecame) {
  before("copy_file", [&](int nth) { env_.put("/in/a", nth <= 2 ? "another" : "the last"); });
  const auto captured = store_.capture("/in", Expect::stored);
  env_.fault = nullptr;
  ASSERT_TRUE(captured) << captured.error().message;
  using Contents = std::vector<std::pair<std::string, Digest>>;
  EXPECT_EQ(contents(*captured), (Contents{{"a", sha256("another")}, {"d/b", sha256("one")}}));
  EXPECT_TRUE(store_.hold(captured->fileset)) << "the other, which held the same, is there too";
  EXPECT_TRUE(store_.publish(captured->fileset, "/out", Publish::copies));
  EXPECT_EQ(*env_.find("/out/a"), "another");
}

TEST_F(Restless, WhatNeverStandsStillIsNamed) {
  std::string growing = "one";
  before("copy_file", [&](int) { env_.put("/in/a", growing += "+"); });
  const auto captured = store_.capture("/in", Expect::stored);
  env_.fault = nullptr;
  ASSERT_FALSE(captured);
  EXPECT_EQ(captured.error().kind, ErrorKind::stale);
  EXPECT_EQ(captured.error().message, "/in/a: changed each of the 4 times that it was read");
}

TEST_F(Restless, AnOutputIsWhatWasReadLastThoughSomethingWritesItStill) {
  std::string growing = "one";
  before("copy_file", [&](int) { env_.put("/in/a", growing += "+"); });
  const auto captured = store_.capture("/in", Expect::fresh);
  env_.fault = nullptr;
  ASSERT_TRUE(captured) << captured.error().message;
  EXPECT_TRUE(store_.publish(captured->fileset, "/out", Publish::copies));
  const std::string kept = *env_.find("/out/a");
  EXPECT_EQ(contents(*captured)[0].second, sha256(kept));
  EXPECT_TRUE(kept.starts_with("one+")) << kept;
}

TEST_F(Restless, WhatIsGoneBeforeItIsReadWasNeverThere) {
  for (const auto* call : {"open_read", "copy_file"}) {
    for (const bool is_listed : {true, false}) {
      ASSERT_TRUE(store_.collect(keep({})));
      env_.put("/in/a", "one");
      before(call, [&](int) { (void)env_.remove_file("/in/a"); });
      const auto captured =
          is_listed ? store_.capture("/in", listed(), {}) : store_.capture("/in", Expect::stored);
      env_.fault = nullptr;
      ASSERT_TRUE(captured) << captured.error().message;
      EXPECT_EQ(captured->gone,
                is_listed ? std::vector<std::string>{"a"} : std::vector<std::string>{});
      ASSERT_EQ(captured->fileset.entries.size(), 1U);
      EXPECT_EQ(captured->fileset.entries[0].path, "d/b");
      EXPECT_TRUE(store_.hold(captured->fileset));
    }
  }
  const auto file = store_.capture("/in/none", Expect::stored);
  EXPECT_EQ(file.error().kind, ErrorKind::not_found) << "nothing was listed";
}

}  // namespace
}  // namespace berth::fileset
