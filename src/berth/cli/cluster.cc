// berth cluster: lists, tests, adds, removes and cleans the remote clusters of the user.
#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/cluster_ec2.h"
#include "berth/cli/cluster_slurm.h"
#include "berth/cli/cluster_ssh.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/remote/ssh.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

/// The options of all actions; each action declares some of them.
struct ClusterOptions {
  bool json = false, dry_run = false;
  std::string name, older_than, key;
  std::vector<std::string> names, hosts;
};

constexpr const char* kNotes =
    "Clusters are defined in ~/.config/berth/clusters.yaml, or in the file that BERTH_CLUSTERS\n"
    "names. The file has more options than 'berth cluster add' writes: see\n"
    "docs/reference/clusters.md.";

void declare_list(Options& options, ClusterOptions& own) {
  options.json(own.json);
  options.list("CLUSTER", own.names, "Clusters to list (default: all)");
  options.example("berth cluster list");
}

void declare_probe(Options& options, ClusterOptions& own) {
  options.json(own.json);
  options.list("CLUSTER", own.names, "Clusters to contact (default: all)");
  options.example("berth cluster probe lab hpc");
}

void declare_add(Options& options, ClusterOptions& own) {
  options.json(own.json);
  options.value("CLUSTER", own.name, "Name of the new cluster").required();
  options.list("HOST", own.hosts, "user@host[:port], or a name from your ssh configuration")
      .required();
  options.value("--key", own.key, "Private key for these hosts").named("FILE");
  options.example("berth cluster add lab alice@10.0.0.7:2222 gpu-box --key ~/.ssh/lab");
}

void declare_remove(Options& options, ClusterOptions& own) {
  options.json(own.json);
  options.list("CLUSTER", own.names, "Clusters to remove").required();
  options.example("berth cluster remove lab");
}

void declare_clean(Options& options, ClusterOptions& own) {
  options.json(own.json);
  options.list("CLUSTER", own.names, "Clusters to clean (ssh or ec2)").required();
  options.flag("--dry-run", own.dry_run, "Show how much would be removed (ssh)");
  options
      .value("--older-than", own.older_than,
             "Remove files unused for this long (default: 30d; ssh)")
      .named("DURATION");
  options.footer(
      "On ssh hosts, removes files that no run uses. On EC2, ends instances of dead runs.\n"
      "\n"
      "Example:\n"
      "  berth cluster clean lab --older-than 7d");
}

template <typename Each>
void add_list(JsonWriter& json, std::string_view name, const std::vector<Each>& all) {
  json.key(name).array();
  for (const auto& one : all) json.raw(to_json(one));
  json.end();
}

