// The first file of whoever begins: an experiment, a flow or a fleet for what a folder holds, with
// comments that say what to change. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::engine {

/// An option of a script, such as that of `add_argument("--lr", type=float, default=0.1)`.
struct ScriptOption {
  std::string option;  ///< "--lr"
  std::string name;    ///< Of the parameter: "lr".
  std::string values;  ///< What is tried of it, in YAML; "" where nothing can be guessed.
};

/// The options that a Python script declares with argparse or click, in their order. What the text
/// computes is not seen.
std::vector<ScriptOption> options_of_script(std::string_view text);
/// The metric that a script prints in a line `::berth NAME=…`; "" where it prints none.
std::string metric_of_script(std::string_view text);

struct Script {
  std::string file;     ///< "train.py"
  std::string command;  ///< That starts it: "python3 train.py".
  std::vector<ScriptOption> options = {};
  std::string metric = {};
};

/// An experiment over the script's options; without a script, one that runs as it stands.
std::string first_experiment(const std::string& name, const std::optional<Script>& script);
/// A flow over the files `*.extension`; without an extension, over a file that it makes itself.
std::string first_flow(const std::string& name, const std::string& extension);
/// A fleet of one server on two accelerators.
std::string first_fleet();

}  // namespace berth::engine
