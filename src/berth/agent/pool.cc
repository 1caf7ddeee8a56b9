#include "berth/agent/pool.h"

#include <algorithm>

#include "berth/agent/layout.h"
#include "berth/agent/protocol/connection.h"
#include "berth/agent/protocol/line_stream.h"
#include "berth/agent/protocol/protocol.h"
#include "berth/agent/startup.h"
#include "berth/base/text.h"
#include "berth/error.h"
#include "berth/exec/leftovers.h"
#include "berth/fileset/fileset.h"
#include "berth/os/spawn.h"
#include "berth/os/user_directory.h"

namespace berth::agent {
namespace {

constexpr auto kSystemFile = "/etc/berth/machine.yaml";
constexpr std::size_t kSmallFile = 64 << 10;

std::string system_of(os::Env& env) {
  const auto word = [&](const char* path) {
    return std::string(trim(env.read_file(path, kSmallFile).value_or("?")));
  };
  return fmt::format("{} {} {}", word("/proc/sys/kernel/ostype"),
                     word("/proc/sys/kernel/osrelease"), word("/proc/sys/kernel/arch"));
}

}  // namespace

Result<std::string> leases_directory(os::Env& env) {
  if (const auto state = os::own_directory(env, os::kStateHome)) return *state + "/places";
  return fail(ErrorKind::impossible, "no place for the state: neither XDG_STATE_HOME nor HOME");
}

Result<std::unique_ptr<Pool>> Pool::open(os::Env& env, std::string program) {
  BERTH_ASSIGN(auto leases, leases_directory(env));
  BERTH_TRY(env.make_directory(leases, 0700));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, machine::Ledger::default_directory(env)));
  auto pool = std::unique_ptr<Pool>(
      new Pool(env, std::move(program), std::move(leases), std::move(ledger)));
  pool->sweep();
  return pool;
}

/// Removes the lease directories of agents that were killed and that no runner asked about for a
/// day.
void Pool::sweep() {
  constexpr Duration kOld = std::chrono::hours(24);
  const auto names = env_.list(leases_);
  for (const auto& name : names.value_or(std::vector<std::string>{})) {
    const std::string lease_directory = leases_ + "/" + name;
    const auto status = env_.status(lease_directory);
    if (!status || env_.wall() - status->modified < kOld) continue;
    const auto lock = env_.lock_existing(lock_file(agent_directory(lease_directory)));
    if (lock || lock.error().kind == ErrorKind::not_found)
      (void)fileset::remove_all(env_, lease_directory);
  }
}

Pool::Pool(os::Env& env, std::string program, std::string leases, machine::Ledger ledger)
    : env_(env),
      program_(std::move(program)),
      leases_(std::move(leases)),
      ledger_(ledger),
      cluster_(env, std::move(ledger), [this] { return host(); }) {}

Result<machine::Host> Pool::host() {
  machine::CapacityOptions options;
  options.disk_directory = leases_;
  if (const auto file = env_.variable("BERTH_MACHINE"))
    options.machine_file = *file;
  else if (env_.status(kSystemFile))
    options.machine_file = kSystemFile;
  BERTH_ASSIGN(const auto capacity, machine::discover(env_, options));
  notes_ = capacity.notes;
  if (!devices_) {
    BERTH_ASSIGN(devices_,
                 machine::read_devices(env_, {}, machine::Ledger::default_directory(env_)));
  }
  return machine::host_of(capacity, &*devices_);
}

PoolAnswer Pool::answer(const PoolCall& call) {
  std::erase_if(unfreed_, [this](machine::AllocId id) {
    const auto released = ledger_.release(id);
    return released || released.error().kind == ErrorKind::stale;
  });
  if (const auto* wanted = std::get_if<AskLease>(&call)) {
    auto leased = lease(*wanted);
    return leased ? PoolAnswer(*std::move(leased)) : PoolAnswer(leased.error());
  }
  auto told = offer();
  return told ? PoolAnswer(*std::move(told)) : PoolAnswer(told.error());
}

Result<MachineOffer> Pool::offer() {
  BERTH_ASSIGN(auto offers, cluster_.offers());
  BERTH_ASSIGN(const auto entries, ledger_.entries());
  MachineOffer told{.host = env_.host_name(),
                    .version = std::string(version()),
                    .system = system_of(env_),
                    .free = std::move(offers.front().free),
                    .total = std::move(offers.front().total),
                    .notes = notes_};
  for (const auto& device : devices_->topology.devices) told.devices.push_back(device.model);
  for (const auto& entry : entries)
    told.holders.push_back({entry.label, entry.block.resources, entry.waiting});
  return told;
}

