// Hosts by the OpenSSH client: the person's keys, jumps, known hosts and config count as they do
// for ssh itself. One connection a host is kept open and shared (ControlMaster), by a socket that
// is the user's alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/remote/host.h"

namespace berth::remote {

struct SshHost {
  std::string host, user;   // "" user: as ssh finds it
  int port = 0;             // 0: as ssh finds it
  std::string key;          // a file; "": as ssh finds it
  std::string direct = {};  // "user@host:port" by which the other hosts reach it; "": by this
  bool operator==(const SshHost&) const = default;
};

/// "user@host[:port] [keyfile]", or a name of the ssh config; "[::1]:22" for addresses with colons.
/// invalid: also a host or user that ssh could take for an option.
Result<SshHost> parse_ssh_host(std::string_view line);

struct SshOptions {
  std::vector<std::string> options;  // for each ssh: "-F", "file", …
  Duration connects_within = std::chrono::seconds(10);
  Duration silent_most = std::chrono::seconds(15);  // then the connection is dead
  bool direct = false;                              // files may go from host to host
};

/// `home`: of the person, for ~ in key files. `sockets`: a directory of the user's alone for the
/// shared connections; "": each is one of its own.
Door ssh_door(const SshHost& host, const SshOptions& options, const std::string& home,
              const std::string& sockets);
/// What tells how ssh reaches the machine behind such a door: `ssh -G`, and what it says as a host.
std::vector<std::string> ssh_lookup(const Door& door);
Result<SshHost> parse_ssh_lookup(std::string_view text);
/// Such a host from another one, which has neither our keys nor our config: by what its own user
/// has there. Nothing is asked, and nothing of that user's is passed on.
Door ssh_door_between(const SshHost& host);
/// Made where it is missing; "" where none can be had that is safe and short.
std::string ssh_sockets(os::Env& env);

/// What ssh complained of, with what a person can do about it: denied and invalid will come again
/// until somebody does that; io may pass.
Error explain_ssh(const Door& door, Error error);

/// Hosts as one cluster: an alloc comes from the one that it fits closest.
std::unique_ptr<FarCluster> host_cluster(os::Env& env, std::vector<std::unique_ptr<Host>> hosts);

}  // namespace berth::remote
