/* Topologies, placement, reservations, a plan, a study and runs from C.
 *
 *   cc -std=c99 consumer.c $(pkg-config --cflags --libs berth)
 */
#define _POSIX_C_SOURCE 200112L /* setenv */

#include <berth/berth.h>
#include <berth/placement/berth_placement.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: " #condition "\n%s\n", __FILE__, __LINE__, why); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static char why[200];

static const char kFleet[] =
    "{\"acceleratorData\": {\"accelerators\": [{\"name\": \"A100\", \"type\": \"A100\", \"cost\": "
    "185}]},"
    " \"capacityData\": {\"count\": [{\"type\": \"A100\", \"count\": 6}]},"
    " \"modelData\": {\"models\": [{\"name\": \"chat\", \"acc\": \"A100\", \"accCount\": 1,"
    "   \"maxBatchSize\": 256, \"atTokens\": 1024,"
    "   \"perfParms\": {\"alpha\": 12.7, \"beta\": 0.114, \"gamma\": 0.0001046}}]},"
    " \"serviceClassData\": {\"serviceClasses\": [{\"name\": \"Interactive\", \"priority\": 1,"
    "   \"modelTargets\": [{\"model\": \"chat\", \"slo-itl\": 40, \"slo-ttft\": 800}]}]},"
    " \"serverData\": {\"servers\": [{\"name\": \"assistant\", \"class\": \"Interactive\","
    "   \"model\": \"chat\", \"currentAlloc\": {\"load\":"
    "   {\"arrivalRate\": 300, \"avgInTokens\": 700, \"avgOutTokens\": 250}}}]}}";

static void places(void) {
  berth_topology* topology = NULL;
  EXPECT(berth_topology_named("dgx1-v100", &topology, why, sizeof why) == BERTH_OK);
  EXPECT(berth_topology_device_count(topology) == 8);
  berth_device device;
  EXPECT(berth_topology_device(topology, 7, &device) == BERTH_OK);
  EXPECT(device.index == 7 && device.slots == 13 && device.uuid[0] != '\0');
  EXPECT(berth_topology_device(topology, 8, &device) == BERTH_INVALID);

  int32_t scores[64];
  EXPECT(berth_topology_scores(topology, scores, 63) == BERTH_INVALID);
  EXPECT(berth_topology_scores(topology, scores, 64) == BERTH_OK);
  berth_allocator* allocator = NULL;
  EXPECT(berth_allocator_create(scores, 8, &allocator, why, sizeof why) == BERTH_PLACEMENT_OK);
  berth_placement_answer answer;
  EXPECT(berth_allocator_allocate(allocator, BERTH_PLACEMENT_PACKED, 2, 0, BERTH_PLACEMENT_SUM,
                                  &answer, why, sizeof why) == BERTH_PLACEMENT_OK);
  EXPECT(answer.devices == 12 && answer.exact == 1);
  berth_allocator_destroy(allocator);

  char* json = NULL;
  EXPECT(berth_topology_json(topology, &json) == BERTH_OK);
  berth_topology* copy = NULL;
  EXPECT(berth_topology_read(json, strlen(json), &copy, why, sizeof why) == BERTH_OK);
  EXPECT(berth_topology_device_count(copy) == 8);
  berth_free_text(json);
  berth_topology_destroy(copy);
  berth_topology_destroy(topology);

  EXPECT(berth_topology_named("no-such", &topology, why, sizeof why) == BERTH_NOT_FOUND);
  EXPECT(berth_topology_discover(&topology, why, sizeof why) == BERTH_OK); /* of BERTH_TOPOLOGY */
  EXPECT(berth_topology_device_count(topology) == 8);
  berth_topology_destroy(topology);
}

