// Judges the leases of a study's claims. A lease is a number that its holder increases while it
// lives; it has expired when the number stayed the same for the length of the lease, by the boot
// clock of the machine that watches. Wall clocks, which may be set, decide nothing.
//
// What the processes of one state directory saw is kept in one file, so that commands that run once
// judge as well as those that watch. Each line is of one boot: times of another boot are ignored.
//
// Ownership: the Env outlives it. Threads: one. Failure: a file that cannot be read or written only
// makes a lease expire later.
#pragma once

#include <map>
#include <set>
#include <string>

#include "berth/os/env.h"
#include "berth/store/store.h"

namespace berth::run {

class LeaseWatch {
 public:
  /// With "" for `file` only this object remembers.
  LeaseWatch(os::Env& env, std::string file);

  /// Notes the claim of a running trial as the store has it.
  void see(const store::TaskRecord& trial);
  /// How long the lease of this trial has not changed since it was seen first. see() goes first.
  Duration unchanged(TaskNumber number) const;
  /// How long this claim of the trial has existed since it was seen first. see() goes first.
  Duration age(TaskNumber number) const;
  void forget(TaskNumber number);
  /// Where anything new was seen, adds it to the file and takes what other processes saw before.
  void exchange();

 private:
  struct Sighting {
    Token token;
    std::int64_t lease = 0;
    Mono claimed, changed;  // when the token and when the lease were seen first, by the boot clock
  };
  void read();
  void merge(TaskNumber number, const Sighting& sighting);

  os::Env* env_;
  std::string file_;
  std::string clock_;  // the identity of this boot clock; "" where it is unknown
  std::map<TaskNumber, Sighting> seen_;
  std::set<TaskNumber> ended_;  // trials whose lines leave the file
  std::string others_;          // lines of other boots in the file
  bool is_new_ = false;
};

}  // namespace berth::run
