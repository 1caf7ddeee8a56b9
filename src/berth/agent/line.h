// A command that ends in a berth-agent on some machine (`ssh host … berth-agent stdio DIR`), and
// what stands between its start and that agent's first word: the noise of a login, a machine that
// lacks the program and is brought it, one that cannot run it.
//
//   agent there   …noise…, then one line: "berth-agent here"; or "berth-agent wanted", after which
//                 it takes the file; or "berth-agent cannot …"
//   here          nothing but the file, until it is here
//
// Then take() gives the connection, on which nothing has been said yet: whoever is here speaks
// first. The Line stays for as long as that is used: it knows why it broke.
//
// Ownership: refers to Env; its end kills the command. Threads: one. Failure: lost().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/os/env.h"
#include "berth/os/loop.h"

namespace berth::agent {

inline constexpr std::string_view kHere = "berth-agent here";
inline constexpr std::string_view kWanted = "berth-agent wanted";
inline constexpr std::string_view kCannot = "berth-agent cannot ";

struct LineOptions {
  std::vector<std::string> command;
  std::string agent_file;                              // what is brought where it is wanted
  Duration answers_within = std::chrono::seconds(30);  // without a sign of life
};

class Line {
 public:
  /// `on_event` is called in a turn of the loop when it is here, or lost.
  Line(os::Env& env, LineOptions options, std::function<void()> on_event);
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line();

  /// The agent there has answered: take() may be called, once.
  bool here() const { return here_; }
  os::Fd take();
  /// Of the file, while that is brought: bytes that have gone.
  std::int64_t brought() const { return brought_; }
  const std::optional<Error>& lost() const { return lost_; }
  /// Why the connection that was taken may have ended: what the command complained of, else
  /// `otherwise`.
  Error because(Error otherwise);

 private:
  void read();
  void read_complaints();
  void step();
  void bring();
  void hear(std::string_view line);
  void lose(Error error);

  os::Env* env_;
  LineOptions options_;
  std::optional<os::Child> child_;
  std::string heard_, complained_;
  os::Fd file_;  // that is brought
  std::string unsent_;
  std::int64_t brought_ = 0;
  bool bringing_ = false, here_ = false;
  std::optional<Error> lost_;
  std::function<void()> on_event_;
  os::Poll speaks_, takes_, complains_;
  os::Timer gives_up_;
};

}  // namespace berth::agent
