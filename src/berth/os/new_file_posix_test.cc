#include "berth/os/new_file_posix.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "berth/testing/posix.h"

namespace berth::os {
namespace {

/// A directory in which another user made symbolic links before this process writes there.
class PlantedLink : public PosixTest {
 protected:
  static constexpr uid_t kOther = 54321;

  /// Links `name` to a file of this user, and returns the path of that file.
  std::string plant(std::string_view name, bool of_other) {
    const std::string secret = put("secret", "keep");
    EXPECT_EQ(::symlink(secret.c_str(), path(name).c_str()), 0);
    if (of_other) {
      EXPECT_EQ(::lchown(path(name).c_str(), kOther, kOther), 0);
    }
    return secret;
  }
  std::string text(const std::string& file) { return env_->read_file(file, 100).value_or("gone"); }
  bool is_root() const { return ::geteuid() == 0; }
};

TEST_F(PlantedLink, AtATemporaryNameThatIsNumberedByProcessIsNotFollowed) {
  const std::string secret = plant(fmt::format("ledger.{}.new", ::getpid()), false);
  ASSERT_TRUE(env_->replace_file(path("ledger"), "new", 0644));
  ASSERT_TRUE(env_->replace_file(path("ledger"), "newer", 0644));
  EXPECT_EQ(text(secret), "keep");
  EXPECT_EQ(text(path("ledger")), "newer");
  EXPECT_EQ(env_->list(directory_)->size(), 3U) << "no temporary file is left";
}

TEST_F(PlantedLink, AtTheNameItselfIsReplacedAndNotFollowed) {
  const std::string secret = plant("ledger", false);
  ASSERT_TRUE(env_->replace_file(path("ledger"), "new", 0644));
  EXPECT_EQ(text(secret), "keep");
  EXPECT_EQ(text(path("ledger")), "new");
}

TEST_F(PlantedLink, OfAnotherUserIsRefusedByAUserFileAndNamed) {
  if (!is_root()) GTEST_SKIP() << "only root can make links of another user";
  const std::string secret = plant("report.html", true);
  const auto written = env_->replace_user_file(path("report.html"), "new");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::denied);
  EXPECT_NE(written.error().message.find("uid 54321"), std::string::npos)
      << written.error().message;
  EXPECT_EQ(text(secret), "keep");
}

TEST_F(PlantedLink, OfAnotherUserToAMissingFileMakesNothing) {
  if (!is_root()) GTEST_SKIP() << "only root can make links of another user";
  for (const char* name : {"log", "lock"}) {
    ASSERT_EQ(::symlink(path("missing").c_str(), path(name).c_str()), 0);
    ASSERT_EQ(::lchown(path(name).c_str(), kOther, kOther), 0);
  }
  EXPECT_EQ(env_->open_append(path("log"), 0600).error().kind, ErrorKind::denied);
  EXPECT_EQ(env_->lock(path("lock"), false).error().kind, ErrorKind::denied);
  EXPECT_FALSE(env_->status(path("missing")));
}

TEST_F(PlantedLink, OfThisUserIsFollowed) {
  const std::string secret = plant("mine", false);
  ASSERT_TRUE(env_->replace_user_file(path("mine"), "new"));
  EXPECT_EQ(text(secret), "new");
  const auto log = env_->open_append(path("mine"), 0600);
  ASSERT_TRUE(log);
  ASSERT_TRUE(env_->write_all(*log, "er"));
  EXPECT_EQ(text(secret), "newer");
  EXPECT_TRUE(env_->lock(path("mine"), false));
  ASSERT_TRUE(env_->symbolic_link(directory_, path("directory")));
  EXPECT_TRUE(env_->lock(path("directory"), false));
}

TEST_F(PlantedLink, OfProcToAnOpenPipeIsWrittenThrough) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd in(*env_, ends[1]), out(*env_, ends[0]);
  ASSERT_TRUE(env_->symbolic_link(fmt::format("/proc/self/fd/{}", in.number()), path("stdout")));
  ASSERT_TRUE(env_->replace_user_file(path("stdout"), "text"));
  std::array<char, 16> buffer;
  EXPECT_EQ(env_->read_some(out, buffer).value(), std::optional<std::size_t>(4));
}

TEST_F(PlantedLink, LongestNamesAreReplacedToo) {
  const std::string name(255, 'n');
  for (const char* content : {"one", "two"}) {
    ASSERT_TRUE(env_->replace_file(path(name), content, 0600));
    EXPECT_EQ(text(path(name)), content);
  }
  ASSERT_TRUE(env_->replace_user_file(path(name), "three"));
  EXPECT_EQ(text(path(name)), "three");
}

}  // namespace
}  // namespace berth::os
