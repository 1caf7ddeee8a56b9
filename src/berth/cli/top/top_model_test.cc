#include "berth/cli/top/top_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/base/rng.h"
#include "berth/cli/top/top_page.h"
#include "berth/render/cells.h"

namespace berth::cli {
namespace {

using Kind = KeyPress::Kind;
using Request = TopRequest::Kind;
using View = TopState::View;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr ScreenSize kUsual{24, 80};

TopEntry task_row(const std::string& run, int number, bool runs) {
  TopEntry task{.name = run + "/" + std::to_string(number), .run = run, .is_task = true};
  task.state = runs ? "running" : "waiting";
  task.is_active = runs;
  task.cpu = 1000;
  task.time = seconds(number);
  return task;
}

/// Two runs of ours, one that waits, one of somebody else, one that has ended.
TopData some_data() {
  TopData data;
  data.title = "berth top  box";
  data.meters = {{"cpu", 0.5, "2 of 4"}, {"mem", 0, "0 B of 8 GiB"}};
  TopEntry digits{.name = "digits-3", .run = "digits-3"};
  digits.state = "running";
  digits.running = 2;
  digits.cpu = 2000;
  digits.tasks = "1/4";
  for (int i = 1; i <= 4; ++i) digits.entries.push_back(task_row("digits-3", i, i > 2));
  TopEntry train{.name = "train-1", .run = "train-1"};
  train.state = "running";
  train.running = 1;
  train.cpu = 4000;
  train.entries = {task_row("train-1", 1, true)};
  TopEntry other{.name = "job-2"};
  other.state = "allocated";
  other.user = "alice";
  TopEntry waits{.name = "count-1", .run = "count-1"};
  waits.state = "queued";
  waits.waits = true;
  waits.expected = "starts ~4m00s";
  waits.until = minutes(4);
  TopEntry done{.name = "old-1", .run = "old-1"};
  done.state = "done";
  done.is_active = false;
  data.entries = {digits, train, other, waits, done};
  return data;
}

struct Shown {
  TopData data = some_data();
  TopState state = {};
  ScreenSize size = kUsual;

