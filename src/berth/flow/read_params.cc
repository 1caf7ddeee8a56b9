#include "berth/exec/fields.h"
#include "berth/flow/advice.h"
#include "berth/flow/flow_options.h"
#include "berth/flow/notation.h"

namespace berth::flow {
namespace {

Result<Words> read_words(const Field& field) {
  Words words;
  if (field.is_map())
    return field.error(
        "expected a value or a list of them, got a map (ranges are for experiments)");
  if (!field.is_list()) {
    BERTH_ASSIGN(std::string text, exec::process_text(field));
    words.push_back(std::move(text));
    return words;
  }
  BERTH_ASSIGN(const auto items, field.items());
  for (const auto& item : items) {
    BERTH_ASSIGN(std::string text, exec::process_text(item));
    words.push_back(std::move(text));
  }
  if (words.empty()) return field.error("the list is empty");
  return words;
}

}  // namespace

Result<Params> read_params(const Field& field) {
  Params params;
  if (!field.is_map()) return field.error(advice_on_names("params", field));
  BERTH_ASSIGN(const auto entries, field.entries());
  for (const auto& [name, value] : entries) {
    if (!valid_value_name(name)) return value.error(kValueName);
    BERTH_ASSIGN(Words words, read_words(value));
    params.emplace_back(name, std::move(words));
  }
  return params;
}

}  // namespace berth::flow
