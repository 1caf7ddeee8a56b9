/* Which GPUs of a DGX-1 (Volta) a job gets, asked from C.
 *
 *   cc -std=c99 example.c -lberth_placement && ./a.out
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "berth/placement/berth_placement.h"

enum { DEVICES = 8 };

/* NVLinks of each pair: the hybrid cube mesh, as `nvidia-smi topo -m` prints it. */
static const int kNvlinks[DEVICES][DEVICES] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                               {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                               {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                               {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

/* 100 a link, and the PCIe level: 50 one switch, 30 one host bridge, 10 the other socket. */
static void score(int32_t* scores) {
  for (int a = 0; a < DEVICES; ++a)
    for (int b = 0; b < DEVICES; ++b) {
      const int pcie = a / 2 == b / 2 ? 50 : a / 4 == b / 4 ? 30 : 10;
      scores[a * DEVICES + b] = a == b ? 0 : 100 * kNvlinks[a][b] + pcie;
    }
}

static void print(const char* what, const berth_placement_answer* answer) {
  printf("%s:", what);
  for (int device = 0; device < DEVICES; ++device)
    if ((answer->devices >> device) & 1) printf(" %d", device);
  printf("  value %" PRId64 "\n", answer->value);
}

/* A policy of our own: the highest numbers, and how often it was asked. */
static uint64_t highest(const int32_t* scores, int32_t devices,
                        const berth_placement_question* question, void* user) {
  uint64_t set = question->required;
  int missing = question->count;
  (void)scores;
  ++*(int*)user;
  for (int device = 0; device < devices; ++device) missing -= (int)(set >> device & 1);
  for (int device = devices - 1; device >= 0 && missing > 0; --device) {
    const uint64_t one = (uint64_t)1 << device;
    if ((question->available & one) == 0 || (set & one) != 0) continue;
    set |= one;
    --missing;
  }
  return set;
}

static void must(int code, const char* message) {
  if (code == BERTH_PLACEMENT_OK) return;
  fprintf(stderr, "code %d: %s\n", code, message);
  exit(1);
}

int main(void) {
  int32_t scores[DEVICES * DEVICES];
  char message[200] = "";
  berth_placement* machine = NULL;
  berth_placement_answer answer;
  /* GPUs 0, 4, 5 and 6 are free; the job needs two. */
  berth_placement_question question = {0x71, 0, 2, BERTH_PLACEMENT_SUM};
  int asked = 0;

  score(scores);
  must(berth_placement_create(scores, DEVICES, &machine, message, sizeof message), message);

  must(berth_placement_choose(machine, BERTH_PLACEMENT_BEST_EFFORT, &question, &answer, message,
                              sizeof message),
       message);
  print("best-effort", &answer);

  question.required = 1; /* GPU 0 is to be one of them */
  must(berth_placement_choose(machine, BERTH_PLACEMENT_PACKED, &question, &answer, message,
                              sizeof message),
       message);
  print("packed with 0", &answer);

  must(berth_placement_choose_by(machine, highest, &asked, &question, &answer, message,
                                 sizeof message),
       message);
  print("our own with 0", &answer);

  question.count = 5;
  if (berth_placement_choose(machine, BERTH_PLACEMENT_PACKED, &question, &answer, message,
                             sizeof message) != BERTH_PLACEMENT_BUSY)
    return 1;
  printf("five of them: %s\n", message);

  berth_placement_destroy(machine);
  return asked == 1 ? 0 : 1;
}
