/* How often each word was seen: a hash table with open addressing. */
#pragma once

#include <stddef.h>

struct entry {
  char* word; /* ends in a zero byte; NULL: the place is free */
  size_t size;
  long count;
};

struct table {
  struct entry* entries;
  size_t used, room; /* the room is a power of two */
};

/* Returns 0, or -1 where there is no memory. */
int table_count(struct table* table, const char* word, size_t size);
void table_free(struct table* table);
