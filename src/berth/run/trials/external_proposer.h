// A proposer of one's own: a process that lives as long as the run is driven, is told every trial
// on its standard input, and answers there when it is asked. What it has to know of earlier
// runners' trials it is told again; it keeps nothing that Berth depends on.
//
// Ownership: refers to Env; the loop calls it. Its end closes the process's input, and kills it if
// it stays. Threads: one; never blocks. Failure: an answer that is none, an end before its time, or
// no answer in time are Errors of answer().
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/os/env.h"
#include "berth/os/loop.h"

namespace berth::run {

class ExternalProposer {
 public:
  struct Options {
    std::vector<std::string> argv;
    exec::Environment environment;
    std::string directory;  // where it is started
    std::string pipe;       // the path of its input
    Duration timeout{};
  };
  ExternalProposer(os::Env& env, Options options);
  ExternalProposer(const ExternalProposer&) = delete;
  ExternalProposer& operator=(const ExternalProposer&) = delete;
  ~ExternalProposer();

  /// A line for it; sent as it takes them.
  void send_line(std::string_view line);
  /// One that it has to answer. Starts it at the first call.
  void ask(std::string_view line);
  bool asked() const { return asked_; }
  /// Its answer, once it is there; then it is asked no more.
  Result<std::optional<std::string>> answer();
  /// Whether there is something for answer() to tell since it was called last.
  bool take_news() { return std::exchange(news_, false); }

 private:
  Status start();
  Status look_for_pipe();
  Status send();
  Status read();
  void read_complaint();
  void keep(Status status);
  Error error(std::string_view what);

  os::Env& env_;
  const Options options_;
  std::optional<os::Child> child_;
  std::optional<os::Fd> input_;
  std::string unsent_;
  std::string received_;   // of its standard output, no whole line yet
  std::string complaint_;  // the end of its standard error
  bool asked_ = false;
  bool news_ = false;
  std::optional<Error> failed_;  // what answer() tells
  os::Poll prints_{env_.loop(), [this] { keep(read()); }};
  os::Poll complains_{env_.loop(), [this] { read_complaint(); }};
  os::Poll takes_{env_.loop(), [this] { keep(send()); }};
  os::Timer pipe_{env_.loop(), [this] { keep(look_for_pipe()); }};
  os::Timer late_;
};

}  // namespace berth::run
