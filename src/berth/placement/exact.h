// The exact policies over some of a machine's devices, in the machine's own numbering.
#pragma once

#include "berth/placement/best_effort.h"
#include "berth/placement/packed.h"

namespace berth::placement {

class Exact {
 public:
  /// `members`: at most kExactDevices of the machine; every question is about some of these.
  Exact(const Scores& scores, DeviceSet members)
      : members_(members), tables_(scores.of(members)), best_effort_(tables_) {}

  Exact(const Exact&) = delete;  // best_effort_ keeps tables_
  Exact& operator=(const Exact&) = delete;

  DeviceSet members() const { return members_; }

  Value value(DeviceSet set, Objective objective) const {
    return placement::value(tables_.keys(objective)[inside(set)]);
  }

  DeviceSet best(const Question& question, DeviceSet excluded = 0) const {
    // An excluded set with devices from elsewhere excludes nothing here.
    const DeviceSet inner = (excluded & ~members_) == 0 ? inside(excluded) : 0;
    return outside(best_set(tables_, inside(question), inner));
  }

  BestEffort::Choice best_effort(const Question& question) {
    auto choice = best_effort_.choose(inside(question));
    choice.devices = outside(choice.devices);
    return choice;
  }

 private:
  bool same_numbers() const { return members_ == first(size(members_)); }

  DeviceSet inside(DeviceSet set) const {
    if (same_numbers()) return set;
    DeviceSet inner = 0;
    for_each(set, [&](int device) { inner |= one(size(members_ & first(device))); });
    return inner;
  }

  DeviceSet outside(DeviceSet inner) const {
    if (same_numbers()) return inner;
    DeviceSet set = 0;
    int place = 0;
    for_each(members_, [&](int device) {
      if ((inner & one(place++)) != 0) set |= one(device);
    });
    return set;
  }

  Question inside(Question question) const {
    question.available = inside(question.available);
    question.required = inside(question.required);
    return question;
  }

  DeviceSet members_;
  Tables tables_;
  BestEffort best_effort_;
};

}  // namespace berth::placement
