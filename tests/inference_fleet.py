"""A fleet of inference servers, simulated in real time, that tells Prometheus of itself as vLLM does.

Each replica batches continuously: an iteration takes alpha + beta·(tokens of decodes and prompts) + gamma·(tokens
attended to), prompts are taken in whole by the next iteration. Nothing sleeps: whoever looks has all done up to now.
Times are those of the document, divided by `speed`, so that an hour passes in minutes.
"""

import http.server
import random
import threading
import time
from bisect import bisect_left

TTFT_LE = [.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560]


class Histogram:
    def __init__(self):
        self.counts, self.sum = [0] * (len(TTFT_LE) + 1), 0.0

    def add(self, value):
        self.counts[bisect_left(TTFT_LE, value)] += 1
        self.sum += value

    def text(self, name, labels):
        lines, count = [f"# TYPE {name} histogram"], 0
        for le, more in zip(TTFT_LE + ["+Inf"], self.counts):
            count += more
            lines.append(f'{name}_bucket{{{labels},le="{le}"}} {count}')
        return lines + [f"{name}_sum{{{labels}}} {self.sum}", f"{name}_count{{{labels}}} {count}"]


class Replica:
    def __init__(self, perf, batch, now):
        self.alpha, self.beta, self.gamma = perf
        self.batch, self.at = batch, now
        self.waiting, self.decoding = [], []  # [arrival, in, out]; [tokens of context, tokens left]
        self.ttft, self.itl, self.prompts, self.answers = Histogram(), Histogram(), Histogram(), Histogram()
        self.ended = 0
        self.log = []  # of each request its time to the first token, in seconds

    def advance(self, until):
        while self.at < until:
            if not self.waiting and not self.decoding:
                self.at = until
                return
            taken, self.waiting = (self.waiting[:max(0, self.batch - len(self.decoding))],
                                   self.waiting[max(0, self.batch - len(self.decoding)):])
            prompt = sum(request[1] for request in taken)
            step = (self.alpha + self.beta * (prompt + len(self.decoding))
                    + self.gamma * (prompt + sum(context for context, _ in self.decoding))) / 1000
            self.at += step
            left = []
            for context, tokens in self.decoding:
                self.itl.add(step)
                if tokens > 1:
                    left.append((context + 1, tokens - 1))
                else:
                    self.ended += 1
            for arrival, tokens_in, tokens_out in taken:
                self.ttft.add(self.at - arrival)
                self.log.append((arrival, self.at - arrival))
                self.prompts.add(tokens_in)
                self.answers.add(tokens_out)
                left.append((tokens_in + 1, tokens_out - 1))
            self.decoding = left

    def text(self, model):
        labels = f'model_name="{model}",engine="0"'
        lines = []
        for name, gauge in (("running", len(self.decoding)), ("waiting", len(self.waiting))):
            lines += [f"# TYPE vllm:num_requests_{name} gauge", f"vllm:num_requests_{name}{{{labels}}} {gauge}"]
        lines += ["# TYPE vllm:request_success_total counter",
                  f'vllm:request_success_total{{{labels},finished_reason="stop"}} {self.ended}']
        for name, histogram in (("time_to_first_token_seconds", self.ttft), ("time_per_output_token_seconds", self.itl),
                                ("request_prompt_tokens", self.prompts), ("request_generation_tokens", self.answers)):
            lines += histogram.text(f"vllm:{name}", labels)
        return "\n".join(lines) + "\n"


class Fleet:
    """`perf`: alpha, beta, gamma in ms; `rate(t)`: requests a second at t seconds; each of `tokens`: in and out."""

    def __init__(self, model, perf, batch, rate, tokens, startup_s=0.0, replicas=1, seed=1):
        self.model, self.perf, self.batch, self.rate, self.tokens = model, perf, batch, rate, tokens
        self.startup_s = startup_s
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.begin = time.monotonic()
        self.replicas = [Replica(perf, batch, 0.0) for _ in range(replicas)]
        self.gone = []
        self.starting = []  # when each serves
        self.wanted = [(0.0, replicas)]
        self.next = 0.0
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server, self.port = server, server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def now(self):
        return time.monotonic() - self.begin

    def scale(self, replicas):
        """As an autoscaler does: new ones serve after a while, old ones end what they have."""
        with self.lock:
            now = self.now()
            self.advance(now)
            if replicas != self.wanted[-1][1]:
                self.wanted.append((now, replicas))
            while len(self.replicas) + len(self.starting) < replicas:
                self.starting.append(now + self.startup_s)
            while self.starting and len(self.replicas) + len(self.starting) > replicas:
                self.starting.pop()
            while len(self.replicas) > max(1, replicas):
                self.gone.append(self.replicas.pop())

    def advance(self, until):
        while True:
            start = min(self.starting, default=until)
            if min(start, self.next) >= until:
                break
            if start <= self.next:
                self.starting.remove(start)
                self.replicas.append(Replica(self.perf, self.batch, start))
                continue
            replica = self.random.choice(self.replicas)
            replica.advance(self.next)
            replica.waiting.append((self.next, *self.tokens(self.random)))
            self.next += self.random.expovariate(self.rate(self.next))
        for replica in self.replicas + self.gone:
            replica.advance(until)

    def log(self):
        """Of each request so far when it came and its seconds to the first token."""
        with self.lock:
            self.advance(self.now())
            return sorted(entry for replica in self.replicas + self.gone for entry in replica.log)

    def targets(self, most):
        """For Prometheus: so many replicas, of which those that are not there do not answer."""
        return [{"targets": [f"127.0.0.1:{self.port}"],
                 "labels": {"__metrics_path__": f"/{i}", "instance": f"{self.model}-{i}"}} for i in range(most)]

    def handler(fleet):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                with fleet.lock:
                    fleet.advance(fleet.now())
                    i = int(self.path[1:])
                    text = fleet.replicas[i].text(fleet.model) if i < len(fleet.replicas) else None
                self.send_response(200 if text else 503)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write((text or "").encode())

            def log_message(self, *_):
                pass
        return Handler
