// Objects whose bytes are not what they were, though their size and time are.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "berth/fileset/fileset.h"
#include "berth/fileset/objects.h"
#include "berth/fileset/seen.h"
#include "berth/testing/posix.h"

namespace berth::fileset {
namespace {

namespace fs = std::filesystem;

/// Large objects have a record, small ones are read each time.
class ObjectOfSize : public os::PosixTest, public testing::WithParamInterface<std::size_t> {
 protected:
  ObjectOfSize() : store_(*ObjectStore::open(*env_, path("store"))) {
    put("f", std::string(GetParam(), 'a'));
    fileset_ = capture();
    object_ = object_path(path("store"), fileset_.entries[0].digest, false);
  }
  /// One byte, as if nobody had been there.
  void flip() {
    struct stat before{};
    stat(object_.c_str(), &before);
    chmod(object_.c_str(), 0600);
    std::fstream(object_, std::ios::in | std::ios::out).put('J');
    chmod(object_.c_str(), before.st_mode);
    const std::array<timespec, 2> times{before.st_atim, before.st_mtim};
    utimensat(AT_FDCWD, object_.c_str(), times.data(), 0);
  }
  bool recorded() {
    return remembered(*env_, path("store/seen"), *env_->status(object_)).has_value();
  }

  Fileset capture() {
    auto captured = store_.capture(path("f"), Expect::stored);
    EXPECT_TRUE(captured) << captured.error().message;
    EXPECT_TRUE(store_.make_durable());
    return captured->fileset;
  }

  ObjectStore store_;
  Fileset fileset_;
  std::string object_;
};

INSTANTIATE_TEST_SUITE_P(Sizes, ObjectOfSize, testing::Values(4, kWorthRemembering + 1));

TEST_P(ObjectOfSize, AFlippedByteIsFoundAtTheNextUseAndMadeAgain) {
  const std::vector<std::function<bool()>> uses = {
      [&] { return store_.hold(fileset_).has_value(); },
      [&] { return store_.publish(fileset_, path("out"), Publish::copies).has_value(); },
      [&] { return store_.publish(fileset_, path("out"), Publish::links).has_value(); }};
  for (const auto& use : uses) {
    EXPECT_TRUE(use());
    flip();
    EXPECT_FALSE(use());
    const auto damage = store_.take_damage();
    ASSERT_EQ(damage.size(), 1U);
    EXPECT_NE(damage[0].find("contains other bytes than it did; it is now"), std::string::npos);
    EXPECT_EQ(capture(), fileset_);
    EXPECT_TRUE(use());
    EXPECT_EQ(store_.take_damage().size(), 0U);
  }
  flip();
  EXPECT_EQ(capture(), fileset_) << "what is read anew mends it";
  EXPECT_TRUE(store_.verify()->empty());
}

TEST_P(ObjectOfSize, LinksOfTasksMakeNobodyReadItAgain) {
  EXPECT_EQ(recorded(), GetParam() > 4);
  fs::create_directory(path("task"));
  ASSERT_TRUE(store_.publish(fileset_, path("task/f"), Publish::links));
  EXPECT_EQ(recorded(), GetParam() > 4);
  ASSERT_TRUE(store_.remove_published(path("task")));
  EXPECT_FALSE(fs::exists(path("task")));
  EXPECT_EQ(recorded(), GetParam() > 4);
  flip();
  ASSERT_FALSE(recorded());
  EXPECT_FALSE(store_.hold(fileset_));
}

/// A disk's own fault changes no time.
TEST_P(ObjectOfSize, ACopyIsCheckedAsItIsWritten) {
  flip();
  const auto now = *env_->status(object_);
  remember(*env_, path("store/seen"), now, now, env_->wall(), fileset_.entries[0].digest,
           Duration(0));
  const auto published = store_.publish(fileset_, path("out"), Publish::copies);
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().kind, ErrorKind::not_found);
  EXPECT_FALSE(fs::exists(path("out")));
  EXPECT_EQ(store_.usage()->damaged, 1);
  EXPECT_EQ(store_.take_damage().size(), 1U);
}

}  // namespace
}  // namespace berth::fileset
