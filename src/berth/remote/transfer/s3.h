// Where objects of S3 are, and how one asks for them: of AWS, or of any endpoint that speaks as it
// does ($AWS_ENDPOINT_URL_S3, else $AWS_ENDPOINT_URL).
//
// Failure: as each function says. Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/url.h"
#include "berth/os/env.h"
#include "berth/remote/cloud/cloud.h"

namespace berth::remote {

struct S3 {
  std::string endpoint{};  // "https://minio:9000"; empty: that of AWS in the region
  std::string region = "us-east-1";
  std::optional<Credentials> credentials{};  // none: requests are not signed
  std::string no_credentials{};              // why there are none
};

/// As the environment and the files of AWS's own programs say. Errors: invalid, where the endpoint
/// is no URL.
Result<S3> find_s3(os::Env& env);
/// A request for the object that an s3 URL names; `query` is as it is signed ("uploads=").
HttpRequest s3_request(const S3& s3, std::string method, const Url& url,
                       std::string_view query = {}, std::string body = {});
/// What to do about a status that a server gave; "" where nothing is known.
std::string s3_advice(const S3& s3, const HttpReply& reply);

}  // namespace berth::remote
