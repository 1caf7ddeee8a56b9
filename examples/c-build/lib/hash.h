/* FNV-1a. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t hash_of(const char* bytes, size_t size);
