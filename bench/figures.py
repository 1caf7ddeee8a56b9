"""Every figure that `./dev bench` puts on its page, beside its peers: each function measures one question with all tools in
turn, so that what the machine does beside them falls on all alike, and gives a Section."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import compare_flows
import compare_spawn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]


@dataclass
class Section:
    """One question. `rows` has the samples of each tool, in `unit`, where less is better."""

    key: str
    title: str
    unit: str
    ours: list     # of the rows, those that are Berth's
    baseline: str  # the row that ratios are by
    note: str
    command: str   # which shows it alone
    rows: dict = field(default_factory=dict)
    missing: dict = field(default_factory=dict)

    def add(self, name, value):
        self.rows.setdefault(name, []).append(value)


def in_fresh_folder(command, files, **more):
    """Seconds that a command takes in a folder that nobody used before."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text)
        environment = {**os.environ, "BERTH_DB": f"{name}/state", "BERTH_LEDGER": f"{name}/ledger", "TS_SOCKET": f"{name}/s"}
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, **more)
        return time.perf_counter() - began


def spawn(options):
    tasks, parallel = (500, 2) if options.quick else (3000, 2)
    section = Section(
        "spawn", f"/bin/true, {tasks} times, {parallel} at a time", "µs a task", ["Berth", "Berth, limits"],
        compare_spawn.BASELINE, f"{compare_spawn.NOTE} task-spooler and Slurm are judged by fewer tasks.",
        "bench/compare_spawn.py")
    few = tasks // 10
    makefile = f"all: {' '.join(f't{i}' for i in range(tasks))}\nt%:\n\t@/bin/true\n"
    queue = f"tsp -S {parallel}; for i in $(seq {few}); do tsp /bin/true; done; tsp -w; tsp -K"
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as built:
        tools = compare_spawn.tools(compare_spawn.build_raw_spawn(built), str(options.berth), tasks, parallel)
        tools += [compare_spawn.Tool("make", "make", ["-s", f"-j{parallel}"], tasks, files={"Makefile": makefile})]
        for tool in list(tools):
            if not tool.command():
                section.missing[tool.name] = tool.absent
                tools.remove(tool)
        for _ in range(options.rounds):
            for tool in tools:
                tool.run()
                section.add(tool.name, tool.seconds[-1] / tool.tasks * 1e6)
            if shutil.which("tsp"):
                section.add("task-spooler", in_fresh_folder(["bash", "-c", queue], {}) / few * 1e6)
    if not shutil.which("tsp"):
        section.missing["task-spooler"] = "not installed"
    return section


def start(options):
    section = Section("start", "One command, from nothing to its end", "ms", ["berth run"], "sh",
                      "`berth run` opens its store, reserves, records and syncs.", "berth run -- true")
    commands = {"sh": ["sh", "-c", "true"], "berth run": [options.berth, "run", "--cpu", "0.1", "--", "true"],
                "berth --version": [options.berth, "--version"]}
    if compare_spawn.gnu_parallel():
        commands["GNU parallel"] = ["parallel", "true", ":::", "1"]
    for _ in range(3 * options.rounds):
        for name, command in commands.items():
            section.add(name, in_fresh_folder(command, {}) * 1e3)
    return section


def flows(options):
    tasks = 100 if options.quick else 300
    compare_flows.BERTH = str(options.berth)
    few = 20 if options.quick else tasks
    sections = {figure: Section(
        f"flow {figure}", f"{tasks} tasks that write a file each: {figure}", "µs a task", ["berth"], "make",
        "The same shell command in each. Berth keeps every output by its content, and records each task."
        + (f" Snakemake is judged by {few} tasks, once." if options.quick else ""),
        "bench/compare_flows.py") for figure in ("cold", "nothing to do")}
    for tool in compare_flows.TOOLS:
        if not shutil.which(str(options.berth) if tool == "berth" else tool):
            for section in sections.values():
                section.missing[tool] = "not installed"
            continue
        own_tasks, rounds = (few, 1) if tool == "snakemake" and options.quick else (tasks, options.rounds)
        for _ in range(rounds):
            took = compare_flows.measure(tool, own_tasks, 120)
            for figure, section in sections.items():
                if took.get(figure) is not None:
                    section.add(tool, took[figure] / own_tasks * 1e6)
    return list(sections.values())


