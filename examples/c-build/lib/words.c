#include "words.h"

#include <ctype.h>

int next_word(FILE* text, struct buffer* word) {
  int c;
  word->size = 0;
  while ((c = getc(text)) != EOF) {
    if (isalpha(c)) {
      if (buffer_add(word, (char)tolower(c))) return -1;
    } else if (word->size) {
      return 1;
    }
  }
  return word->size > 0;
}
