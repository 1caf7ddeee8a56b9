#include "berth/cli/server/page_files.h"

#include <algorithm>
#include <array>

// clang-format off
#define BERTH_PAGE_FILE(name, file)                                            \
  __asm__(".section .rodata\n"                                                 \
          ".global berth_page_" #name "\nberth_page_" #name ":\n"              \
          ".incbin \"" BERTH_PAGE_DIRECTORY "/" file "\"\n"                    \
          ".global berth_page_" #name "_end\nberth_page_" #name "_end:\n"      \
          ".previous\n");                                                      \
  extern "C" const char berth_page_##name[], berth_page_##name##_end[]
// clang-format on

BERTH_PAGE_FILE(html, "index.html.gz");
BERTH_PAGE_FILE(js, "page.js.gz");
BERTH_PAGE_FILE(css, "page.css.gz");

namespace berth::cli {

const PageFile* page_file(std::string_view path) {
  static const std::array files = {
      PageFile{"/", {berth_page_html, berth_page_html_end}, "text/html; charset=utf-8"},
      PageFile{"/page.js", {berth_page_js, berth_page_js_end}, "text/javascript; charset=utf-8"},
      PageFile{"/page.css", {berth_page_css, berth_page_css_end}, "text/css; charset=utf-8"}};
  const auto* found = std::ranges::find(files, path, &PageFile::path);
  return found == files.end() ? nullptr : found;
}

}  // namespace berth::cli
