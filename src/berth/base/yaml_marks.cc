#include "berth/base/yaml_marks.h"

#include <algorithm>
#include <array>

#include "berth/base/result.h"
#include "berth/base/text.h"

namespace berth {
namespace {

struct Mark {
  std::string_view mark, meant;
};
// Each mark has three bytes, of which only the last differs.
constexpr std::array<Mark, 6> kAll{{{"\uFDD0", "{"},
                                    {"\uFDD1", "}"},
                                    {"\uFDD2", "\t"},
                                    {"\uFDD3", "\u0085"},
                                    {"\uFDD4", "\u2028"},
                                    {"\uFDD5", "\u2029"}}};
constexpr const Mark &kOpen = kAll[0], &kClose = kAll[1], &kTab = kAll[2];

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

int line_at(std::string_view text, std::size_t at) {
  return static_cast<int>(std::ranges::count(text.substr(0, at), '\n')) + 1;
}

const Mark* mark_at(std::string_view text) {
  const auto found =
      std::ranges::find_if(kAll, [&](const Mark& each) { return text.starts_with(each.mark); });
  return found == kAll.end() ? nullptr : &*found;
}

/// What of a text that is UTF-8 no reader of YAML takes: U+0080 to U+009F but U+0085, U+FEFF,
/// U+FFFE, U+FFFF; and the marks.
std::string refused_at(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  if (byte(0) == 0xc2 && byte(1) < 0xa0 && byte(1) != 0x85)
    return fmt::format("the control character 0x{:02x}", byte(1));
  if (text.starts_with("\uFEFF")) return "U+FEFF, the mark that files of Windows begin with";
  if (byte(0) == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe)
    return fmt::format("U+FF{:02X}", 0xFE + (byte(2) - 0xbe));
  return mark_at(text) ? "one of U+FDD0 to U+FDD5" : "";
}

void mark_braces(std::string& text) {
  constexpr std::string_view kBefore = "/=@%+~";  // and the characters of names
  std::string result;
  std::size_t done = 0;
  for (auto at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
    std::size_t end = at + 1;
    while (end < text.size() && name_char(text[end])) ++end;
    const bool behind_another = at == done && at > 0 && !result.empty();
    const bool adjoins =
        behind_another || (at > 0 && (name_char(text[at - 1]) || kBefore.contains(text[at - 1])));
    if (!adjoins || end == at + 1 || end == text.size() || text[end] != '}') continue;
    result.append(text, done, at - done).append(kOpen.mark).append(text, at + 1, end - at - 1);
    result.append(kClose.mark);
    done = end + 1;
    at = end;
  }
  if (done > 0) text = std::move(result.append(text, done));
}

/// Whether a block of text begins behind the line.
bool opens_block(std::string_view line) {
  if (const auto comment = line.find(" #"); comment != std::string_view::npos)
    line = line.substr(0, comment);
  line = trim(line);
  while (!line.empty() && (line.back() == '+' || line.back() == '-' || name_char(line.back())))
    line.remove_suffix(1);
  return line.ends_with('|') || line.ends_with('>');
}

void mark_tabs(std::string& text) {
  if (!text.contains(" \t")) return;
  std::string result;
  bool begins = false;  // the next line may be the first of a block
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const auto line = std::string_view(text).substr(at, end - at);
    const auto tab = line.find_first_not_of(' ');
    const bool blank = trim(line).empty();
    if (begins && tab > 0 && tab < line.size() && line[tab] == '\t')
      result.append(line.substr(0, tab)).append(kTab.mark).append(line.substr(tab + 1));
    else
      result.append(line);
    begins = blank ? begins : opens_block(line);
    at = end;
  }
  text = std::move(result);
}

void mark_all(std::string& text, const Mark& mark) {
  std::string result;
  std::size_t done = 0;
  for (auto at = text.find(mark.meant); at != std::string::npos; at = text.find(mark.meant, done)) {
    result.append(text, done, at - done).append(mark.mark);
    done = at + mark.meant.size();
  }
  if (done > 0) text = std::move(result.append(text, done));
}

}  // namespace

std::optional<BrokenYaml> find_no_text(std::string_view text) {
  std::optional<BrokenYaml> first;
  const std::size_t begin = text.starts_with("\uFEFF") ? 3 : 0;
  for (std::size_t at = begin; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (!first && ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f))
      first = {line_at(text, at),
               fmt::format("not text: contains the control character 0x{:02x}", c)};
    if (c < 0x80) {
      ++at;
      continue;
    }
    const auto length = utf8_length(text, at);
    if (length == 0) return BrokenYaml{line_at(text, at), "not UTF-8 text: save it as UTF-8"};
    if (const auto what = refused_at(text.substr(at)); !first && !what.empty())
      first = {line_at(text, at), "not text: contains " + what};
    at += length;
  }
  return first;
}

std::string marked(std::string_view text) {
  std::string result(text);
  mark_braces(result);
  mark_tabs(result);
  for (const auto& mark : std::span(kAll).subspan(3)) mark_all(result, mark);
  return result;
}

bool may_be_marked(std::string_view text) {
  return text.contains(kAll[0].mark.substr(0, 2));
}

std::string unmarked(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Mark* mark = mark_at(text.substr(at));
    result += mark ? mark->meant : text.substr(at, 1);
    at += mark ? mark->mark.size() : 1;
  }
  return result;
}

}  // namespace berth
