/* The words of a text, in lower case. */
#pragma once

#include <stdio.h>

#include "buffer.h"

/* Puts the next word into the buffer. Returns 1, 0 at the end, or -1 where there is no memory. */
int next_word(FILE* text, struct buffer* word);
