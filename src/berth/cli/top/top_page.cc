#include "berth/cli/top/top_page.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/render/cells.h"

namespace berth::cli {
namespace {

using View = TopState::View;

// SGR codes; the screen stays readable without them.
constexpr std::string_view kBold = "1", kDim = "2", kReverse = "7", kRed = "31", kGreen = "32",
                           kYellow = "33", kNone = "";

class Painter {
 public:
  explicit Painter(bool is_plain) : is_plain_(is_plain) {}
  std::string operator()(std::string_view style, std::string_view text) const {
    // What is chosen has to be seen, whatever the colours.
    if (style.empty() || (is_plain_ && style != kReverse)) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", style, text);
  }

 private:
  bool is_plain_;
};

std::string_view style_of(std::string_view state) {
  if (state == "failed" || state == "interrupted") return kRed;
  if (state == "running") return kGreen;
  if (state == "queued") return kYellow;
  return kNone;
}

std::string meter_text(const Meter& meter, std::size_t width, const Painter& paint) {
  constexpr std::size_t kName = 7, kLeastBar = 6, kUsualBar = 12;
  const std::size_t name = std::min(std::max(kName, render::cells(meter.name) + 1), width);
  const std::size_t room = width - name;
  const std::string words = render::one_line(meter.text);
  if (room < kLeastBar + 12)
    return render::fit(render::one_line(meter.name), name) + render::fit(words, room);
  const std::size_t bar =
      std::clamp(room - std::min(room, render::cells(words) + 4), kLeastBar, kUsualBar);
  const auto full = static_cast<std::size_t>(
      std::clamp(meter.part, 0.0, 1.0) * static_cast<double>(bar) + (meter.part > 0 ? 0.999 : 0.0));
  const std::string_view style = meter.part > 0.99 ? kRed : meter.part > 0.7 ? kYellow : kGreen;
  const std::size_t drawn = std::min(full, bar);
  return render::fit(render::one_line(meter.name), name) + "[" +
         paint(style, std::string(drawn, '#')) + std::string(bar - drawn, '.') + "] " +
         render::fit(words, room - bar - 3);
}

/// As many as there is room for; the last place says how many more there are.
std::vector<std::string> meter_rows(const TopData& data, const TopLayout& layout, ScreenSize size,
                                    const Painter& paint) {
  std::vector<std::string> rows;
  const std::size_t width = size.columns / layout.meters_beside;
  const std::size_t places = layout.meters * layout.meters_beside;
  const bool all = data.meters.size() <= places;
  for (std::size_t row = 0; row < layout.meters; ++row) {
    std::string text;
    for (std::size_t beside = 0; beside < layout.meters_beside; ++beside) {
      const std::size_t i = row * layout.meters_beside + beside;
      if (i >= data.meters.size()) break;
      if (!all && i + 1 == places)
        text += render::fit(fmt::format("and {} more: Tab", data.meters.size() - i), width);
      else
        text += meter_text(data.meters[i], width - 1, paint) + " ";
    }
    rows.push_back(std::move(text));
  }
  return rows;
}

/// The columns that there is room for, with their widths.
std::vector<std::pair<const TopColumn*, std::size_t>> columns_of(const TopData& data,
                                                                 ScreenSize size) {
  constexpr std::size_t kLeastName = 10, kMostName = 40, kLeastNote = 12;
  std::vector<std::pair<const TopColumn*, std::size_t>> shown;
  std::size_t longest = kLeastName;
  for (const auto& entry : data.entries) {
    longest = std::max(longest, render::cells(entry.name));
    for (const auto& task : entry.entries)
      if (task.is_active) longest = std::max(longest, render::cells(task.name) + 2);
  }
  const auto& all = top_columns();
  const auto least = [&](const TopColumn& column) {
    return column.width > 0 ? column.width : column.keep == 0 ? kLeastName : kLeastNote;
  };
  const auto lacks = [&](const TopColumn& column) {
    return !data.has_gpus && column.head == std::string_view("GPUs");
  };
  std::size_t left = size.columns;
  int most = -1;
  for (int keep = 0; keep < static_cast<int>(all.size()); ++keep) {
    const auto& column = *std::ranges::find(all, keep, &TopColumn::keep);
    if (lacks(column)) continue;
    if (keep > 0 && left < least(column) + 1) break;
    left -= std::min(left, least(column) + (keep > 0 ? 1 : 0));
    most = keep;
  }
  const std::size_t name = std::min({longest, kMostName, kLeastName + left});
  left -= name - kLeastName;
  for (const auto& column : all) {
    if (column.keep > most || lacks(column)) continue;
    const bool is_note = column.width == 0 && column.keep > 0;
    shown.emplace_back(&column, column.keep == 0 ? std::min(name, size.columns)
                                : is_note        ? kLeastNote + left
                                                 : column.width);
  }
  return shown;
}

std::string head_row(const TopData& data, const TopState& state, ScreenSize size,
                     const Painter& paint) {
  std::string text;
  for (const auto& [column, width] : columns_of(data, size)) {
    const bool is_sorted = state.sort && &top_columns()[*state.sort] == column;
    const std::string head =
        is_sorted ? fmt::format("{}{}", column->head, state.is_reversed ? "^" : "v") : column->head;
    text += (text.empty() ? "" : " ") + render::fit(head, width, column->right);
  }
  return paint(kReverse, render::fit(text, size.columns));
}

std::vector<std::string> list_rows(const TopData& data, const TopState& state, ScreenSize size,
                                   std::size_t body, const Painter& paint) {
  std::vector<std::string> rows;
  const auto columns = columns_of(data, size);
  const auto all = rows_of(data, state);
  for (std::size_t i = state.first; i < all.size() && rows.size() < body; ++i) {
    const bool is_chosen = i == state.at;
    std::string text;
    for (const auto& [column, width] : columns) {
      const std::string part =
          render::fit(render::one_line(column->text(*all[i])), width, column->right);
      const bool is_state = column->head == std::string_view("state");
      text += (text.empty() ? "" : " ") +
              paint(is_state && !is_chosen ? style_of(all[i]->state) : kNone, part);
    }
    rows.push_back(is_chosen ? paint(kReverse, render::fit(text, size.columns)) : text);
  }
  if (all.empty())
    rows.push_back(render::cut(state.filter.empty() ? "Nothing runs, waits or is allocated."
                                                    : "No row has that text. Esc: show all.",
                               size.columns));
  return rows;
}

std::vector<std::string> text_rows(const TopData& data, const TopState& state, ScreenSize size,
                                   std::size_t body) {
  const TextPane& text = text_of(data, state.view);
  std::vector<std::string> rows;
  const auto at = static_cast<std::size_t>(std::max<std::int64_t>(0, state.line - text.dropped));
  for (std::size_t i = at; i < text.lines.size() && rows.size() < body; ++i)
    rows.push_back(render::cut(text.lines[i], size.columns, state.column));
  return rows;
}

std::string foot_text(const TopData& data, const TopState& state, std::size_t body) {
  if (!state.stops.empty()) {
    const auto run = std::ranges::find(data.entries, state.stops, &TopEntry::name);
    const std::int64_t running = run != data.entries.end() ? run->running : 0;
    return fmt::format("Stop {}, of which {} {}? y, or any other key: no",
                       render::one_line(state.stops), running,
                       running == 1 ? "task runs" : "tasks run");
  }
  if (state.is_typing) return "show only: " + render::one_line(state.filter) + "_";
  if (!state.note.empty()) return render::one_line(state.note);
  if (state.view != View::runs) {
    const TextPane& text = text_of(data, state.view);
    const std::string name = state.view == View::log       ? render::one_line(state.logged)
                             : state.view == View::machine ? "this machine"
                                                           : "help";
    const std::int64_t count = text.dropped + std::ssize(text.lines);
    const std::int64_t last = std::min(count, state.line + static_cast<std::int64_t>(body));
    return fmt::format("{}: {}-{} of {}{}  q back", name, std::min(state.line + 1, count), last,
                       count, state.follows ? ", follows" : "");
  }
  if (!data.trouble.empty()) return render::one_line(data.trouble);
  const std::string filter = state.filter.empty() ? ""
                                                  : fmt::format("only \"{}\" (Esc: all)  ",
                                                                render::one_line(state.filter));
  return filter + "? help  x stop  l log  / filter  < > sort  Enter tasks  Tab machine  q quit";
}

}  // namespace

std::vector<std::string> page_of(const TopData& data, const TopState& state, ScreenSize size,
                                 bool is_plain) {
  const Painter paint(is_plain);
  const TopLayout layout = layout_of(data, state, size);
  std::vector<std::string> rows;
  if (layout.title > 0)
    rows.push_back(paint(kBold, render::cut(render::one_line(data.title), size.columns)));
  std::ranges::move(meter_rows(data, layout, size, paint), std::back_inserter(rows));
  if (layout.head > 0) rows.push_back(head_row(data, state, size, paint));
  const std::size_t above = rows.size();
  std::ranges::move(state.view == View::runs ? list_rows(data, state, size, layout.body, paint)
                                             : text_rows(data, state, size, layout.body),
                    std::back_inserter(rows));
  if (layout.foot > 0) {
    rows.resize(above + layout.body);
    const bool asks = !state.stops.empty();
    const std::string foot = render::cut(foot_text(data, state, layout.body), size.columns);
    rows.push_back(paint(asks ? kReverse : state.note.empty() ? kDim : kBold, foot));
  }
  return rows;
}

std::string drawing(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  std::string text;
  for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    const std::string& now = i < after.size() ? after[i] : "";
    if (before.empty() || i >= before.size() || before[i] != now)
      text += fmt::format("\x1b[{};1H\x1b[0m\x1b[2K{}", i + 1, now);
  }
  return (before.empty() ? "\x1b[0m\x1b[2J" : "") + text;
}

}  // namespace berth::cli
