#include "berth/cli/top/top_model.h"

#include <algorithm>
#include <functional>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/resources.h"

namespace berth::cli {
namespace {

using Kind = KeyPress::Kind;
using View = TopState::View;

using Request = TopRequest::Kind;

constexpr std::size_t kMeterWidth = 38, kSideways = 8, kLongestFilter = 100;

std::string amount_text(std::string_view name, std::int64_t of) {
  return of > 0 ? format_amount(name, of) : "";
}

/// The greater first, as one wants to see who has most; what has none comes last.
template <auto Member>
bool greater(const TopEntry& a, const TopEntry& b) {
  return a.*Member > b.*Member;
}
template <auto Member>
bool less(const TopEntry& a, const TopEntry& b) {
  return a.*Member < b.*Member;
}
bool sooner(const TopEntry& a, const TopEntry& b) {
  return a.until && (!b.until || *a.until < *b.until);
}

bool has(const TopEntry& entry, const std::string& wanted) {
  for (const auto* text : {&entry.name, &entry.state, &entry.user, &entry.note, &entry.gpus})
    if (lower(*text).contains(wanted)) return true;
  return false;
}

void sort(std::vector<const TopEntry*>& entries, const TopState& state) {
  if (!state.sort) return;
  const auto before = top_columns()[*state.sort].before;
  std::ranges::stable_sort(entries, [&](const auto* a, const auto* b) {
    return state.is_reversed ? before(*b, *a) : before(*a, *b);
  });
}

std::size_t body_rows(const TopData& data, const TopState& state, ScreenSize size) {
  return std::max<std::size_t>(1, layout_of(data, state, size).body);
}

std::int64_t end_of(const TextPane& text) {
  return text.dropped + std::ssize(text.lines);
}

void leave_text(TopState& state) {
  state.view = View::runs;
  state.line = 0;
  state.column = 0;
  state.follows = false;
}

void open_text(TopState& state, View view, bool follows) {
  leave_text(state);
  state.view = view;
  state.follows = follows;
}

/// How many rows up (below 0) or down a key goes; 0: it does not move.
std::int64_t step_of(const KeyPress& key, std::int64_t page) {
  constexpr std::int64_t kAll = std::int64_t{1} << 40;
  const bool is_text = key.kind == Kind::text;
  if (key.kind == Kind::up || (is_text && key.text == "k")) return -1;
  if (key.kind == Kind::down || (is_text && key.text == "j")) return 1;
  if (key.kind == Kind::page_up) return -page;
  if (key.kind == Kind::page_down) return page;
  if (key.kind == Kind::home || (is_text && key.text == "g")) return -kAll;
  if (key.kind == Kind::end || (is_text && key.text == "G")) return kAll;
  return 0;
}

void move(TopState& state, const TopData& data, std::int64_t step) {
  const auto rows = rows_of(data, state);
  if (rows.empty()) return;
  const auto at =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(state.at) + step, 0, std::ssize(rows) - 1);
  state.at = static_cast<std::size_t>(at);
  state.chosen = rows[state.at]->name;
}

const TopEntry* chosen_of(const TopData& data, const TopState& state) {
  const auto rows = rows_of(data, state);
  return state.at < rows.size() ? rows[state.at] : nullptr;
}

const TopEntry* run_of(const TopData& data, const std::string& name) {
  const auto found = std::ranges::find_if(data.entries, [&](const TopEntry& entry) {
    return !entry.run.empty() && entry.name == name;
  });
  return found != data.entries.end() ? &*found : nullptr;
}

TopRequest press_typing(TopState& state, const KeyPress& key) {
  if (key.kind == Kind::enter) state.is_typing = false;
  if (key.kind == Kind::clear_line) state.filter.clear();
  if (key.kind == Kind::escape) {
    state.is_typing = false;
    state.filter.clear();
  }
  if (key.kind == Kind::backspace && !state.filter.empty()) {
    while ((static_cast<unsigned char>(state.filter.back()) & 0xc0) == 0x80)
      state.filter.pop_back();
    state.filter.pop_back();
  }
  if (key.kind == Kind::text && state.filter.size() < kLongestFilter) state.filter += key.text;
  return {};
}

TopRequest press_text(TopState& state, const TopData& data, const KeyPress& key, ScreenSize size) {
  const bool is_log = state.view == View::log;
  if (const auto step = step_of(key, static_cast<std::int64_t>(body_rows(data, state, size)))) {
    state.line += step;
    // Whoever goes to the end of a log wants to see what comes.
    const auto last =
        end_of(text_of(data, state.view)) - static_cast<std::int64_t>(body_rows(data, state, size));
    state.follows = is_log && step > 0 && state.line >= last;
  } else if (key.kind == Kind::right) {
    state.column += kSideways;
  } else if (key.kind == Kind::left) {
    state.column -= std::min(state.column, kSideways);
  } else if (key.kind == Kind::escape || key == KeyPress{Kind::text, "q"} ||
             (key.kind == Kind::tab && !is_log)) {
    leave_text(state);
    if (is_log) return {Request::leave_log};
  } else if (key.kind == Kind::function && key.text == "10") {
    return {Request::quit};
  }
  return {};
}

TopRequest show_log(TopState& state, const TopEntry* row) {
  if (row == nullptr) return {};
  if (row->run.empty()) {
    state.note = row->name + " is not one of your runs: you cannot see its log";
    return {};
  }
  open_text(state, View::log, true);
  state.logged = row->name;
  return {Request::show_log, row->name};
}

TopRequest ask_to_stop(TopState& state, const TopData& data, const TopEntry* row) {
  if (row == nullptr) return {};
  const auto* run = run_of(data, row->run);
  if (row->run.empty())
    state.note = row->name + " is not one of your runs: you cannot stop it";
  else if (run != nullptr && !run->is_active)
    state.note = fmt::format("{} is {}: there is nothing to stop", run->name, run->state);
  else
    state.stops = row->run;
  return {};
}

void sort_by(TopState& state, std::size_t column) {
  if (state.sort == column) state.is_reversed = !state.is_reversed;
  if (state.sort != column) state.is_reversed = false;
  state.sort = column;
}

/// The next column to sort by, behind the last of which comes the order of the data.
void sort_next(TopState& state, bool forward) {
  const std::size_t count = top_columns().size();
  const std::size_t now = state.sort.value_or(count);
  const std::size_t next = (now + (forward ? 1 : count)) % (count + 1);
  state.sort = next < count ? std::optional(next) : std::nullopt;
  state.is_reversed = false;
}

std::size_t column_called(std::string_view head) {
  const auto& columns = top_columns();
  return static_cast<std::size_t>(std::ranges::find(columns, head, &TopColumn::head) -
                                  columns.begin());
}

void toggle_open(TopState& state, const TopEntry* row) {
  if (row == nullptr || row->run.empty()) return;
  if (state.open.erase(row->run) == 0) state.open.insert(row->run);
  state.chosen = row->run;  // its tasks may go out of sight
}

/// As letters and as the function keys that htop has.
std::string_view letter_of(const KeyPress& key) {
  if (key.kind == Kind::text) return key.text;
  if (key.kind == Kind::enter) return " ";
  if (key.kind == Kind::tab) return "\t";
  constexpr std::pair<std::string_view, std::string_view> kKeysOfViews[] = {
      {"1", "?"}, {"3", "/"}, {"4", "/"}, {"5", " "}, {"6", ">"}, {"9", "x"}, {"10", "q"}};
  for (const auto& [function, letter] : kKeysOfViews)
    if (key.kind == Kind::function && key.text == function) return letter;
  return "";
}

TopRequest press_runs(TopState& state, const TopData& data, const KeyPress& key, ScreenSize size) {
  if (const auto step = step_of(key, static_cast<std::int64_t>(body_rows(data, state, size)))) {
    move(state, data, step);
    return {};
  }
  if (key.kind == Kind::escape) state.filter.clear();
  const std::string_view command = letter_of(key);
  const auto* row = chosen_of(data, state);
  if (command == "q") return {Request::quit};
  if (command == "x") return ask_to_stop(state, data, row);
  if (command == "l") return show_log(state, row);
  if (command == "?" || command == "h") open_text(state, View::help, false);
  if (command == "\t" || command == "m") open_text(state, View::machine, false);
  if (command == "/" || command == "\\") state.is_typing = true;
  if (command == "a") state.shows_all = !state.shows_all;
  if (command == " ") toggle_open(state, row);
  if (command == ">" || command == "<") sort_next(state, command == ">");
  if (command == "r") state.is_reversed = state.sort && !state.is_reversed;
  constexpr std::pair<std::string_view, std::string_view> kColumns[] = {
      {"N", "run"}, {"P", "cpu"}, {"M", "memory"}, {"T", "for"}, {"E", "expected"}};
  for (const auto& [letter, head] : kColumns)
    if (command == letter) sort_by(state, column_called(head));
  return {};
}

}  // namespace

