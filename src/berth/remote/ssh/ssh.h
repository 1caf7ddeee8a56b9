// Hosts are reached by the OpenSSH client, so the person's keys, jumps, known hosts and config
// count as they do for ssh itself. Each host has one open connection that all of ours share
// (ControlMaster), by a socket that is the user's alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/remote/ssh/host.h"

namespace berth::remote {

struct SshHost {
  std::string host, user;   ///< User "": the one that ssh finds.
  int port = 0;             ///< 0: the one that ssh finds.
  std::string key;          ///< A file; "": the keys that ssh finds.
  std::string direct = {};  ///< "user@host:port" by which other hosts reach it; "": by this.
  bool operator==(const SshHost&) const = default;
};

/// Reads "user@host[:port] [keyfile]", where the host may be a name of the ssh config, or an
/// address with colons in brackets, such as "[::1]:22". Failure: invalid, also for a host or user
/// that ssh could take for an option.
Result<SshHost> parse_ssh_host(std::string_view line);

struct SshOptions {
  std::vector<std::string> options;  ///< For each ssh: "-F", "file", ….
  Duration connects_within = std::chrono::seconds(10);
  Duration silent_most = std::chrono::seconds(15);  ///< A connection silent for longer is dead.
  bool direct = false;                              ///< Files may go from host to host.
};

/// The transport to a host. `home` is the person's, for ~ in key files. `sockets` is a directory of
/// the user's alone for the shared connections; where it is "", no connection is shared.
Transport ssh_transport(const SshHost& host, const SshOptions& options, const std::string& home,
                        const std::string& sockets);
/// The words of `ssh -G`, which prints how ssh reaches the machine of such a transport; and its
/// output as a host.
std::vector<std::string> ssh_lookup(const Transport& transport);
Result<SshHost> parse_ssh_lookup(std::string_view text);
/// The transport to such a host from another one, which has neither our keys nor our config: it
/// uses what its own user has there, asks nothing, and forwards nothing of that user's.
Transport ssh_transport_between(const SshHost& host);
/// The directory for the sockets of shared connections, made where it is missing; "" where there
/// can be none that is safe and has a short path.
std::string ssh_sockets(os::Env& env);

/// Adds to what ssh complained of what a person can do about it. Its kind is denied or invalid
/// where the failure will come again until somebody does that; an io failure may pass.
Error explain_ssh(const Transport& transport, Error error);

/// One cluster of several hosts. An alloc comes from the host that it fits closest.
std::unique_ptr<RemoteCluster> host_cluster(os::Env& env, std::vector<std::unique_ptr<Host>> hosts);

}  // namespace berth::remote
