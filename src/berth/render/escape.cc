#include "berth/render/escape.h"

#include "berth/base/text.h"
#include "berth/base/visible.h"

namespace berth::render {

std::string html_escape(std::string_view text) {
  std::string escaped;
  for (const char letter : visible_text(valid_utf8(text))) switch (letter) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += letter;
    }
  return escaped;
}

std::string markdown_escape(std::string_view text) {
  std::string escaped;
  for (const char letter : html_escape(text)) {
    if (letter == '\n') {
      escaped += ' ';
      continue;
    }
    if (std::string_view("\\`*_[]~|#@").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

}  // namespace berth::render
