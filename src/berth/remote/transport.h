// A Transport is the way to another machine. It is plain data: the words of a command that is
// started on this machine and runs another command on that one, with standard input and output
// joined to ours. What uses transports (connections to agents, transfers, clusters) need not know
// of ssh or Slurm.
//
//   this machine   {}
//   SSH            {"ssh", "-o", "BatchMode=yes", …, "gpu-box", "--"}, shell
//   a Slurm job    {"/bin/sh", "-c", two steps of it by srun (slurm_words.cc), "berth", "17", …}
//
// What strangers chose (labels, names of files, parameters) never stands in these words; it goes
// through standard input, once the agent there has answered.
//
// Everything but the interface at the end is pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/agent/protocol/connection.h"
#include "berth/base/digest.h"
#include "berth/base/result.h"
#include "berth/cluster/cluster.h"

namespace berth::remote {

struct Transport {
  std::string name;                // of the machine, as people know it: "gpu-box", "node3"
  std::vector<std::string> words;  ///< Empty: this machine.
  bool shell = false;  ///< The far end gives what follows to a shell, so it has to be quoted.
  /// The machine may send files to other machines with `direct` by ssh, and they to it (direct.h).
  bool direct = false;
  std::string address = {};  ///< "user@host:port" by which those reach it; "": as ssh does here.
  bool operator==(const Transport&) const = default;
};

/// The words of a command that runs `command` on the other machine.
std::vector<std::string> through(const Transport& transport, std::span<const std::string> command);

/// The berth-agent that is sent to machines that lack it.
struct AgentFile {
  std::string path;  ///< On this machine.
  Digest digest;
  std::int64_t size = 0;  ///< In bytes.
};

/// A command for through(), which runs ~/.cache/berth/agent-DIGEST with these words on a machine
/// that has /bin/sh. Where that file is missing, the command writes the line "berth-agent wanted"
/// and first takes the file from standard input; agent::Connection is the other side of this.
std::vector<std::string> agent_command(const AgentFile& agent, std::span<const std::string> words);
/// The same command, but a machine that lacks the file is not sent it.
std::vector<std::string> known_agent_command(const AgentFile& agent,
                                             std::span<const std::string> words);

/// The options of a connection to a berth-agent with these words on the other machine.
agent::ConnectionOptions connection_to(const Transport& transport, const AgentFile& agent,
                                       std::span<const std::string> words);

/// An alloc of another machine is an agent that has taken its part of that machine and lives in
/// this directory there. The run's directory keeps it as JSON, for later runners.
struct LeaseDirectory {
  Transport transport;
  std::string path;  ///< On the other machine, absolute, of this alloc alone; it has agent/, work/.
  bool operator==(const LeaseDirectory&) const = default;
};
std::string to_json(const LeaseDirectory& lease_directory);
/// Failure: invalid.
Result<LeaseDirectory> parse_lease_directory(std::string_view text);

/// A RemoteCluster is a cluster of other machines. lease_directory() says where the agent of an
/// alloc lives; a RemoteWorker (remote_worker.h) is the worker on the alloc.
class RemoteCluster : public cluster::Cluster {
 public:
  /// Failure: stale, where there is no alloc of that id.
  virtual Result<LeaseDirectory> lease_directory(cluster::AllocId id) = 0;
  /// Does what is due of the cluster's own accord (it ends machines that nobody uses, say), and
  /// returns when it has to be called next, unless on_change() says so before; nullopt: not before.
  virtual std::optional<Mono> tend() { return std::nullopt; }
};

}  // namespace berth::remote
