/* The command line: tally [-n MOST] [FILE]... */
#pragma once

#include <stddef.h>

struct options {
  size_t most;
  char** files; /* ends in NULL */
};

/* Returns 0, or -1 where it is wrong. */
int read_options(char** arguments, struct options* options);
