#include "report.h"

#include <stdlib.h>
#include <string.h>

static int by_count(const void* left, const void* right) {
  const struct entry *a = left, *b = right;
  if (a->count != b->count) return a->count < b->count ? 1 : -1;
  return strcmp(a->word, b->word);
}

int report(const struct table* table, size_t most, FILE* out) {
  struct entry* found = calloc(table->used + 1, sizeof *found);
  if (!found) return -1;
  size_t count = 0;
  for (size_t i = 0; i < table->room; ++i)
    if (table->entries[i].word) found[count++] = table->entries[i];
  qsort(found, count, sizeof *found, by_count);
  for (size_t i = 0; i < count && i < most; ++i)
    fprintf(out, "%7ld %s\n", found[i].count, found[i].word);
  free(found);
  return 0;
}