const std::vector<TopColumn>& top_columns() {
  using E = TopEntry;
  static const std::vector<TopColumn> columns{
      {"run", 0, false, 0, [](const E& e) { return (e.is_task ? "  " : "") + e.name; },
       less<&E::name>},
      {"state", 9, false, 1, [](const E& e) { return e.state; }, less<&E::state>},
      {"tasks", 9, true, 6, [](const E& e) { return e.tasks; }, greater<&E::running>},
      {"cpu", 5, true, 4, [](const E& e) { return amount_text("cpu", e.cpu); }, greater<&E::cpu>},
      {"memory", 9, true, 5, [](const E& e) { return amount_text("mem", e.mem); },
       greater<&E::mem>},
      {"GPUs", 7, false, 3, [](const E& e) { return e.gpus; }, greater<&E::gpus>},
      {"for", 6, true, 2, [](const E& e) { return e.time ? format_duration(*e.time) : ""; },
       greater<&E::time>},
      {"expected", 14, false, 7, [](const E& e) { return e.expected; }, sooner},
      {"user", 8, false, 8, [](const E& e) { return e.user; }, less<&E::user>},
      {"note", 0, false, 9, [](const E& e) { return e.note; }, less<&E::note>}};
  return columns;
}

const TextPane& text_of(const TopData& data, View view) {
  static const TextPane help{
      {"Up, Down, PgUp, PgDn, Home, End   choose a row; also j, k, g, G",
       "Enter, Space   all tasks of the chosen run, or only those that run",
       "l              the log of the chosen run or task, as it comes",
       "x, F9          stop the chosen run, or that of the chosen task; asks first",
       "/, F4          show only rows with the text that you type; Esc: show all",
       "a              show or hide the runs that have ended",
       "<, >, F6       sort by another column; beyond the last one by none: then what",
       "               waits is in the order of its turn",
       "N P M T E      sort by name, cpu, memory, time, expected start or end",
       "r              reverse the order",
       "Tab, m         this machine and the clusters: who uses what",
       "Ctrl-L         redraw the screen",
       "?, h, F1       this help",
       "q, F10         quit; in a log, the machine or this help: back, as Esc",
       "",
       "In texts the arrows, PgUp, PgDn, Home and End scroll; a log at its end follows.",
       "",
       "expected: \"ends ~4m\" by how long tasks of the same step took that have ended;",
       "\"starts ~4m\" by when those end that use what the run waits for; \"<4m\": by a",
       "time limit, at most; \"?\": nothing is known. Tab says what each start is by."},
      0};
  return view == View::log ? data.log : view == View::machine ? data.machine : help;
}

