// The clusters' file and lines that name a host: read or refused; what is added can be taken out
// again, and nothing that ssh could take for an option is a host.
#include "berth/remote/clusters.h"
#include "berth/remote/ssh/ssh.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  if (const auto host = remote::parse_ssh_host(text)) {
    BERTH_ASSERT(!host->host.empty() && host->host.front() != '-');
    BERTH_ASSERT(host->user.empty() || host->user.front() != '-');
    const auto transport = remote::ssh_transport(*host, {}, "/home/a", "");
    BERTH_ASSERT(transport.words.back() == host->host &&
                 transport.words[transport.words.size() - 2] == "--");
  }
  const auto entries = remote::parse_clusters(text, "clusters.yaml");
  const auto more = remote::with_cluster(text, "added", {"a"});
  if (!more) return;
  BERTH_ASSERT(entries);
  const auto now = remote::parse_clusters(*more, "clusters.yaml");
  BERTH_ASSERT(now && now->size() == entries->size() + 1);
  if (const auto less = remote::without_cluster(*more, "added")) {
    const auto again = remote::parse_clusters(*less, "clusters.yaml");
    BERTH_ASSERT(again && again->size() == entries->size());
  }
}
