#include "berth/run/state/log_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "berth/base/rng.h"
#include "berth/testing/fake_env.h"

namespace berth::run {
namespace {

using exec::Stream;

constexpr const char* kMain = "/run/output.log";
constexpr std::size_t kHead = 32;

struct Said {
  std::int64_t token = 1;
  std::string bytes;
  Stream stream = Stream::out;
  bool operator==(const Said&) const = default;
};

exec::Output output(const Said& said) {
  return {{said.token % 100 + 10}, {said.token}, said.stream, said.bytes};
}

class LogFileTest : public ::testing::Test {
 protected:
  LogWriter writer() { return *LogWriter::open(env_, "/run"); }
  LogReader reader() { return *LogReader::open(env_, "/run"); }

  void write(std::initializer_list<Said> all) {
    auto log = writer();
    for (const auto& said : all) log.append(output(said));
    ASSERT_TRUE(log.flush());
  }

  /// What a reader gives from where it stands.
  static std::vector<Said> rest(LogReader& from, std::int64_t token = 0) {
    std::vector<Said> result;
    EXPECT_TRUE(from.read({token}, [&](const LogFrame& frame) {
      EXPECT_EQ(frame.task.value, frame.token.value % 100 + 10);
      result.push_back({frame.token.value, frame.bytes, frame.stream});
    }));
    return result;
  }
  std::vector<Said> all(std::int64_t token = 0) {
    auto from = reader();
    return rest(from, token);
  }
  /// All the bytes of one attempt's stream, in order.
  std::string text(std::int64_t token, Stream stream = Stream::out) {
    std::string result;
    for (const auto& said : all(token))
      if (said.stream == stream) result += said.bytes;
    return result;
  }
  std::string file(const std::string& path = kMain) const { return *env_.find(path); }

