// How a function of the C interface calls the C++ one: codes for errors, words for people, texts
// that belong to the caller, and no exception.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/berth.h"

namespace berth::c {

inline int code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::busy: return BERTH_BUSY;
    case ErrorKind::impossible: return BERTH_IMPOSSIBLE;
    case ErrorKind::stale: return BERTH_STALE;
    case ErrorKind::full: return BERTH_FULL;
    case ErrorKind::not_found: return BERTH_NOT_FOUND;
    case ErrorKind::denied: return BERTH_DENIED;
    case ErrorKind::io:
    case ErrorKind::corrupt:
    case ErrorKind::interrupted: return BERTH_FAILED;
    default: return BERTH_INVALID;
  }
}

/// Where the words of an error go.
struct Words {
  char* text = nullptr;
  std::size_t size = 0;

  int put(const Error& error) const {
    if (text != nullptr && size > 0) {
      const std::size_t length = std::min(size - 1, error.message.size());
      std::copy_n(error.message.begin(), length, text);
      text[length] = '\0';
    }
    return code_of(error.kind);
  }
};

/// What `work` says, as a code; no exception leaves.
template <class Work>
int guarded_call(Words words, const Work& work) {
  try {
    const Status done = work();
    return done ? BERTH_OK : words.put(done.error());
  } catch (const std::bad_alloc&) {
    return words.put({ErrorKind::full, "no memory"});
  } catch (const std::exception& error) {
    return words.put({ErrorKind::io, error.what()});
  }
}

template <class... Pointers>
Status check_given(const Pointers*... pointers) {
  if ((... && (pointers != nullptr))) return {};
  return fail(ErrorKind::invalid, "a pointer is NULL");
}

inline Status give_text(std::string_view text, char** to) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  *to = copy;
  return {};
}

template <std::size_t kSize>
void put_text(char (&to)[kSize], const std::string& text) {
  to[text.copy(to, kSize - 1)] = '\0';
}

}  // namespace berth::c
