// A TaskContainer is the container, or the sandbox, of one attempt of a task, from its command line
// to its removal. The engine's process, which a worker starts as it starts any other, dies with the
// worker or when it is killed, and a container of podman's or docker's would go on. So a small
// process beside it, the keeper, removes that then; it outlives the worker for that.
//
// Ownership: it refers to its Env; after its destructor the keeper still removes the container.
// Threads: one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/exec/container.h"
#include "berth/os/loop.h"
#include "berth/os/spawn.h"

namespace berth::exec {

class TaskContainer {
 public:
  /// Changes `spec`, which would start the launch's process on the machine itself, to the engine's
  /// command, and starts the keeper. `host` is the engine's own environment; whatever
  /// `spec.environment` has beyond it, or otherwise, is for the process. `removed` is called in a
  /// turn of the loop after end(), when ending() has become false. Errors: impossible or invalid,
  /// as container.h has them; as os::Env::spawn().
  static Result<std::unique_ptr<TaskContainer>> make(os::Env& env, const Launch& launch,
                                                     const machine::Block& block,
                                                     const Environment& host, os::SpawnSpec& spec,
                                                     std::function<void()> removed);
  TaskContainer(os::Env& env, const Launch& launch, Engine engine, std::function<void()> removed);

  /// Takes what came from the standard error, of which the end is kept.
  void take_complaint(std::string_view bytes);
  /// As never_started() has it.
  std::string why_never_started(int exit_code) const;
  /// The engine's process has ended: well, in which case it has removed the container, or not. An
  /// engine that is told to end while it makes a container leaves it behind, with any exit code.
  void end(bool well);
  /// Whether the keeper still removes the container.
  bool ending() const { return ending_; }

 private:
  Status keep(const std::vector<std::string>& removal, const Environment& environment);
  void look();

  os::Env& env_;
  const Engine engine_;
  const std::vector<std::string> argv_;
  const std::string image_;
  std::string complaints_;
  std::function<void()> removed_;
  os::Child keeper_;
  bool ending_ = false;
  Mono until_{};
  os::Poll exits_{env_.loop(), [this] { look(); }};
  os::Timer late_{env_.loop(), [this] { look(); }};
};

}  // namespace berth::exec
