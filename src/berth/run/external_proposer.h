// A proposer of one's own: a process that lives as long as the run is driven, is told every trial
// on its standard input, and answers there when it is asked. What it has to know of earlier
// runners' trials it is told again; it keeps nothing that Berth depends on.
//
// Ownership: refers to Env. Its end closes the process's input, and kills it if it stays. Threads:
// one; never blocks. Failure: an answer that is none, an end before its time, or no answer in time
// are Errors of turn().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/os/env.h"

namespace berth::run {

class ExternalProposer {
 public:
  struct Options {
    std::vector<std::string> argv;
    exec::Environment environment;
    std::string directory;  // where it is started
    std::string pipe;       // the path of its input
    Duration patience{};
  };
  ExternalProposer(os::Env& env, Options options) : env_(env), options_(std::move(options)) {}
  ExternalProposer(const ExternalProposer&) = delete;
  ExternalProposer& operator=(const ExternalProposer&) = delete;
  ~ExternalProposer();

  /// A line for it; sent as it takes them.
  void say(std::string_view line) { unsent_ += line; }
  /// One that it has to answer.
  void ask(std::string_view line);
  bool asked() const { return until_.has_value(); }

  /// Starts it at the first call; does what is due; its answer, once it is there.
  Result<std::optional<std::string>> turn();
  void watch(std::vector<os::Watch>& watches) const;
  std::optional<Mono> deadline() const;

 private:
  Status start();
  Status send();
  Status read();
  Error error(std::string_view what) const;

  os::Env& env_;
  const Options options_;
  std::optional<os::Child> child_;
  std::optional<os::Fd> input_;
  std::string unsent_;
  std::string heard_;          // of its standard output, no whole line yet
  std::string complaint_;      // the end of its standard error
  std::optional<Mono> until_;  // by when it has to have answered
};

}  // namespace berth::run
