// The files of the page, which web/ is built into.
#pragma once

#include <string_view>

namespace berth::cli {

struct PageFile {
  std::string_view path, bytes;  ///< The bytes are those of gzip.
  const char* type;
};

/// nullptr: there is none at that path.
const PageFile* page_file(std::string_view path);

}  // namespace berth::cli
