// A Connection leads to a berth-agent on some machine, through a command that starts it there
// (`ssh host … berth-agent stdio DIR`). It deals with everything between the start of that command
// and the first word of the agent: the noise of a login, a machine that lacks the program and has
// to be sent it, a machine that cannot run it.
//
//   the far end   …noise…, then one line: "berth-agent here"; or "berth-agent wanted", after which
//                 it takes the file; or "berth-agent cannot …"
//   this end      nothing but the file, until the agent is there
//
// Once the agent is there, take() returns the descriptor, on which nothing was sent yet; this end
// sends first. The Connection has to live for as long as the descriptor is used, and knows why it
// broke.
//
// Ownership: it refers to the Env; its destructor kills the command. Threads: one. Failure: lost()
// says why.
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

struct ConnectionOptions {
  std::vector<std::string> command;
  std::string agent_file;                              ///< The program, sent where it is wanted.
  Duration answers_within = std::chrono::seconds(30);  ///< So long the far end may be silent.
  /// The pause before a broken connection is made again; 0: 0.5 s, then twice as long each time.
  Duration reconnect = {};
};

class Connection {
 public:
  /// The Connection calls `on_event` in a turn of the loop when the agent is there, or it is lost.
  Connection(os::Env& env, ConnectionOptions options, std::function<void()> on_event);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  /// Whether the agent has answered, so that take() may be called, once.
  bool here() const { return here_; }
  os::Fd take();
  /// How many bytes of the program have gone, while it is sent.
  std::int64_t brought() const { return brought_; }
  const std::optional<Error>& lost() const { return lost_; }
  /// Why the descriptor that was taken may have ended: what the command wrote to its standard
  /// error, else `otherwise`.
  Error because(Error otherwise);

 private:
  void read();
  void read_complaints();
  void step();
  void bring();
  void on_line(std::string_view line);
  void lose(Error error);

  os::Env* env_;
  ConnectionOptions options_;
  std::optional<os::Child> child_;
  std::string received_, complaints_;
  os::Fd file_;  // that is brought
  std::string unsent_;
  std::int64_t brought_ = 0;
  bool bringing_ = false, here_ = false;
  std::optional<Error> lost_;
  std::function<void()> on_event_;
  os::Poll readable_, writable_, complains_;
  os::Timer gives_up_;
};

}  // namespace berth::agent
