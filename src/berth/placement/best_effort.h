// The policy best-effort, exactly, for up to kExactDevices available.
//
// The available devices are divided into sets of k and one smaller set of what is left over (where
// the blanks are). Whichever set S is returned, the others are the best division of the rest, so
// the answer is the greatest of value(S) + rest(available - S); of equal sums the one with the
// greater value(S), then the lowest indices. rest() is a dynamic programme over subsets: the set of
// one device first, then the rest of the rest; what the tables of best subsets show to be no better
// is not looked at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "berth/placement/tables.h"

namespace berth::placement {

class BestEffort {
 public:
  struct Choice {
    DeviceSet devices = 0;
    Key partition = -1;  // sum over the sets of the partition
  };

  /// The tables must outlive it.
  explicit BestEffort(const Tables& tables);

  /// The question must have an answer: required devices are available and at most `count`, and
  /// `count` is between 1 and the number of available devices.
  Choice choose(const Question& question);

 private:
  /// What is known of rest() for a set of devices. It depends on objective and count, and so holds
  /// of all questions in a row that have the same.
  struct Known {
    Key most = 0;
    std::uint32_t asked_in = 0;  // the row of questions that it was found in
    bool exact = false;          // otherwise no division is worth more
  };

  void ask(const Question& question);
  void try_best_division();
  void try_set(DeviceSet set);
  bool is_better(Key partition, DeviceSet set) const;
  /// Calls visit() with every set that could be returned.
  template <class Visit>
  void each_candidate(const Visit& visit) const;

  /// The greatest value of a division, where that is at least `needed`; else what none exceeds, and
  /// less than `needed`.
  Key rest(DeviceSet devices, int size, Key needed);
  Known search_rest(DeviceSet devices, int size, DeviceSet first_device, Key needed, Key most);
  Key rest_of_two(DeviceSet devices, int size, Key most) const;
  /// A division of that value: calls visit() with its sets.
  template <class Visit>
  void walk(DeviceSet devices, int size, Key value, const Visit& visit);
  /// No division of the devices into so many full sets, and one of the remainder, is worth more:
  /// every set is at most the best one of its size.
  Key bound(DeviceSet devices, int full_sets, bool with_remainder) const {
    return full_sets * best_set_[devices] + (with_remainder ? best_remainder_[devices] : 0);
  }
  /// The same, closer and slower.
  Key close_bound(DeviceSet devices, int size) const;
  /// The device whose set is chosen first: with the strongest gone, bounds tell more of the others.
  DeviceSet anchor(DeviceSet devices) const;

  const Tables& tables_;
  std::vector<Known> known_;  // by the bits of a set
  std::vector<DeviceSet> strongest_first_;
  std::uint32_t asked_ = 1;

  // The state of the question that is being answered; before the first one, of none (count 0).
  Question question_;
  int count_ = 0, remainder_ = 0;  // sizes of the sets; remainder 0: all are of count
  bool searched_ = false;          // with two sets at most, all divisions are simply looked up
  bool greatest_known_ = false;    // no partition is worth more than best_.partition
  Choice best_;
  std::span<const Key> keys_, best_set_, best_remainder_;
};

}  // namespace berth::placement