/// Returns the named clusters in this order, or all.
Result<std::vector<remote::ClusterEntry>> entries_of(os::Env& env, const ClusterOptions& options) {
  if (options.names.empty()) return remote::read_clusters(env);
  std::vector<remote::ClusterEntry> entries;
  for (const auto& name : options.names) {
    BERTH_ASSIGN(auto entry, remote::find_cluster(env, name));
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// The answers of clusters, and the errors of those that could not be asked.
struct ProbedAll {
  std::vector<HostProbed> hosts = {};
  std::vector<Ec2Probed> ec2 = {};
  std::vector<SlurmProbed> slurm = {};
  std::vector<std::pair<std::string, Error>> errors = {};  ///< By the names of clusters.

  /// 2 if the clusters file has an error, and otherwise 3 if something does not answer.
  int code() const;
};

int ProbedAll::code() const {
  std::vector<int> codes{0};
  for (const auto& [cluster, error] : errors) codes.push_back(exit_code(error.kind));
  for (const auto& one : slurm)
    if (!one.entry) codes.push_back(exit_code(one.entry.error().kind));
  const int wrong_file = exit_code(ErrorKind::invalid);
  if (std::ranges::find(codes, wrong_file) != codes.end()) return wrong_file;
  const bool good =
      errors.empty() &&
      std::ranges::all_of(hosts, [](const HostProbed& one) { return one.offer.has_value(); }) &&
      std::ranges::all_of(ec2, &Ec2Probed::good) &&
      std::ranges::all_of(slurm, [](const SlurmProbed& one) { return one.partitions.has_value(); });
  return good ? 0 : exit_code(ErrorKind::busy);
}

Status probe(os::Env& env, const remote::ClusterEntry& entry, ProbedAll& all) {
  if (entry.kind == "slurm") {
    BERTH_ASSIGN(auto probed, probe_slurm(env, entry));
    all.slurm.push_back(std::move(probed));
  } else if (entry.kind == "ec2") {
    BERTH_ASSIGN(auto probed, probe_ec2(env, entry));
    all.ec2.push_back(std::move(probed));
  } else {
    BERTH_ASSIGN(auto probed, probe_hosts(env, entry));
    std::ranges::move(probed, std::back_inserter(all.hosts));
  }
  return {};
}

std::string probed_json(const ProbedAll& all) {
  JsonWriter json;
  json.object().add("version", 1);
  add_list(json, "hosts", all.hosts);
  add_list(json, "ec2", all.ec2);
  add_list(json, "slurm", all.slurm);
  json.key("errors").array();
  for (const auto& [cluster, error] : all.errors)
    json.object().add("cluster", cluster).add("error", error.message).end();
  return json.end().end().take() + "\n";
}

std::string probed_text(const ProbedAll& all) {
  std::string text;
  for (const auto& one : all.ec2) text += to_text(one);
  for (const auto& one : all.slurm) text += to_text(one);
  text += to_text(all.hosts);
  for (const auto& [cluster, error] : all.errors)
    text += fmt::format("{}: {}\n", cluster, error.message);
  return text;
}

Result<std::string> no_clusters(os::Env& env) {
  BERTH_ASSIGN(const auto file, remote::clusters_file(env));
  return fmt::format("no clusters in {}; see berth cluster --help\n", file);
}

Result<int> probe_clusters(os::Env& env, const ClusterOptions& options) {
  os::install_stop_signals();
  BERTH_ASSIGN(const auto entries, entries_of(env, options));
  ProbedAll all;
  for (const auto& entry : entries) {
    const auto probed = probe(env, entry, all);
    if (probed) continue;
    if (entries.size() == 1 || probed.error().kind == ErrorKind::interrupted)
      return std::unexpected(probed.error());
    all.errors.emplace_back(entry.name, probed.error());
  }
  BERTH_ASSIGN(const auto none, no_clusters(env));
  print(options.json ? probed_json(all) : entries.empty() ? none : probed_text(all));
  return all.code();
}

Result<int> list_clusters(os::Env& env, const ClusterOptions& options) {
  BERTH_ASSIGN(const auto entries, entries_of(env, options));
  render::Table table({"cluster", "kind", "lease", "hosts"});
  JsonWriter json;
  json.object().add("version", 1).key("clusters").array();
  int code = 0;
  for (const auto& entry : entries) {
    const auto good = remote::check_cluster(env, entry);
    if (!good) code = exit_code(good.error().kind);
    const auto hosts = entry.body.find("hosts");
    const auto items = hosts ? hosts->items() : Result<std::vector<Field>>(std::vector<Field>{});
    const std::string count = items && hosts ? fmt::format("{}", items->size()) : "";
    table.add({entry.name, entry.kind, format_duration(entry.lease),
               good ? count : good.error().message});
    json.object().add("name", entry.name).add("kind", entry.kind);
    json.add("lease_ms", to_ms(entry.lease));
    if (!good) json.add("error", good.error().message);
    json.end();
  }
  BERTH_ASSIGN(const auto none, no_clusters(env));
  if (options.json)
    print(json.end().end().take() + "\n");
  else
    print(table.empty() ? none : render::to_text(table));
  return code;
}

/// The key with its whole path, because runs start in other directories; "~/" stays. Warns if the
/// file does not exist.
Result<std::string> key_to_add(os::Env& env, std::string key) {
  if (key.empty()) return key;
  std::string path = key;
  if (key.starts_with("~/")) {
    path = env.variable("HOME").value_or("") + key.substr(1);
  } else if (!key.starts_with('/')) {
    BERTH_ASSIGN(const auto here, env.real_path("."));
    path = key = here + "/" + key;
  }
  if (!env.status(path))
    print_error(fmt::format("berth: warning: there is no key file {}\n", path));
  return key;
}

/// The hosts of the command line as the clusters file has them, each with the key.
Result<std::vector<std::string>> hosts_to_add(const ClusterOptions& options,
                                              const std::string& key) {
  std::vector<std::string> hosts, seen;
  for (const auto& host : options.hosts) {
    hosts.push_back(key.empty() ? host : host + " " + key);
    const auto parsed = remote::parse_ssh_host(hosts.back());
    if (!parsed) return fail(ErrorKind::usage, "{}", parsed.error().message);
    auto address =
        parsed->port == 0 ? parsed->host : fmt::format("{}:{}", parsed->host, parsed->port);
    if (std::ranges::find(seen, address) != seen.end())
      return fail(ErrorKind::usage, "{} is listed twice", address);
    seen.push_back(std::move(address));
  }
  return hosts;
}

/// Returns the text of `file` with the cluster added, after the checks that a run does.
Result<std::string> added(os::Env& env, const std::string& text, const std::string& file,
                          const std::string& name, const std::vector<std::string>& hosts) {
  BERTH_TRY(remote::parse_clusters(text, file));
  BERTH_ASSIGN(auto now, remote::with_cluster(text, name, hosts));
  BERTH_ASSIGN(const auto entries, remote::parse_clusters(now, file));
  BERTH_TRY(
      remote::check_cluster(env, *std::ranges::find(entries, name, &remote::ClusterEntry::name)));
  return now;
}

Result<int> add_cluster(os::Env& env, const ClusterOptions& options) {
  const std::string& name = options.name;
  BERTH_ASSIGN(const auto key, key_to_add(env, options.key));
  BERTH_ASSIGN(const auto hosts, hosts_to_add(options, key));
  BERTH_ASSIGN(const auto file, remote::clusters_file(env));
  BERTH_TRY(remote::edit_clusters(
      env, [&](const std::string& text) { return added(env, text, file, name, hosts); }));
  if (options.json) {
    JsonWriter json;
    json.object().add("version", 1).add("name", name).add("kind", "ssh");
    json.key("hosts").list(hosts).add("file", file);
    print(json.end().take() + "\n");
    return 0;
  }
  print(fmt::format("added cluster '{0}' ({1} host{2}) to {3}; test it: berth cluster probe {0}\n",
                    name, hosts.size(), hosts.size() == 1 ? "" : "s", file));
  return 0;
}

Result<int> remove_clusters(os::Env& env, const ClusterOptions& options) {
  for (const auto& name : options.names) BERTH_TRY(remote::find_cluster(env, name));
  BERTH_TRY(remote::edit_clusters(env, [&](std::string text) -> Result<std::string> {
    for (const auto& name : options.names) {
      BERTH_ASSIGN(text, remote::without_cluster(text, name));
    }
    return text;
  }));
  BERTH_ASSIGN(const auto file, remote::clusters_file(env));
  if (options.json) {
    JsonWriter json;
    json.object().add("version", 1).key("removed").list(options.names).add("file", file);
    print(json.end().take() + "\n");
  } else {
    print(fmt::format("removed from {}: {}\n", file, join(options.names, ", ")));
  }
  return 0;
}

/// What was left on hosts, and what on EC2.
struct CleanedAll {
  std::vector<remote::HostCleaned> hosts;
  std::vector<remote::Ec2Found> ended;
};

std::string cleaned_json(const CleanedAll& all, bool dry_run) {
  JsonWriter json;
  json.object().add("version", 1).add("dry_run", dry_run);
  add_list(json, "hosts", all.hosts);
  add_list(json, "ended", all.ended);
  return json.end().take() + "\n";
}

std::string cleaned_text(const CleanedAll& all, bool dry_run) {
  render::Table table({"host", "leases", "objects", dry_run ? "would free" : "freed"});
  std::string errors;
  for (const auto& [host, cleaned] : all.hosts) {
    if (cleaned)
      table.add({host, fmt::format("{}", cleaned->leases), fmt::format("{}", cleaned->objects),
                 format_bytes(cleaned->lease_bytes + cleaned->object_bytes)});
    else
      errors += fmt::format("{}: {}\n", host, cleaned.error().message);
  }
  std::string text = (table.empty() ? "" : render::to_text(table)) + errors;
  for (const auto& one : all.ended) text += fmt::format("ended {} of {}\n", one.id, one.run);
  return text.empty() ? "nothing was left\n" : text;
}

Result<int> clean_clusters(os::Env& env, const ClusterOptions& options) {
  BERTH_ASSIGN(const auto entries, entries_of(env, options));
  BERTH_ASSIGN(const Duration age, age_of("--older-than", options.older_than));
  for (const auto& entry : entries) {
    if (entry.kind != "ssh" && entry.kind != "ec2")
      return fail(ErrorKind::usage,
                  "cluster '{}' is of kind {}; berth cluster clean works on ssh and ec2 clusters",
                  entry.name, entry.kind);
    if (entry.kind == "ec2" && (options.dry_run || !options.older_than.empty()))
      return fail(ErrorKind::usage,
                  "--dry-run and --older-than work on ssh clusters; cluster '{}' is of kind ec2",
                  entry.name);
  }
  os::install_stop_signals();
  CleanedAll all;
  for (const auto& entry : entries) {
    if (entry.kind == "ssh") {
      BERTH_ASSIGN(auto hosts, clean_hosts(env, entry, {age, options.dry_run}));
      std::ranges::move(hosts, std::back_inserter(all.hosts));
    } else {
      BERTH_ASSIGN(auto ended, clean_ec2(env, entry));
      std::ranges::move(ended, std::back_inserter(all.ended));
    }
  }
  print(options.json ? cleaned_json(all, options.dry_run) : cleaned_text(all, options.dry_run));
  const bool good =
      std::ranges::all_of(all.hosts, [](const auto& one) { return bool(one.cleaned); });
  return good ? 0 : exit_code(ErrorKind::io);
}

/// Makes the command "cluster NAME".
Command action(const std::string& name, const std::string& summary,
               void (*declare)(Options&, ClusterOptions&),
               Result<int> (*run)(os::Env&, const ClusterOptions&)) {
  return {"cluster " + name, summary, [declare, run](Options& options) -> Action {
            auto own = std::make_shared<ClusterOptions>();
            declare(options, *own);
            return [own, run](os::Env& env) { return run(env, *own); };
          }};
}

}  // namespace

Command cluster_command() {
  return {"cluster", "List, test, add, remove or clean remote clusters", [](Options& options) {
            options.actions();
            options.footer(kNotes);
            // The parser asks for an action before this could run.
            return Action([](os::Env&) -> Result<int> { return 0; });
          }};
}

Command cluster_list_command() {
  return action("list", "List clusters", declare_list, list_clusters);
}

Command cluster_probe_command() {
  return action("probe", "Contact clusters and show their free resources", declare_probe,
                probe_clusters);
}

Command cluster_add_command() {
  return action("add", "Add a cluster of ssh hosts", declare_add, add_cluster);
}

Command cluster_remove_command() {
  return action("remove", "Remove clusters from the file", declare_remove, remove_clusters);
}

Command cluster_clean_command() {
  return action("clean", "Remove what finished runs left on clusters", declare_clean,
                clean_clusters);
}

}  // namespace berth::cli