Result<Leased> Pool::lease(const AskLease& wanted) {
  const std::string lease_directory = fmt::format("{}/{}", leases_, wanted.id);
  const std::string known = agent_file(agent_directory(lease_directory));
  leased_.push_back(lease_directory);
  if (env_.status(known)) {
    BERTH_ASSIGN(const auto text, env_.read_file(known, kSmallFile));
    BERTH_ASSIGN(auto file, parse_agent_file(text));
    return Leased{lease_directory, std::move(file.block)};
  }
  exec::end_abandoned(env_);  // what agents left that were killed here still uses its cores
  BERTH_ASSIGN(const auto alloc, cluster_.allocate({.requirements = {wanted.ask.resources, 1},
                                                    .selection = wanted.ask.selection,
                                                    .priority = wanted.ask.priority,
                                                    .waits = wanted.waits,
                                                    .labels = {{"run", wanted.ask.label}}}));
  auto started = start(wanted, alloc.block, lease_directory, alloc.id);
  if (!started) {
    if (!cluster_.free(alloc.id)) unfreed_.push_back(alloc.id);
    return std::unexpected(within("start an agent", started.error()));
  }
  return Leased{lease_directory, alloc.block};
}

/// Once the agent is ready the alloc is its own.
Result<std::string> Pool::start(const AskLease& wanted, const machine::Block& block,
                                const std::string& lease_directory, machine::AllocId id) {
  BERTH_TRY(env_.make_directory(lease_directory, 0700));
  BERTH_TRY(env_.make_directory(work_directory(lease_directory), 0700));
  const std::string ledger = machine::Ledger::default_directory(env_);
  os::SpawnSpec spec{.argv = {program_, "start", agent_directory(lease_directory), "--block",
                              machine::write_block(block), "--lease-ms",
                              fmt::format("{}", to_ms(wanted.lease)), "--ledger", ledger, "--alloc",
                              fmt::format("{}", id.value), "--with", lease_directory},
                     .environment = env_.environment(),
                     .directory = "/",
                     .cores = {},
                     .join_files = {}};
  if (wanted.outlive) spec.argv.emplace_back("--outlive");
  BERTH_ASSIGN(auto child, env_.spawn(spec));
  std::string said, complained;
  for (auto [fd, text] : {std::pair(&child.out, &said), std::pair(&child.err, &complained)}) {
    std::array<char, 4096> buffer;
    while (*fd) {
      std::array<os::Watch, 1> watches{os::Watch{.fd = fd->number()}};
      BERTH_TRY(env_.wait(watches, std::nullopt));
      const auto got = env_.read_some(*fd, buffer);
      if (got && !*got) continue;
      if (!got || **got == 0) break;
      text->append(buffer.data(), **got);
    }
  }
  std::array<os::Watch, 1> watches{os::Watch{.fd = child.exited.number()}};
  BERTH_TRY(env_.wait(watches, std::nullopt));
  (void)env_.reap(child);
  const auto agent = parse_ready(said);
  if (!agent)
    return fail(ErrorKind::io, "{}", clip(trim(complained.empty() ? said : complained), 400));
  BERTH_TRY(ledger_.hand_over(id, *agent));
  (void)cluster_.free(id);  // it is the agent's to release
  return lease_directory;
}

/// A runner has a greater epoch: where one has come, the agent refuses this.
void Pool::let_go() {
  const std::string words = encode(Call(Hello{})) + "\n" + encode(Call(Finish{})) + "\n";
  for (const auto& lease_directory : std::exchange(leased_, {}))
    if (const auto agent = env_.connect_local(agent_directory(lease_directory) + "/socket"))
      (void)env_.write_all(*agent, words);
}

namespace {

Status serve(os::Env& env, Pool& pool) {
  const os::Fd out(env, 1);
  BERTH_TRY(env.write_all(out, fmt::format("\n{}\n", kHere)));
  Status status;
  LineStream stream(env, [&](Status told) { status = std::move(told); });
  stream.open(os::Fd(env, 0));
  while (!stream.ended()) {
    BERTH_TRY(env.loop().turn());
    BERTH_TRY(status);
    while (const auto line = stream.next()) {
      const auto call = decode_pool_call(*line);
      const auto answer = call ? pool.answer(*call) : PoolAnswer(call.error());
      BERTH_TRY(env.write_all(out, encode(answer) + "\n"));
    }
  }
  return {};
}

}  // namespace

Status serve_pool(os::Env& env, const std::string& program) {
  BERTH_ASSIGN(const auto pool, Pool::open(env, program));
  const auto served = serve(env, *pool);
  pool->let_go();
  return served;
}

}  // namespace berth::agent
