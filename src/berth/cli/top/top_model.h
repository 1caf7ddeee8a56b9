// What berth top shows on a terminal and what keys do to it: state and key give the next state and
// what is to be done. Nothing here draws or asks anybody. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/base/time.h"
#include "berth/cli/top/keys.h"
#include "berth/os/terminal.h"

namespace berth::cli {

using ScreenSize = os::Terminal::Size;

/// How much of something is held, as a bar and in words.
struct Meter {
  std::string name;       ///< "cpu", "GPU 0".
  double part = 0;        ///< 0 to 1.
  std::string text = {};  ///< "3 of 8".
};

/// A row: a run, one of its tasks, or what somebody holds who is no run of this user.
struct TopEntry {
  std::string name;      ///< "digits-3", "digits-3/17".
  std::string run = {};  ///< The run that the row is of; "": none of this user.
  bool is_task = false;
  std::string state = {};         ///< "running", "queued", "held", "failed".
  bool waits = false;             ///< It waits in this machine's queue.
  std::string tasks = {};         ///< Of a run: "12/40".
  std::int64_t running = 0;       ///< Of a run: how many tasks run.
  std::int64_t cpu = 0, mem = 0;  ///< What it holds, or waits for: thousandths, bytes.
  std::string gpus = {};          ///< Which, by index: "0,1"; of one that waits how many: "2 GPUs".
  std::optional<Duration> time = {};   ///< How long it has been in this state.
  std::optional<Duration> until = {};  ///< When it starts or ends, from now on, as far as known.
  std::string expected = {};           ///< That in words: "starts ~4m", "starts ?".
  std::string user = {};
  std::string note = {};               ///< Why it waits, or failed.
  bool is_active = true;               ///< Others are shown only where all are asked for.
  std::vector<TopEntry> entries = {};  ///< Of a run its tasks: those that run come first.
};

/// Lines to scroll through. The first ones go when there are too many.
struct TextPane {
  std::deque<std::string> lines;  ///< As render::one_line() makes them.
  std::int64_t dropped = 0;       ///< How many stood before the first.
};

struct TopData {
  std::string title;  ///< Such as "box  12:03:44  2 run, 1 waits".
  std::vector<Meter> meters;
  bool has_gpus = false;
  std::vector<TopEntry> entries;  ///< Those that hold something, then the queue in its order.
  TextPane machine, log;
  std::string trouble = {};  ///< Why something of this is missing or old.
};

struct TopState {
  enum class View : std::uint8_t { runs, machine, log, help };
  View view = View::runs;
  // Of the runs.
  std::string chosen = {};        ///< The name of a row; it stays chosen when others come and go.
  std::size_t at = 0, first = 0;  ///< Where it stood last; the first row that is shown.
  std::optional<std::size_t> sort = {};  ///< By this column; nullopt: as the data has them.
  bool is_reversed = false;
  std::string filter = {};
  bool is_typing = false;           ///< The filter is being typed.
  bool shows_all = false;           ///< Also the runs that have ended.
  std::set<std::string> open = {};  ///< Runs of which all tasks are shown.
  std::string stops = {};           ///< The run of which it is asked whether to stop it.
  std::string note = {};            ///< What came of the last key, until the next.
  // Of a text.
  std::int64_t line = 0;    ///< The first one that is shown, counted with those that were dropped.
  bool follows = false;     ///< The last line stays in sight.
  std::size_t column = 0;   ///< The first cell that is shown.
  std::string logged = {};  ///< The run or task whose log is shown.
};

struct TopRequest {
  enum class Kind : std::uint8_t { none, quit, stop, show_log, leave_log, redraw };
  Kind kind = Kind::none;
  std::string of = {};  ///< A run to stop, a run or task to show.
};

/// The rows in the order in which they are shown: sorted, filtered, each run before its tasks.
std::vector<const TopEntry*> rows_of(const TopData& data, const TopState& state);

/// Acts upon a key. The state has been settled.
TopRequest press(TopState& state, const TopData& data, const KeyPress& key, ScreenSize size);

/// The state made to fit other data or another size: what is chosen exists and is in sight.
void settle(TopState& state, const TopData& data, ScreenSize size);

/// How many rows each part of the screen has.
struct TopLayout {
  std::size_t title = 0, meters = 0, head = 0, body = 0, foot = 0;
  std::size_t meters_beside = 1;  ///< In one row.
};
TopLayout layout_of(const TopData& data, const TopState& state, ScreenSize size);

/// A column of the runs.
struct TopColumn {
  const char* head;
  std::size_t width;  ///< In cells; 0: what the others leave.
  bool right;
  int keep;  ///< The column with the greatest goes first where there is no room for all.
  std::string (*text)(const TopEntry&);
  bool (*before)(const TopEntry&, const TopEntry&);  ///< When sorted by it.
};
const std::vector<TopColumn>& top_columns();

const TextPane& text_of(const TopData& data, TopState::View view);

}  // namespace berth::cli
