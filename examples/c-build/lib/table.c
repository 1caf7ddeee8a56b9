#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

static struct entry* place_of(struct entry* entries, size_t room, const char* word, size_t size) {
  size_t at = hash_of(word, size) & (room - 1);
  while (entries[at].word &&
         (entries[at].size != size || memcmp(entries[at].word, word, size) != 0))
    at = (at + 1) & (room - 1);
  return &entries[at];
}

static int grow(struct table* table) {
  size_t room = table->room ? 2 * table->room : 256;
  struct entry* entries = calloc(room, sizeof *entries);
  if (!entries) return -1;
  for (size_t i = 0; i < table->room; ++i) {
    const struct entry* old = &table->entries[i];
    if (old->word) *place_of(entries, room, old->word, old->size) = *old;
  }
  free(table->entries);
  table->entries = entries;
  table->room = room;
  return 0;
}

int table_count(struct table* table, const char* word, size_t size) {
  if (4 * (table->used + 1) > 3 * table->room && grow(table)) return -1;
  struct entry* entry = place_of(table->entries, table->room, word, size);
  if (!entry->word) {
    entry->word = malloc(size + 1);
    if (!entry->word) return -1;
    memcpy(entry->word, word, size);
    entry->word[size] = '\0';
    entry->size = size;
    ++table->used;
  }
  ++entry->count;
  return 0;
}

void table_free(struct table* table) {
  for (size_t i = 0; i < table->room; ++i) free(table->entries[i].word);
  free(table->entries);
  *table = (struct table){0};
}
