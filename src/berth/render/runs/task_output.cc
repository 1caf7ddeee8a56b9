#include "berth/render/runs/task_output.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::render {

Result<std::optional<Tail>> parse_tail(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text.find_first_not_of("0123456789") == text.npos && text.size() <= 9)
    return Tail{static_cast<std::size_t>(std::stoul(text)), true};
  const auto bytes = parse_bytes(text);
  if (!bytes)
    return fail(ErrorKind::usage,
                "--tail: expected lines such as 20, or a size such as 200K, got '{}'", clip(text));
  return Tail{static_cast<std::size_t>(*bytes), false};
}

void OutputText::add(const engine::OutputPart& part) {
  if (source_.has_one_task) {
    if (on_attempt && part.token != shown_ && (source_.has_attempts || !part.is_first_attempt))
      on_attempt(part.attempt);
    shown_ = part.token;
    return put(part.stream, part.bytes);
  }
  Line& line = partial_[{part.token, part.stream}];
  line.label = part.is_first_attempt ? std::string(part.task)
                                     : fmt::format("{} {}", part.task, part.attempt);
  std::string_view rest = part.bytes;
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
    line.text += rest.substr(0, end);
    put(part.stream, fmt::format("[{}] {}\n", line.label, line.text));
    line.text.clear();
    rest.remove_prefix(end + 1);
  }
  line.text += rest;
}

void OutputText::finish() {
  for (auto& [key, line] : partial_)
    if (!line.text.empty()) put(key.second, fmt::format("[{}] {}\n", line.label, line.text));
  partial_.clear();
  put_end();
}

void OutputText::put_end() {
  tail_.reset();
  for (; !kept_.empty(); kept_.pop_front()) put_(kept_.front().first, kept_.front().second);
}

void OutputText::put(exec::Stream stream, std::string_view text) {
  tail_ ? keep(stream, text) : put_(stream, text);
}

void OutputText::keep(exec::Stream stream, std::string_view text) {
  kept_.emplace_back(stream, text);
  kept_size_ += size_of(text);
  // The end of an unfinished line is a line, too.
  const bool is_unfinished = tail_->is_in_lines && !text.ends_with('\n');
  while (kept_size_ + (is_unfinished ? 1 : 0) > tail_->size && !kept_.empty()) {
    std::string& first = kept_.front().second;
    std::size_t over = std::min(kept_size_ - std::min(kept_size_, tail_->size), first.size());
    if (tail_->is_in_lines) over = std::min(first.find('\n'), first.size() - 1) + 1;
    kept_size_ -= size_of(std::string_view(first).substr(0, over));
    first.erase(0, over);
    if (first.empty()) kept_.pop_front();
  }
}

std::size_t OutputText::size_of(std::string_view text) const {
  return tail_->is_in_lines ? static_cast<std::size_t>(std::ranges::count(text, '\n'))
                            : text.size();
}

}  // namespace berth::render
