// berth-cloud.so makes requests that libcurl signs for AWS, and reads XML by pugixml. It knows
// nothing of EC2. It is a plugin (os/plugin.h), loaded when an ec2 cluster is first used.
//
// Ownership: the destructor of HttpCalls ends its calls. Threads: one. Nothing waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/base/time.h"

namespace berth::os {
class Env;
}

namespace berth::remote {

/// An element without its attributes and comments.
struct Xml {
  std::string name, text;
  std::vector<Xml> children = {};

  /// The first child of that name; nullptr where there is none.
  const Xml* find(std::string_view child) const;
  /// The text of the element at a path ("state/name"); "" where there is none.
  std::string_view text_of(std::string_view path) const;
};

struct Credentials {
  std::string key_id, secret, session_token;  ///< Only temporary ones have a session token.
};

struct HttpSetup {
  std::string url, region;
  Credentials credentials;
  Duration timeout = std::chrono::seconds(30);  ///< Of a whole call.
  std::size_t most_bytes = 8U << 20;            ///< Of an answer.
};

struct HttpAnswer {
  std::int64_t call = 0;
  int status = 0;        ///< 0: there was no answer.
  std::string body;      ///< Of the answer; where there was none, it says what went wrong.
  bool lasting = false;  ///< There was no answer, and a retry will not help (a wrong name, say).
};

/// What calls under way wait for.
struct HttpWaits {
  struct Socket {
    int fd = -1;
    bool readable = true;  // else: for being writable
  };
  std::vector<Socket> sockets;
  std::optional<Duration> most;  // none: for these alone
};

class HttpCalls {
 public:
  virtual ~HttpCalls() = default;
  /// Begins a call and returns its number.
  virtual std::int64_t post(const std::string& body) = 0;
  /// Goes on with the calls, and returns those that have ended since it was called last.
  virtual std::vector<HttpAnswer> ended() = 0;
  /// What has to happen before ended() is called again.
  virtual HttpWaits waits() = 0;
};

struct Cloud {
  std::unique_ptr<HttpCalls> (*open)(const HttpSetup& setup) = nullptr;
  /// Failure: invalid, where the text is no XML, has more than `most_bytes`, or is more than 64
  /// deep.
  Result<Xml> (*read_xml)(std::string_view text) = nullptr;
};

/// Loads the plugin, once.
Result<const Cloud*> load_cloud(os::Env& env);

// These are in the plugin.
std::unique_ptr<HttpCalls> open_http(const HttpSetup& setup);
Result<Xml> read_xml(std::string_view text);

}  // namespace berth::remote
