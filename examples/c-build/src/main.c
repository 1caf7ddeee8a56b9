#include <stdio.h>

#include "options.h"
#include "report.h"
#include "words.h"

static int count_words(FILE* text, struct table* table) {
  struct buffer word = {0};
  int found;
  while ((found = next_word(text, &word)) > 0)
    if (table_count(table, word.bytes, word.size)) {
      found = -1;
      break;
    }
  buffer_free(&word);
  return found;
}

int main(int count, char** arguments) {
  struct options options;
  struct table table = {0};
  if (count < 1 || read_options(arguments + 1, &options)) {
    fputs("usage: tally [-n MOST] [FILE]...\n", stderr);
    return 2;
  }
  if (!*options.files && count_words(stdin, &table)) return 1;
  for (char** file = options.files; *file; ++file) {
    FILE* text = fopen(*file, "r");
    if (!text) {
      perror(*file);
      return 1;
    }
    if (count_words(text, &table)) return 1;
    fclose(text);
  }
  int failed = report(&table, options.most, stdout);
  table_free(&table);
  return failed ? 1 : 0;
}
