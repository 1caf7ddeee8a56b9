#include "berth/remote/slurm/slurm_entry.h"

#include "berth/agent/pool.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::remote {
namespace {

constexpr std::int64_t kJobsMost = 1000;

Result<std::string> plain_word(const Field& field) {
  BERTH_ASSIGN(auto word, field.text());
  if (!plain_slurm_word(word) || word.find(',') != word.npos)
    return field.error("not a name that Slurm accepts");
  return word;
}

Result<std::vector<std::string>> words_of(const Field& field, bool flags) {
  std::vector<std::string> words;
  BERTH_ASSIGN(const auto items, field.items());
  for (const auto& item : items) {
    BERTH_ASSIGN(auto word, flags ? item.text() : plain_word(item));
    if (flags && (!word.starts_with('-') || word.find('\0') != word.npos))
      return item.error("expected an option of sbatch: --qos=long");
    words.push_back(std::move(word));
  }
  return words;
}

Status read_gpus(const Field& field, SlurmGpuTypes& gpus) {
  BERTH_ASSIGN(const auto entries, field.entries());
  for (const auto& [type, body] : entries) {
    BERTH_TRY(body.expect_keys({"mem", "slots"}));
    SlurmGpu gpu;
    if (const auto mem = body.find("mem")) {
      BERTH_ASSIGN(const auto text, mem->text());
      const auto bytes = parse_bytes(text);
      if (!bytes) return mem->error(bytes.error());
      gpu.memory = *bytes;
    }
    if (const auto slots = body.find("slots")) {
      constexpr std::int64_t kSlotsMost = 10'000;
      BERTH_ASSIGN(const auto count, slots->integer());
      if (count < 1 || count > kSlotsMost) return slots->error("expected 1 to 10000");
      gpu.slots = static_cast<int>(count);
    }
    gpus[type] = gpu;
  }
  return {};
}

Status read_times(const Field& body, SlurmOptions& options) {
  constexpr Duration kShortest = std::chrono::minutes(1);
  if (const auto limit = body.find("time_limit")) {
    BERTH_ASSIGN(options.time_limit, limit->duration());
    if (*options.time_limit < kShortest) return limit->error("expected at least 1m");
  }
  if (const auto drain = body.find("drain")) {
    BERTH_ASSIGN(options.drain, drain->duration());
    if (options.time_limit && options.drain >= *options.time_limit)
      return drain->error("expected less than time_limit");
  }
  return {};
}

}  // namespace

Result<SlurmOptions> read_slurm(os::Env& env, const ClusterEntry& entry, const AgentFile& agent) {
  const Field& body = entry.body;
  BERTH_TRY(body.expect_keys({"kind", "env", "prescript", "postscript", "lease", "outlive",
                              "reconnect", "shared_folders", "partitions", "account", "time_limit",
                              "drain", "flags", "jobs", "gpus", "directory"}));
  SlurmOptions options{.name = entry.name,
                       .lease = entry.lease,
                       .outlive = entry.outlive,
                       .program = agent.path,
                       .agent = agent};
  for (const auto& [key, to, flags] : {std::tuple("partitions", &options.partitions, false),
                                       std::tuple("flags", &options.flags, true)})
    if (const auto list = body.find(key)) {
      BERTH_ASSIGN(*to, words_of(*list, flags));
    }
  if (const auto account = body.find("account")) {
    BERTH_ASSIGN(options.account, plain_word(*account));
  }
  BERTH_TRY(read_times(body, options));
  if (const auto jobs = body.find("jobs")) {
    BERTH_ASSIGN(const auto most, jobs->integer());
    if (most < 1 || most > kJobsMost) return jobs->error("expected 1 to 1000");
    options.most = static_cast<std::size_t>(most);
  }
  if (const auto gpus = body.find("gpus")) BERTH_TRY(read_gpus(*gpus, options.gpus));
  if (const auto directory = body.find("directory")) {
    BERTH_ASSIGN(options.directory, directory->text());
    if (!options.directory.starts_with('/')) return directory->error("expected an absolute path");
  } else {
    BERTH_ASSIGN(options.directory, agent::leases_directory(env));
  }
  return options;
}

}  // namespace berth::remote
