// A machine elsewhere and the way to it. A Door is plain data: the words of a command that, started
// here, runs another there, with its standard input and output joined to ours. Whatever knows doors
// (the agent's line, transfer, probing) needs to know nothing of ssh or Slurm.
//
//   this machine   {}
//   SSH            {"ssh", "-o", "BatchMode=yes", …, "gpu-box", "--"}, shell
//   a Slurm job    {"/bin/sh", "-c", two steps of it by srun (slurm_words.cc), "berth", "17", …}
//
// What strangers chose (labels, names of files, parameters) never stands in these words: it goes
// through standard input, once the agent there has answered.
//
// Pure, but for the interface at the end.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/agent/line.h"
#include "berth/base/digest.h"
#include "berth/base/result.h"
#include "berth/cluster/cluster.h"

namespace berth::remote {

struct Door {
  std::string name;                // of the machine, as people know it: "gpu-box", "node3"
  std::vector<std::string> words;  // none: this machine
  bool shell = false;  // the far end gives the words that follow to a shell: they are quoted
  /// By ssh: it may send files to other such machines, and be sent files by them (direct.h).
  bool direct = false;
  std::string address = {};  // "user@host:port" by which those reach it; "": as ssh does here
  bool operator==(const Door&) const = default;
};

/// What to start here so that `command` runs there.
std::vector<std::string> through(const Door& door, std::span<const std::string> command);

/// The berth-agent that is brought to machines that lack it.
struct AgentFile {
  std::string path;  // here
  Digest digest;
  std::int64_t size = 0;  // bytes
};

/// To be given to through(): runs ~/.cache/berth/agent-DIGEST with these words on a machine with
/// /bin/sh. It says "berth-agent wanted" in a line of its own where that is missing, and then takes
/// the file from standard input first: agent/line.h is the other side of this.
std::vector<std::string> agent_command(const AgentFile& agent, std::span<const std::string> words);
/// The same, but that nothing is brought to a machine that lacks it.
std::vector<std::string> known_agent_command(const AgentFile& agent,
                                             std::span<const std::string> words);

/// A connection to it there.
agent::LineOptions line_to(const Door& door, const AgentFile& agent,
                           std::span<const std::string> words);

/// An alloc elsewhere is an agent that has taken its part of that machine; this is where it lives.
/// Kept in the run's directory, so that a later runner finds it.
struct Place {
  Door door;
  std::string directory;  // there, absolute, of this alloc alone: agent/, work/
  bool operator==(const Place&) const = default;
};
std::string to_json(const Place& place);
/// invalid.
Result<Place> parse_place(std::string_view text);

/// A cluster of machines elsewhere: what allocates is told the rest by place(), and an Outpost
/// there (outpost.h) is the worker on it.
class FarCluster : public cluster::Cluster {
 public:
  /// stale: no alloc of that id.
  virtual Result<Place> place(cluster::AllocId id) = 0;
  /// What it does by itself between calls (end machines that nobody uses, say), and when next;
  /// none: nothing, ever.
  virtual std::optional<Mono> tend() { return std::nullopt; }
};

}  // namespace berth::remote
