// What the readers of printed matrices share: a text split into lines, and the last step.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/topology/topology.h"

namespace berth::topology {

struct Line {
  std::string text;
  int number = 0;    // counted from 1
  bool cut = false;  // the text ends within the line
};

struct Text {
  std::vector<Line> lines;  // without those that begin with '#'
  std::string source;       // the text behind "# source:"
};

/// Splits a text into lines. ANSI codes are removed, even those that lost their ESC; a carriage
/// return and the blanks of Unicode count as blanks. Errors: invalid beyond kMostText.
Result<Text> text_of(std::string_view raw, const std::string& name);

/// The error "name:line: message" of kind invalid.
std::unexpected<Error> refuse(const std::string& name, int line, std::string_view message);

/// A topology of these devices with nothing else known.
Topology bare(const std::string& name, const std::string& source, std::span<const int> indices);

/// Sorts the devices by index.
Topology in_order(Topology topology);

/// The last step of a reader: completes pairs that one side has, notes what is unknown, sorts and
/// checks.
Result<Topology> finished(Topology topology);

/// `amd-smi topology`, as text or with --json (both of its layouts).
Result<Topology> read_amd_smi(std::string_view text, const std::string& name);

}  // namespace berth::topology
