#include "options.h"

#include <stdlib.h>
#include <string.h>

int read_options(char** arguments, struct options* options) {
  options->most = 10;
  if (arguments[0] && strcmp(arguments[0], "-n") == 0) {
    char* end;
    if (!arguments[1] || !*arguments[1]) return -1;
    options->most = strtoul(arguments[1], &end, 10);
    if (*end) return -1;
    arguments += 2;
  }
  options->files = arguments;
  return 0;
}