static void reserves(void) {
  berth_machine* machine = NULL;
  EXPECT(berth_machine_open(NULL, &machine, why, sizeof why) == BERTH_OK);
  berth_request request;
  memset(&request, 0, sizeof request);
  request.gpu = 6;
  request.cpu_milli = 500;
  request.label = "train";
  char* json = NULL;
  EXPECT(berth_machine_dry_run(machine, &request, &json, why, sizeof why) == BERTH_OK);
  EXPECT(strstr(json, "\"cpu\":0.5") != NULL);
  berth_free_text(json);
  berth_reservation* held = NULL;
  berth_reservation* other = NULL;
  EXPECT(berth_machine_reserve(machine, &request, &held, why, sizeof why) == BERTH_OK);
  EXPECT(berth_machine_reserve(machine, &request, &other, why, sizeof why) == BERTH_BUSY);
  EXPECT(other == NULL && strstr(why, "train") != NULL);
  request.gpu = 9;
  EXPECT(berth_machine_reserve(machine, &request, &other, why, sizeof why) == BERTH_IMPOSSIBLE);
  request.gpu = -1;
  EXPECT(berth_machine_reserve(machine, &request, &other, why, sizeof why) == BERTH_INVALID);
  EXPECT(berth_machine_json(machine, &json, why, sizeof why) == BERTH_OK);
  EXPECT(strstr(json, "\"label\":\"train\"") != NULL);
  berth_free_text(json);
  EXPECT(berth_reservation_json(held, &json) == BERTH_OK);
  EXPECT(strstr(json, "\"whole\":true") != NULL);
  berth_free_text(json);
  EXPECT(berth_reservation_release(held, why, sizeof why) == BERTH_OK);
  EXPECT(berth_reservation_release(held, why, sizeof why) == BERTH_STALE);
  berth_reservation_destroy(held);
  berth_machine_destroy(machine);
}

static void plans(void) {
  char* json = NULL;
  EXPECT(berth_plan(kFleet, strlen(kFleet), 0, &json, why, sizeof why) == BERTH_OK);
  EXPECT(strstr(json, "\"assistant\"") != NULL);
  berth_free_text(json);
  EXPECT(berth_plan("{", 1, 0, &json, why, sizeof why) == BERTH_INVALID);
}

static const char kStudy[] =
    "name: parabola\n"
    "passive: true\n"
    "params: {x: {min: -5, max: 5}, kind: [flat, steep]}\n"
    "search: {method: random, samples: 12, seed: 7}\n"
    "goal: {metric: loss, direction: min}\n";

static void searches(void) {
  berth_study* study = NULL;
  EXPECT(berth_study_create(kStudy, strlen(kStudy), "", &study, why, sizeof why) == BERTH_OK);
  EXPECT(strcmp(berth_study_name(study), "parabola-1") == 0);
  berth_trial* trial = NULL;
  int32_t over = 0, should_stop = 1;
  int done = 0;
  double least = 1e9;
  while (berth_study_ask(study, &trial, &over, why, sizeof why) == BERTH_OK && trial != NULL) {
    const double x = berth_trial_number(trial, "x");
    berth_metric loss = {"loss", 0};
    loss.value = strcmp(berth_trial_text(trial, "kind"), "flat") == 0 ? x * x : 10 * x * x;
    EXPECT(berth_study_report(study, trial, &loss, 1, &should_stop, why, sizeof why) == BERTH_OK);
    EXPECT(should_stop == 0 && berth_study_renew(study, why, sizeof why) == BERTH_OK);
    if (done == 3) {
      EXPECT(berth_study_fail(study, trial, "no luck", why, sizeof why) == BERTH_OK);
    } else {
      EXPECT(berth_study_tell(study, trial, &loss, 0, why, sizeof why) == BERTH_INVALID);
      EXPECT(berth_study_tell(study, trial, &loss, 1, why, sizeof why) == BERTH_OK);
      EXPECT(berth_study_tell(study, trial, &loss, 1, why, sizeof why) == BERTH_STALE);
      if (loss.value < least) least = loss.value;
    }
    berth_trial_destroy(trial);
    ++done;
  }
  EXPECT(over == 1 && done == 12);
  EXPECT(berth_study_best(study, &trial, why, sizeof why) == BERTH_OK);
  EXPECT(berth_trial_metric(trial, "loss") == least);
  EXPECT(strcmp(berth_trial_state(trial), "done") == 0 && berth_trial_label(trial) != NULL);
  EXPECT(berth_trial_text(trial, "y") == NULL);
  EXPECT(berth_trial_number(trial, "y") != berth_trial_number(trial, "y")); /* NaN */
  berth_trial_destroy(trial);
  berth_study_destroy(study);
  EXPECT(berth_study_create("x: 1", 4, "", &study, why, sizeof why) == BERTH_INVALID);
  EXPECT(berth_study_open("parabola-1", NULL, &study, why, sizeof why) == BERTH_NOT_FOUND);
}

