// What berth-cloud.so is: requests signed for AWS by libcurl, and XML read by pugixml. Of EC2 it
// knows nothing. A part of its own (os/part.h), loaded when an ec2 cluster is first used.
//
// Ownership: HttpCalls ends its calls with it. Threads: one. Nothing waits but HttpCalls::wait().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/base/time.h"

namespace berth::os {
class Env;
}

namespace berth::remote {

/// An element; attributes and comments are left out.
struct Xml {
  std::string name, text;
  std::vector<Xml> children = {};

  /// The first child of that name; null: there is none.
  const Xml* find(std::string_view child) const;
  /// Its text; empty: there is none. A path: "state/name".
  std::string_view text_of(std::string_view path) const;
};

struct Credentials {
  std::string key_id, secret, session_token;  // the last only of temporary ones
};

struct HttpSetup {
  std::string url, region;
  Credentials credentials;
  Duration timeout = std::chrono::seconds(30);  // of a whole call
  std::size_t most_bytes = 8U << 20;            // of an answer
};

struct HttpAnswer {
  std::int64_t call = 0;
  int status = 0;        // 0: there was none
  std::string body;      // the answer; without one, what went wrong
  bool lasting = false;  // without one: trying again does not help (a name or certificate is wrong)
};

class HttpCalls {
 public:
  virtual ~HttpCalls() = default;
  /// Begins a call and says its number.
  virtual std::int64_t post(const std::string& body) = 0;
  /// Calls that have come to an end since.
  virtual std::vector<HttpAnswer> ended() = 0;
  /// Until a call may have gone on, at most so long.
  virtual void wait(Duration most) = 0;
};

struct Cloud {
  std::unique_ptr<HttpCalls> (*open)(const HttpSetup& setup) = nullptr;
  /// invalid: not XML, more than `most_bytes`, more than 64 deep.
  Result<Xml> (*read_xml)(std::string_view text) = nullptr;
};

/// Loads the part, once.
Result<const Cloud*> load_cloud(os::Env& env);

// Within the part.
std::unique_ptr<HttpCalls> open_http(const HttpSetup& setup);
Result<Xml> read_xml(std::string_view text);

}  // namespace berth::remote
