// A document is refused, or is a tree of which every place answers every question.
#include "berth/base/document.h"

#include <algorithm>

#include "berth/base/text.h"
#include "fuzz.h"

namespace {

using berth::Field;

void ask(const Field& field, int lines) {
  const auto& node = field.node();
  BERTH_ASSERT(node.line >= 0 && node.line <= lines);
  BERTH_ASSERT(field.is_scalar() == field.text().has_value());
  BERTH_ASSERT(field.integer().has_value() <= field.number().has_value());
  (void)field.duration();
  const auto complaint = field.expect_keys({"name", "run", "params", "search"});
  BERTH_ASSERT(complaint || complaint.error().message.starts_with("f:"));
  if (const auto items = field.items())
    for (const auto& item : *items) ask(item, lines);
  if (const auto entries = field.entries())
    for (const auto& [key, value] : *entries) {
      BERTH_ASSERT(field.get(key).has_value() == !value.is_null());
      ask(value, lines);
    }
}

}  // namespace

void berth::fuzz(std::string_view text) {
  // The work of a bomb is bounded, but not small: leave time for other inputs.
  if (std::ranges::count(text, '*') > 6) return;
  const auto root = Field::parse(text, "f");
  if (root)
    ask(*root,
        static_cast<int>(std::ranges::count(text, '\n') + std::ranges::count(text, '\r')) + 1);
  else
    BERTH_ASSERT(root.error().kind == ErrorKind::invalid && root.error().message.starts_with("f:"));
}
