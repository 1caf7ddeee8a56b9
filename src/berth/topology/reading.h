// What the readers of printed matrices share: a text in lines, and the last step.
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
  bool cut = false;  // the text ends within it
};

struct Text {
  std::vector<Line> lines;  // those without '#' in front
  std::string source;       // what "# source:" says
};

/// ANSI codes taken out, even those that lost their ESC on the way; a carriage return is a blank to
/// whoever takes words. invalid: more than kMostText.
Result<Text> text_of(std::string_view raw, const std::string& name);

/// "name:line: message", of kind invalid.
std::unexpected<Error> refuse(const std::string& name, int line, std::string_view message);

/// A topology of these devices, of which nothing else is known.
Topology bare(const std::string& name, const std::string& source, std::span<const int> indices);

/// Devices in the order of their indices, whatever the order in which a file lists them.
Topology in_order(Topology topology);

/// A pair told from one side is told; what is not told is counted and noted; check(); in_order().
Result<Topology> finished(Topology topology);

}  // namespace berth::topology
