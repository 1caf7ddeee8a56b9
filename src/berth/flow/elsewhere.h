// Inputs and outputs of steps that lie elsewhere (base/url.h): how a file writes them, and where
// its tasks see them. Pure.
#pragma once

#include <string>

#include "berth/base/document.h"
#include "berth/base/url.h"
#include "berth/flow/flow.h"

namespace berth::flow {

/// The text of {url: https://…, sha256: …}, which is one URL with its checksum. Errors: invalid.
Result<std::string> read_url_map(const Field& field);
/// Checks a URL as far as it can be told while it has names in braces. Errors: invalid.
Status check_url(const std::string& text, const Field& field);
/// Where a task finds what was fetched: a folder of its own that says where it is from, and in it
/// the file under its name. With a checksum it is the same place wherever it is from.
std::string place_of_url(const Url& url);

/// Where a task puts an output that goes to an s3 URL. Errors: invalid, for the field.
Result<std::string> s3_place(const std::string& text, const Field& field);
/// The URL of such a place; "" of a place in the flow's folder.
std::string s3_url(const Output& output, const std::string& place);
/// The output's URL, or its path.
std::string shown_path(const Output& output, const std::string& path);
/// The place of an output that goes to the same URL; "": it is none of s3.
std::string s3_place_of(std::string_view url);

}  // namespace berth::flow
