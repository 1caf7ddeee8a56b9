#!/usr/bin/env python3
"""Plants faults into Berth, one at a time, and looks whether ./dev simulate finds them.

  tests/simulate/planted_faults.py BUILD_DIRECTORY [--seconds N] [--only PART] [--list]

Each fault replaces a text in one source file. That file alone is compiled and linked before the
libraries of the build, so a fault costs seconds. A fault counts as found when a simulation breaks
within N seconds (20), by a promise that does not hold, an assertion or a crash. The score as it was
measured last is in docs/explanation/simulation.md.
"""
import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# (storey, what is wrong, file, text, text in its place)
FAULTS = [
    ("schedule", "the worker's room is not given back", "schedule/schedule.cc",
     "  BERTH_ASSERT(books.free.add(resources(attempt.task)).has_value());", "  (void)books;"),
    ("schedule", "a task is started though it does not fit", "schedule/assign.cc",
     "if (at->second.closed || !at->second.free.covers(wanted)) continue;",
     "if (at->second.closed) continue;"),
    ("schedule", "retries are not counted down", "schedule/schedule.cc",
     "if (budget) --ended.retries;", "if (budget) ended.retries += 0;"),
    ("schedule", "a lost worker costs a retry", "schedule/schedule.cc",
     "const bool budget = verdict == Verdict::failed && ended.retries > 0;",
     "const bool budget = (verdict == Verdict::failed || infrastructure) && ended.retries > 0;"),
    ("schedule", "an infrastructure failure is final", "schedule/schedule.cc",
     "const bool again = infrastructure &&", "const bool again = false && infrastructure &&"),
    ("schedule", "workers start tasks before all of an earlier runner's have joined",
     "schedule/assign.cc", "if (starting() && !recovering_) assign(effects);",
     "if (starting()) assign(effects);"),
    ("schedule", "what an earlier runner started is started anew", "schedule/schedule.cc",
     "if (adopt(earlier, worker.id, now, effects)) continue;", "if (earlier.ended) continue;"),

    ("store", "the token of an end is not checked", "store/transition.cc",
     "found->second.row.token == token;", "found->second.row.token >= Token{0} && token > Token{0};"),
    ("store", "an end that came twice is counted twice", "store/transition.cc",
     "const bool runs = found != tasks_.end() && found->second.row.state == TaskState::running &&",
     "const bool runs = found != tasks_.end() &&"),
    ("store", "the counts forget the state before", "store/transition.cc",
     "--counts.of(task.row.state);", "counts.of(task.row.state) += 0;"),
    ("store", "an attempt that was lost with its runner stays open", "store/transition.cc",
     "lose(number, task, now, exec::Cause::runner_lost);", "move(task, TaskState::waiting);"),
    ("store", "a task that was stopped does not wait again after a resume", "store/transition.cc",
     "if (task.row.state == TaskState::stopped)", "if (false)"),
    ("store", "attempts that live are called lost", "store/transition.cc",
     "task.row.state == TaskState::running && !alive.contains(task.row.token)",
     "task.row.state == TaskState::running"),
    ("store", "the epoch does not rise", "store/transition.cc", "run.epoch += 1;",
     "run.epoch = std::max<std::int64_t>(run.epoch, 1);"),
    ("store", "a metric of an old attempt counts", "store/transition.cc",
     "if (running(change.task, change.token) == nullptr) return {};\n    const std::int64_t sequence",
     "const std::int64_t sequence"),

    ("run", "an end is shown before it is durable", "run/drive/recorder.cc",
     "  if (ended.cause != exec::Cause::given_back) ends_.push_back(std::move(end));",
     "  if (ended.cause != exec::Cause::given_back) run_.observer.on_task_end(end);"),
    ("run", "what is gathered is dropped when the store fails", "run/drive/recorder.cc",
     "BERTH_TRY(store_.apply(run_.record.id, batch_));",
     "if (!store_.apply(run_.record.id, batch_)) batch_.clear();"),
    ("run", "the log is not flushed with a commit", "run/drive/recorder.cc",
     "  BERTH_TRY(log_.flush());\n  if (!batch_", "  if (!batch_"),
    ("run", "messages are acknowledged before the commit", "run/drive/recorder.cc",
     "  const Mono began = run_.env.now();\n", "  const Mono began = run_.env.now();\n  committed_();\n"),
    ("run", "the log's offset of an attempt is wrong", "run/drive/attempts.cc",
     ".log_begin = recorder_.log().end(),", ".log_begin = recorder_.log().end() + 1,"),
    ("run", "the end of an attempt is dropped while another is settled", "run/drive/attempts.cc",
     "  live_.erase(ended.token.value);\n  if (live_.empty()) unbegun_.clear();",
     "  live_.clear();"),
    ("run", "what an earlier runner never recorded is not waited for", "run/drive/attempts.cc",
     "if (!run_.waits(each.task)) continue;", "continue;"),
    ("run", "a lost worker's attempts are not ended", "run/drive/recovery.cc",
     "attempts_.lose(slot.id, because);", "(void)because;"),
    ("run", "the journal of a dead agent is not read", "run/drive/recovery.cc",
     "auto unacknowledged = read_when_gone(env, directory);",
     "auto unacknowledged = read_when_gone(env, directory + \"-\");"),
    ("run", "agents that cannot be read are taken for gone", "run/drive/recovery.cc",
     "if (!unacknowledged && unacknowledged.error().kind != ErrorKind::not_found)", "if (false)"),
    ("run", "metrics are counted and not recorded", "run/drive/recorder.cc",
     "  add(store::MetricSeen{metric.task,", "  if (false) add(store::MetricSeen{metric.task,"),
    ("run", "an alloc is not freed", "run/drive/leases.cc",
     "(void)sources_[lease.source].source.cluster->free(lease.alloc.id);", "(void)lease;"),
    ("run", "an idle worker is never told to finish", "run/drive/drive.cc",
     "slot->worker->finish();\n    leases_.free(slot->lease);", "leases_.free(slot->lease);"),
    ("run", "infrastructure counts as a failure of the task's own after a resume",
     "run/drive/drive_phases.cc", "std::ranges::find(kInfrastructure, attempt.cause) == kInfrastructure.end();",
     "true;"),

    ("agent", "a launch that a broken connection swallowed is not sent again", "agent/client/outbox.cc",
     "if (std::ranges::find(welcome.attempts, token, &Attempt::token) == welcome.attempts.end())",
     "if (welcome.attempts.size() > 1000)"),
    ("agent", "the lease is never over", "agent/agent.cc",
     "return env_->boot_clock() >= lease_ends_;", "return false;"),
    ("agent", "a runner of an earlier epoch displaces a later one", "agent/agent.cc",
     "if (hello.epoch < epoch_)", "if (hello.epoch < 0)"),
    ("agent", "the welcome names no attempts", "agent/agent.cc",
     "answer.attempts.push_back({known.task, token});", "(void)known, (void)token;"),
    ("agent", "messages are sent to the next runner from the present on", "agent/agent.cc",
     "sent_to_ = journal_.begin();", "sent_to_ = journal_.end();"),
    ("agent", "what is acknowledged is dropped one too far", "agent/journal.cc",
     "acknowledged_ = up_to;", "acknowledged_ = last_;"),
    ("agent", "the journal is not written", "agent/journal.cc",
     "if (unwritten_.empty()) return;", "return;"),
    ("agent", "a torn line in the journal is not cut off", "agent/journal.cc",
     "torn_ = !env_->truncate(file.fd, file.size);", "torn_ = false;"),
    ("agent", "an agent whose lease is over does not end its tasks", "agent/agent.cc",
     "if (lease_over() && !options_.outlive) return give_up();\n  heed", "heed"),
    ("agent", "an agent that has finished does not end", "agent/agent.cc",
     "over_ = acknowledged || runner_ == nullptr;", "over_ = false;"),
    ("agent", "an agent that no runner came for keeps its alloc", "agent/agent.cc",
     "lease_ends_(env.boot_clock() + std::min(options_.lease, kUnmetMost))",
     "lease_ends_(env.boot_clock() + std::chrono::hours(1000))"),

    ("remote", "the attempts that are sent to a host are not noted", "remote/remote_worker.cc",
     "if (!record_attempt(env_, options_.directory, launch->token, stage_out)) {", "if (false) {"),
    ("remote", "a lease that was asked for again is another one", "remote/ssh/host.cc",
     "    if (wanted_) {  // a connection", "    if (false) {  // a connection"),
    ("remote", "an alloc that nobody works on is not given back", "remote/ssh/host.cc",
     "if (const auto* leased = std::get_if<agent::Leased>(&answer)) let_go(leased->directory);",
     "(void)answer;"),
    ("remote", "a host that fell silent is lost for good", "remote/ssh/host.cc",
     "  connection_.reset();\n  stream_.close();", "  stream_.close();"),
    ("remote", "a task starts before its files are there", "remote/remote_worker.cc",
     "if (!is_ready || before != staged_.end()) {", "if (before != staged_.end()) {"),

    ("machine", "the ledger is changed without its lock", "machine/ledger/ledger.cc",
     "auto fd = env_->lock(directory_ + \"/.\", true);",
     "auto fd = env_->lock(directory_ + fmt::format(\"/.{}\", env_->random()), false);"),
    ("machine", "those who hold are not counted", "machine/ledger/ledger.cc",
     "if (entry.waiting) continue;\n    BERTH_ASSIGN(auto part", "continue;\n    BERTH_ASSIGN(auto part"),
    ("machine", "an alloc that is handed over stays with who made it", "machine/ledger/ledger.cc",
     "entry.holder = to;", "(void)to;"),
    ("machine", "the dead count as alive", "machine/ledger/ledger.cc",
     "if (is_new) known->second = env_.alive(entry.holder);", "if (is_new) known->second = true;"),

    ("exec", "a task that ignores SIGTERM is never killed", "exec/process_worker.cc",
     "process.kill_at = env_->now() + process.grace;",
     "process.kill_at = env_->now() + std::chrono::hours(1000);"),
    ("exec", "the output that is left at the end is not waited for", "exec/process_worker.cc",
     "process.close_at = env_->now() + kLinger;", "process.close_at = env_->now();"),
]


