/* The most frequent words of a table. */
#pragma once

#include <stdio.h>

#include "table.h"

/* Returns 0, or -1 where there is no memory. */
int report(const struct table* table, size_t most, FILE* out);