  TopRequest type(const std::string& text) {
    Keys keys;
    TopRequest last;
    auto all = keys(text);
    for (auto& key : keys.end()) all.push_back(std::move(key));
    for (const auto& key : all) last = press(state, data, key, size);
    return last;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto* row : rows_of(data, state)) names.push_back(row->name);
    return names;
  }
  std::vector<std::string> page() {
    settle(state, data, size);
    return page_of(data, state, size, true);
  }
  bool shows(const std::string& text) {
    return std::ranges::any_of(page(), [&](const auto& row) { return row.contains(text); });
  }
};

TEST(TopModel, EachRunStandsBeforeItsTasksThatRun) {
  Shown screen;
  EXPECT_EQ(screen.names(), (std::vector<std::string>{"digits-3", "digits-3/3", "digits-3/4",
                                                      "train-1", "train-1/1", "job-2", "count-1"}));
  screen.type("\r");
  EXPECT_EQ(screen.names().size(), 9U) << "all tasks of digits-3";
  screen.type("a");
  EXPECT_EQ(screen.names().back(), "old-1");
}

TEST(TopModel, SortsByAColumnAndBack) {
  Shown screen;
  screen.type("P");
  EXPECT_EQ(screen.names().front(), "train-1") << "it has most cores";
  EXPECT_EQ(screen.names()[1], "train-1/1");
  screen.type("r");
  EXPECT_EQ(screen.names().back(), "train-1/1");
  screen.type("N");
  EXPECT_EQ(screen.names().front(), "count-1");
  screen.type("E");
  EXPECT_EQ(screen.names().front(), "count-1") << "of the others no end is known";
  for (std::size_t i = 0; i <= top_columns().size(); ++i) screen.type(">");
  EXPECT_EQ(screen.names().front(), "count-1") << "once round";
  Shown other;
  other.type("><");
  EXPECT_EQ(other.names(), Shown().names());
}

TEST(TopModel, FiltersByTypedText) {
  Shown screen;
  screen.type("/DIGITS-3/4");
  EXPECT_EQ(screen.names(), (std::vector<std::string>{"digits-3", "digits-3/4"}));
  EXPECT_TRUE(screen.shows("show only: DIGITS-3/4_"));
  screen.type("\x7f\x7f\r");
  EXPECT_EQ(screen.names(), (std::vector<std::string>{"digits-3", "digits-3/3", "digits-3/4"}));
  EXPECT_TRUE(screen.shows("only \"DIGITS-3\""));
  screen.type("\x1b");
  EXPECT_EQ(screen.names().size(), 7U);
  screen.type("/!");
  EXPECT_TRUE(screen.shows("No row has that text"));
  EXPECT_EQ(screen.type("q").kind, Request::none) << "it is text now";
}

TEST(TopModel, WhatIsChosenStaysChosenWhenOthersComeAndGo) {
  Shown screen;
  screen.type("\x1b[B\x1b[B\x1b[B");
  EXPECT_EQ(screen.state.chosen, "train-1");
  screen.data.entries.insert(screen.data.entries.begin(),
                             TopEntry{.name = "new-1", .run = "new-1"});
  settle(screen.state, screen.data, screen.size);
  EXPECT_EQ(screen.state.at, 4U);
  std::erase_if(screen.data.entries, [](const auto& entry) { return entry.name == "train-1"; });
  settle(screen.state, screen.data, screen.size);
  EXPECT_EQ(screen.state.chosen, "job-2") << "the one that stands there now";
  screen.data.entries.clear();
  settle(screen.state, screen.data, screen.size);
  EXPECT_EQ(screen.type("x").kind, Request::none);
  EXPECT_TRUE(screen.shows("Nothing runs, waits or is allocated"));
}

TEST(TopModel, StopsOnlyWhenAsked) {
  Shown screen;
  EXPECT_EQ(screen.type("\x1b[Bx").kind, Request::none);
  EXPECT_TRUE(screen.shows("Stop digits-3, of which 2 tasks run? y"));
  EXPECT_EQ(screen.type("n").kind, Request::none);
  EXPECT_EQ(screen.type("y").kind, Request::none) << "nothing is asked any more";
  screen.type("x");
  const auto request = screen.type("y");
  EXPECT_EQ(request.kind, Request::stop);
  EXPECT_EQ(request.of, "digits-3") << "a task's run";
  screen.type("x");
  screen.data.entries[0].is_active = false;
  settle(screen.state, screen.data, screen.size);
  EXPECT_EQ(screen.type("y").kind, Request::none) << "it has ended meanwhile";
}

TEST(TopModel, WhatIsNotOursIsNeitherStoppedNorRead) {
  Shown screen;
  screen.type("/job\r");
  EXPECT_EQ(screen.type("x").kind, Request::none);
  EXPECT_TRUE(screen.shows("job-2 is not one of your runs"));
  EXPECT_EQ(screen.type("l").kind, Request::none);
  EXPECT_EQ(screen.state.view, View::runs);
}

TEST(TopModel, ALogFollowsUntilSomebodyScrollsUp) {
  Shown screen;
  const auto request = screen.type("l");
  EXPECT_EQ(request.kind, Request::show_log);
  EXPECT_EQ(request.of, "digits-3");
  for (int i = 1; i <= 100; ++i) screen.data.log.lines.push_back("line " + std::to_string(i));
  EXPECT_TRUE(screen.shows("line 100"));
  screen.type("\x1b[5~");
  EXPECT_FALSE(screen.shows("line 100"));
  screen.data.log.lines.push_back("line 101");
  screen.data.log.lines.pop_front();
  ++screen.data.log.dropped;
  const auto before = screen.state.line;
  EXPECT_FALSE(screen.shows("line 101"));
  EXPECT_EQ(screen.state.line, before) << "the same lines, though the first one was dropped";
  screen.type("\x1b[F");
  EXPECT_TRUE(screen.shows("line 101"));
  EXPECT_EQ(screen.type("q").kind, Request::leave_log);
  EXPECT_EQ(screen.state.view, View::runs);
  EXPECT_EQ(screen.type("q").kind, Request::quit);
}

TEST(TopModel, NothingThatANameHoldsIsAControlSequence) {
  Shown screen;
  const std::string evil = "x\x1b]0;title\x07\x1b[2J\u009b5m\n\r\u202e";
  for (auto& entry : screen.data.entries) {
    entry.name += evil;
    entry.run += evil;
    entry.note = entry.state = entry.user = entry.gpus = entry.expected = entry.tasks = evil;
    for (auto& task : entry.entries) task.name = task.note = evil;
  }
  screen.data.title = screen.data.trouble = screen.state.filter = evil;
  screen.data.meters.push_back({evil, 1, evil});
  screen.data.log.lines = {render::one_line(evil)};
  for (const std::string keys : {"", "x", "/", "\x1b", "l"}) {
    screen.type(keys);
    screen.state.logged = screen.state.note = evil;
    for (const auto& row : screen.page())
      for (std::size_t at = 0; at < row.size(); ++at) {
        EXPECT_NE(row[at], '\n');
        EXPECT_NE(row[at], '\a');
        if (row[at] != '\x1b') continue;
        EXPECT_TRUE(row.substr(at).starts_with("\x1b[7m") || row.substr(at).starts_with("\x1b[0m"));
      }
  }
}

/// The cells that a row takes, without its colours.
std::size_t width_of_row(std::string row) {
  for (std::size_t at = 0; (at = row.find('\x1b')) != std::string::npos;)
    row.erase(at, row.find('m', at) - at + 1);
  return render::cells(row);
}

TEST(TopModel, FitsEverySize) {
  Rng rng(11);
  const std::vector<std::string> typed{"\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F",
                                       "\r",     ">",      "<",       "r",       "/",      "a",
                                       "x",      "n",      "l",       "q",       "\t",     "?",
                                       "\x1b",   "d",      "\x1b[C",  "\x1b[D"};
  for (int round = 0; round < 400; ++round) {
    Shown screen;
    screen.size = {1 + rng.below(30), 1 + rng.below(rng.below(2) == 0 ? 40 : 300)};
    for (auto more = rng.below(40); more > 0; --more)
      screen.data.entries.push_back(task_row("more-1", static_cast<int>(more), true));
    for (auto more = rng.below(9); more > 0; --more)
      screen.data.meters.push_back({"GPU " + std::to_string(more), 0.3, "24 GiB of 80 GiB"});
    for (auto more = rng.below(60); more > 0; --more)
      screen.data.log.lines.push_back(std::string(more, '\x61') + "\u6f22");
    for (auto keys = rng.below(12); keys > 0; --keys) screen.type(typed[rng.below(typed.size())]);
    const auto page = screen.page();
    ASSERT_LE(page.size(), screen.size.rows);
    for (const auto& row : page) ASSERT_LE(width_of_row(row), screen.size.columns) << row;
    if (screen.state.view != View::runs) continue;
    const auto rows = rows_of(screen.data, screen.state);
    const auto layout = layout_of(screen.data, screen.state, screen.size);
    ASSERT_TRUE(rows.empty() || (screen.state.at >= screen.state.first &&
                                 screen.state.at < screen.state.first + layout.body))
        << "what is chosen is in sight";
  }
}

TEST(TopPage, OnlyRowsThatDifferAreDrawn) {
  EXPECT_EQ(drawing({"a", "b"}, {"a", "c"}), "\x1b[2;1H\x1b[0m\x1b[2Kc");
  EXPECT_EQ(drawing({"a", "b"}, {"a"}), "\x1b[2;1H\x1b[0m\x1b[2K");
  EXPECT_EQ(drawing({"a"}, {"a"}), "");
  EXPECT_TRUE(drawing({}, {"a"}).starts_with("\x1b[0m\x1b[2J"));
}

TEST(TopPage, ANarrowScreenHasTheNameAndTheState) {
  Shown screen;
  screen.size = {8, 20};
  const auto page = screen.page();
  EXPECT_TRUE(screen.shows("digits-3"));
  EXPECT_TRUE(screen.shows("running"));
  screen.size = {12, 300};
  EXPECT_TRUE(screen.shows("starts ~4m00s"));
}

}  // namespace
}  // namespace berth::cli
