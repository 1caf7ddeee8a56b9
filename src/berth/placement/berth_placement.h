/* Berth's placement for programs in other languages: which k of a machine's GPUs a job gets.
 *
 * C99; nothing of C++ crosses it. Stable: what stands here keeps its meaning and its place, new
 * things are added behind; berth_placement_version() tells what the library has.
 *
 * Devices are numbered from 0, at most 64; a set of them is a uint64_t, bit i for device i. Calls
 * give one of the codes below. Where a call takes `message`, an error writes what was wanted and
 * what was found there, cut to `message_size` bytes with its ending 0; NULL with 0 wants none.
 * Where a call fails, its results are left as they were. A handle is used by one thread at a time,
 * and freed by the destroy of its kind, which takes NULL too.
 */
#ifndef BERTH_PLACEMENT_H
#define BERTH_PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BERTH_PLACEMENT_VERSION 1

#ifndef BERTH_EXPORT
#define BERTH_EXPORT __attribute__((visibility("default")))
#endif

enum berth_placement_code {
  BERTH_PLACEMENT_OK = 0,
  BERTH_PLACEMENT_INVALID = 1,    /* the question is wrong, and will be wrong again */
  BERTH_PLACEMENT_BUSY = 2,       /* too few are available now */
  BERTH_PLACEMENT_IMPOSSIBLE = 3, /* more than the machine has */
  BERTH_PLACEMENT_STALE = 4,      /* freed what is not held */
  BERTH_PLACEMENT_FULL = 5        /* no memory */
};

enum berth_placement_objective {
  BERTH_PLACEMENT_SUM = 0, /* of the scores of all pairs */
  BERTH_PLACEMENT_MIN = 1, /* the weakest pair; the sum breaks ties */
  BERTH_PLACEMENT_RING = 2 /* the weakest link of the best ring; the sum breaks ties */
};

enum berth_placement_policy {
  BERTH_PLACEMENT_PACKED = 0,
  BERTH_PLACEMENT_BEST_EFFORT = 1,
  BERTH_PLACEMENT_SIMPLE = 2,
  BERTH_PLACEMENT_STATIC_DGX1_PASCAL = 3,
  BERTH_PLACEMENT_STATIC_DGX1_VOLTA = 4,
  BERTH_PLACEMENT_STATIC_DGX2 = 5
};

typedef struct berth_placement_question {
  uint64_t available;
  uint64_t required; /* in every answer */
  int32_t count;     /* k, from 1 */
  int32_t objective; /* enum berth_placement_objective */
} berth_placement_question;

typedef struct berth_placement_answer {
  uint64_t devices;        /* exactly `count` */
  int64_t value;           /* of the devices under the objective */
  int64_t sum;             /* of all their pairs */
  int64_t partition_score; /* best-effort; else -1 */
  int64_t bound;           /* no answer has a greater value */
  int32_t exact;           /* 1: proven to be the best there is */
  int32_t reserved;        /* 0 */
} berth_placement_answer;

/* A policy of the caller's own: the devices it chooses, which are then checked. `scores` is
 * row-major, devices x devices, symmetric, the diagonal 0. `user` is what was handed in with it. */
typedef uint64_t (*berth_placement_choose_fn)(const int32_t* scores, int32_t devices,
                                              const berth_placement_question* question, void* user);

/* BERTH_PLACEMENT_VERSION of the library. */
BERTH_EXPORT int32_t berth_placement_version(void);

/* A machine: its score matrix, as above; each score 0 to 1,000,000, the diagonal is not read. */
typedef struct berth_placement berth_placement;

/* INVALID: names the two devices that see each other differently. FULL. */
BERTH_EXPORT int berth_placement_create(const int32_t* scores, int32_t devices,
                                        berth_placement** placement, char* message,
                                        size_t message_size);
BERTH_EXPORT void berth_placement_destroy(berth_placement* placement);

/* INVALID, BUSY, IMPOSSIBLE. */
BERTH_EXPORT int berth_placement_choose(berth_placement* placement, int32_t policy,
                                        const berth_placement_question* question,
                                        berth_placement_answer* answer, char* message,
                                        size_t message_size);

/* The same by a policy of the caller's own; INVALID: it chose what the question does not allow. */
BERTH_EXPORT int berth_placement_choose_by(berth_placement* placement,
                                           berth_placement_choose_fn choose, void* user,
                                           const berth_placement_question* question,
                                           berth_placement_answer* answer, char* message,
                                           size_t message_size);

/* The best answer to the question that is not the set `devices`. BUSY: there is no other. */
BERTH_EXPORT int berth_placement_alternative(berth_placement* placement,
                                             const berth_placement_question* question,
                                             uint64_t devices, berth_placement_answer* answer,
                                             char* message, size_t message_size);

/* Keeps which devices of a machine are free; all are at first. */
typedef struct berth_allocator berth_allocator;

/* As berth_placement_create(). */
BERTH_EXPORT int berth_allocator_create(const int32_t* scores, int32_t devices,
                                        berth_allocator** allocator, char* message,
                                        size_t message_size);
BERTH_EXPORT void berth_allocator_destroy(berth_allocator* allocator);

/* Any `count` of the free ones. INVALID, BUSY, IMPOSSIBLE; BUSY too where a required one is held.
 */
BERTH_EXPORT int berth_allocator_allocate(berth_allocator* allocator, int32_t policy, int32_t count,
                                          uint64_t required, int32_t objective,
                                          berth_placement_answer* answer, char* message,
                                          size_t message_size);

/* These. INVALID, BUSY. */
BERTH_EXPORT int berth_allocator_allocate_these(berth_allocator* allocator, uint64_t devices,
                                                char* message, size_t message_size);

/* INVALID, STALE. */
BERTH_EXPORT int berth_allocator_free(berth_allocator* allocator, uint64_t devices, char* message,
                                      size_t message_size);

/* 0 for NULL. */
BERTH_EXPORT uint64_t berth_allocator_available(const berth_allocator* allocator);

#ifdef __cplusplus
}
#endif

#endif
