// EC2 as a cluster: instances (ec2_instances.h) are started for what is wished, and once ssh
// answers each is a Host behind an ssh transport (host.h). What is leased of them is kept alive
// through keepalive(), which also says when an instance drains; with the cluster all of them end.
//
// Ownership: refers to Env. Threads: one. Nothing waits but the end, up to 20 s, until EC2 has
// taken the end of each instance to heart; what it has not by then ends itself. Failure: as Cluster
// has it; denied: credentials; impossible: the budget is used up; io: EC2
// does not answer; invalid: it never will take what is asked.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "berth/remote/command.h"
#include "berth/remote/ec2/ec2_instances.h"
#include "berth/remote/ssh/host.h"

namespace berth::remote {

struct Ec2Use {
  Ec2Instances::Owner owner;
  std::string directory;  // of the run: its book and the instances' host keys are kept there
  AgentFile agent;
  HostOptions host;
};

class Ec2Cluster final : public RemoteCluster {
 public:
  /// denied: there are no credentials. not_found: berth-cloud.so is not there.
  static Result<std::unique_ptr<Ec2Cluster>> open(os::Env& env, Ec2Settings settings, Ec2Use use);
  Ec2Cluster(const Ec2Cluster&) = delete;
  Ec2Cluster& operator=(const Ec2Cluster&) = delete;
  ~Ec2Cluster() override;

  Result<std::vector<cluster::Offer>> offers() override;
  Result<cluster::Alloc> accept(const cluster::Offer& offer,
                                const std::optional<machine::Request>& part,
                                const cluster::Labels& labels) override;
  Result<std::optional<Mono>> keepalive(cluster::AllocId id) override;
  Result<cluster::Alloc> inspect(cluster::AllocId id) override;
  Status free(cluster::AllocId id) override;
  Result<cluster::Alloc> allocate(const cluster::Wish& wish) override;
  Mono retry_at() override;
  std::optional<Mono> tend() override;
  Result<LeaseDirectory> lease_directory(cluster::AllocId id) override;

 private:
  struct Member {  // an instance with an address
    std::string address;
    std::unique_ptr<Host> host;
    std::unique_ptr<Command> renewal;  // a command that runs there
    std::optional<Mono> answered;      // last
    Mono look_at{};
    std::optional<cluster::Wish> asked;  // what it is being asked for
    Mono asked_at{};
    std::optional<machine::Request> part;  // of it
    std::map<cluster::AllocId, cluster::Alloc> allocs;
  };

  Ec2Cluster(os::Env& env, const Cloud& cloud, std::unique_ptr<HttpCalls> http,
             Ec2Settings settings, Ec2Use use);
  Transport transport(const Ec2Machine& machine) const;
  void renew(const Ec2Machine& machine, Duration lease);
  void on_renewal(const std::string& id, Member& member);
  void look(const Ec2Machine& machine, Member& member);
  Result<cluster::Alloc> ask(Member& member, const cluster::Wish& wish,
                             const cluster::Offer& offer);
  void look_again(Member& member);
  Member* holder(cluster::AllocId id);

  os::Env& env_;
  Ec2Settings settings_;
  Ec2Use use_;
  Ec2Api api_;
  Ec2Instances instances_;
  std::map<std::string, Member> members_;  // by the id of the instance
};

}  // namespace berth::remote