  os::FakeEnv env_;
};

TEST_F(LogFileTest, GivesBackWhatWasSaid) {
  EXPECT_EQ(LogReader::open(env_, "/run").error().kind, ErrorKind::not_found);
  const std::vector<Said> said{{1, "hello\n"},
                               {2, std::string("\0\xff::berth\n", 10), Stream::err},
                               {1, ""},
                               {INT64_MAX, "BRTL"},
                               {1, std::string(100'000, 'x'), Stream::err}};
  auto log = writer();
  for (const auto& one : said) log.append(output(one));
  EXPECT_TRUE(all().empty()) << "buffered";
  EXPECT_TRUE(log.flush());
  EXPECT_EQ(all(), said);
  EXPECT_EQ(all(1), (std::vector<Said>{said[0], said[2], said[4]}));
  EXPECT_EQ(all(3), std::vector<Said>{});
  EXPECT_EQ(static_cast<std::size_t>(log.end()), file().size());
}

TEST_F(LogFileTest, AHeadIsTheseBytes) {
  write({{.token = 2, .bytes = "hi", .stream = Stream::err}});
  const std::string head("BRTL\x02\0\0\0\x02\0\0\0\0\0\0\0\x0c\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0",
                         kHead);
  EXPECT_EQ(file(), head + "hi") << "logs of older versions hold this";
}

TEST_F(LogFileTest, AnAttemptThatPrintsMuchGoesOnInItsOwnFile) {
  Rng rng(1);
  auto log = writer();
  std::map<std::int64_t, std::string> said;
  for (int i = 0; i < 400; ++i) {
    const std::int64_t token = 1 + static_cast<std::int64_t>(rng.below(3));
    const std::string bytes(token == 3 ? 10 : rng.below(20'000), static_cast<char>('a' + i % 26));
    said[token] += bytes;
    log.append(output({token, bytes}));
    if (rng.below(10) == 0) {
      ASSERT_TRUE(log.flush());
    }
  }
  log.close({1});
  ASSERT_TRUE(log.flush());
  for (const auto& [token, bytes] : said) EXPECT_EQ(text(token), bytes) << token;
  ASSERT_GT(said[1].size(), 1U << 20);
  EXPECT_GT(file("/run/output-1.log").size(), said[1].size() - (1U << 20));
  EXPECT_EQ(env_.find("/run/output-3.log"), nullptr);
  EXPECT_LT(file().size(), (2U << 20) + 100'000) << "following the small one stays cheap";
}

TEST_F(LogFileTest, OneHugeOutputIsReadWhole) {
  const std::string huge = std::string(17U << 20, 'h') + "end";  // more than a frame can hold
  auto log = writer();
  log.append(output({1, "first\n"}));
  log.append(output({1, huge}));
  log.append(output({1, "last\n"}));
  log.append(output({2, "other\n"}));
  ASSERT_TRUE(log.flush());
  EXPECT_EQ(text(1), "first\n" + huge + "last\n");
  EXPECT_EQ(text(2), "other\n");
}

TEST_F(LogFileTest, CanBeFollowedWhileItIsWritten) {
  auto log = writer();
  auto from = reader();
  auto one = reader();
  EXPECT_TRUE(rest(from).empty());
  std::string followed;
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    const std::string bytes(10'000, static_cast<char>('a' + i % 26));
    log.append(output({1, bytes}));
    log.append(output({2, "other"}));
    ASSERT_TRUE(log.flush());
    expected += bytes;
    for (const auto& said : rest(one, 1)) followed += said.bytes;
    ASSERT_EQ(followed.size(), expected.size()) << i;
    ASSERT_EQ(rest(from).size(), 2U) << i;
  }
  EXPECT_EQ(followed, expected);
  EXPECT_TRUE(rest(one, 1).empty());
}

TEST_F(LogFileTest, AReaderMayBeginWhereAnAttemptDid) {
  auto log = writer();
  log.append(output({1, "before"}));
  const std::int64_t begin = log.end();
  log.append(output({2, std::string(2U << 20, 'x')}));
  ASSERT_TRUE(log.flush());
  auto from = reader();
  from.seek(begin);
  const auto said = rest(from, 2);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].bytes.size(), 2U << 20);
}

TEST_F(LogFileTest, CutAnywhereTheWholeFramesBeforeStandAndTheNextWriterGoesOn) {
  const std::vector<Said> said{{1, "one\n"}, {2, ""}, {1, "three BRTL\n", Stream::err}};
  write({said[0], said[1], said[2]});
  const std::string whole = file();
  std::vector<std::size_t> ends{0};
  for (const auto& one : said) ends.push_back(ends.back() + kHead + one.bytes.size());
  ASSERT_EQ(ends.back(), whole.size());
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const auto frames =
        static_cast<std::size_t>(std::ranges::upper_bound(ends, cut) - ends.begin()) - 1;
    std::vector<Said> left(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(frames));
    env_.put(kMain, whole.substr(0, cut));
    EXPECT_EQ(all(), left) << cut;
    write({{3, "after"}});
    left.push_back({3, "after"});
    EXPECT_EQ(all(), left) << cut;
  }
}

TEST_F(LogFileTest, WhatIsNoFrameEndsTheLog) {
  write({{1, "good"}, {1, "later"}});
  const std::size_t second = kHead + 4;
  struct Damage {
    std::size_t offset;
    std::string bytes;
  };
  const std::string whole = file();
  for (const auto& [offset, bytes] :
       {Damage{second, "X"}, Damage{second + 7, "\x7f"}, Damage{second + 4, "\x06"}}) {
    std::string damaged = whole;
    damaged.replace(offset, bytes.size(), bytes);
    env_.put(kMain, damaged);
    EXPECT_EQ(all(), (std::vector<Said>{{1, "good"}}));
    write({{2, "new"}});
    EXPECT_EQ(all(), (std::vector<Said>{{1, "good"}, {2, "new"}}));
  }
}

TEST_F(LogFileTest, AnOwnFileThatWasCutIsMendedToo) {
  const std::string part(600'000, 'a');
  write({{1, part}, {1, part}, {1, part}});
  const std::string own = file("/run/output-1.log");
  env_.put("/run/output-1.log", own.substr(0, own.size() - 1));
  EXPECT_EQ(text(1), part + part);
  write({{1, std::string(2U << 20, 'b')}});
  EXPECT_EQ(text(1), part + part + std::string(2U << 20, 'b'));
}

TEST_F(LogFileTest, AnAttemptGoesOnInItsOwnFileUnderALaterWriter) {
  const std::string part(600'000, 'a');
  write({{1, part}, {1, part}, {1, part}});
  write({{1, "the next runner's"}});  // little, so far
  EXPECT_EQ(text(1), part + part + part + "the next runner's");
}

/// The log of an attempt began with a part of its middle.
TEST_F(LogFileTest, WhatIsToldAgainFollowsNoPartOfItsMiddle) {
  std::vector<exec::Output> said;
  std::string all_said;
  for (int i = 0; i < 20; ++i) {
    said.push_back(output({1, std::string(65'536, static_cast<char>('a' + i))}));
    all_said += said.back().bytes;
  }
  for (const bool ends : {false, true}) {
    bool died = true;
    for (int writes = 0; died; ++writes) {
      os::FakeEnv env;
      int left = writes;
      died = false;
      env.fault = [&](std::string_view call) -> std::optional<Error> {
        if (call != "write_all" || (!died && left-- > 0)) return std::nullopt;
        died = true;
        return Error{ErrorKind::io, "killed"};
      };
      for (const bool is_resume : {false, true}) {
        auto log = LogWriter::open(env, "/run");
        ASSERT_TRUE(log);
        for (const auto& one : said) log->append(one);
        if (ends) log->close({1});
        EXPECT_TRUE(log->flush() || !is_resume);
        env.fault = nullptr;
      }
      std::string logged;
      EXPECT_TRUE(LogReader::open(env, "/run")->read({1}, [&](const LogFrame& frame) {
        logged += frame.bytes;
      }));
      EXPECT_TRUE(logged.starts_with(said.front().bytes)) << writes;
      EXPECT_TRUE(logged.ends_with(all_said)) << writes;
    }
  }
}

/// An attempt's log told twice what its agent told again after a kill.
TEST_F(LogFileTest, WhatIsToldAgainIsLoggedOnce) {
  Rng rng(2);
  for (const std::size_t size : {std::size_t{3}, std::size_t{300'000}}) {
    std::vector<exec::Output> said;
    std::string all_said;
    for (std::int64_t i = 0; i < 12; ++i) {
      said.push_back(output({1, std::string(size, static_cast<char>('a' + i))}));
      said.back().number = 10 + i;
      all_said += said.back().bytes;
    }
    os::FakeEnv env;
    for (std::size_t from = 0, to = 0; to < said.size();) {
      auto log = LogWriter::open(env, "/run");
      ASSERT_TRUE(log);
      from = to - rng.below(to + 1);  // what this runner's predecessor had acknowledged
      to = std::min(to + 1 + rng.below(4), said.size());
      for (std::size_t i = from; i < to; ++i) log->append(said[i]);
      ASSERT_TRUE(log->flush());
    }
    std::string logged;
    EXPECT_TRUE(LogReader::open(env, "/run")->read({1}, [&](const LogFrame& frame) {
      logged += frame.bytes;
    }));
    EXPECT_TRUE(logged == all_said) << size << ": " << logged.size() << " of " << all_said.size();
  }
}

TEST_F(LogFileTest, AFullDiskLosesNothingOnceThereIsRoom) {
  for (const std::size_t written : {0U, 1U, 32U, 40U, 76U, 77U}) {  // of the two frames' 76 bytes
    env_.put(kMain, "");
    auto log = writer();
    log.append(output({1, "before"}));
    ASSERT_TRUE(log.flush());
    const std::string before = file();
    log.append(output({1, "123456"}));
    log.append(output({2, "654321"}));
    env_.fault = [&](std::string_view call) -> std::optional<Error> {
      if (call != "write_all") return std::nullopt;
      env_.put(kMain, before + std::string(written, 'X'));
      return Error{ErrorKind::full, "no space"};
    };
    EXPECT_EQ(log.flush().error().kind, ErrorKind::full);
    EXPECT_EQ(log.flush().error().kind, ErrorKind::full);
    EXPECT_EQ(all(), (std::vector<Said>{{1, "before"}}));
    env_.fault = nullptr;
    log.append(output({1, "after"}));
    EXPECT_TRUE(log.flush());
    EXPECT_EQ(all(),
              (std::vector<Said>{{1, "before"}, {1, "123456"}, {2, "654321"}, {1, "after"}}));
    EXPECT_EQ(static_cast<std::size_t>(log.end()), file().size());
  }
}

TEST_F(LogFileTest, EveryFailureIsToldAndLeavesAFileThatReads) {
  // The nth call fails, for each n, until none does.
  for (int nth = 0;; ++nth) {
    os::FakeEnv env;
    int calls = 0;
    bool failed = false;
    env.fault = [&](std::string_view) -> std::optional<Error> {
      if (calls++ != nth) return std::nullopt;
      failed = true;
      return Error{ErrorKind::io, "broken"};
    };
    {
      auto log = LogWriter::open(env, "/run");
      bool told = !log;
      if (log) {
        for (int i = 0; i < 3; ++i) {
          log->append(output({1, std::string(600'000, static_cast<char>('a' + i))}));
          told = !log->flush() || told;
        }
        log->append(output({1, "end"}));
        log->close({1});
        told = !log->flush() || told;
      }
      EXPECT_EQ(told, failed) << nth;
    }
    env.fault = nullptr;
    ASSERT_TRUE(LogWriter::open(env, "/run"));
    ASSERT_TRUE(LogReader::open(env, "/run")->read({}, [](const LogFrame&) {}));
    if (!failed) break;
    ASSERT_LT(nth, 100);
  }
}

}  // namespace
}  // namespace berth::run
