// The instances of one run on one EC2 cluster: started when they are wanted, watched, ended when
// nobody needs them. None is left running, whoever is killed when:
//
//   - Before EC2 is asked for an instance, the run's book (a small file in its directory) names it
//   by
//     its ClientToken; it stands there until EC2 says that it has ended. Every instance also
//     carries the tags berth-cluster, berth-run and berth-home, by which it is found without a
//     book.
//   - An instance ends itself when nobody has renewed its lease: guard_script() runs on it.
//
// A budget is kept by reserving: an instance's lease is money that may be spent without us, and is
// given only out of what is left.
//
// Ownership: env, api and whatever `renew` uses outlive it. Threads: one. Nothing waits: step() at
// next(), and when `api` has news. Failure: as want() says; what EC2 refuses otherwise is tried
// again and shown by trouble().
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/remote/ec2/ec2_api.h"
#include "berth/remote/ec2/ec2_settings.h"

namespace berth::remote {

struct Ec2Machine {
  enum class Phase : std::uint8_t {
    asked,     // EC2 has not told of it
    starting,  // EC2 says so
    up,        // it runs; whether ssh answers is known by `ready`
    ending,    // we want it to end
  };
  std::string token;  // its ClientToken; of a named one, its id
  std::string id;     // empty while it is not known
  Ec2Type type = {};
  Phase phase = Phase::asked;
  std::string address = {};
  bool named = false;  // by the person; else run by us
  bool kept = false;   // it ran before us, and is left running
  bool spot = false;
  bool ready = false;                // ssh has answered
  bool in_use = false;               // it holds allocs
  std::string draining = {};         // why it takes no more work; empty: it does
  Wall since{};                      // costs count from here
  Wall patient_since{};              // ssh has to answer so long after that
  Wall allowed{};                    // it ends itself by then, if it is not renewed
  Duration lease{};                  // that it was started with
  Wall unused_since{};               // while it is ready and not in use
  Wall renewed{}, renewing{};        // its lease, last; as `calling` would have it
  Wall seen{};                       // EC2 last told of it, or was asked for it
  Mono call_again{};                 // no call for it before
  bool calling = false;              // a call for it is under way, or a renewal
  std::vector<Ec2Type> others = {};  // to be tried when there is none of this type
};

class Ec2Instances {
 public:
  struct Owner {
    std::string run;   // "digits-3"
    std::string home;  // of the state directory, so that two people's runs of one name differ
    std::vector<std::pair<std::string, std::string>> labels = {};  // of the run
  };
  /// Starts the renewal of a lease on an instance: that it ends itself in so long, not before. The
  /// outcome comes by renewed(). null: leases are not renewed (they cannot be, in a clean-up).
  using Renew = std::function<void(const Ec2Machine& machine, Duration lease)>;

  Ec2Instances(os::Env& env, Ec2Api& api, Ec2Settings settings, Owner owner, std::string book,
               Renew renew);

  /// Reads the book of an earlier runner. corrupt, io.
  Status open();
  void step();
  Mono next();

  /// Whether more comes for this wish: busy, and what is under way; impossible: no type has room,
  /// or the budget is used up; io: EC2 does not answer; else why it refuses.
  Error want(const cluster::Wish& wish);
  std::span<const Ec2Machine> machines() const { return machines_; }

  // What the owner of the transports knows.
  void ready(const std::string& id);
  void use(const std::string& id, bool in_use);
  void renewed(const std::string& id, bool done);
  /// It takes no more work and is ended once it is not in use.
  void drain(const std::string& id, std::string why);
  /// All are to end, now, as the settings say.
  void end_all();
  /// Nothing of ours runs or can still come to run, as far as EC2 lets us know.
  bool over() const { return machines_.empty() && (described_ || refusal_); }

  const std::string& trouble() const { return trouble_; }

 private:
  using Phase = Ec2Machine::Phase;

  Status save();
  void describe();
  void describe_page(std::string token, std::vector<Ec2Instance> so_far);
  void on_instances(const std::vector<Ec2Instance>& reported);
  void on_instance(const Ec2Instance& reported);
  void adopt(const Ec2Instance& reported);
  void ask_for_interruptions();
  void close(const std::string& token, Wall until);
  Ec2Machine* find(const std::string& key);

  void look_after(Ec2Machine& machine);
  void renew(Ec2Machine& machine);
  void ask(Ec2Machine& machine);
  void run_answered(const std::string& token, Result<Xml> answer);
  void end(Ec2Machine& machine);
  void forget(const std::string& token);
  Status start_one(std::vector<Ec2Type> types);
  Status name_one(Ec2Machine& machine);

  double cost(const Ec2Machine& machine, Wall until) const;
  double available(const Ec2Machine* but = nullptr);

  os::Env& env_;
  Ec2Api& api_;
  Ec2Settings settings_;
  Owner owner_;
  std::string book_;
  Renew renew_;

  std::vector<Ec2Machine> machines_;
  std::map<std::string, Ec2Instance::State> named_;  // as EC2 last told
  double closed_ = 0;                                // thousandths of a cent, of those that ended
  bool described_ = false;                           // EC2 has told at least once
  bool describing_ = false;
  bool ending_ = false;
  Mono describe_at_{}, interruptions_at_{};
  Mono blocked_until_{};  // there is no capacity
  std::string blocked_by_;
  int refusals_ = 0;  // for want of it, in a row
  int failures_ = 0;  // of instances that never answered, in a row
  std::optional<Error> refusal_;
  std::string trouble_;
};

/// What a new instance does at its start, and a named one is told through its transport: it shuts
/// itself down after `lease`, unless renewal_command() has moved that. `stays`: after each reboot
/// too.
std::string guard_script(Duration lease, bool stays);
std::vector<std::string> renewal_command(Duration lease);
std::string base64(std::string_view bytes);

}  // namespace berth::remote
