#include "berth/remote/clusters.h"

#include <algorithm>
#include <array>

#include "berth/agent/client/agent_client.h"
#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/os/user_directory.h"
#include "berth/remote/clusters_text.h"
#include "berth/remote/ec2/ec2_cluster.h"
#include "berth/remote/slurm/slurm_entry.h"
#include "berth/remote/ssh/ssh.h"

namespace berth::remote {
namespace {

constexpr std::size_t kFileMost = 1 << 20;
constexpr Duration kOutlives = std::chrono::hours(24);
constexpr std::size_t kAgentMost = 256 << 20;
constexpr Duration kEditsWithin = std::chrono::seconds(20);

constexpr std::string_view kNameRule =
    "is not a valid cluster name: use up to 64 letters, digits, '-', '_' and '.', and begin with "
    "another character than '-'";

bool is_name(std::string_view name) {
  constexpr std::size_t kNameMost = 64;
  return !name.empty() && name.size() <= kNameMost && name.front() != '-' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

Result<bool> truth_of(const Field& field) {
  constexpr std::array<std::string_view, 2> kBooleans{"false", "true"};
  BERTH_ASSIGN(const auto choice, field.choice(kBooleans));
  return choice == 1;
}

/// Reads the clusters file. not_found. invalid: it is not a regular file; a pipe is not opened,
/// because a pipe without a writer blocks.
Result<std::string> read_regular(os::Env& env, const std::string& file) {
  constexpr std::array<std::string_view, 6> kKinds{"file",   "directory", "pipe",
                                                   "socket", "device",    "special file"};
  const auto status = env.status(file);
  auto text = status && status->kind == os::FileStatus::Kind::file
                  ? env.read_file(file, kFileMost)
                  : Result<std::string>(std::unexpected(status ? Error{} : status.error()));
  if (!text && text.error().kind == ErrorKind::denied)
    return std::unexpected(within("cannot read the clusters file", text.error()));
  if (!status || status->kind == os::FileStatus::Kind::file) return text;
  return fail(ErrorKind::invalid, "{}: expected a file of clusters, got a {}", file,
              kKinds.at(static_cast<std::size_t>(status->kind)));
}

/// Who may write the file may read its directory, but not what another person made beside it. Over
/// NFS only a file can be locked.
Result<os::Fd> lock_for_edit(os::Env& env, const std::string& file) {
  const auto slash = file.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "." : file.substr(0, std::max<std::size_t>(slash, 1));
  constexpr Duration kLooks = std::chrono::milliseconds(5);
  for (const Mono until = env.now() + kEditsWithin;;) {
    auto lock = env.lock(directory, false);
    if (!lock && lock.error().kind != ErrorKind::busy) lock = env.lock(file + ".lock", false);
    const bool waits = !lock && lock.error().kind == ErrorKind::busy && env.now() < until;
    if (!waits) return lock;
    BERTH_TRY(env.wait({}, env.now() + kLooks));
  }
}

std::unexpected<Error> cannot_write(const Error& error) {
  return std::unexpected(within("cannot write the clusters file", error));
}

/// Returns not_found with the file, its clusters and the nearest name.
std::unexpected<Error> no_cluster(const std::string& name, const std::string& file,
                                  const std::vector<ClusterEntry>& entries) {
  if (entries.empty())
    return fail(ErrorKind::not_found,
                "no cluster '{}': {} defines no clusters; see berth cluster --help", clip(name),
                file);
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  constexpr std::size_t kFewest = 4;  // letters of a name that has near ones
  auto near = near_miss(name, names);
  if (near.empty() && name.size() >= kFewest) near = nearest_of(name, names);
  if (near.empty())
    return fail(ErrorKind::not_found, "no cluster '{}': {} has {}", clip(name), file,
                join(names, ", "));
  return fail(ErrorKind::not_found, "no cluster '{}'; did you mean '{}'? ({} has {})", clip(name),
              near, file, join(names, ", "));
}

/// false, true, or for how long.
Status read_outlive(const Field& field, ClusterEntry& entry) {
  const auto time = field.duration();
  BERTH_ASSIGN(entry.outlive, time ? true : truth_of(field));
  if (entry.outlive) entry.timeout = time.value_or(kOutlives);
  return {};
}

Result<ClusterEntry> read_entry(const std::string& name, const Field& body) {
  if (!is_name(name)) return body.error(fmt::format("'{}' {}", clip(name), kNameRule));
  BERTH_ASSIGN(const Field kind, body.get("kind"));
  ClusterEntry entry{.name = name, .kind = {}, .body = body, .task_environment = {}};
  BERTH_ASSIGN(entry.kind, kind.text());
  constexpr std::array<std::string_view, 3> kKinds{"ssh", "slurm", "ec2"};
  BERTH_TRY(kind.choice(kKinds));
  if (const auto env = body.find("env"))
    BERTH_TRY(exec::read_environment(*env, entry.task_environment.environment));
  for (const auto& [key, to] : {std::pair("prescript", &entry.task_environment.prolog),
                                std::pair("postscript", &entry.task_environment.epilog)})
    if (const auto script = body.find(key)) {
      BERTH_ASSIGN(*to, exec::process_text(*script));
    }
  if (const auto lease = body.find("lease")) {
    BERTH_ASSIGN(entry.lease, lease->duration());
    constexpr Duration kLeast = std::chrono::seconds(1);
    constexpr Duration kMost = std::chrono::hours(24 * 30);
    if (entry.lease < kLeast || entry.lease > kMost) return lease->error("expected 1s to 30d");
  }
  if (const auto outlive = body.find("outlive")) BERTH_TRY(read_outlive(*outlive, entry));
  entry.timeout = std::max(entry.timeout, entry.lease);
  if (const auto reconnect = body.find("reconnect")) {
    BERTH_ASSIGN(entry.reconnect, reconnect->duration());
    if (entry.reconnect <= Duration(0)) return reconnect->error("expected more than 0");
  }
  if (const auto shares = body.find("shared_folders")) {
    BERTH_ASSIGN(entry.shares, truth_of(*shares));
  }
  return entry;
}

Result<SshHost> read_host(const Field& field) {
  if (field.is_scalar()) {
    BERTH_ASSIGN(const auto text, field.text());
    auto host = parse_ssh_host(text);
    if (!host) return field.error(host.error());
    return host;
  }
  BERTH_TRY(field.expect_keys({"host", "user", "port", "key", "direct"}));
  BERTH_ASSIGN(const Field name, field.get("host"));
  BERTH_ASSIGN(std::string line, name.text());
  if (line.find(':') != std::string::npos) line = "[" + line + "]";
  if (const auto user = field.find("user")) {
    BERTH_ASSIGN(const auto text, user->text());
    line = text + "@" + line;
  }
  if (const auto port = field.find("port")) {
    BERTH_ASSIGN(const auto text, port->text());
    line += ":" + text;
  }
  auto host = parse_ssh_host(line);
  if (!host) return field.error(host.error());
  if (const auto key = field.find("key")) {
    BERTH_ASSIGN(host->key, key->text());
  }
  if (const auto direct = field.find("direct")) {
    BERTH_ASSIGN(host->direct, direct->text());
    if (lower(host->direct) == "true" || lower(host->direct) == "false")
      return direct->error(
          "expected user@host[:port]; to set it for all hosts, write `direct: false` next to "
          "`hosts`");
    const auto address = parse_ssh_host(host->direct);
    if (!address) return direct->error(address.error());
    if (!address->key.empty())
      return direct->error("expected user@host[:port]: keys are those of the sending host's user");
  }
  return host;
}

Result<OpenedCluster> open_ssh(os::Env& env, const ClusterEntry& entry, const AgentFile& agent) {
  BERTH_TRY(entry.body.expect_keys({"kind", "env", "prescript", "postscript", "lease", "outlive",
                                    "reconnect", "shared_folders", "hosts", "options",
                                    "connects_within", "silent_most", "direct"}));
  SshOptions options;
  options.direct = true;
  if (const auto direct = entry.body.find("direct")) {
    BERTH_ASSIGN(options.direct, truth_of(*direct));
  }
  if (const auto more = entry.body.find("options")) {
    BERTH_ASSIGN(const auto items, more->items());
    for (const auto& item : items) {
      BERTH_ASSIGN(auto word, item.text());
      options.options.push_back(std::move(word));
    }
  }
  for (const auto& [key, to] : {std::pair("connects_within", &options.connects_within),
                                std::pair("silent_most", &options.silent_most)})
    if (const auto time = entry.body.find(key)) {
      BERTH_ASSIGN(*to, time->duration());
    }
  BERTH_ASSIGN(const Field list, entry.body.get("hosts"));
  BERTH_ASSIGN(const auto items, list.items());
  if (items.empty()) return list.error("expected at least one host");
  const std::string home = env.variable("HOME").value_or("");
  const std::string sockets = ssh_sockets(env);
  std::vector<std::unique_ptr<Host>> hosts;
  OpenedCluster opened;
  for (const auto& item : items) {
    BERTH_ASSIGN(const auto host, read_host(item));
    Transport transport = ssh_transport(host, options, home, sockets);
    if (std::ranges::find(hosts, transport.name, [](const auto& one) { return one->name(); }) !=
        hosts.end())
      return item.error(fmt::format("{} is listed twice", transport.name));
    hosts.push_back(
        std::make_unique<Host>(env, std::move(transport), agent,
                               HostOptions{.lease = entry.lease, .outlive = entry.outlive}));
    opened.hosts.push_back(hosts.back().get());
  }
  opened.cluster = host_cluster(env, std::move(hosts));
  return opened;
}

Result<OpenedCluster> open_ec2(os::Env& env, const ClusterEntry& entry, const AgentFile& agent,
                               const std::optional<ForRun>& run) {
  BERTH_ASSIGN(auto settings, read_ec2_settings(env, entry.name, entry.body));
  OpenedCluster opened;
  if (!run) return opened;
  BERTH_ASSIGN(
      opened.cluster,
      Ec2Cluster::open(
          env, std::move(settings),
          {.owner = {.run = run->name, .home = ec2_home(env, run->home), .labels = run->labels},
           .directory = run->directory,
           .agent = agent,
           .host = {.lease = entry.lease, .outlive = entry.outlive}}));
  return opened;
}

}  // namespace

Result<std::string> clusters_file(os::Env& env) {
  if (const auto named = env.variable("BERTH_CLUSTERS"); named && !named->empty()) return *named;
  if (const auto config = os::own_directory(env, os::kConfigHome))
    return *config + "/clusters.yaml";
  return fail(ErrorKind::usage,
              "the clusters file has no path: set HOME, or BERTH_CLUSTERS to the path of a file");
}

Result<std::vector<ClusterEntry>> parse_clusters(std::string_view text, const std::string& file) {
  std::vector<ClusterEntry> entries;
  BERTH_ASSIGN(const Field document, Field::parse(text, file));
  if (document.is_null()) return entries;
  BERTH_ASSIGN(const auto fields, document.entries());
  for (const auto& [name, body] : fields) {
    BERTH_ASSIGN(auto entry, read_entry(name, body));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<ClusterEntry>> read_clusters(os::Env& env) {
  BERTH_ASSIGN(const auto file, clusters_file(env));
  const auto text = file == "/dev/null" ? "" : read_regular(env, file);
  if (!text && text.error().kind == ErrorKind::not_found) return std::vector<ClusterEntry>{};
  if (!text) return std::unexpected(text.error());
  return parse_clusters(*text, file);
}

Status edit_clusters(os::Env& env,
                     const std::function<Result<std::string>(const std::string&)>& edit) {
  BERTH_ASSIGN(auto file, clusters_file(env));
  if (const auto real = env.real_path(file)) file = *real;  // of a link, what it leads to
  const auto read = [&] {
    auto text = read_regular(env, file);
    return !text && text.error().kind == ErrorKind::not_found ? Result<std::string>("") : text;
  };
  BERTH_ASSIGN(const auto before, read());
  BERTH_TRY(edit(before));  // nothing is made for what cannot be
  if (const auto slash = file.rfind('/'); slash != std::string::npos && slash > 0)
    if (const auto made = env.make_directory(file.substr(0, slash), 0700); !made)
      return cannot_write(made.error());
  const auto lock = lock_for_edit(env, file);
  if (!lock) return cannot_write(lock.error());
  BERTH_ASSIGN(const auto present, read());
  BERTH_ASSIGN(const auto now, edit(present));
  const auto status = env.status(file);
  const auto replaced = env.replace_file(file, now, status ? status->mode & 0777 : 0600);
  if (!replaced) return cannot_write(replaced.error());
  return {};
}

Result<ClusterEntry> find_cluster(os::Env& env, const std::string& name) {
  BERTH_ASSIGN(auto entries, read_clusters(env));
  const auto found = std::ranges::find(entries, name, &ClusterEntry::name);
  if (found != entries.end()) return std::move(*found);
  BERTH_ASSIGN(const auto file, clusters_file(env));
  return no_cluster(name, file, entries);
}

Result<std::string> with_cluster(std::string_view text, const std::string& name,
                                 const std::vector<std::string>& hosts) {
  if (!is_name(name)) return fail(ErrorKind::usage, "'{}' {}", clip(name), kNameRule);
  BERTH_ASSIGN(const auto entries, parse_clusters(text, "clusters.yaml"));
  if (std::ranges::find(entries, name, &ClusterEntry::name) != entries.end())
    return fail(ErrorKind::exists,
                "cluster '{0}' already exists; choose another name, or remove it first: berth "
                "cluster remove {0}",
                name);
  std::string now = add_entry(text, name, hosts);
  BERTH_TRY(parse_clusters(now, "clusters.yaml"));
  return now;
}

Result<std::string> without_cluster(std::string_view text, const std::string& name) {
  BERTH_ASSIGN(const auto before, parse_clusters(text, "clusters.yaml"));
  const auto names = [](const std::vector<ClusterEntry>& entries) {
    std::vector<std::string> all;
    for (const auto& entry : entries) all.push_back(entry.name);
    return all;
  };
  auto left = names(before);
  if (std::erase(left, name) == 0) return fail(ErrorKind::not_found, "no cluster '{}'", clip(name));
  const auto now = cut_entry(text, name);
  const auto after = now ? parse_clusters(*now, "clusters.yaml") : std::unexpected(Error{});
  if (!after || names(*after) != left)
    return fail(ErrorKind::invalid, "'{}' cannot be removed automatically: edit the file",
                clip(name));
  return *now;
}

Result<AgentFile> agent_file(os::Env& env) {
  static std::optional<AgentFile> known;
  if (known) return *known;
  BERTH_ASSIGN(const auto path, agent::agent_program(env));
  BERTH_ASSIGN(const auto bytes, env.read_file(path, kAgentMost));
  known = AgentFile{path, sha256(bytes), static_cast<std::int64_t>(bytes.size())};
  return *known;
}

Result<OpenedCluster> open_cluster(os::Env& env, const ClusterEntry& entry, const AgentFile& agent,
                                   const std::optional<ForRun>& run) {
  if (entry.kind == "ssh") return open_ssh(env, entry, agent);
  if (entry.kind == "ec2") return open_ec2(env, entry, agent, run);
  if (entry.kind == "slurm") {
    BERTH_ASSIGN(auto options, read_slurm(env, entry, agent));
    return OpenedCluster{.cluster = std::make_unique<Slurm>(env, std::move(options))};
  }
  return fail(ErrorKind::impossible, "cluster '{}': kind {} is not supported yet", entry.name,
              entry.kind);
}

Status check_cluster(os::Env& env, const ClusterEntry& entry) {
  BERTH_ASSIGN(const auto agent, agent_file(env));
  BERTH_TRY(open_cluster(env, entry, agent));
  return {};
}

}  // namespace berth::remote
