/* Berth for programs in C, and in languages that call C: topologies, reservations of this machine,
 * plans of fleets, studies and runs. Placement is in berth/placement/berth_placement.h.
 *
 *   berth_machine* machine = NULL;
 *   berth_reservation* held = NULL;
 *   berth_request request = {0};
 *   char why[200];
 *   request.cpu_milli = 2000;
 *   request.gpu = 1;
 *   request.label = "train";
 *   if (berth_machine_open(NULL, &machine, why, sizeof why) != BERTH_OK ||
 *       berth_machine_reserve(machine, &request, &held, why, sizeof why) != BERTH_OK)
 *     fprintf(stderr, "%s\n", why);
 *
 * C99; nothing of C++ crosses it, and no exception leaves it. What stands here keeps its meaning
 * and its place; new things are added behind, also in structs, which a caller fills with zeros
 * first.
 *
 * Calls give one of the codes below. Where a call takes `message`, an error writes one sentence
 * there, cut to `message_size` bytes with its ending 0; NULL with 0 wants none. Where a call fails,
 * its results are left as they were. A handle is used by one thread at a time, and freed by the
 * destroy of its kind, which takes NULL too. A text that a call gives belongs to the caller, who
 * frees it with berth_free_text(). Units: bytes, thousandths of a core, milliseconds.
 */
#ifndef BERTH_BERTH_H
#define BERTH_BERTH_H

#include <stddef.h>
#include <stdint.h>

#ifndef BERTH_EXPORT
#define BERTH_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The first six are those of enum berth_placement_code. */
enum berth_code {
  BERTH_OK = 0,
  BERTH_INVALID = 1,    /* the question or a document is wrong, and will be wrong again */
  BERTH_BUSY = 2,       /* it fits, but not now */
  BERTH_IMPOSSIBLE = 3, /* it is more than there is */
  BERTH_STALE = 4,      /* it was given back before */
  BERTH_FULL = 5,       /* no space, no memory */
  BERTH_NOT_FOUND = 6,
  BERTH_DENIED = 7,
  BERTH_FAILED = 8 /* the operating system, or what is stored, is at fault */
};

/* "0.3.0" */
BERTH_EXPORT const char* berth_version(void);
/* Takes NULL too. */
BERTH_EXPORT void berth_free_text(char* text);

/* ---- A machine's GPUs and what joins them. ---- */

typedef struct berth_topology berth_topology;

enum berth_health { BERTH_HEALTHY = 0, BERTH_UNHEALTHY = 1, BERTH_LOST = 2 };

typedef struct berth_device {
  int32_t index;  /* as the machine counts it */
  int32_t numa;   /* -1: unknown */
  int32_t slots;  /* one is 10 TFLOP/s of dense 16-bit matrix arithmetic */
  int32_t health; /* enum berth_health */
  int64_t memory; /* bytes; 0: unknown */
  char uuid[64];  /* these are cut, with their ending 0 */
  char pci[32];
  char model[96];
} berth_device;

/* This machine's, through NVML and KFD, or what BERTH_TOPOLOGY names. It may have no devices. */
BERTH_EXPORT int berth_topology_discover(berth_topology** topology, char* message,
                                         size_t message_size);
/* A machine of the catalogue ("dgx-h100"), or a topology file. NOT_FOUND, INVALID. */
BERTH_EXPORT int berth_topology_named(const char* name_or_path, berth_topology** topology,
                                      char* message, size_t message_size);
/* A text as nvidia-smi topo -m, rocm-smi --showtopo or berth_topology_json() give it. INVALID. */
BERTH_EXPORT int berth_topology_read(const char* text, size_t size, berth_topology** topology,
                                     char* message, size_t message_size);
BERTH_EXPORT void berth_topology_destroy(berth_topology* topology);

/* 0 for NULL. */
BERTH_EXPORT int32_t berth_topology_device_count(const berth_topology* topology);
/* INVALID: no such device. */
BERTH_EXPORT int berth_topology_device(const berth_topology* topology, int32_t device,
                                       berth_device* out);
/* devices x devices, row-major, the diagonal 0: what berth_placement_create() takes. INVALID: there
 * is room for fewer. */
BERTH_EXPORT int berth_topology_scores(const berth_topology* topology, int32_t* scores,
                                       size_t room);
BERTH_EXPORT int berth_topology_json(const berth_topology* topology, char** json);

/* ---- This machine: what a process may use of it, and reservations, all or nothing. ---- */

typedef struct berth_machine berth_machine;
typedef struct berth_reservation berth_reservation;

