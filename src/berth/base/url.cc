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
    return wrong(fmt::format("sha256 has 64 hexadecimal digits (sha256sum FILE), and '{}' is none",
                             clip(digits)));
  return digits;
}

Status check_bucket(const Url& url) {
  const bool plain = std::ranges::all_of(
      url.host, [](char c) { return alphanumeric(c) || c == '-' || c == '.' || c == '_'; });
  if (url.host.size() < 3 || url.host.size() > 63 || !plain || url.host.starts_with('.'))
    return wrong(fmt::format("'{}' is no name of a bucket: write s3://BUCKET/KEY", clip(url.host)));
  if (url.path.empty()) return wrong("the key is missing: write s3://BUCKET/KEY");
  if (url.path.size() > kMostKey)
    return wrong(fmt::format("the key has more than {} bytes", kMostKey));
  return {};
}

Status check_host(const Url& url) {
  if (url.host.contains('@'))
    return wrong(
        "a password does not stand in a URL, which is shown and kept: put it into ~/.netrc");
  if (url.host.empty() || !std::ranges::all_of(url.host, [](char c) {
        return alphanumeric(c) || std::string_view("-._:[]").contains(c);
      }))
    return wrong(fmt::format("'{}' is no host: write {}://HOST/PATH", clip(url.host), url.scheme));
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
  if (!is_url(text)) return wrong("wanted a URL: https://HOST/PATH or s3://BUCKET/KEY");
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
  std::string name;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const bool escape = url.scheme != "s3" && raw[i] == '%' && i + 2 < raw.size() &&
                        hex_value(raw[i + 1]) >= 0 && hex_value(raw[i + 2]) >= 0;
    name += escape ? static_cast<char>(hex_value(raw[i + 1]) * 16 + hex_value(raw[i + 2])) : raw[i];
    if (escape) i += 2;
  }
  const auto unsafe = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '/'; };
  if (std::ranges::any_of(name, unsafe) || valid_utf8(name) != name) name = raw;
  if (name.empty() || name == "." || name == "..") return "index";
  return name.substr(0, kMostName);
}

std::string shown(std::string_view url) {
  if (url.starts_with("s3")) return clip(url.substr(0, url.find('#')), 300);
  const auto secret = url.find_first_of("?#");
  return clip(url.substr(0, secret), 300) + (secret != url.npos && url[secret] == '?' ? "?…" : "");
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
