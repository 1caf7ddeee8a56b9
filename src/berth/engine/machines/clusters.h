// The remote clusters of the user: lists, contacts, adds, removes and cleans them.
//
// Threads: one. Failure: invalid, where the message names the file, the line and the key;
// not_found; usage.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/remote/cleaning.h"
#include "berth/remote/clusters.h"
#include "berth/remote/ec2/ec2_commands.h"
#include "berth/remote/slurm/slurm_text.h"

namespace berth::engine {

struct ListedCluster {
  std::string name, kind;
  Duration lease{};
  std::optional<std::size_t> hosts = {};  ///< nullopt: the entry has no list of hosts.
  Status checked = {};
};
struct ListedClusters {
  std::vector<ListedCluster> clusters = {};
  std::string file = {};
  int code = 0;  ///< The exit code of the last error.
};
/// Lists the named clusters in this order, or all.
Result<ListedClusters> list_clusters(os::Env& env, const std::vector<std::string>& names);

/// A host with its answer, or the reason why it gave none.
struct HostProbed {
  std::string cluster, host;
  Result<agent::MachineOffer> offer;
};
/// Asks all hosts of an ssh cluster in parallel and waits up to 60 s for their answers.
Result<std::vector<HostProbed>> probe_hosts(os::Env& env, const remote::ClusterEntry& entry);

struct SlurmProbed {
  std::string cluster;
  Result<std::vector<remote::SlurmPartition>> partitions;  ///< Or why Slurm did not answer.
  Status entry = {};  ///< invalid: the entry names partitions that do not exist; has file and line.
  /// The error of the answer, or of the entry.
  Status status() const;
};
/// Asks Slurm for the partitions of the entry. invalid: the entry has a syntax error.
Result<SlurmProbed> probe_slurm(os::Env& env, const remote::ClusterEntry& entry);

struct Ec2Probed {
  std::string cluster;
  std::vector<remote::Ec2Permission> permissions = {};
  std::vector<remote::Ec2Found> instances = {};  ///< Of runs of this state directory.
  bool good() const;                             ///< Whether all of it is allowed.
};
Result<Ec2Probed> probe_ec2(os::Env& env, const remote::ClusterEntry& entry);

/// The answers of clusters, and the errors of those that could not be asked.
struct ProbedClusters {
  std::vector<HostProbed> hosts = {};
  std::vector<Ec2Probed> ec2 = {};
  std::vector<SlurmProbed> slurm = {};
  std::vector<std::pair<std::string, Error>> errors = {};  ///< By the names of clusters.
  std::string file = {};
  bool is_empty = false;  ///< There are no clusters in the file.

  /// 2 if the clusters file has an error, and otherwise 3 if something does not answer.
  int code() const;
};
/// Contacts the named clusters, or all. Fails if the only cluster cannot be asked.
Result<ProbedClusters> probe_clusters(os::Env& env, const std::vector<std::string>& names);

struct AddedCluster {
  std::string name;
  std::vector<std::string> hosts = {};  ///< As in the file, each with the key.
  std::string file = {};
  std::string warning = {};  ///< Such as that the key does not exist.
};
/// `key`: the private key of all hosts; "": none.
Result<AddedCluster> add_cluster(os::Env& env, const std::string& name,
                                 const std::vector<std::string>& hosts, const std::string& key);

struct RemovedClusters {
  std::vector<std::string> names;
  std::string file;
};
Result<RemovedClusters> remove_clusters(os::Env& env, const std::vector<std::string>& names);

struct CleanRequest {
  std::optional<Duration> older_than = {};  ///< Files unused for this long (default: 30 days).
  bool dry_run = false;                     ///< Files are only counted.
};
/// The files removed from hosts, and the instances ended on EC2.
struct CleanedClusters {
  bool dry_run = false;
  std::vector<remote::HostCleaned> hosts = {};
  std::vector<remote::Ec2Found> ended = {};
};
Result<CleanedClusters> clean_clusters(os::Env& env, const std::vector<std::string>& names,
                                       const CleanRequest& request);

}  // namespace berth::engine
