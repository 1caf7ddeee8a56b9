// The command line, taken apart: the only file that knows of CLI11 is arguments.cc.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "berth/base/result.h"

namespace berth::cli {

struct Arguments {
  std::string command;  // "run", …; "" for none
  bool json = false;

  std::string target;              // FILE of run; RUN or RUN/TASK of the others
  std::vector<std::string> words;  // what stood behind "--"
  std::string name;
  std::vector<std::pair<std::string, std::string>> resources;  // as written: {"cpu", "2"}
  std::string timeout;
  int retries = 0;
  int priority = 0;
  int parallel = 0;
  bool follow = false;
  std::string disk_directory;
  std::string topology, available, require, policy, objective;
};

/// What is to be printed instead of doing anything: help, the version.
struct Printout {
  std::string text;
};

/// usage: names what is wrong and where help is.
Result<std::variant<Arguments, Printout>> parse_arguments(int count, const char* const* values);

}  // namespace berth::cli
