/* Topologies, placement, reservations and a plan from C.
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

int main(void) {
  EXPECT(strncmp(berth_version(), "0.2.", 4) == 0);
  setenv("BERTH_TOPOLOGY", "dgx-h100", 1);
  places();
  reserves();
  plans();
  puts("ok");
  return 0;
}
