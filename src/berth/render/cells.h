// Text in the cells of a terminal: how many it takes, cut and filled to so many. What comes from
// elsewhere (names, output of tasks) is drawn through these alone, so that nothing in it can move
// the cursor, turn the direction of writing or do anything else to the terminal. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::render {

/// One line that a terminal only shows: the visible_text() of it, line ends and tabs as "^J" and
/// "^I", bytes that are not UTF-8 as "?".
std::string one_line(std::string_view text);

/// The cells that the text takes, which one_line() has made: two for wide characters of East Asia
/// and pictures, none for accents that stand upon the one before.
std::size_t cells(std::string_view text);

/// The text from cell `from` on, in at most `most` cells; "…" is its last where more follows.
std::string cut(std::string_view text, std::size_t most, std::size_t from = 0);

/// The text, cut to `width` cells and filled up with blanks, before it where `right`.
std::string fit(std::string_view text, std::size_t width, bool right = false);

}  // namespace berth::render
