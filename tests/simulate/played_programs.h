// The programs that a simulation plays: trials; and a flow, whose samples are made, turned one by
// one under their keys, and joined. What is made may be temporary.
#pragma once

#include <optional>
#include <string>

#include "berth/run/state/context.h"
#include "berth/store/store.h"
#include "berth/testing/fake_env.h"

namespace berth::simulate {

struct Played {
  std::string name;       ///< Of the run.
  std::int64_t size = 1;  ///< Trials; a flow has half as many samples.
  int retries = 0;
  bool takes_gpu = false;
  bool outlives = true;  ///< Its tasks their runner.
};
/// It writes to a folder of its name.
struct PlayedFlow : Played {
  bool is_temporary = false;
  std::int64_t samples() const { return 1 + size / 2; }
};

Result<store::RunRecord> submit_trials(run::Context& context, const Played& trials);
Result<store::RunRecord> submit_flow(run::Context& context, const PlayedFlow& flow);

/// The run goes to these hosts ("a, b") rather than home. `outlives`: so does its work its lease.
void send_to(run::Context& context, const store::RunRecord& run, const std::string& hosts,
             std::uint64_t lease_s, bool outlives);

/// Lets the process of a task, which is "x OUT [IN…]", write OUT when it ends well: its name and
/// what the inputs hold. What is wrong with the inputs; nothing: they are there.
std::optional<std::string> write_files(os::FakeEnv& machine, const os::SpawnSpec& spec,
                                       os::FakeProgram& program);

/// What is not as it has to be in /work when all of its tasks are done. `undisturbed`: no removal
/// can have failed.
std::optional<std::string> check_files(const os::FakeEnv& home, const PlayedFlow& flow,
                                       bool undisturbed);

}  // namespace berth::simulate
