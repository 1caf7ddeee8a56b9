// A large file that has not changed is not read again; one that may have changed is.
#include "berth/fileset/seen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "berth/fileset/fileset.h"
#include "berth/testing/posix.h"

namespace berth::fileset {
namespace {

class SeenTest : public os::PosixTest {
 protected:
  SeenTest() { std::filesystem::create_directory(seen_); }
  void write(std::string_view text) { std::ofstream(path("f"), std::ios::trunc) << text; }
  os::FileStatus status() { return env_->status(path("f")).value(); }
  void read_as(std::string_view text, Duration racy = Duration(0)) {
    const auto now = status();
    remember(*env_, seen_, now, now, env_->wall(), sha256(text), racy);
  }
  std::optional<Digest> known() { return remembered(*env_, seen_, status()); }

  const std::string seen_ = path("seen");
};

TEST_F(SeenTest, KnownUntilItChanges) {
  write("one");
  EXPECT_FALSE(known());
  read_as("one");
  EXPECT_EQ(known(), sha256("one"));
  // Of the same size, and its time set back: when it changed nobody can set.
  const auto before = status().modified.time_since_epoch().count();
  while (env_->status(put("tick", ""))->changed <= status().changed) {
  }
  write("two");
  const timespec at{before / 1'000'000'000, before % 1'000'000'000};
  const std::array<timespec, 2> times{at, at};
  utimensat(AT_FDCWD, path("f").c_str(), times.data(), 0);
  EXPECT_FALSE(known());
  read_as("two");
  EXPECT_EQ(known(), sha256("two"));
  std::filesystem::copy_file(path("f"), path("g"));
  std::filesystem::rename(path("g"), path("f"));
  EXPECT_FALSE(known()) << "another file";
}

TEST_F(SeenTest, WhatChangedJustBeforeItWasReadIsNotBelieved) {
  write("one");
  read_as("one", kRacy);
  EXPECT_FALSE(known()) << "another change might leave the same times";
  const auto now = status();
  remember(*env_, seen_, now, now, now.changed + kRacy, sha256("one"));
  EXPECT_TRUE(known());
}

TEST_F(SeenTest, WhatChangedWhileItWasReadIsNotBelieved) {
  write("one");
  const auto before = status();
  write("longer");
  remember(*env_, seen_, before, status(), env_->wall(), sha256("one"), Duration(0));
  EXPECT_FALSE(known());
}

TEST_F(SeenTest, TornNotesAreNone) {
  write("one");
  read_as("one");
  const std::string note = seen_ + "/" + env_->list(seen_)->front();
  const std::string text = *env_->read_file(note, 1000);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    ASSERT_TRUE(env_->replace_file(note, text.substr(0, cut), 0600));
    EXPECT_FALSE(known()) << cut;
  }
}

TEST_F(SeenTest, ACaptureOfAnUnchangedFileReadsNothing) {
  auto store = *ObjectStore::open(*env_, path("store"));
  write(std::string(kWorthRemembering, 'x'));
  const auto first = store.capture(path("f"), Expect::stored).value();
  EXPECT_EQ(env_->list(path("store/seen"))->size(), 1U)
      << "of the object; the file has only just been written";
  ASSERT_TRUE(env_->replace_file(path("other"), "as if", 0600));
  const auto other = store.capture(path("other"), Expect::stored).value();
  const auto now = status();
  remember(*env_, path("store/seen"), now, now, now.changed + kRacy, sha256("as if"));
  EXPECT_NE(store.capture(path("f"), Expect::stored)->fileset, first.fileset);
}

// What was remembered was wrong (a clock that stood still, say): the copy tells what it is.
TEST_F(SeenTest, AWrongNoteIsForgottenWhereItComesOut) {
  auto store = *ObjectStore::open(*env_, path("store"));
  write(std::string(kWorthRemembering, 'x'));
  const auto now = status();
  remember(*env_, path("store/seen"), now, now, now.changed + kRacy, sha256("another"));
  const auto captured = store.capture(path("f"), Expect::stored);
  ASSERT_TRUE(captured) << captured.error().message;
  EXPECT_EQ(captured->fileset.entries.at(0).digest, sha256(std::string(kWorthRemembering, 'x')));
  EXPECT_NE(remembered(*env_, path("store/seen"), now), sha256("another"));
}

/// A large file with a record that says "as if", which is believed where the file is not read.
class ReadsAgain : public SeenTest {
 protected:
  void SetUp() override {
    if (!env_->shows_changes(put("probe", ""))) GTEST_SKIP() << "this volume shows no changes";
    write(std::string(kWorthRemembering, 'x'));
    const auto now = status();
    remember(*env_, path("store/seen"), now, now, now.changed + kRacy, sha256("as if"));
  }
  bool is_read() { return store_.read(path("f"))->entries.at(0).digest != sha256("as if"); }
  void* map(int number) {
    return ::mmap(nullptr, kWorthRemembering, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
  }

  ObjectStore store_ = *ObjectStore::open(*env_, path("store"));
};

TEST_F(ReadsAgain, WhatDoesNotShowItsChanges) {
  EXPECT_FALSE(is_read());
  {
    const auto writer = env_->open_write(path("f"));
    EXPECT_TRUE(is_read()) << "a writer has it open";
  }
  EXPECT_FALSE(is_read());
  const auto reader = env_->open_read(path("f"));
  EXPECT_FALSE(is_read()) << "a reader changes nothing";
}

TEST_F(ReadsAgain, WhatIsMappedForWriting) {
  auto writer = env_->open_write(path("f"));
  void* const mapping = map(writer->number());
  ASSERT_NE(mapping, MAP_FAILED);
  writer->reset();
  EXPECT_TRUE(is_read());
  ASSERT_EQ(::munmap(mapping, kWorthRemembering), 0);
  EXPECT_FALSE(is_read());
}

TEST_F(ReadsAgain, APageThatWasSyncedBeforeItGetsANewTime) {
  auto writer = env_->open_write(path("f"));
  void* const mapping = map(writer->number());
  ASSERT_NE(mapping, MAP_FAILED);
  static_cast<char*>(mapping)[0] = 'y';
  ASSERT_TRUE(env_->sync(path("f")));
  const auto before = status();
  while (env_->status(put("tick", ""))->changed <= before.changed) {
  }
  static_cast<char*>(mapping)[0] = 'z';
  EXPECT_GT(status().modified, before.modified);
  ::munmap(mapping, kWorthRemembering);
}

TEST_F(ReadsAgain, WhatIsInMemory) {
  const std::string file = fmt::format("/dev/shm/berth-test-{}", ::getpid());
  if (!env_->replace_file(file, "x", 0600)) GTEST_SKIP() << "there is no /dev/shm";
  EXPECT_FALSE(env_->shows_changes(file));
  EXPECT_TRUE(env_->remove_file(file));
}

TEST_F(SeenTest, GoesWithTheObject) {
  auto store = *ObjectStore::open(*env_, path("store"));
  write("one");
  read_as("one");
  const auto keep_none = [](const Digest&) { return false; };
  ASSERT_TRUE(
      forget_unless(*env_, seen_, [](const Digest& each) { return each == sha256("one"); }));
  EXPECT_TRUE(known());
  ASSERT_TRUE(forget_unless(*env_, seen_, keep_none));
  EXPECT_FALSE(known());
  const auto now = status();
  remember(*env_, path("store/seen"), now, now, now.changed + kRacy, sha256("one"));
  ASSERT_TRUE(store.collect([](auto&) { return Status(); }));
  EXPECT_TRUE(env_->list(path("store/seen"))->empty());
}

}  // namespace
}  // namespace berth::fileset
