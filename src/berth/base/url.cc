#include "berth/base/url.h"

#include <algorithm>

#include "berth/base/digest.h"
#include "berth/base/text.h"

namespace berth {
namespace {

constexpr std::size_t kMostUrl = 4096, kMostKey = 1024, kMostName = 255;

std::unexpected<Error> wrong(std::string_view what) {
  return fail(ErrorKind::invalid, "{}", what);
}

bool alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_quote(char c) {
  return c == '"' || c == '\'' || c == '`';
}

bool is_blank(char c) {
  return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f;
}

/// The length of a URL without its scheme, at the beginning of a text, and after a text. After a
/// quote it ends with that quote; it may be escaped, as in JSON. "[?" ends it too: it
/// is part of descriptions of URLs, as "postgresql://HOST/DATABASE[?OPTION=VALUE]".
std::size_t url_end(std::string_view text, std::string_view before) {
  while (!before.empty() &&
         (alphanumeric(before.back()) || std::string_view("+-.").contains(before.back())))
    before.remove_suffix(1);
  const char quote = before.empty() || !is_quote(before.back()) ? '\0' : before.back();
  const auto ends = [&](char c) {
    return quote != '\0' ? c == quote || c == '\n'
                         : is_blank(c) || is_quote(c) || c == '<' || c == '>';
  };
  std::size_t end = 0;
  while (end < text.size() && !ends(text[end]) && !text.substr(end).starts_with("[?")) ++end;
  while (end < text.size() && end > 0 && text[end - 1] == '\\') --end;
  if (end > 0 && text[end - 1] == ':') --end;  // as in "URL: what is wrong"
  return end;
}

/// Takes "#sha256=…" off the text.
Result<std::string> take_checksum(std::string& text) {
  const auto hash = text.find('#');
  if (hash == text.npos) return std::string();
  const std::string fragment = lower(text.substr(hash + 1));
  text.resize(hash);
  constexpr std::string_view kKey = "sha256=";
  if (!fragment.starts_with(kKey))
    return wrong("what follows '#' is #sha256= and the checksum, or is left out");
  std::string digits = fragment.substr(kKey.size());
  if (!parse_digest(digits))
    return wrong(fmt::format(
        "expected a sha256 of 64 hexadecimal digits (sha256sum FILE), got '{}'", clip(digits)));
  return digits;
}

Status check_bucket(const Url& url) {
  const bool plain = std::ranges::all_of(
      url.host, [](char c) { return alphanumeric(c) || c == '-' || c == '.' || c == '_'; });
  if (url.host.size() < 3 || url.host.size() > 63 || !plain || url.host.starts_with('.'))
    return wrong(
        fmt::format("'{}' is not the name of a bucket: write s3://BUCKET/KEY", clip(url.host)));
  if (url.path.empty()) return wrong("the key is missing: write s3://BUCKET/KEY");
  if (url.path.size() > kMostKey)
    return wrong(fmt::format("the key has more than {} bytes", kMostKey));
  return {};
}

Status check_host(const Url& url) {
  if (url.host.contains('@'))
    return wrong(
        "a URL must not contain a password, because URLs are shown and stored: put it into "
        "~/.netrc");
  if (url.host.empty() || !std::ranges::all_of(url.host, [](char c) {
        return alphanumeric(c) || std::string_view("-._:[]").contains(c);
      }))
    return wrong(
        fmt::format("'{}' is not a host: write {}://HOST/PATH", clip(url.host), url.scheme));
  return {};
}

}  // namespace

bool is_url(std::string_view text) {
  return text.starts_with("https://") || text.starts_with("http://") || text.starts_with("s3://");
}

bool is_foreign_url(std::string_view text) {
  const auto colon = text.find("://");
  return colon != text.npos && colon > 0 && !is_url(text) &&
         std::ranges::all_of(text.substr(0, colon),
                             [](char c) { return alphanumeric(c) || c == '+' || c == '-'; });
}

Result<Url> parse_url(std::string_view text) {
  if (!is_url(text)) return wrong("expected a URL: https://HOST/PATH or s3://BUCKET/KEY");
  if (text.size() > kMostUrl) return wrong("the URL is too long");
  Url url{.text = std::string(text), .scheme = {}, .host = {}, .path = {}, .sha256 = {}};
  const bool s3 = text.starts_with("s3");
  if (std::ranges::any_of(text, [&](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte == 0x7f || (!s3 && (byte == ' ' || byte > 0x7f));
      }))
    return wrong(s3 ? "a URL has no control characters"
                    : "a URL has no blanks and letters of ASCII alone; write others as %XX");
  BERTH_ASSIGN(url.sha256, take_checksum(url.text));
  const auto colon = url.text.find(':');
  url.scheme = url.text.substr(0, colon);
  const std::string rest = url.text.substr(colon + 3);
  const auto end = std::min(rest.find_first_of(s3 ? "/" : "/?"), rest.size());
  url.host = rest.substr(0, end);
  url.path = rest.substr(s3 ? std::min(end + 1, rest.size()) : end);
  BERTH_TRY(s3 ? check_bucket(url) : check_host(url));
  return url;
}

std::string file_name(const Url& url) {
  const std::string path = url.scheme == "s3" ? url.path : url.path.substr(0, url.path.find('?'));
  const std::string raw = path.substr(path.rfind('/') + 1);
  std::string name = url.scheme == "s3" ? raw : percent_decoded(raw);
  const auto unsafe = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '/'; };
  if (std::ranges::any_of(name, unsafe) || valid_utf8(name) != name) name = raw;
  if (name.empty() || name == "." || name == "..") return "index";
  return name.substr(0, kMostName);
}

std::string without_secrets(std::string_view text, std::string_view mark) {
  constexpr std::string_view kAuthority = "://";
  std::string to;
  const bool is_whole = is_url(text) && std::ranges::none_of(text, is_blank);
  for (auto begin = text.find(kAuthority); begin != text.npos; begin = text.find(kAuthority)) {
    const std::string_view before = text.substr(0, begin);
    to += text.substr(0, begin + kAuthority.size());
    text.remove_prefix(begin + kAuthority.size());
    const auto url = text.substr(0, is_whole ? text.npos : url_end(text, before));
    text.remove_prefix(url.size());
    const auto authority = url.substr(0, url.find_first_of("/?#"));
    const auto at = authority.rfind('@');
    const bool is_secret =
        at != authority.npos && (before.ends_with("http") || before.ends_with("https") ||
                                 authority.substr(0, at).contains(':'));
    if (is_secret && !mark.empty()) to += fmt::format("{}@", mark);
    const auto shown_part = url.substr(is_secret ? at + 1 : 0);
    const auto query = shown_part.find('?');
    to += shown_part.substr(0, query);
    if (query != shown_part.npos && !mark.empty()) to += fmt::format("?{}", mark);
  }
  return to + std::string(text);
}

std::string shown(std::string_view url) {
  const std::string safe = without_secrets(url);
  return clip(std::string_view(safe).substr(0, safe.find('#')), 300);
}

std::string percent_decoded(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
                           hex_value(text[i + 2]) >= 0;
    bytes += is_escape ? static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]))
                       : text[i];
    if (is_escape) i += 2;
  }
  return bytes;
}

std::string percent_encoded(std::string_view text, std::string_view kept) {
  std::string to;
  for (const char c : text) {
    if (alphanumeric(c) || std::string_view("-_.~").contains(c) || kept.contains(c))
      to += c;
    else
      to += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return to;
}

}  // namespace berth
