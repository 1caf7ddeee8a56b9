// The folder of an experiment that changes while it is read.
#include "berth/remote/transfer/folder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/testing/fake_env.h"

namespace berth::remote {
namespace {

TEST(FolderThatChanges, RulesThatAreReplacedOrGoAreNoError) {
  for (const auto* rules : {".gitignore", ".berthignore"}) {
    for (const bool comes_back : {true, false}) {
      os::FakeEnv env;
      ASSERT_TRUE(env.make_directory("/in", 0700));
      const std::string file = fmt::format("/in/{}", rules);
      env.put(file, "secret\n");
      env.put("/in/secret", "x");
      int reads = 0;
      env.fault = [&](std::string_view call) -> std::optional<Error> {
        if (call != "read_file") return std::nullopt;
        if (++reads == 1) (void)env.remove_file(file);
        if (reads == 2 && comes_back) env.put(file, "secret\n");
        return std::nullopt;
      };
      const auto folder = read_folder(env, "/in", "/state");
      ASSERT_TRUE(folder) << folder.error().message;
      const bool goes = std::ranges::find(folder->entries, "secret", &os::TreeEntry::path) !=
                        folder->entries.end();
      EXPECT_EQ(goes, !comes_back) << rules;
    }
  }
}

}  // namespace
}  // namespace berth::remote
