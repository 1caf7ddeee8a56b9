// Which files of a lease's directory its tasks wrote.
#include "berth/agent/files/sent_files.h"

#include "berth/testing/posix.h"

namespace berth::agent {
namespace {

class SentFilesTest : public os::PosixTest {
 protected:
  void write(const std::string& name, std::string_view text) {
    const std::string file = path("work/" + name);
    std::filesystem::create_directories(file.substr(0, file.rfind('/')));
    ASSERT_TRUE(env_->replace_file(file, text, 0600));
  }
  WrittenFiles written(std::string_view below) const {
    const auto counted = SentFiles(*env_, path("work")).written(below);
    EXPECT_TRUE(counted) << counted.error().message;
    return counted.value_or(WrittenFiles{-1, -1});
  }
};

TEST_F(SentFilesTest, NewAndChangedFilesOfAFolderCountAndItsOtherFilesDoNot) {
  write("folder/train.py", "x");
  write("folder/data/a b.txt", "yy");
  const fileset::Fileset folder{.entries = {{.path = "data/a b.txt", .digest = {}, .target = {}},
                                            {.path = "train.py", .digest = {}, .target = {}}}};
  ASSERT_TRUE(SentFiles(*env_, path("work")).add_files("folder", folder));
  EXPECT_EQ(written("folder"), WrittenFiles{});
  write("folder/out/model", "12345");
  write("folder/data/__pycache__/a.pyc", "compiled");
  EXPECT_EQ(written("folder"), (WrittenFiles{1, 5}));
  write("folder/data/a b.txt", "zz");
  EXPECT_EQ(written("folder"), (WrittenFiles{2, 7})) << "changed by a task";
}

TEST_F(SentFilesTest, WhatIsFetchedOrSentAsAWholeDoesNotCount) {
  write("state/checkpoints/1/model", "1");
  write("state/checkpoints/10/model", "1");
  write("notes", "12");
  SentFiles sent(*env_, path("work"));
  ASSERT_TRUE(sent.add("state/checkpoints/1"));
  ASSERT_TRUE(sent.add("state/checkpoints/1"));
  EXPECT_EQ(written(""), (WrittenFiles{2, 3}));
  EXPECT_EQ(written("state"), (WrittenFiles{1, 1}));
}

TEST_F(SentFilesTest, ADamagedRecordIsNoCount) {
  write("file", "1");
  put("sent", "f12");
  EXPECT_EQ(SentFiles(*env_, path("work")).written("").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(*parse_written(to_text({3, 70})), (WrittenFiles{3, 70}));
  for (const char* wrong : {"", "1", "1 -2", "1 2 3", "x 1"})
    EXPECT_EQ(parse_written(wrong).error().kind, ErrorKind::invalid) << wrong;
}

}  // namespace
}  // namespace berth::agent
