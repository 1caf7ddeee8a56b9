// Escapes text for HTML and Markdown, so that output of a task or a file's name cannot become
// markup.
#pragma once

#include <string>
#include <string_view>

namespace berth::render {

/// Escapes text for HTML, also for quoted attributes.
std::string html_escape(std::string_view text);
/// Escapes text for Markdown, in one line.
std::string markdown_escape(std::string_view text);

}  // namespace berth::render
