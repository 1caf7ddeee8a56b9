/* Bytes that grow at their end. */
#pragma once

#include <stddef.h>

struct buffer {
  char* bytes;
  size_t size, room;
};

/* Returns 0, or -1 where there is no memory. */
int buffer_add(struct buffer* buffer, char byte);
void buffer_free(struct buffer* buffer);
