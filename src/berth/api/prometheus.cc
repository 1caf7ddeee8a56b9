#include "berth/api/prometheus.h"

#include <cstdlib>
#include <optional>

#include "berth/base/json_place.h"
#include "berth/base/text.h"
#include "berth/base/url.h"
#include "berth/remote/transfer/fetch_text.h"

namespace berth::api {
namespace {

constexpr std::size_t kMostSamples = 100'000;

/// A number as Prometheus writes one: "1.5", "NaN", "+Inf".
std::optional<double> value_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) return std::nullopt;
  return value;
}

Result<Sample> sample_of(const JsonPlace& json) {
  Sample sample;
  BERTH_ASSIGN(const JsonPlace pair, json.get("value"));
  BERTH_ASSIGN(const auto parts, pair.items(2));
  if (parts.size() != 2) return pair.error("expected a time and a value");
  BERTH_ASSIGN(const std::string text, parts[1].text());
  const auto value = value_of(text);
  if (!value) return parts[1].error(fmt::format("expected a number, got '{}'", clip(text)));
  sample.value = *value;
  if (const auto figure = json.find("metric.figure")) {
    BERTH_ASSIGN(sample.figure, figure->text());
  }
  return sample;
}

}  // namespace

Result<std::vector<Sample>> read_samples(std::string_view body) {
  BERTH_ASSIGN(const JsonPlace json, JsonPlace::parse(body));
  const auto status = json.find("status");
  const auto text = status ? status->text() : Result<std::string>("");
  if (!text || *text != "success") {
    const auto why = json.find("error");
    const auto said = why ? why->text() : Result<std::string>("");
    return fail(ErrorKind::invalid, "{}",
                said && !said->empty() ? clip(*said, 300) : "it is not an answer of Prometheus");
  }
  BERTH_ASSIGN(const JsonPlace type, json.get("data.resultType"));
  BERTH_ASSIGN(const std::string is, type.text());
  if (is != "vector") return type.error(fmt::format("expected a vector, got '{}'", clip(is)));
  BERTH_ASSIGN(const JsonPlace result, json.get("data.result"));
  BERTH_ASSIGN(const auto items, result.items(kMostSamples));
  std::vector<Sample> samples;
  for (const JsonPlace& each : items) {
    BERTH_ASSIGN(samples.emplace_back(), sample_of(each));
  }
  return samples;
}

std::string escaped_label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

Prometheus::Prometheus(os::Env& env, const remote::Cloud& cloud, std::string url, std::string token)
    : env_(env), session_(cloud.open_session()), url_(std::move(url)), token_(std::move(token)) {
  while (url_.ends_with('/')) url_.pop_back();
}

Result<std::vector<Sample>> Prometheus::query(const std::string& expression) {
  remote::HttpRequest request{.method = "POST",
                              .url = url_ + "/api/v1/query",
                              .headers = {"Content-Type: application/x-www-form-urlencoded"},
                              .body = "query=" + percent_encoded(expression)};
  if (!token_.empty()) request.headers.push_back("Authorization: Bearer " + token_);
  BERTH_ASSIGN(const auto answer,
               remote::fetch_text(env_, *session_, std::move(request), {.within = kQueryWithin}));
  const auto failed = [&](ErrorKind kind, std::string_view why) {
    return fail(kind, "{}: {}", shown(url_), why);
  };
  if (answer.status == 401 || answer.status == 403)
    return failed(ErrorKind::denied,
                  fmt::format("it answers {}: does it require a token?", answer.status));
  auto samples = read_samples(answer.body);
  if (answer.status / 100 != 2)
    return failed(ErrorKind::invalid, fmt::format("it answers {}: {}", answer.status,
                                                  samples ? "" : samples.error().message));
  if (!samples) return failed(samples.error().kind, samples.error().message);
  return samples;
}

}  // namespace berth::api
