#!/usr/bin/python3
"""A realistic fleet by seed, as a fleet document on stdout: the same that
src/berth/fleet/generated_fleet.h makes for tests and benchmarks. Whoever changes one changes the other.

    tools/generate_fleet.py --seed 1 --servers 1000 --accelerators 20 > fleet.json
"""
import argparse
import json
import math

MASK = (1 << 64) - 1

CARDS = [("A10", 24, 600, 125, 75, 150), ("A100", 80, 2039, 312, 180, 400),
         ("B200", 180, 8000, 2250, 600, 1000), ("H100", 80, 3350, 989, 300, 700),
         ("H200", 141, 4800, 989, 380, 700), ("L4", 24, 300, 121, 50, 72),
         ("L40S", 48, 864, 362, 110, 350), ("MI300X", 192, 5300, 1307, 350, 750),
         ("T4", 16, 320, 65, 35, 70), ("V100", 32, 900, 125, 90, 300)]
LLMS = [("chat-1b", 1.2, 32), ("chat-3b", 3.2, 112), ("chat-8b", 8, 128), ("code-14b", 14, 192),
        ("chat-27b", 27, 368), ("code-34b", 34, 192), ("chat-70b", 70, 320), ("embed-7b", 7, 128)]
CLASSES = [("Premium", 1), ("Standard", 5), ("Batch", 10), ("Free", 100)]


def mix(state):
    state = (state + 0x9e3779b97f4a7c15) & MASK
    state = ((state ^ (state >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    state = ((state ^ (state >> 27)) * 0x94d049bb133111eb) & MASK
    return state ^ (state >> 31)


def rotated(word, by):
    return ((word << by) | (word >> (64 - by))) & MASK


class Rng:
    """base/rng.h: xoshiro256**, seeded through splitmix64."""

    def __init__(self, seed):
        self.state = []
        for _ in range(4):
            self.state.append(mix(seed))
            seed = (seed + 0x9e3779b97f4a7c15) & MASK

    def next(self):
        s = self.state
        result = rotated(s[1] * 5 & MASK, 7) * 9 & MASK
        shifted = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotated(s[3], 45)
        return result

    def uniform(self):
        return (self.next() >> 11) * 2.0 ** -53

    def below(self, bound):
        limit = (1 << 64) % bound
        while True:
            draw = self.next()
            if draw >= limit:
                return draw % bound


def rounded(value, to):
    """As std::round has it: halves away from 0; all values here are positive."""
    return math.floor(value * to + 0.5) / to


def performance(llm, card, cards):
    _, parameters_g, kv_kb = llm
    _, memory_gb, bandwidth, tflops, _, _ = card
    weights_gb = 2 * parameters_g
    count = 1
    while count < 16 and count * cards * memory_gb * 0.9 < 1.3 * weights_gb:
        count *= 2
    every = count * cards
    kv_gb = every * memory_gb * 0.9 - weights_gb
    return {"accCount": count,
            "maxBatchSize": int(min(max(math.floor(kv_gb * 1e6 / kv_kb / 1024), 1), 512)),
            "atTokens": 1024,
            "perfParms": {"alpha": rounded(1000 * weights_gb / (every * bandwidth * 0.7) + 1.5, 1e4),
                          "beta": rounded(2 * parameters_g / (every * tflops * 0.45), 1e6),
                          "gamma": rounded(kv_kb / 1000 / (every * bandwidth * 0.6), 1e9)}}


def accelerators(rng, count):
    for a in range(count):
        card = CARDS[a % len(CARDS)]
        cards = 1 << (a // len(CARDS))
        name = card[0] if cards == 1 else f"{cards}x{card[0]}"
        yield card, cards, {
            "name": name, "type": card[0], "multiplicity": cards, "memSize": card[1] * cards,
            "memBW": card[2] * cards,
            "power": {"idle": card[5] * cards * 0.2, "full": card[5] * cards,
                      "midPower": card[5] * cards * 0.7, "midUtil": 0.6},
            "cost": rounded(card[4] * cards * (0.9 + 0.2 * rng.uniform()), 100)}


def service_class(rng, name, priority):
    slack = 1 + math.log10(priority)
    targets = []
    for model, parameters_g, _ in LLMS:
        itl = rounded(slack * (40 + 1.5 * parameters_g) * (0.8 + 0.4 * rng.uniform()), 10)
        ttft = rounded(slack * (600 + 20 * parameters_g) * (0.8 + 0.4 * rng.uniform()), 10)
        targets.append({"model": model, "slo-itl": itl, "slo-ttft": ttft, "slo-tps": 0})
    return {"name": name, "priority": priority, "modelTargets": targets}


def server(rng, index, cards, models):
    made = {"name": f"server-{index:05}", "class": CLASSES[rng.below(len(CLASSES))][0],
            "model": LLMS[rng.below(len(LLMS))][0], "keepAccelerator": False,
            "minNumReplicas": rng.below(3)}
    made["maxBatchSize"] = 16 << rng.below(4) if rng.below(4) == 0 else 0
    made["maxQueueSize"] = 32 * rng.below(5)
    load = {"arrivalRate": 0 if rng.below(20) == 0 else rounded(2 ** (2 + 8 * rng.uniform()), 10),
            "throughput": 0, "avgInTokens": math.floor(2 ** (6 + 6 * rng.uniform())),
            "avgOutTokens": math.floor(2 ** (5 + 5 * rng.uniform()))}
    now = {"accelerator": "", "numReplicas": 0, "maxBatch": 0, "cost": 0}
    if rng.below(3) != 0:
        card = cards[rng.below(len(cards))]
        each = models[made["model"], card["name"]]["accCount"]
        now["accelerator"] = card["name"]
        now["numReplicas"] = 1 + rng.below(4)
        now["cost"] = rounded(card["cost"] * each * now["numReplicas"], 100)
    made["currentAlloc"] = {**now, "itlAverage": 0, "ttftAverage": 0, "load": load}
    return made


def fleet(seed, servers, count, capacity):
    rng = Rng(seed)
    made = list(accelerators(rng, count))
    models = {(llm[0], spec["name"]): performance(llm, card, cards)
              for card, cards, spec in made for llm in LLMS}
    classes = [service_class(rng, name, priority) for name, priority in CLASSES]
    cards = sorted((spec for _, _, spec in made), key=lambda spec: spec["name"])
    types = sorted({spec["type"] for spec in cards})
    return {"acceleratorData": {"accelerators": cards},
            "capacityData": {"count": [{"type": name, "count": capacity} for name in types]},
            "modelData": {"models": [{"name": model, "acc": card, **models[model, card]}
                                     for model, card in sorted(models)]},
            "serviceClassData": {"serviceClasses": classes},
            "serverData": {"servers": [server(rng, i, cards, models) for i in range(servers)]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--accelerators", type=int, default=21)
    parser.add_argument("--capacity", type=int, default=1_000_000, help="of each type")
    options = parser.parse_args()
    print(json.dumps(fleet(options.seed, options.servers, options.accelerators, options.capacity)))


if __name__ == "__main__":
    main()
