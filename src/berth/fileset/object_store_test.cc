// On real files: what is captured comes back, for people and for tasks, whatever else happens.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "berth/base/rng.h"
#include "berth/fileset/fileset.h"
#include "berth/fileset/objects.h"
#include "berth/testing/fileset.h"
#include "berth/testing/posix.h"

namespace berth::fileset {
namespace {

namespace fs = std::filesystem;

class ObjectStoreTest : public os::PosixTest {
 protected:
  ObjectStoreTest() : store_(*ObjectStore::open(*env_, path("store"))) {
    fs::create_directory(path("in"));
  }
  void write(std::string_view name, std::string_view text, mode_t mode = 0644) {
    fs::create_directories(fs::path(path(name)).parent_path());
    put(name, text, mode);
  }
  std::string read(std::string_view name) {
    return env_->read_file(path(name), 1 << 20).value_or("?");
  }
  Captured capture(std::string_view name = "in", Expect expect = Expect::fresh) {
    auto captured = store_.capture(path(name), expect);
    EXPECT_TRUE(captured) << captured.error().message;
    EXPECT_TRUE(store_.make_durable());
    return *std::move(captured);
  }
  std::string refusal(std::string_view name = "in") {
    const auto captured = store_.capture(path(name), Expect::fresh);
    return captured ? "taken" : captured.error().message;
  }
  std::vector<std::string> objects() {
    std::vector<std::string> found;
    const auto entries = env_->tree(path("store/objects"), 1000).value();
    for (const auto& entry : entries)
      if (entry.kind == os::TreeEntry::Kind::file) found.push_back(entry.path);
    return found;
  }
  /// Nothing in the making is left, anywhere.
  void expect_tidy() {
    EXPECT_TRUE(env_->list(path("store/work"))->empty());
    const auto names = env_->list(directory_).value();
    for (const auto& name : names) EXPECT_FALSE(name.ends_with(".berth")) << name;
  }

