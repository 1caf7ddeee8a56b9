#!/usr/bin/python3
"""Berth's searches beside Optuna's (Debian: python3-optuna, python3-cmaes) on the field's usual functions.

Prints the mean rank of each method after so many trials, and the median regret of each on each function; of
functions with several goals the hypervolume. All is kept in --cache, so that what was measured is not measured
again: empty it, or name the methods in --again, after a change."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BERTH = ["auto", "gp", "cma-es", "tpe", "random"]
OPTUNA = ["optuna-tpe", "optuna-tpe-multivariate", "optuna-cma-es", "optuna-random"]
SEVERAL = ["nsga2", "tpe", "random", "optuna-nsga2", "optuna-tpe", "optuna-random"]


def by_berth(options, method, function, seed):
    done = subprocess.run([options.program, "run", method, function, str(seed), str(options.parallel),
                           str(options.trials[-1]), *map(str, options.trials)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def by_optuna(options, method, function, seed):
    """In a process of its own: its studies hold the interpreter."""
    done = subprocess.run([sys.executable, __file__, "--program", options.program, "--one", method, function, str(seed),
                           "--trials", *map(str, options.trials), "--parallel", str(options.parallel)],
                          capture_output=True, text=True, check=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    return json.loads(done.stdout)


def sampler_of(method, seed, parallel):
    import optuna
    samplers = optuna.samplers
    liar = parallel > 1
    return {"optuna-tpe": lambda: samplers.TPESampler(seed=seed, constant_liar=liar),
            "optuna-tpe-multivariate": lambda: samplers.TPESampler(seed=seed, multivariate=True, group=True,
                                                                   constant_liar=liar),
            "optuna-cma-es": lambda: samplers.CmaEsSampler(seed=seed, restart_strategy="ipop"),
            "optuna-nsga2": lambda: samplers.NSGAIISampler(seed=seed),
            "optuna-random": lambda: samplers.RandomSampler(seed=seed)}[method]()


def suggest(trial, params):
    point = {}
    for each in params:
        name, when = each["name"], each["when"]
        if when and point.get(when[0]) != when[1]:
            continue
        if each["choices"]:
            point[name] = trial.suggest_categorical(name, each["choices"])
        elif each["integer"]:
            point[name] = trial.suggest_int(name, int(each["min"]), int(each["max"]), log=each["log"])
        else:
            point[name] = trial.suggest_float(name, each["min"], each["max"], log=each["log"])
    return point


def one_of_optuna(options, method, name, seed):
    import random
    import warnings

    import optuna
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    functions = json.loads(subprocess.run([options.program, "functions"], capture_output=True, check=True).stdout)
    function = next(each for each in functions if each["name"] == name)
    driver = subprocess.Popen([options.program, "value"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    study = optuna.create_study(directions=["minimize"] * function["goals"],
                                sampler=sampler_of(method, seed, options.parallel))
    lot, opened, values, asked = random.Random(seed), [], [], 0
    while len(values) < options.trials[-1]:
        while len(opened) < options.parallel and len(values) + len(opened) < options.trials[-1]:
            began = time.monotonic()
            trial = study.ask()
            opened.append((trial, suggest(trial, function["params"])))
            asked += time.monotonic() - began
        trial, point = opened.pop(lot.randrange(len(opened)))
        driver.stdin.write(name + " " + " ".join(f"{key}={value!r}".replace("'", "") for key, value in point.items()) + "\n")
        driver.stdin.flush()
        values.append([float(word) for word in driver.stdout.readline().split()])
        study.tell(trial, values[-1])
    best = {}
    for after in options.trials:
        if function["goals"] == 1:
            best[str(after)] = min(values[:after])[0]
        else:
            text = "".join(" ".join(map(repr, each)) + "\n" for each in values[:after])
            best[str(after)] = float(subprocess.run([options.program, "volume", name], input=text, text=True,
                                                    capture_output=True, check=True).stdout)
    print(json.dumps({"method": method, "function": name, "best": best, "trials": len(values), "asked_s": asked}))


def measured(options, method, function, seed):
    kept = options.cache / f"{method}.{function}.{seed}.{options.parallel}.{options.trials[-1]}.json"
    if kept.exists() and method not in options.again:
        return json.loads(kept.read_text())
    measure = by_optuna if method.startswith("optuna") else by_berth
    result = measure(options, method, function, seed)
    kept.write_text(json.dumps(result))
    return result


def ranks(values):
    """Of each value among all, 1 the least; equals share."""
    return [1 + sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
            for value in values]


def table(options, functions, methods, several):
    seeds = range(1, options.seeds + 1)
    work = [(method, each["name"], seed) for method in methods for each in functions for seed in seeds]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = dict(zip(work, pool.map(lambda each: measured(options, *each), work)))
    sign = -1 if several else 1
    for after in map(str, options.trials):
        total = {method: [] for method in methods}
        print(f"\nafter {after} trials, {options.parallel} side by side: the median of {options.seeds} seeds, "
              + ("hypervolume" if several else "regret"))
        print(f"{'':18}" + "".join(f"{method:>25}" for method in methods))
        for function in functions:
            name = function["name"]
            for seed in seeds:
                found = ranks([sign * results[method, name, seed]["best"][after] for method in methods])
                for method, rank in zip(methods, found):
                    total[method].append(rank)
            print(f"{name:18}" + "".join(
                f"{statistics.median(results[method, name, seed]['best'][after] for seed in seeds):25.3g}"
                for method in methods))
        print(f"{'mean rank':18}" + "".join(f"{statistics.mean(total[method]):25.2f}" for method in methods))
    print(f"{'longest asks, s':18}" + "".join(
        f"{max(results[each]['asked_s'] for each in work if each[0] == method):25.1f}" for method in methods))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/berth-search-bench"))
    parser.add_argument("--methods", nargs="+", help="the methods of Berth, and optuna-…")
    parser.add_argument("--functions", nargs="+", help="not all functions")
    parser.add_argument("--several", action="store_true", help="the functions with several goals")
    parser.add_argument("--trials", nargs="+", type=int, default=[100, 300, 1000])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cache", type=Path, default=ROOT / "build/search-bench")
    parser.add_argument("--again", nargs="+", default=[])
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return one_of_optuna(options, options.one[0], options.one[1], int(options.one[2]))
    options.cache.mkdir(parents=True, exist_ok=True)
    functions = json.loads(subprocess.run([options.program, "functions"], capture_output=True, check=True).stdout)
    functions = [each for each in functions if (each["goals"] > 1) == options.several
                 and (not options.functions or each["name"] in options.functions)]
    table(options, functions, options.methods or (SEVERAL if options.several else BERTH + OPTUNA), options.several)


if __name__ == "__main__":
    main()
