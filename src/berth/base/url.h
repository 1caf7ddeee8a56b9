// Files that lie elsewhere: https://HOST/PATH, http://… and s3://BUCKET/KEY, each with the checksum
// that its content must have, if its writer knows it, behind a '#': "https://host/a.gz#sha256=…".
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/result.h"

namespace berth {

struct Url {
  std::string text;    // without the checksum
  std::string scheme;  // "https", "http" or "s3"
  std::string host;    // with its port; of s3 the bucket
  std::string path;    // "/dir/a.gz" as it is written; of s3 the key as it is, with no slash before
  std::string sha256;  // of the content, 64 digits, lower case; empty: whatever it is
};

/// Whether a text begins as a URL of these schemes does.
bool is_url(std::string_view text);
/// Whether it begins as one of another scheme does: "ftp://".
bool is_foreign_url(std::string_view text);
/// Errors: invalid, with what is wrong with it and what to write instead, for Field::error().
Result<Url> parse_url(std::string_view text);
/// The file's name: the last part of its path, with %XX replaced where that is safe; "index" where
/// there is none.
std::string file_name(const Url& url);
/// Returns the text with the parts of its URLs, of any scheme, that may be secrets replaced by
/// `mark`: everything after '?', and "user:password" (of http and https the user alone too). With
/// an empty mark '?' and '@' are left out as well. A URL ends at a blank or a quote, or, if a quote
/// precedes it, at the same quote. A text without blanks that begins as a URL is one.
std::string without_secrets(std::string_view text, std::string_view mark = "…");
/// A URL without its secrets and its checksum, as messages show it.
std::string shown(std::string_view url);
/// The text with all bytes but letters, digits and "-_.~" (and those of `kept`) as %XX.
std::string percent_encoded(std::string_view text, std::string_view kept = "");
/// The text with every %XX as its byte; any other '%' stays.
std::string percent_decoded(std::string_view text);

}  // namespace berth