  ObjectStore store_;
};

void make_tree(const std::string& root) {
  fs::create_directories(root + "/sub/empty");
  std::ofstream(root + "/a") << "same";
  std::ofstream(root + "/sub/b") << "same";
  std::ofstream(root + "/sub/run.sh") << "same";
  chmod((root + "/sub/run.sh").c_str(), 0755);
  std::ofstream(root + "/.hidden") << "";
  std::ofstream(root + "/odd \n\t\\ name") << "odd";
  fs::create_symlink("sub/b", root + "/link");
  fs::create_symlink("../a", root + "/sub/up");
}

TEST_F(ObjectStoreTest, ComesBackAsItWas) {
  make_tree(path("in"));
  for (const auto expect : {Expect::fresh, Expect::stored}) {
    const auto captured = capture("in", expect);
    EXPECT_EQ(captured.fileset.entries.size(), 8U);
    EXPECT_EQ(objects().size(), 4U) << "each content once, and once more to be executed";
    EXPECT_EQ(*parse_fileset(to_text(captured.fileset)), captured.fileset);
    for (const auto how : {Publish::copies, Publish::links}) {
      ASSERT_TRUE(store_.publish(captured.fileset, path("out"), how));
      EXPECT_EQ(capture("out").fileset, captured.fileset);
    }
  }
  EXPECT_EQ(read("out/link"), "same");
  expect_tidy();
}

TEST_F(ObjectStoreTest, AFileByItselfAndAnEmptyDirectory) {
  write("f", "text", 0755);
  const auto one = capture("f");
  ASSERT_EQ(one.fileset.entries.size(), 1U);
  EXPECT_EQ(one.fileset.entries[0].path, ".");
  EXPECT_EQ(one.fileset.entries[0].kind, Entry::Kind::executable);
  ASSERT_TRUE(store_.publish(one.fileset, path("g"), Publish::copies));
  EXPECT_EQ(read("g"), "text");
  const auto none = capture("in");
  EXPECT_EQ(to_text(none.fileset), "berth fileset 1\nd755 .\n");
  ASSERT_TRUE(store_.publish(none.fileset, path("h"), Publish::links));
  EXPECT_TRUE(fs::is_directory(path("h")));
  fs::create_symlink(path("f"), path("way"));
  EXPECT_EQ(capture("way").fileset, one.fileset) << "the root itself may be reached by a link";
}

TEST_F(ObjectStoreTest, NamesMayBeAsLongAsNamesAre) {
  const std::string name(255, 'n');
  put("f", "text");
  const Fileset fileset = capture("f").fileset;
  for (const auto how : {Publish::links, Publish::copies, Publish::copies}) {
    ASSERT_TRUE(store_.publish(fileset, path(name), how));
    EXPECT_EQ(read(name), "text");
    EXPECT_EQ(capture(name).fileset, fileset);
  }
  expect_tidy();
}

TEST_F(ObjectStoreTest, WhatPeopleEditIsNeverTheObject) {
  write("in/a", "text");
  const auto captured = capture();
  ASSERT_TRUE(store_.publish(captured.fileset, path("copy"), Publish::copies));
  ASSERT_TRUE(store_.publish(captured.fileset, path("task"), Publish::links));
  const mode_t mask = env_->mask();
  EXPECT_EQ(env_->status(path("copy/a"))->mode, 0666U & ~mask);
  EXPECT_EQ(env_->status(path("copy/a"))->links, 1);
  EXPECT_EQ(env_->status(path("task/a"))->mode, 0444U);
  EXPECT_EQ(env_->status(path("task/a"))->links, 2);
  write("in/a", "edited");
  write("copy/a", "edited too");
  EXPECT_TRUE(store_.verify()->empty());
  ASSERT_TRUE(store_.publish(captured.fileset, path("copy"), Publish::copies));
  EXPECT_EQ(read("copy/a"), "text");
}

TEST_F(ObjectStoreTest, WhatIsThereIsNotWrittenAgain) {
  write("in/a", "text");
  (void)capture();
  const auto first = fs::last_write_time(path("store/objects/" + objects()[0]));
  struct stat before{}, after{};
  stat(path("store/objects/" + objects()[0]).c_str(), &before);
  for (const auto expect : {Expect::fresh, Expect::stored}) (void)capture("in", expect);
  stat(path("store/objects/" + objects()[0]).c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(first, fs::last_write_time(path("store/objects/" + objects()[0])));
}

TEST_F(ObjectStoreTest, PublishReplacesWhateverStandsThere) {
  write("f", "file");
  write("in/a", "directory");
  const Fileset file = capture("f").fileset, directory = capture("in").fileset;
  for (const auto* first : {&file, &directory})
    for (const auto* second : {&file, &directory}) {
      ASSERT_TRUE(store_.publish(*first, path("out"), Publish::copies));
      ASSERT_TRUE(store_.publish(*second, path("out"), Publish::copies));
      EXPECT_EQ(capture("out").fileset, *second);
    }
  fs::remove_all(path("out"));
  fs::create_symlink("in", path("out"));
  ASSERT_TRUE(store_.publish(file, path("out"), Publish::copies));
  EXPECT_EQ(read("out"), "file");
  EXPECT_EQ(read("in/a"), "directory") << "the link went, not what it led to";
  EXPECT_EQ(store_.publish(file, path("none/out"), Publish::copies).error().kind,
            ErrorKind::not_found);
  expect_tidy();
}

TEST_F(ObjectStoreTest, RefusesByName) {
  EXPECT_EQ(refusal("none"), path("none") + ": No such file or directory");
  ASSERT_EQ(mkfifo(path("in/pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(), path("in/pipe") + ": neither a file, a directory nor a link");
  EXPECT_EQ(refusal("in/pipe"), path("in/pipe") + ": neither a file, a directory nor a link");
  expect_tidy();
}

TEST_F(ObjectStoreTest, DamageIsFoundNamedAndSetAside) {
  write("in/a", "text");
  write("in/b", "other");
  const auto captured = capture();
  const std::string hex = to_hex(sha256("text"));
  const std::string object = path("store/objects/" + hex.substr(0, 2) + "/" + hex.substr(2));
  const auto spoil = [&](std::string_view text) {
    chmod(object.c_str(), 0600);
    std::ofstream(object, std::ios::trunc) << text;
  };
  spoil("tex");
  EXPECT_EQ(store_.publish(captured.fileset, path("out"), Publish::links).error().message,
            "object " + hex + " of a is not in the store (any more)");
  EXPECT_FALSE(fs::exists(path("out")));
  EXPECT_EQ(store_.usage()->damaged, 1);
  (void)capture();
  spoil("TEXT");  // of the same size: its time tells
  EXPECT_FALSE(store_.hold(captured.fileset));
  (void)capture();
  struct stat sealed{};
  stat(object.c_str(), &sealed);
  spoil("text");
  EXPECT_TRUE(store_.hold(captured.fileset)) << "written to, but with the same bytes";
  spoil("Text");
  const std::array<timespec, 2> times{sealed.st_atim, sealed.st_mtim};
  utimensat(AT_FDCWD, object.c_str(), times.data(), 0);
  const auto damage = *store_.verify();
  ASSERT_EQ(damage.size(), 1U);
  EXPECT_EQ(damage[0].object, hex);
  EXPECT_NE(damage[0].what.find("contains other bytes than it did; it is now"), std::string::npos);
  EXPECT_EQ(store_.usage()->damaged, 3);
  EXPECT_TRUE(store_.verify()->empty());
  (void)capture();
  EXPECT_TRUE(store_.hold(captured.fileset)) << "and captured anew";
}

// After a power cut a new object may be there by its name and size, with other bytes or none.
TEST_F(ObjectStoreTest, WhatMayNotBeOnTheDiskYetIsBelievedOnlyWhenRead) {
  write("in/a", "text");
  const auto one = store_.capture(path("in"), Expect::fresh).value();
  const std::string object = path("store/objects/" + objects()[0]);
  struct stat fresh{};
  stat(object.c_str(), &fresh);
  const auto cut = [&](const char* text) {
    chmod(object.c_str(), 0600);
    std::ofstream(object, std::ios::trunc) << text;
    const std::array<timespec, 2> times{fresh.st_atim, fresh.st_mtim};
    utimensat(AT_FDCWD, object.c_str(), times.data(), 0);
  };
  auto later = *ObjectStore::open(*env_, path("store"));
  cut("text");
  EXPECT_TRUE(later.hold(one.fileset));
  cut("TEXT");
  auto other = *ObjectStore::open(*env_, path("store"));
  EXPECT_EQ(other.hold(one.fileset).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(objects().empty());
  EXPECT_EQ(other.usage()->damaged, 0) << "nobody had been told of it";
  ASSERT_TRUE(store_.make_durable()) << "of what is no more";
  const auto again = store_.capture(path("in"), Expect::fresh).value();
  ASSERT_TRUE(store_.make_durable());
  cut("TEXT");
  EXPECT_EQ(other.hold(one.fileset).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(objects().empty());
}

TEST_F(ObjectStoreTest, CollectsWhatNobodyNeeds) {
  write("a", "a");
  write("b", "bb");
  write("c", "ccc");
  std::optional<Captured> a = capture("a"), b = capture("b");
  std::unordered_set<Digest> live;
  add_live(live, a->fileset);
  b->hold = {};
  a->hold = {};
  std::optional<Captured> c = capture("c");
  auto freed = *store_.collect(keep(live));
  EXPECT_EQ(freed.objects, 1) << "b: a is live, c is held";
  EXPECT_EQ(freed.bytes, 2);
  EXPECT_FALSE(store_.hold(b->fileset));
  c.reset();
  freed = *store_.collect(keep(live));
  EXPECT_EQ(freed.bytes, 3);
  EXPECT_EQ(store_.usage()->objects, 1);
  EXPECT_TRUE(store_.hold(a->fileset));
}

TEST_F(ObjectStoreTest, TheDeadHoldNothing) {
  write("a", "a");
  const pid_t pid = fork();
  if (pid == 0) {
    const auto env = os::posix_env();
    const auto captured = ObjectStore::open(*env, path("store"))->capture(path("a"), Expect::fresh);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(env_->list(path("store/work"))->size(), 1U);
  EXPECT_EQ(store_.usage()->objects, 1);
  EXPECT_EQ(store_.collect(keep({}))->objects, 1);
  expect_tidy();
}

// Four processes capture and publish the same few contents while another collects without pause:
// nothing that one of them holds is ever missing, and what is published is whole.
TEST_F(ObjectStoreTest, WhatIsReservedStaysAlsoWhereTheRestHasYetToCome) {
  write("in/here", "here");
  Fileset wanted = capture().fileset;
  wanted.entries.push_back(wanted.entries.front());
  wanted.entries.back().path = "yet to come";
  wanted.entries.back().digest = sha256("yet to come");
  {
    const auto reserved = store_.reserve(wanted);
    ASSERT_TRUE(reserved) << reserved.error().message;
    EXPECT_EQ(store_.collect(keep({}))->objects, 0);
  }
  EXPECT_EQ(store_.collect(keep({}))->objects, 1);
  expect_tidy();
}

TEST_F(ObjectStoreTest, OnlyWhatCameBeforeIsCollectedAndADryRunRemovesNothing) {
  write("in/x", "four");
  capture();
  const Wall then = env_->wall();
  EXPECT_EQ(store_.collect(keep({}), {.came_before = then - std::chrono::hours(1)})->objects, 0);
  const auto would = *store_.collect(keep({}), {.came_before = {}, .dry_run = true});
  EXPECT_EQ(objects().size(), 1U);
  const auto freed = *store_.collect(keep({}), {.came_before = then + std::chrono::hours(1)});
  EXPECT_EQ((std::pair(would.objects, would.bytes)), (std::pair(freed.objects, freed.bytes)));
  EXPECT_EQ((std::pair(freed.objects, freed.bytes)), (std::pair(std::int64_t{1}, std::int64_t{4})));
  EXPECT_TRUE(objects().empty());
}

TEST_F(ObjectStoreTest, ManyProcessesAndACollectorAtOnce) {
  for (int i = 0; i < 6; ++i) write(fmt::format("in{}/f", i % 3), fmt::format("text {}", i % 3));
  std::vector<pid_t> children;
  for (int child = 0; child < 5; ++child) {
    const pid_t pid = fork();
    if (pid != 0) {
      children.push_back(pid);
      continue;
    }
    const auto env = os::posix_env();
    auto store = *ObjectStore::open(*env, path("store"));
    bool well = true;
    Rng rng(static_cast<std::uint64_t>(child));
    for (int round = 0; round < 150 && well; ++round) {
      if (child == 0) {
        well = store.collect(keep({})).has_value();
        continue;
      }
      const auto input = path(fmt::format("in{}", rng.below(3)));
      const auto captured =
          store.capture(input, rng.below(2) == 0 ? Expect::fresh : Expect::stored);
      const auto out = path(fmt::format("out{}", child));
      well = captured && store.publish(captured->fileset, out, Publish::links) &&
             env->read_file(out + "/f", 100) == env->read_file(input + "/f", 100);
      if (!captured) std::fprintf(stderr, "%s\n", captured.error().message.c_str());
    }
    _exit(well ? 0 : 1);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(store_.collect(keep({})));
  EXPECT_TRUE(objects().empty());
  expect_tidy();
}

// The same with publishers that are killed at any moment: what stands at a place is whole, and what
// they left beside it, and in the store, is gone after one more sweep.
TEST_F(ObjectStoreTest, KilledPublishersLeaveNothing) {
  for (int i = 0; i < 3; ++i) {
    make_tree(path(fmt::format("in{}", i)));
    write(fmt::format("in{}/f", i), std::string(100'000, static_cast<char>('a' + i)));
  }
  std::vector<Fileset> wanted;
  for (int i = 0; i < 3; ++i) wanted.push_back(capture(fmt::format("in{}", i)).fileset);
  fs::create_directory(path("out"));
  const auto work = [&](std::uint64_t seed, bool collects) {
    const auto env = os::posix_env();
    auto store = *ObjectStore::open(*env, path("store"));
    Rng rng(seed);
    for (;;) {
      if (collects) {
        if (!store.collect(keep({}))) _exit(1);
        continue;
      }
      const auto captured = store.capture(path(fmt::format("in{}", rng.below(3))), Expect::fresh);
      const auto to = path(fmt::format("out/{}", seed % 4));
      if (!captured || !store.publish(captured->fileset, to, Publish::copies)) _exit(1);
    }
  };
  const auto start = [&](std::uint64_t seed) {
    const pid_t pid = fork();
    if (pid == 0) work(seed, seed % 4 == 3);
    return pid;
  };
  std::vector<pid_t> children;
  for (std::uint64_t i = 0; i < 4; ++i) children.push_back(start(i));
  Rng rng(11);
  for (std::uint64_t kills = 0; kills < 60; ++kills) {
    env_->wait({}, env_->now() + std::chrono::microseconds(rng.below(8000)));
    const auto which = rng.below(4);
    kill(children[which], SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(children[which], &status, 0), children[which]);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it had given up";
    children[which] = start(4 * kills + which);
  }
  for (const pid_t pid : children) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  ASSERT_TRUE(store_.collect(keep({})));
  EXPECT_TRUE(objects().empty());
  expect_tidy();
  const auto names = env_->list(path("out")).value();
  for (const auto& name : names) {
    EXPECT_FALSE(name.ends_with(".berth")) << name;
    EXPECT_NE(std::ranges::find(wanted, capture("out/" + name).fileset), wanted.end()) << name;
  }
}

TEST_F(ObjectStoreTest, WhatAPublisherHadTakenAwayComesBack) {
  write("in/a", "new");
  const auto captured = capture();
  // As one leaves it that died between its two renames, on a volume without exchange.
  const std::string making = in_the_making(*env_, path("out"));
  for (const auto& [there, older] : {std::pair(false, false), {true, false}, {false, true}}) {
    write(making.substr(directory_.size() + 1) + "/a", "new");
    write(making.substr(directory_.size() + 1) + ".old/a", "old");
    if (there) write("out/a", "new");
    const std::string work = path("store/work/dead");
    fs::create_directory(work);
    if (older) {
      fs::create_symlink(making, fmt::format("{}/{}", work, kMaking));
      fs::create_symlink(path("out"), fmt::format("{}/{}", work, kPlace));
    } else {
      put("store/work/dead/publishes", making + '\0' + path("out") + '\0' + "/cut");
    }
    ASSERT_TRUE(store_.sweep());
    EXPECT_EQ(read("out/a"), there ? "new" : "old");
    fs::remove_all(path("out"));
    const auto names = env_->list(directory_).value();
    for (const auto& name : names) EXPECT_EQ(name.find(".berth"), name.npos);
    EXPECT_EQ(env_->list(path("store/work"))->size(), 1U) << "that of what is captured";
  }
}

// A collector that asks for the lock of a work which has just ended makes nothing of its name.
TEST_F(ObjectStoreTest, AFileAmongTheWorksIsSwept) {
  put("store/work/f", "");
  ASSERT_TRUE(store_.sweep());
  expect_tidy();
  EXPECT_EQ(env_->lock_existing(path("store/work/f")).error().kind, ErrorKind::not_found);
  expect_tidy();
}

TEST_F(ObjectStoreTest, EveryTreeComesBack) {
  Rng rng(7);
  for (int round = 0; round < 40; ++round) {
    fs::remove_all(path("in"));
    fs::create_directory(path("in"));
    for (std::uint64_t left = rng.below(12); left > 0; --left) {
      std::string name;
      for (std::uint64_t depth = rng.below(3) + 1; depth > 0; --depth)
        name += fmt::format("{}{}", name.empty() ? "" : "/", "abc."[rng.below(3)]);
      std::error_code failed;
      fs::create_directories(fs::path(path("in/" + name)).parent_path(), failed);
      if (rng.below(4) == 0)
        fs::create_directory(path("in/" + name), failed);
      else if (!failed && !fs::exists(path("in/" + name)))
        std::ofstream(path("in/" + name)) << std::string(rng.below(3) * 9000, 'x');
    }
    const auto captured = capture("in", rng.below(2) == 0 ? Expect::fresh : Expect::stored);
    ASSERT_TRUE(store_.publish(captured.fileset, path("out"), Publish::copies));
    ASSERT_EQ(capture("out").fileset, captured.fileset);
    ASSERT_EQ(*parse_fileset(to_text(captured.fileset)), captured.fileset);
    for (const auto& each : paths(captured.fileset)) EXPECT_TRUE(fs::exists(path("out/" + each)));
  }
}

TEST_F(ObjectStoreTest, GlobFindsWhatTheShellFinds) {
  for (const char* name : {"in/a.txt", "in/b.txt", "in/.c.txt", "in/d/e.txt", "in/d/f/g.txt"})
    write(name, "");
  using Paths = std::vector<std::string>;
  const auto found = [&](const std::string& pattern) { return *glob(*env_, path("in"), pattern); };
  EXPECT_EQ(found("*.txt"), (Paths{"a.txt", "b.txt"}));
  EXPECT_EQ(found("*/*.txt"), Paths{"d/e.txt"});
  EXPECT_EQ(found("**/*.txt"), (Paths{"a.txt", "b.txt", "d/e.txt", "d/f/g.txt"}));
  EXPECT_EQ(found("d/**"), (Paths{"d/e.txt", "d/f", "d/f/g.txt"}));
  EXPECT_EQ(found("none/*"), Paths{});
  EXPECT_EQ(found(path("in/?.txt")), (Paths{path("in/a.txt"), path("in/b.txt")}));
}

TEST_F(ObjectStoreTest, WhatIsRecordedWhileItCollectsStays) {
  put("a", "held until it is recorded");
  auto captured = store_.capture(path("a"), Expect::fresh).value();
  bool recorded = false;
  std::unordered_set<Digest> live;
  add_live(live, captured.fileset);
  // The hold goes as soon as the collector has begun, with the record made just before.
  const auto freed = store_.collect([&](std::unordered_set<Digest>& all) -> Status {
    if (recorded) all.insert(live.begin(), live.end());
    recorded = true;
    captured.hold = Hold();
    return {};
  });
  EXPECT_EQ(freed->objects, 0);
  EXPECT_TRUE(store_.hold(captured.fileset));
}

}  // namespace
}  // namespace berth::fileset