std::vector<const TopEntry*> rows_of(const TopData& data, const TopState& state) {
  const std::string wanted = lower(state.filter);
  std::vector<const TopEntry*> runs;
  for (const auto& entry : data.entries)
    if (entry.is_active || state.shows_all) runs.push_back(&entry);
  sort(runs, state);
  std::vector<const TopEntry*> rows;
  for (const auto* run : runs) {
    const bool whole = wanted.empty() || has(*run, wanted);
    const bool is_open = state.open.contains(run->run);
    std::vector<const TopEntry*> tasks;
    for (const auto& task : run->entries)
      if ((is_open || task.is_active) && (whole || has(task, wanted))) tasks.push_back(&task);
    if (!whole && tasks.empty()) continue;
    sort(tasks, state);
    rows.push_back(run);
    rows.insert(rows.end(), tasks.begin(), tasks.end());
  }
  return rows;
}

TopLayout layout_of(const TopData& data, const TopState& state, ScreenSize size) {
  TopLayout layout;
  const std::size_t count = data.meters.size();
  layout.meters_beside = std::max<std::size_t>(1, size.columns / kMeterWidth);
  layout.foot = size.rows > 1 ? 1 : 0;
  layout.title = size.rows > 5 ? 1 : 0;
  if (state.view == View::runs) {
    layout.head = size.rows > 3 ? 1 : 0;
    layout.meters =
        std::min((count + layout.meters_beside - 1) / layout.meters_beside, size.rows / 3);
    if (size.rows < 8) layout.meters = 0;
  }
  layout.body =
      size.rows - std::min(size.rows, layout.foot + layout.title + layout.head + layout.meters);
  return layout;
}

void settle(TopState& state, const TopData& data, ScreenSize size) {
  const std::size_t body = body_rows(data, state, size);
  if (state.view != View::runs) {
    const TextPane& text = text_of(data, state.view);
    const auto last = std::max(text.dropped, end_of(text) - static_cast<std::int64_t>(body));
    state.line = state.follows ? last : std::clamp(state.line, text.dropped, last);
    return;
  }
  const auto rows = rows_of(data, state);
  const auto found = std::ranges::find(rows, state.chosen, &TopEntry::name);
  if (found != rows.end()) state.at = static_cast<std::size_t>(found - rows.begin());
  state.at = std::min(state.at, rows.empty() ? 0 : rows.size() - 1);
  state.chosen = rows.empty() ? "" : rows[state.at]->name;
  if (state.at < state.first) state.first = state.at;
  if (state.at >= state.first + body) state.first = state.at - body + 1;
  state.first = std::min(state.first, rows.size() - std::min(rows.size(), body));
  const auto* run = run_of(data, state.stops);
  if (run == nullptr || !run->is_active) state.stops.clear();
}

TopRequest press(TopState& state, const TopData& data, const KeyPress& key, ScreenSize size) {
  if (key.kind == Kind::ignored) return {};
  if (key.kind == Kind::redraw) return {Request::redraw};
  state.note.clear();
  TopRequest request;
  if (!state.stops.empty()) {
    const std::string run = std::exchange(state.stops, {});
    if (key == KeyPress{Kind::text, "y"} || key == KeyPress{Kind::text, "Y"})
      request = {Request::stop, run};
  } else if (state.is_typing) {
    request = press_typing(state, key);
  } else if (state.view == View::runs) {
    request = press_runs(state, data, key, size);
  } else {
    request = press_text(state, data, key, size);
  }
  settle(state, data, size);
  return request;
}

}  // namespace berth::cli