def ask_and_tell(options):
    trials = 100 if options.quick else 500
    section = Section("ask", f"An ask and a tell of a study at trial {trials}, by TPE, on SQLite", "ms", ["Berth"],
                      "Optuna, SQLite", "The last tenth of the trials, in a directory in memory: no disk is waited for.",
                      "bench/ask_and_tell.py")
    script = str(ROOT / "bench/ask_and_tell.py")
    names = {"berth": "Berth", "optuna": "Optuna, SQLite"}
    for _ in range(1 if options.quick else min(3, options.rounds)):
        for kind, name in names.items():
            done = subprocess.run([sys.executable, script, "--only", kind, "--trials", str(trials), "--json"],
                                  env={**os.environ, "BERTH_BIN": str(options.berth), "PATH":
                                       f"{Path(options.berth).parent}:{os.environ['PATH']}"},
                                  capture_output=True, check=False)
            if done.returncode != 0 or not done.stdout.strip():
                section.missing[name] = "not installed" if kind == "optuna" else done.stderr.decode()[-200:]
                continue
            for value in json.loads(done.stdout)["both_ms"]:
                section.add(name, value)
    return section


def placement(options):
    sections = []
    if not options.berth_bench.exists():
        return [Section("placement 16", "Best-effort over all devices", "ms", ["Berth"], "all partitions", "",
                        "", missing={"Berth": "berth-bench is not built"})]
    done = subprocess.run([options.berth_bench, "--benchmark_filter=BM_BestEffort|BM_AllPartitions",
                           f"--benchmark_repetitions={options.rounds}", "--benchmark_format=json",
                           "--benchmark_min_time=0.02"], capture_output=True, check=True)
    rows = [row for row in json.loads(done.stdout)["benchmarks"] if row["run_type"] == "iteration"]
    for devices in (8, 16):
        section = Section(f"placement {devices}", f"Which 4 of {devices} devices belong together, by best-effort", "ms",
                          ["Berth"], "all partitions", "Random scores, all devices available. The peer enumerates every "
                          "partition, as the policy is defined. Processor time of one core.",
                          "berth-bench --benchmark_filter='BM_BestEffort|BM_AllPartitions'")
        for row in rows:
            if row["run_name"].endswith(f"/devices:{devices}/k:4"):
                section.add("Berth" if "BestEffort" in row["run_name"] else "all partitions", row["cpu_time"])
        sections.append(section)
    return sections


def linear_program(fleet, plan):
    """The choice of one candidate a server within capacity, with as few unserved of each priority as the plan has, for CBC."""
    accelerators = {each["name"]: each for each in fleet["acceleratorData"]["accelerators"]}
    counts = {(each["name"], each["acc"]): each.get("accCount", 1) for each in fleet["modelData"]["models"]}
    servers = {each["name"]: each for each in fleet["serverData"]["servers"]}
    classes = {each["name"]: each["priority"] for each in fleet["serviceClassData"]["serviceClasses"]}
    limits = {each["type"]: each["count"] for each in fleet["capacityData"]["count"]}
    objective, groups, names, used, nones = [], [], [], {}, {}
    for s, (server, candidates) in enumerate(plan["candidates"].items()):
        none = f"u{s}"
        nones.setdefault(classes.get(servers[server]["class"], 100), []).append(none)
        group = [none]
        for c, (accelerator, candidate) in enumerate(candidates.items()):
            name = f"x{s}_{c}"
            group.append(name)
            objective.append(f"{candidate['value']:+.9f} {name}")
            if not accelerator:  # an idle server needs none
                continue
            card = accelerators[accelerator]
            units = card.get("multiplicity", 1) * max(1, counts[servers[server]["model"], accelerator])
            used.setdefault(card.get("type", accelerator), []).append(f"{units * candidate['numReplicas']} {name}")
        names += group
        groups.append(f" g{s}: {' + '.join(group)} = 1")
    groups += [f" c{t}: {' + '.join(terms)} <= {limits.get(kind, 0)}" for t, (kind, terms) in enumerate(used.items())]
    groups += [f" p{priority}: {' + '.join(terms)} <= {plan['proof']['unserved_by_priority'].get(str(priority), 0)}"
               for priority, terms in nones.items()]
    return "Minimize\n obj: {}\nSubject To\n{}\nBinaries\n {}\nEnd\n".format(
        "\n ".join(objective), "\n".join(groups), "\n ".join(names))