def link_command(build: Path) -> list[str]:
    text = subprocess.run(["ninja", "-C", build, "-t", "commands", "bin/berth-simulate"],
                          capture_output=True, text=True, check=True).stdout.strip()
    last = text.splitlines()[-1]
    command = re.search(r"(?:ccache )?(\S*(?:g\+\+|clang\+\+)\S* .*?-o bin/berth-simulate.*?)(?: &&|$)", last)
    return command.group(1).split()


def compile_command(build: Path) -> list[str]:
    text = subprocess.run(["ninja", "-C", build, "-t", "commands", "bin/berth-simulate"],
                          capture_output=True, text=True, check=True).stdout
    line = next(one for one in text.splitlines() if "simulate/contract.cc" in one and " -c " in one)
    words = line.split()
    words = words[next(i for i, word in enumerate(words) if "++" in word):]
    keep = [word for word in words[:words.index("-MD")] if not word.startswith("-W")]
    return keep + ["-w", f"-I{build}/generated"]


def plant(build: Path, fault, work: Path) -> Path | None:
    _, _, name, old, new = fault
    source = ROOT / "src/berth" / name
    text = source.read_text()
    if text.count(old) < 1:
        return None
    planted = work / Path(name).name
    planted.write_text(text.replace(old, new, 1))
    made = work / "planted.o"
    subprocess.run([*compile_command(build), "-c", planted, "-o", made], check=True, cwd=build)
    program = work / "berth-simulate"
    link = link_command(build)
    link[link.index("bin/berth-simulate")] = str(program)
    subprocess.run([link[0], "-Wl,-z,muldefs", made, *link[1:]], check=True, cwd=build)
    return program


