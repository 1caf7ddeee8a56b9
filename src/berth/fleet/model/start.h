// How the replicas of a server are started: what a fleet document says of it beside what it takes
// to plan. Kubernetes' manifests (manifests.h) and berth plan --start are made of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"

namespace berth::fleet {

/// A document has it as `start` of a server, or of a model on an accelerator; empty and 0 are not
/// said. In the texts of command, args and environment {server}, {model}, {accelerator},
/// {accelerators} (how many a replica takes), {batch}, {role} (whole, prefill or decode) and {port}
/// stand for what they name.
struct Start {
  std::string image;                       // of a container
  std::vector<std::string> command, args;  // one word each; no shell reads them
  int port = 0;
  double cpu = 0, memory_gb = 0;                   // what a replica takes beside accelerators
  std::map<std::string, std::string> environment;  // the document's `env`
  bool operator==(const Start&) const = default;
};

/// What `own` does not say is as `general` says; variables of the environment one by one.
Start combine(const Start& own, const Start& general);

/// Errors: invalid, with the field: a name of a variable, an image or a number that cannot be.
Status check(const Start& start);

// Names as Kubernetes wants them.

/// [a-z0-9] and '-', both ends [a-z0-9], 1 to 63 of them (RFC 1123).
bool is_dns_label(std::string_view text);
/// [A-Za-z0-9], '-', '_' and '.', both ends [A-Za-z0-9], at most 63 of them; or empty.
bool is_label_value(std::string_view text);
/// A label value that is not empty, behind "dns.subdomain/" or not: a label's key, a resource.
bool is_qualified_name(std::string_view text);

}  // namespace berth::fleet