typedef struct berth_request {
  int64_t cpu_milli, mem, disk;
  int64_t gpu;       /* whole devices; with one of the next two a part of as many */
  int64_t gpu_mem;   /* of each */
  int64_t gpu_slots; /* of each */
  int64_t priority;  /* the greater goes first where several wait */
  int64_t wait_ms;   /* how long to wait where others hold what is missing */
  const char* label; /* shown to others; NULL: none */
} berth_request;

/* `ledger` is its directory; NULL: $BERTH_LEDGER, or /run/lock/berth. */
BERTH_EXPORT int berth_machine_open(const char* ledger, berth_machine** machine, char* message,
                                    size_t message_size);
/* Reservations outlive it. */
BERTH_EXPORT void berth_machine_destroy(berth_machine* machine);
/* {"total": PART, "free": PART, "holders": [{"label", "pid", "waiting", "part": PART}]}, where PART
 * is
 * {"resources": {"cpu": 1.5, …}, "cores": [{"core", "node", "milli"}], "devices": [{"uuid",
 * "index", "memory", "slots", "whole"}]}. */
BERTH_EXPORT int berth_machine_json(berth_machine* machine, char** json, char* message,
                                    size_t message_size);
/* The PART that berth_machine_reserve() would give now. BUSY, IMPOSSIBLE, INVALID. */
BERTH_EXPORT int berth_machine_dry_run(berth_machine* machine, const berth_request* request,
                                       char** json, char* message, size_t message_size);
/* BUSY, IMPOSSIBLE: the message says what is short and who holds the rest. INVALID. */
BERTH_EXPORT int berth_machine_reserve(berth_machine* machine, const berth_request* request,
                                       berth_reservation** reservation, char* message,
                                       size_t message_size);
/* Its PART. */
BERTH_EXPORT int berth_reservation_json(const berth_reservation* reservation, char** json);
/* STALE: it was released before. */
BERTH_EXPORT int berth_reservation_release(berth_reservation* reservation, char* message,
                                           size_t message_size);
/* Releases it where that was not done. */
BERTH_EXPORT void berth_reservation_destroy(berth_reservation* reservation);

/* ---- Fleets of inference servers. ---- */

/* Plans the fleet of a document (docs/reference/fleet-documents.md); the answer is what
 * `berth plan --json` prints of the plan. `time_limit_ms` 0: none. INVALID: with the entry and its
 * field. */
BERTH_EXPORT int berth_plan(const char* document, size_t size, int64_t time_limit_ms, char** json,
                            char* message, size_t message_size);

/* ---- Studies: searches whose trials the caller carries out (berth/experiment.h). ---- */

typedef struct berth_study berth_study;
typedef struct berth_trial berth_trial;

typedef struct berth_metric {
  const char* name;
  double value;
} berth_metric;

/* Begins the study of a document, an experiment's file with `passive: true`. `state_directory`
 * NULL: where `berth` has its runs; "": it is kept in memory alone. INVALID: with line and key. */
BERTH_EXPORT int berth_study_create(const char* document, size_t size, const char* state_directory,
                                    berth_study** study, char* message, size_t message_size);
/* One that was begun before, by its name ("digits-3"). NOT_FOUND. */
BERTH_EXPORT int berth_study_open(const char* name, const char* state_directory,
                                  berth_study** study, char* message, size_t message_size);
/* Gives back what was asked for and not told. */
BERTH_EXPORT void berth_study_destroy(berth_study* study);
/* It belongs to the study; NULL for NULL. */
BERTH_EXPORT const char* berth_study_name(const berth_study* study);

/* Claims a trial, which the caller destroys. `*trial` is NULL where there is none now, because all
 * are claimed; then `*over` is 1 where there is none any more. */
BERTH_EXPORT int berth_study_ask(berth_study* study, berth_trial** trial, int32_t* over,
                                 char* message, size_t message_size);
/* Ends a trial as done, as failed, or as stopped early with what it reported. STALE: its claim ran
 * out, and another has it. */
BERTH_EXPORT int berth_study_tell(berth_study* study, const berth_trial* trial,
                                  const berth_metric* metrics, size_t count, char* message,
                                  size_t message_size);
BERTH_EXPORT int berth_study_fail(berth_study* study, const berth_trial* trial, const char* reason,
                                  char* message, size_t message_size);
BERTH_EXPORT int berth_study_prune(berth_study* study, const berth_trial* trial, const char* reason,
                                   char* message, size_t message_size);
/* Records metrics of a running trial; `*should_stop` is 1 where it should end early. */
BERTH_EXPORT int berth_study_report(berth_study* study, const berth_trial* trial,
                                    const berth_metric* metrics, size_t count, int32_t* should_stop,
                                    char* message, size_t message_size);
