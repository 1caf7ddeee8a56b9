#include "berth/remote/transfer/s3.h"

#include "berth/base/digest.h"
#include "berth/remote/ec2/ec2_settings.h"

namespace berth::remote {

Result<S3> find_s3(os::Env& env) {
  const auto given = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (auto value = env.variable(name); value && !value->empty()) return *value;
    return std::string();
  };
  S3 s3{.endpoint = given({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})};
  while (s3.endpoint.ends_with('/')) s3.endpoint.pop_back();
  if (!s3.endpoint.empty() &&
      (s3.endpoint.starts_with("s3:") || !parse_url(s3.endpoint) || s3.endpoint.contains('?')))
    return fail(ErrorKind::invalid, "AWS_ENDPOINT_URL: expected https://HOST, got '{}'",
                shown(s3.endpoint));
  if (auto region = given({"AWS_REGION", "AWS_DEFAULT_REGION"}); !region.empty())
    s3.region = std::move(region);
  auto credentials = find_credentials(env, {});
  if (credentials)
    s3.credentials = *std::move(credentials);
  else
    s3.no_credentials = credentials.error().message;
  return s3;
}

HttpRequest s3_request(const S3& s3, std::string method, const Url& url, std::string_view query,
                       std::string body) {
  const std::string key = percent_encoded(url.path, "/");
  // A name with dots fits no certificate, and other endpoints have no names of their own a bucket.
  std::string place;
  if (!s3.endpoint.empty())
    place = fmt::format("{}/{}/{}", s3.endpoint, url.host, key);
  else if (url.host.contains('.'))
    place = fmt::format("https://s3.{}.amazonaws.com/{}/{}", s3.region, url.host, key);
  else
    place = fmt::format("https://{}.s3.{}.amazonaws.com/{}", url.host, s3.region, key);
  if (!query.empty()) place += fmt::format("?{}", query);
  HttpRequest request{
      .method = std::move(method), .url = std::move(place), .body = std::move(body)};
  request.headers.push_back("x-amz-content-sha256: " + to_hex(sha256(request.body)));
  if (s3.credentials) request.signing = {s3.region, "s3", *s3.credentials};
  return request;
}

std::string s3_advice(const S3& s3, const HttpReply& reply) {
  if (const auto region = reply.header("x-amz-bucket-region");
      !region.empty() && region != s3.region)
    return fmt::format("the bucket is in {0}: set AWS_REGION={0}", region);
  if (reply.status == 401 || reply.status == 403)
    return s3.credentials
               ? "check that the key has the permission and that key and secret are right"
               : s3.no_credentials;
  return {};
}

}  // namespace berth::remote
