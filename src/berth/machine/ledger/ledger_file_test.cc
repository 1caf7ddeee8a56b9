#include "berth/machine/ledger/ledger_file.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"

namespace berth::machine {
namespace {

LedgerEntry entry() {
  LedgerEntry entry;
  entry.id = {INT64_MAX};
  entry.user = 1000;
  entry.holder = {4711, 123456};
  entry.label = "digits-3";
  entry.priority = -5;
  entry.since = wall_from_ms(1'700'000'000'123);
  entry.block.resources.set(Known::cpu, 1500);
  entry.block.resources.set("licence", 2000);
  entry.block.cores = {{0, 0, 1000}, {17, 1, 500}};
  entry.block.devices = {{"GPU-3b", 0, 1, 1 << 30, 5, 13, false, topology::Vendor::nvidia},
                         {"odd, one:two", 7, -1, 0, 13, 13, true, topology::Vendor::amd}};
  return entry;
}

TEST(LedgerFile, IsThisText) {
  EXPECT_EQ(write_ledger_file("BOOT", std::vector{entry()}),
            "berth-ledger 2 BOOT\n"
            "held 9223372036854775807 4711 123456 1700000000123 -5 0 digits-3 "
            "cpu=1500,licence=2000 0:0:1000,17:1:500 "
            "0:1:1073741824:5:13:0:0:GPU-3b,7:-1:0:13:13:1:1:odd%2C%20one:two\n");
}

TEST(LedgerFile, ReadsBackWhatItWrote) {
  std::vector<LedgerEntry> entries;
  for (const std::string label :
       {"digits-3", "", "-", "%", "two words", "a\nheld 1", "é\x7f\t%41"}) {
    entries.push_back(entry());
    entries.back().label = label;
  }
  entries.push_back(entry());
  entries.back().waiting = true;
  entries.back().sequence = 7;
  entries.back().block.cores.clear();
  entries.push_back(entries.back());
  entries.back().block = {};
  const auto read = read_ledger_file(write_ledger_file("BOOT", entries), "BOOT", 1000);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, entries);
  EXPECT_TRUE(read_ledger_file(write_ledger_file("OLD", entries), "BOOT", 1000)->empty());
  EXPECT_TRUE(read_ledger_file(write_ledger_file("BOOT", {}), "BOOT", 1000)->empty());
}

TEST(LedgerFile, RefusesWhatItWouldNotWrite) {
  for (const std::string line : {"",
                                 "held",
                                 "taken 1 2 3 4 5 6 l  ",
                                 "held 0 2 3 4 5 6 l  ",
                                 "held -1 2 3 4 5 6 l  ",
                                 "held 1 0 3 4 5 6 l  ",
                                 "held 1 9999999999 3 4 5 6 l  ",
                                 "held 1 2 x 4 5 6 l  ",
                                 "held 1 2 3 9000000000001 5 6 l  ",
                                 "held 1 2 3 4 5.0 6 l  ",
                                 "held 1 2 3 4 5 -1 l  ",
                                 "held 1 2 3 4 5 6 %4  ",
                                 "held 1 2 3 4 5 6 %zz  ",
                                 "held 1 2 3 4 5 6 l cpu ",
                                 "held 1 2 3 4 5 6 l cpu=-1 ",
                                 "held 1 2 3 4 5 6 l cpu=9223372036854775808 ",
                                 "held 1 2 3 4 5 6 l CPU=1 ",
                                 "held 1 2 3 4 5 6 l cpu=1,, ",
                                 "held 1 2 3 4 5 6 l  0:0",
                                 "held 1 2 3 4 5 6 l  0:0:1001",
                                 "held 1 2 3 4 5 6 l  1:0:9,1:0:9",
                                 "held 1 2 3 4 5 6 l  -1:0:9",
                                 "held 1 2 3 4 5 6 l   "}) {
    const auto read = read_ledger_file("berth-ledger 2 BOOT\n" + line + " \n", "BOOT", 1000);
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error(), (Error{ErrorKind::corrupt, "line 2 is not a part of a ledger"}));
  }
  constexpr std::string_view kGood = "berth-ledger 2 BOOT\nheld 1 2 3 4 5 6 l   ";
  EXPECT_TRUE(read_ledger_file(fmt::format("{}\n", kGood), "BOOT", 1000));
  EXPECT_TRUE(read_ledger_file(fmt::format("{}0:0:1:1:1:1:0:U\n", kGood), "BOOT", 1000));
  for (const auto* devices : {"U", "0:0:1:1:1:1:0", "-1:0:1:1:1:1:0:U", "0:-2:1:1:1:1:0:U",
                              "0:0:-1:1:1:1:0:U", "0:0:1:x:1:1:0:U", "0:0:1:1:1:2:0:U",
                              "0:0:1:1:1:1:2:U", "0:0:1:1:1:1:0:%4", "0:0:1:1:1:1:0:U,"})
    EXPECT_FALSE(read_ledger_file(fmt::format("{}{}\n", kGood, devices), "BOOT", 1000)) << devices;
}

TEST(LedgerFile, ABlockAloneIsReadBack) {
  const std::string text = write_block(entry().block);
  const auto block = read_block(text);
  ASSERT_TRUE(block) << block.error().message;
  EXPECT_EQ(*block, entry().block);
  EXPECT_EQ(*read_block("  "), Block());
  for (const auto* wrong : {"", " ", "   ", "cpu=0  ", " 0:0:1001 ", "cpu=1  \n"})
    EXPECT_FALSE(read_block(wrong)) << wrong;
}

TEST(LedgerFile, IsBounded) {
  std::vector<LedgerEntry> many(kLedgerEntriesMost, entry());
  EXPECT_TRUE(read_ledger_file(write_ledger_file("BOOT", many), "BOOT", 1000));
  many.push_back(entry());
  EXPECT_FALSE(read_ledger_file(write_ledger_file("BOOT", many), "BOOT", 1000));
  auto wordy = entry();
  wordy.label = std::string(kLabelMost, ' ');
  EXPECT_TRUE(read_ledger_file(write_ledger_file("BOOT", std::vector{wordy}), "BOOT", 1000));
  wordy.label += ' ';
  EXPECT_FALSE(read_ledger_file(write_ledger_file("BOOT", std::vector{wordy}), "BOOT", 1000));
}

TEST(LedgerFile, CutOrChangedAnywhereIsReadOrRefusedButNeverMore) {
  const std::string text = write_ledger_file("BOOT", std::vector{entry(), entry()});
  for (std::size_t most = 0; most < text.size(); ++most) {
    const auto read = read_ledger_file(std::string_view(text).substr(0, most), "BOOT", 1000);
    EXPECT_LE(read ? read->size() : 0, 1U) << most;
  }
  Rng rng(3);
  for (int round = 0; round < 20000; ++round) {
    std::string changed = text;
    for (std::uint64_t i = 0; i <= rng.below(3); ++i)
      changed[rng.below(changed.size())] = static_cast<char>(rng.below(256));
    const auto read = read_ledger_file(changed, "BOOT", 1000);
    EXPECT_LE(read ? read->size() : 0, 2U + 4U) << "each change can part a line at most";
  }
}

}  // namespace
}  // namespace berth::machine
