// Labels: what a person calls a run by beside its name, such as team=vision. They stay with the run
// and go along with its allocs. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/document.h"

namespace berth::exec {

/// Names and values, in the order in which the names came first.
using Labels = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::size_t kMostLabels = 16;
inline constexpr std::size_t kMostLabelName = 63, kMostLabelValue = 200;  // bytes

/// Sets a label, in place of an earlier one of that name. invalid: with what is wrong, for
/// Field::error().
Status set_label(std::string_view name, std::string_view value, Labels& labels);

Status read_labels(const Field& map, Labels& labels);

/// "team=vision", as on a command line; it wins over an earlier one. usage: names the option.
Status add_label(std::string_view text, Labels& labels);

/// Whether a filter fits: "team" (there is such a label) or "team=vision".
bool fits_label(std::string_view filter, const Labels& labels);

/// "team=vision,step=2".
std::string to_text(const Labels& labels);

}  // namespace berth::exec