/* Renews the claims; within the document's `lease` (30s) it has to be called again. */
BERTH_EXPORT int berth_study_renew(berth_study* study, char* message, size_t message_size);
/* The best trial so far, which the caller destroys; NULL: none has a score. */
BERTH_EXPORT int berth_study_best(berth_study* study, berth_trial** trial, char* message,
                                  size_t message_size);

BERTH_EXPORT void berth_trial_destroy(berth_trial* trial);
/* "17"; "waiting", "running", "done" or "failed". They belong to the trial; NULL for NULL. */
BERTH_EXPORT const char* berth_trial_label(const berth_trial* trial);
BERTH_EXPORT const char* berth_trial_state(const berth_trial* trial);
/* The value of a parameter; NULL or NaN where the trial has none, or none that is a number. */
BERTH_EXPORT const char* berth_trial_text(const berth_trial* trial, const char* param);
BERTH_EXPORT double berth_trial_number(const berth_trial* trial, const char* param);
/* The last value of a metric; NaN where it has none. */
BERTH_EXPORT double berth_trial_metric(const berth_trial* trial, const char* metric);

/* ---- Runs: commands, experiments and flows, which `berth` carries out durably (berth/run.h). ----
 */

typedef struct berth_runs berth_runs;

typedef struct berth_run {
  char kind[16];  /* "command", "experiment", "flow", … */
  char state[16]; /* "queued", "running", "done", "failed", "stopped", "interrupted" */
  int64_t waiting, running, done, cached, skipped, failed, stopped; /* how many tasks are so */
  int64_t created_ms, ended_ms; /* since 1970 UTC; 0: it has not ended */
  char error[200];              /* why it failed, cut */
} berth_run;

/* `state_directory` NULL: where `berth` has its runs. `program` NULL: $BERTH_BIN, or `berth` in
 * PATH. */
BERTH_EXPORT int berth_runs_open(const char* state_directory, const char* program,
                                 berth_runs** runs, char* message, size_t message_size);
/* Ends no run. */
BERTH_EXPORT void berth_runs_destroy(berth_runs* runs);
/* Records one command, whose words end with NULL, as a run of one core, starts it, and gives the
 * run's name, a text that is the caller's. */
BERTH_EXPORT int berth_runs_submit(berth_runs* runs, const char* const* argv, char** name,
                                   char* message, size_t message_size);
/* The same for the file of an experiment or a flow. `options` is a JSON object with the fields of
 * FileOptions (berth/run.h), such as {"parallel": 4, "set": {"lr": "0.1"}, "timeout": "10m"};
 * NULL: none. */
BERTH_EXPORT int berth_runs_submit_file(berth_runs* runs, const char* file, const char* options,
                                        char** name, char* message, size_t message_size);
/* NOT_FOUND. */
BERTH_EXPORT int berth_runs_find(berth_runs* runs, const char* name, berth_run* run, char* message,
                                 size_t message_size);
/* Waits until the run has ended or `most_ms` has passed, and gives it as it is then; 0: however
 * long that takes. */
BERTH_EXPORT int berth_runs_wait(berth_runs* runs, const char* name, int64_t most_ms,
                                 berth_run* run, char* message, size_t message_size);
/* [{"label", "state", "attempts", "exit_code", "params": {…}, "metrics": {…}}] */
BERTH_EXPORT int berth_runs_tasks_json(berth_runs* runs, const char* name, char** json,
                                       char* message, size_t message_size);
/* All that a task printed so far, on standard output or, with `is_error` 1, on standard error. */
BERTH_EXPORT int berth_runs_output(berth_runs* runs, const char* name, const char* task,
                                   int32_t is_error, char** text, size_t* size, char* message,
                                   size_t message_size);
/* As `berth stop`, `berth resume`, `berth retry` (with `all` 1: everything anew) and `berth rm`. */
BERTH_EXPORT int berth_runs_stop(berth_runs* runs, const char* name, char* message,
                                 size_t message_size);
BERTH_EXPORT int berth_runs_resume(berth_runs* runs, const char* name, char* message,
                                   size_t message_size);
BERTH_EXPORT int berth_runs_retry(berth_runs* runs, const char* name, int32_t all, char* message,
                                  size_t message_size);
BERTH_EXPORT int berth_runs_remove(berth_runs* runs, const char* name, char* message,
                                   size_t message_size);
/* Answers a call of the HTTP interface in this process (docs/reference/library.md): "GET",
 * "/v1/runs/digits-3/best". `body`: the JSON of a POST; NULL: none. `answer` is the caller's. */
BERTH_EXPORT int berth_runs_call(berth_runs* runs, const char* method, const char* path,
                                 const char* body, char** answer, char* message,
                                 size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
