#include "berth/placement/berth_placement.h"

#include <algorithm>
#include <new>

#include "berth/placement/placement.h"

using berth::Error;
using berth::ErrorKind;
using berth::fail;
using berth::Result;
using berth::Status;
namespace placement = berth::placement;

struct berth_placement {
  placement::Chooser chooser;
};

struct berth_allocator {
  placement::Allocator allocator;
};

namespace {

struct Message {
  char* text;
  std::size_t size;

  int code(const Error& error) const {
    if (text != nullptr && size > 0) {
      const std::size_t length = std::min(size - 1, error.message.size());
      std::copy_n(error.message.begin(), length, text);
      text[length] = '\0';
    }
    switch (error.kind) {
      case ErrorKind::busy: return BERTH_PLACEMENT_BUSY;
      case ErrorKind::impossible: return BERTH_PLACEMENT_IMPOSSIBLE;
      case ErrorKind::stale: return BERTH_PLACEMENT_STALE;
      case ErrorKind::full: return BERTH_PLACEMENT_FULL;
      default: return BERTH_PLACEMENT_INVALID;
    }
  }
};

/// What `work` says, as a code; no exception leaves.
template <class Work>
int guarded(Message message, const Work& work) {
  try {
    const Status done = work();
    return done ? BERTH_PLACEMENT_OK : message.code(done.error());
  } catch (const std::bad_alloc&) {
    return message.code({ErrorKind::full, "no memory"});
  }
}

template <class... Pointers>
Status given(const Pointers*... pointers) {
  if ((... && (pointers != nullptr))) return {};
  return fail(ErrorKind::invalid, "a pointer is NULL");
}

Result<placement::Chooser> make_chooser(const std::int32_t* scores, std::int32_t devices) {
  if (devices < 0 || devices > placement::kMostDevices)
    return fail(ErrorKind::invalid, "{} devices, at most {} can be placed", devices,
                placement::kMostDevices);
  const auto side = static_cast<std::size_t>(devices);
  return placement::Chooser::make({scores, side * side}, devices);
}

template <class Kind>
Result<Kind> kind(std::int32_t number, int kinds, const char* what) {
  if (number < 0 || number >= kinds)
    return fail(ErrorKind::invalid, "no such {}: {}", what, number);
  return static_cast<Kind>(number);
}

Result<placement::Objective> objective(std::int32_t number) {
  return kind<placement::Objective>(number, placement::kObjectives, "objective");
}

Result<placement::PolicyKind> policy(std::int32_t number) {
  return kind<placement::PolicyKind>(number, placement::kPolicies, "policy");
}

Result<placement::Question> question_of(const berth_placement_question& asked) {
  BERTH_ASSIGN(const auto wanted, objective(asked.objective));
  return placement::Question{asked.available, asked.required, asked.count, wanted};
}

void fill(berth_placement_answer& to, const placement::Answer& from) {
  to = {from.devices,
        from.value.first,
        from.value.second,
        from.partition_score.value_or(-1),
        from.bound,
        from.exact ? 1 : 0,
        0};
}

class Callback final : public placement::Policy {
 public:
  Callback(berth_placement_choose_fn function, void* user) : function_(function), user_(user) {}

  placement::DeviceSet choose(std::span<const std::int32_t> scores, int devices,
                              const placement::Question& question) override {
    const berth_placement_question asked{question.available, question.required, question.count,
                                         static_cast<std::int32_t>(question.objective)};
    return function_(scores.data(), devices, &asked, user_);
  }

 private:
  berth_placement_choose_fn function_;
  void* user_;
};

}  // namespace

std::int32_t berth_placement_version(void) {
  return BERTH_PLACEMENT_VERSION;
}

int berth_placement_create(const std::int32_t* scores, std::int32_t devices,
                           berth_placement** placement, char* message, std::size_t message_size) {
  return guarded({message, message_size}, [&]() -> Status {
    BERTH_TRY(given(scores, placement));
    BERTH_ASSIGN(auto chooser, make_chooser(scores, devices));
    *placement = new berth_placement{std::move(chooser)};
    return {};
  });
}

