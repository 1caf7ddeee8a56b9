// What commands print. Names, parameters and messages come from others, so all text is made visible
// (visible_text()) on its way out; only what has to keep its bytes is printed exactly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/os/env.h"
#include "berth/render/table.h"

namespace berth::cli {

/// Writes to standard output. A failure does not stop the command; print_errno() tells it at the
/// end.
void print(std::string_view text);
void print_error(std::string_view text);  ///< Writes to standard error.
/// Prints each note as a line on standard error, and of very many only the first 20.
void print_notes(const std::vector<std::string>& notes);
/// Replaces the file atomically; "" and "-" are standard output.
Status print_to(os::Env& env, const std::string& file, const std::string& text);
/// Write bytes as they are: output of tasks, and what moves the cursor.
void print_exact(std::string_view bytes);
void print_exact_error(std::string_view bytes);

/// Whether standard output takes colours: it is a terminal, and NO_COLOR is not set.
bool has_colours();
/// How text is laid out for standard output: for its width if it is a terminal.
render::View view();
/// Prints the table as view() says.
void print(const render::Table& table);

/// The width of the terminal that standard output is; 80 where it is none.
int terminal_width();

/// The errno of the last failure to write to standard output, such as that of a full disk; 0
/// without any. A reader who has gone (EPIPE) is no failure.
int print_errno();
/// Keeps the errno of a failed write to standard output for print_errno().
void note_failed_print(int number);

}  // namespace berth::cli
