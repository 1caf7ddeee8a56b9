// What a server's answer says about the state of a file, and whether that identifies the state byte
// for byte (RFC 9110, 8.8). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::remote {

/// The seconds since 1970 of "Sun, 06 Nov 1994 08:49:37 GMT"; nullopt: the text is another one, or
/// in one of the obsolete forms.
std::optional<std::int64_t> http_seconds(std::string_view text);

/// Returns true for an entity tag that changes with every change of the file: "…", not W/"…".
bool is_strong_etag(std::string_view etag);

/// Returns true if a file with this Last-Modified can no longer change without changing it, by the
/// answer's Date: it is at least a minute older (8.8.2.2). A second would be enough if both times
/// were of one clock, which a client cannot know.
bool is_strong_date(std::string_view modified, std::string_view date);

}  // namespace berth::remote