def plans(options):
    servers = 100 if options.quick else 200
    section = Section("plan", f"A fleet of {servers} servers on 20 accelerators, capacity short", "s", ["Berth"],
                      "CBC", "Berth reads, sizes each server on each accelerator, chooses and proves. CBC gets its candidates "
                      "as a linear program, and only chooses.", "berth plan; cbc fleet.lp -ratio 0 -solve")
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        fleet, program = Path(name) / "fleet.json", Path(name) / "fleet.lp"
        with open(fleet, "w", encoding="utf-8") as file:
            subprocess.run([sys.executable, ROOT / "tools/generate_fleet.py", "--servers", str(servers), "--accelerators",
                            "20", "--capacity", str(servers)], stdout=file, check=True)
        plan = json.loads(subprocess.run([options.berth, "plan", fleet, "--candidates", "--json"], capture_output=True,
                                         check=True).stdout)
        program.write_text(linear_program(json.loads(fleet.read_text()), plan))
        solution = Path(name) / "fleet.sol"
        cbc = shutil.which("cbc")
        for _ in range(options.rounds):
            began = time.perf_counter()
            subprocess.run([options.berth, "plan", fleet, "--json"], stdout=subprocess.DEVNULL, check=True)
            section.add("Berth", time.perf_counter() - began)
            if cbc:
                began = time.perf_counter()
                subprocess.run([cbc, program, "-timeMode", "elapsed", "-sec", "30", "-ratio", "0", "-allow", "0",
                                "-solve", "-solution", solution], stdout=subprocess.DEVNULL, check=True)
                section.add("CBC", time.perf_counter() - began)
        if cbc:
            head = solution.read_text().split("\n", 1)[0]
            section.note += f" Value of the plan: Berth {plan['proof']['value']:.6g} " \
                            f"(no plan is below {plan['proof']['bound']:.6g}), CBC {float(head.split()[-1]):.6g}" \
                            f"{'' if head.startswith('Optimal') else ' when its time was over'}."
        else:
            section.missing["CBC"] = "not installed"
    return section


def slurm(options, section):
    """Into the section of spawn: jobs of a Slurm that is this benchmark's own."""
    if options.quick:
        section.missing["Slurm"] = "left out of the quick form"
        return
    import slurm_bed
    if not slurm_bed.installed():
        section.missing["Slurm"] = "not installed"
        return
    tasks = 40
    bed = slurm_bed.Slurm(nodes=1, cores=2)
    try:
        began = time.perf_counter()
        bed.command("sbatch", f"--array=1-{tasks}", "--output=/dev/null", "--wrap=/bin/true")
        while bed.jobs():
            time.sleep(0.2)
        section.add("Slurm", (time.perf_counter() - began) / tasks * 1e6)
    finally:
        bed.close()


def depth(options):
    tasks = 500 if options.quick else 5000
    section = Section("depth", f"A long queue: {tasks} tasks of /bin/true, the first tenth and the last", "µs a task",
                      ["last tenth"], "first tenth", "A queue without end stays as fast as it began where the two are alike. "
                      "bench/depth.py has 100,000 tasks, and a run of 1,000,000 that is resumed.", "bench/depth.py")
    for _ in range(min(3, options.rounds)):
        done = subprocess.run([ROOT / "bench/depth.py", "--berth", options.berth, "--tasks", str(tasks), "--recorded", "0", "--json"],
                              capture_output=True, check=True)
        found = json.loads(done.stdout)
        section.add("first tenth", found["first_us"])
        section.add("last tenth", found["last_us"])
    return section


def all_sections(options):
    """One after the other, each told of when it begins."""
    def said(name, measure):
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        return measure(options)
    first = said("starting tasks", spawn)
    slurm(options, first)
    return [first, said("one command", start), said("a long queue", depth), *said("flows", flows), said("ask and tell", ask_and_tell),
            *said("placement", placement), said("plans", plans)]