void berth_placement_destroy(berth_placement* placement) {
  delete placement;
}

int berth_placement_choose(berth_placement* placement, std::int32_t policy_number,
                           const berth_placement_question* question, berth_placement_answer* answer,
                           char* message, std::size_t message_size) {
  return guarded({message, message_size}, [&]() -> Status {
    BERTH_TRY(given(placement, question, answer));
    BERTH_ASSIGN(const auto chosen_by, policy(policy_number));
    BERTH_ASSIGN(const auto asked, question_of(*question));
    BERTH_ASSIGN(const auto found, placement->chooser.choose(chosen_by, asked));
    fill(*answer, found);
    return {};
  });
}

int berth_placement_choose_by(berth_placement* placement, berth_placement_choose_fn choose,
                              void* user, const berth_placement_question* question,
                              berth_placement_answer* answer, char* message,
                              std::size_t message_size) {
  return guarded({message, message_size}, [&]() -> Status {
    BERTH_TRY(given(placement, question, answer));
    if (choose == nullptr) return fail(ErrorKind::invalid, "a pointer is NULL");
    BERTH_ASSIGN(const auto asked, question_of(*question));
    Callback callback(choose, user);
    BERTH_ASSIGN(const auto found, placement->chooser.choose(callback, asked));
    fill(*answer, found);
    return {};
  });
}

int berth_placement_alternative(berth_placement* placement,
                                const berth_placement_question* question, std::uint64_t devices,
                                berth_placement_answer* answer, char* message,
                                std::size_t message_size) {
  return guarded({message, message_size}, [&]() -> Status {
    BERTH_TRY(given(placement, question, answer));
    BERTH_ASSIGN(const auto asked, question_of(*question));
    BERTH_TRY(placement->chooser.choose(placement::PolicyKind::simple, asked));
    placement::Answer other;
    other.devices = devices;
    const auto found = placement->chooser.best_alternative(asked, other);
    if (!found) return fail(ErrorKind::busy, "no other {} devices are available", asked.count);
    fill(*answer, *found);
    return {};
  });
}

int berth_allocator_create(const std::int32_t* scores, std::int32_t devices,
                           berth_allocator** allocator, char* message, std::size_t message_size) {
  return guarded({message, message_size}, [&]() -> Status {
    BERTH_TRY(given(scores, allocator));
    BERTH_ASSIGN(auto chooser, make_chooser(scores, devices));
    *allocator = new berth_allocator{placement::Allocator(std::move(chooser))};
    return {};
  });
}

void berth_allocator_destroy(berth_allocator* allocator) {
  delete allocator;
}

int berth_allocator_allocate(berth_allocator* allocator, std::int32_t policy_number,
                             std::int32_t count, std::uint64_t required,
                             std::int32_t objective_number, berth_placement_answer* answer,
                             char* message, std::size_t message_size) {
  return guarded({message, message_size}, [&]() -> Status {
    BERTH_TRY(given(allocator, answer));
    BERTH_ASSIGN(const auto chosen_by, policy(policy_number));
    BERTH_ASSIGN(const auto wanted, objective(objective_number));
    BERTH_ASSIGN(const auto held,
                 allocator->allocator.allocate(chosen_by, count, required, wanted));
    fill(*answer, held);
    return {};
  });
}

int berth_allocator_allocate_these(berth_allocator* allocator, std::uint64_t devices, char* message,
                                   std::size_t message_size) {
  return guarded({message, message_size}, [&]() -> Status {
    BERTH_TRY(given(allocator));
    return allocator->allocator.allocate_these(devices);
  });
}

int berth_allocator_free(berth_allocator* allocator, std::uint64_t devices, char* message,
                         std::size_t message_size) {
  return guarded({message, message_size}, [&]() -> Status {
    BERTH_TRY(given(allocator));
    return allocator->allocator.free(devices);
  });
}

std::uint64_t berth_allocator_available(const berth_allocator* allocator) {
  return allocator == nullptr ? 0 : allocator->allocator.available();
}