def is_found(program: Path, seconds: float) -> str | None:
    try:
        ran = subprocess.run([program, str(seconds)], capture_output=True, text=True,
                             timeout=seconds * 3 + 30, check=False)
    except subprocess.TimeoutExpired:
        return "a simulation does not end"
    if ran.returncode == 0:
        return None
    lines = (ran.stdout + ran.stderr).strip().splitlines()
    return lines[0] if lines else f"signal {-ran.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, nargs="?", default=ROOT / "build/release")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", default="", help="faults whose text or storey has this in it")
    parser.add_argument("--list", action="store_true", help="only names them")
    options = parser.parse_args()
    chosen = [one for one in FAULTS if options.only in f"{one[0]}: {one[1]}"]
    found, missed, stale = {}, [], []
    for fault in chosen:
        name = f"{fault[0]}: {fault[1]}"
        if options.list:
            print(name)
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as work:
            try:
                program = plant(options.build.resolve(), fault, Path(work))
            except subprocess.CalledProcessError:
                program = None
            if program is None:
                stale.append(name)
                print(f"CANNOT BE PLANTED {name}", flush=True)
                continue
            how = is_found(program, options.seconds)
        took = time.monotonic() - began
        if how:
            found.setdefault(fault[0], []).append(name)
            print(f"found  {name} ({took:.0f} s): {how[:150]}", flush=True)
        else:
            missed.append(name)
            print(f"MISSED {name}", flush=True)
    if options.list:
        return 0
    for storey in dict.fromkeys(one[0] for one in chosen):
        of = sum(one[0] == storey for one in chosen)
        print(f"{storey:9} {len(found.get(storey, []))} of {of}")
    print(f"{sum(map(len, found.values()))} of {len(chosen)} found")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
