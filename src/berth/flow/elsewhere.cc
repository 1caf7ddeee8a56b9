#include "berth/flow/elsewhere.h"

#include <algorithm>

#include "berth/exec/fields.h"
#include "berth/flow/format.h"
#include "berth/flow/notation.h"

namespace berth::flow {
namespace {

constexpr std::string_view kFetched = "_url/", kS3Outputs = "_s3/", kS3 = "s3://";
constexpr std::size_t kDigits = 12;

}  // namespace

Result<std::string> read_url_map(const Field& field) {
  BERTH_TRY(field.expect_keys(kUrlFormat));
  BERTH_ASSIGN(const Field url, field.get("url"));
  BERTH_ASSIGN(std::string text, exec::process_text(url));
  if (!is_url(text) && names_in(text).empty())
    return url.error("expected a URL: https://HOST/PATH or s3://BUCKET/KEY");
  const auto sum = field.find("sha256");
  if (!sum) return text;
  if (text.contains('#')) return sum->error("the URL has a checksum already, after its '#'");
  BERTH_ASSIGN(const std::string digits, exec::process_text(*sum));
  const std::string whole = text + "#sha256=" + digits;
  if (names_in(digits).empty())
    if (const auto parsed = parse_url("https://host/#sha256=" + digits); !parsed)
      return sum->error(parsed.error().message);
  return whole;
}

Status check_url(const std::string& text, const Field& field) {
  if (!names_in(text).empty()) return {};  // its names may stand for any part of it
  if (const auto url = parse_url(text); !url) return field.error(url.error().message);
  return {};
}

std::string place_of_url(const Url& url) {
  if (!url.sha256.empty())
    return fmt::format("{}sha256-{}/{}", kFetched, url.sha256.substr(0, kDigits), file_name(url));
  constexpr std::size_t kMostFolder = 150;
  const std::string path = url.path.substr(0, url.path.find('?'));
  std::string folder =
      (url.scheme == "s3" ? "s3," : "") + url.host + "/" + path.substr(0, path.rfind('/') + 1);
  if (url.scheme == "https" && folder.contains("//")) folder.erase(folder.find("//"), 1);
  std::ranges::replace(folder, '/', ',');
  while (folder.ends_with(',')) folder.pop_back();
  // What is left out, or written in another way, is told apart by all of it.
  const bool whole = url.scheme != "http" && path == url.path && !path.contains(',') &&
                     path.rfind('%') == path.npos && folder.size() <= kMostFolder;
  if (!whole)
    folder = folder.substr(0, kMostFolder) + "," + to_hex(sha256(url.text)).substr(0, kDigits);
  std::ranges::replace(folder, ':', '_');  // which stands between paths in many a variable
  return fmt::format("{}{}/{}", kFetched, folder, file_name(url));
}

Result<std::string> s3_place(const std::string& text, const Field& field) {
  if (!text.starts_with(kS3))
    return field.error(
        "an output goes to s3://BUCKET/KEY or into the flow's folder: Berth cannot write to that "
        "address");
  if (text.contains('#')) return field.error("an output has no checksum before it exists");
  const std::string rest = text.substr(kS3.size());
  if (!rest.contains('/') || rest.starts_with('/') || rest.substr(rest.find('/') + 1).empty())
    return field.error("expected s3://BUCKET/KEY");
  const auto plain = plain_path(rest);
  if (!plain || !stays_inside(*plain) || (*plain != rest && *plain + "/" != rest))
    return field.error("the key has '//', '.' or '..' in it, which no path of a task can have");
  BERTH_TRY(check_url(text, field));
  return std::string(kS3Outputs) + *plain;
}

std::string s3_url(const Output& output, const std::string& place) {
  if (!output.s3) return {};
  return fmt::format("{}{}{}", kS3, std::string_view(place).substr(kS3Outputs.size()),
                     output.directory ? "/" : "");
}

std::string shown_path(const Output& output, const std::string& path) {
  return output.s3 ? s3_url(output, path) : path;
}

std::string s3_place_of(std::string_view url) {
  if (!url.starts_with(kS3)) return {};
  return std::string(kS3Outputs) + std::string(url.substr(kS3.size(), url.find('#') - kS3.size()));
}

}  // namespace berth::flow
