// berth-cloud.so makes requests that libcurl signs for AWS, and reads XML by pugixml. It knows
// nothing of EC2 and S3. It is a plugin (os/plugin.h), loaded when an ec2 cluster or a URL is first
// used.
//
// Ownership: the destructors of HttpCalls and HttpSession end what is under way. Threads: one each.
// Nothing waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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

/// How a request is signed for AWS.
struct HttpSigning {
  std::string region, service;  ///< "s3"
  Credentials credentials;
};

struct HttpReply {
  int status = 0;                                ///< 0: there was no answer.
  std::map<std::string, std::string> headers{};  ///< By their names in lower case.
  std::string body{};    ///< What take() was not given, at most kMostReply bytes.
  std::string error{};   ///< Why there was no answer, or not all of it; empty: it is whole.
  bool lasting = false;  ///< It is of no use to ask again: a wrong name of the host, say.

  /// The header of that name; "": there is none.
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};
inline constexpr std::size_t kMostReply = 1U << 20;

struct HttpRequest {
  std::string method = "GET";  ///< Or HEAD, PUT, POST, DELETE.
  std::string url;
  std::vector<std::string> headers{};    ///< "Range: bytes=100-"
  std::string body{};                    ///< Of PUT and POST.
  std::optional<HttpSigning> signing{};  ///< One that is signed follows no redirection.
  /// Is given the content of an answer that says yes (2xx), as it comes; false ends the request.
  std::function<bool(const HttpReply& so_far, std::string_view bytes)> take{};
};

/// One request after another, by connections that are kept.
class HttpSession {
 public:
  virtual ~HttpSession() = default;
  /// Begins a request, where none is under way.
  virtual void begin(HttpRequest request) = 0;
  /// Goes on with it; its answer, once it has ended.
  virtual std::optional<HttpReply> step() = 0;
  /// What has to happen before step() is called again.
  virtual HttpWaits waits() = 0;
};

struct Cloud {
  std::unique_ptr<HttpCalls> (*open)(const HttpSetup& setup) = nullptr;
  std::unique_ptr<HttpSession> (*open_session)() = nullptr;
  /// Failure: invalid, where the text is no XML, has more than `most_bytes`, or is more than 64
  /// deep.
  Result<Xml> (*read_xml)(std::string_view text) = nullptr;
};

/// Loads the plugin, once.
Result<const Cloud*> load_cloud(os::Env& env);

// These are in the plugin.
std::unique_ptr<HttpCalls> open_http(const HttpSetup& setup);
std::unique_ptr<HttpSession> open_http_session();
Result<Xml> read_xml(std::string_view text);

}  // namespace berth::remote
