#include "buffer.h"

#include <stdlib.h>

int buffer_add(struct buffer* buffer, char byte) {
  if (buffer->size == buffer->room) {
    size_t room = buffer->room ? 2 * buffer->room : 64;
    char* bytes = realloc(buffer->bytes, room);
    if (!bytes) return -1;
    buffer->bytes = bytes;
    buffer->room = room;
  }
  buffer->bytes[buffer->size++] = byte;
  return 0;
}

void buffer_free(struct buffer* buffer) {
  free(buffer->bytes);
  *buffer = (struct buffer){0};
}
