// berth cluster: lists, tests, adds, removes and cleans the remote clusters of the user.
#include <algorithm>

#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/render/machines/clusters.h"

namespace berth::cli {
namespace {

/// The options of all actions; each action declares some of them.
struct ClusterOptions {
  Output output;
  bool dry_run = false;
  std::string name, older_than, key;
  std::vector<std::string> names, hosts;
};

constexpr const char* kNotes =
    "Clusters are defined in ~/.config/berth/clusters.yaml, or in the file that BERTH_CLUSTERS\n"
    "names. The file has more options than 'berth cluster add' writes: see\n"
    "docs/reference/clusters.md.";

void declare_list(Options& options, ClusterOptions& own) {
  own.output.add_to(options);
  options.list("CLUSTER", own.names, "Clusters to list (default: all)");
  options.example("berth cluster list");
}

void declare_probe(Options& options, ClusterOptions& own) {
  own.output.add_to(options);
  options.list("CLUSTER", own.names, "Clusters to contact (default: all)");
  options.example("berth cluster probe lab hpc");
}

void declare_add(Options& options, ClusterOptions& own) {
  own.output.add_to(options);
  options.value("CLUSTER", own.name, "Name of the new cluster").required();
  options.list("HOST", own.hosts, "user@host[:port], or a name from your ssh configuration")
      .required();
  options.value("--key", own.key, "Private key for these hosts").named("FILE");
  options.example("berth cluster add lab alice@10.0.0.7:2222 gpu-box --key ~/.ssh/lab");
}

void declare_remove(Options& options, ClusterOptions& own) {
  own.output.add_to(options);
  options.list("CLUSTER", own.names, "Clusters to remove").required();
  options.example("berth cluster remove lab");
}

void declare_clean(Options& options, ClusterOptions& own) {
  own.output.add_to(options);
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

Result<int> list_clusters(os::Env& env, const ClusterOptions& options) {
  BERTH_ASSIGN(const auto listed, engine::list_clusters(env, options.names));
  options.output.print(listed);
  return listed.code;
}

Result<int> probe_clusters(os::Env& env, const ClusterOptions& options) {
  os::install_stop_signals();
  BERTH_ASSIGN(const auto probed, engine::probe_clusters(env, options.names));
  options.output.print(probed);
  return probed.code();
}

Result<int> add_cluster(os::Env& env, const ClusterOptions& options) {
  BERTH_ASSIGN(const auto added,
               engine::add_cluster(env, options.name, options.hosts, options.key));
  if (!added.warning.empty()) print_error(fmt::format("berth: warning: {}\n", added.warning));
  options.output.print(added);
  return 0;
}

Result<int> remove_clusters(os::Env& env, const ClusterOptions& options) {
  return options.output.print_or_fail(engine::remove_clusters(env, options.names));
}

Result<int> clean_clusters(os::Env& env, const ClusterOptions& options) {
  engine::CleanRequest request{.dry_run = options.dry_run};
  if (!options.older_than.empty()) {
    BERTH_ASSIGN(request.older_than, age_of("--older-than", options.older_than));
  }
  os::install_stop_signals();
  BERTH_ASSIGN(const auto all, engine::clean_clusters(env, options.names, request));
  options.output.print(all);
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
