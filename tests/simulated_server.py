"""A simulated inference server for tests of berth fit, and the runs of a benchmark tool against it.

An iteration takes ALPHA + BETA B + PREFILL P + GAMMA K ms for B requests that decode, P tokens of prompts and K tokens
that these attend to.
"""

import heapq
import random
from dataclasses import dataclass, field

ALPHA, BETA, PREFILL, GAMMA = 9.0, 0.05, 0.02, 1e-4
BETWEEN_MS = 0.3  # from the end of a request to the start of the next one of its client


@dataclass
class Request:
    start_ms: float
    tokens_in: int
    tokens_out: int
    times_ms: list = field(default_factory=list)  # of its tokens

    def ttft(self):
        return self.times_ms[0] - self.start_ms

    def latency(self):
        return self.times_ms[-1] - self.start_ms

    def gaps(self):
        return [after - before for before, after in zip(self.times_ms, self.times_ms[1:])]

    def itl(self):
        return (self.times_ms[-1] - self.times_ms[0]) / max(1, self.tokens_out - 1)


@dataclass
class Run:
    requests: list
    concurrency: int = 0  # of a closed loop
    rate: float = 0  # of an open loop, requests a second
    failed: int = 0

    def seconds(self):
        return max(each.times_ms[-1] for each in self.requests) / 1000

    def of(self, what):
        return [what(each) for each in self.requests]

    def strategy(self):
        if self.rate:
            return {"type_": "poisson", "rate": self.rate}
        return {"type_": "synchronous"} if self.concurrency == 1 else {"type_": "concurrent", "streams": self.concurrency}

    def per_second(self):
        return len(self.requests) / self.seconds()

    def presence(self):
        return mean(self.of(Request.latency)) / 1000 * self.per_second()


def simulate(requests, tokens_in, tokens_out=100, concurrency=0, rate=0.0, seed=1, scale=1.0):
    """A run of that many requests; their lengths vary by 30 %. `scale` multiplies the time of every iteration."""
    draw = random.Random(seed)
    made = [Request(0, max(1, round(draw.gauss(tokens_in, 0.3 * tokens_in))),
                    max(2, round(draw.gauss(tokens_out, 0.3 * tokens_out)))) for _ in range(requests)]
    at, coming, later = 0.0, [], 0
    for i, request in enumerate(made):
        if rate:
            request.start_ms = at
            at += 1000 * draw.expovariate(rate)
        if rate or i < concurrency:
            heapq.heappush(coming, (request.start_ms, i))
            later = i + 1
    now, active, done = 0.0, [], 0
    while done < requests:
        if not active:
            now = max(now, coming[0][0])
        joining = []
        while coming and coming[0][0] <= now:
            joining.append(made[heapq.heappop(coming)[1]])
        prompts = sum(each.tokens_in for each in joining)
        context = sum(each.tokens_in + len(each.times_ms) for each in active) + prompts
        now += scale * (ALPHA + BETA * len(active) + PREFILL * prompts + GAMMA * context)
        active += joining
        for request in active:
            request.times_ms.append(now)
        ended = [each for each in active if len(each.times_ms) == each.tokens_out]
        active = [each for each in active if len(each.times_ms) < each.tokens_out]
        done += len(ended)
        for _ in ended:
            if later < requests and not rate:
                made[later].start_ms = now + BETWEEN_MS
                heapq.heappush(coming, (made[later].start_ms, later))
                later += 1
    return Run(made, concurrency, rate)


def closed_loops(loops=(1, 4, 16), tokens_out=60):
    """Loads that tell the parameters apart: short and long prompts in loops of few and many requests."""
    return [simulate(max(110, 12 * loop), tokens_in, tokens_out, concurrency=loop, seed=loop + tokens_in)
            for loop in loops for tokens_in in (150, 900)]


def open_loops(rates=(1, 4, 8), tokens_out=60):
    """The same at random, from a tenth to most of what the server can take."""
    return [simulate(300, tokens_in, tokens_out, rate=rate, seed=round(10 * rate) + tokens_in)
            for rate in rates for tokens_in in (150, 900)]


def mean(values):
    return sum(values) / len(values) if values else 0.0


def deviation(values):
    middle = mean(values)
    return mean([(each - middle) ** 2 for each in values]) ** 0.5


def percentile(values, part):
    ordered = sorted(values)
    return ordered[int(part / 100 * (len(ordered) - 1))] if ordered else 0.0