static void runs(void) {
  const char* const hello[] = {"sh", "-c", "echo hello; test -e again", NULL};
  berth_runs* all = NULL;
  berth_run run;
  char* name = NULL;
  char* text = NULL;
  size_t size = 0;
  EXPECT(berth_runs_open(NULL, NULL, &all, why, sizeof why) == BERTH_OK);
  EXPECT(berth_runs_submit(all, hello, &name, why, sizeof why) == BERTH_OK);
  EXPECT(berth_runs_wait(all, name, 0, &run, why, sizeof why) == BERTH_OK);
  EXPECT(strcmp(run.state, "failed") == 0 && strcmp(run.kind, "command") == 0);
  EXPECT(run.failed == 1 && run.ended_ms >= run.created_ms && run.created_ms > 0);
  EXPECT(berth_runs_output(all, name, "1", 0, &text, &size, why, sizeof why) == BERTH_OK);
  EXPECT(size == 6 && strcmp(text, "hello\n") == 0);
  berth_free_text(text);
  fclose(fopen("again", "w"));
  EXPECT(berth_runs_retry(all, name, 0, why, sizeof why) == BERTH_OK);
  EXPECT(berth_runs_wait(all, name, 0, &run, why, sizeof why) == BERTH_OK);
  EXPECT(strcmp(run.state, "done") == 0);
  remove("again");
  EXPECT(berth_runs_tasks_json(all, name, &text, why, sizeof why) == BERTH_OK);
  EXPECT(strstr(text, "\"attempts\":2") != NULL && strstr(text, "\"exit_code\":0") != NULL);
  berth_free_text(text);
  EXPECT(berth_runs_call(all, "GET", "/v1/runs", NULL, &text, why, sizeof why) == BERTH_OK);
  EXPECT(strstr(text, "\"id\":\"sh-") != NULL);
  berth_free_text(text);
  EXPECT(berth_runs_call(all, "POST", "/v1/run-plan", "{\"command\": [\"true\"]}", &text, why,
                         sizeof why) == BERTH_OK);
  EXPECT(strstr(text, "\"tasks\":1") != NULL);
  berth_free_text(text);
  EXPECT(berth_runs_call(all, "GET", "/v1/nothing", NULL, &text, why, sizeof why) ==
         BERTH_NOT_FOUND);
  EXPECT(berth_runs_remove(all, name, why, sizeof why) == BERTH_OK);
  EXPECT(berth_runs_find(all, name, &run, why, sizeof why) == BERTH_NOT_FOUND);
  berth_free_text(name);
  EXPECT(berth_runs_submit_file(all, "no-such.yaml", NULL, &name, why, sizeof why) ==
         BERTH_NOT_FOUND);
  EXPECT(berth_runs_submit_file(all, "no-such.yaml", "{\"paralel\": 2}", &name, why, sizeof why) ==
         BERTH_INVALID);
  EXPECT(strstr(why, "parallel") != NULL);
  EXPECT(berth_runs_stop(all, "no-such-1", why, sizeof why) == BERTH_NOT_FOUND);
  EXPECT(berth_runs_resume(NULL, "x", why, sizeof why) == BERTH_INVALID);
  berth_runs_destroy(all);
}

int main(void) {
  EXPECT(strncmp(berth_version(), "0.3.", 4) == 0);
  setenv("BERTH_TOPOLOGY", "dgx-h100", 1);
  places();
  reserves();
  plans();
  searches();
  runs();
  puts("ok");
  return 0;
}
