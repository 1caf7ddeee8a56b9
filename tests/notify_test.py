#!/usr/bin/python3
"""Who a run's `notify` names is told: by a real HTTP server, by a command, and by what stands for sendmail; again where
it fails, once each, and never at the expense of the run."""

import hashlib
import hmac
import http.server
import json
import os
import threading
import time
import unittest

from berth_case import Case, until


class Hook:
    """Takes what is posted; answers with these codes, one after the other, then 200. None: it never answers."""

    def __init__(self, *codes):
        self.codes, self.got, self.over = list(codes), [], threading.Event()
        hook = self

        class Take(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.got.append((dict(self.headers), body))
                code = hook.codes.pop(0) if hook.codes else 200
                if code is None:
                    hook.over.wait()
                    return
                self.send_response(code)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Take)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


class NotifyTest(Case):
    def hook(self, *codes):
        hook = Hook(*codes)
        self.addCleanup(hook.close)
        return hook

    def log(self, run):
        path = self.house.state / f"runs/{run}/notified/log"
        return path.read_text() if path.exists() else ""

    def test_a_webhook_is_signed_and_told_again_where_it_fails(self):
        hook = self.hook(503)
        self.write("secret", "s3cret\n")
        self.write("sweep.yaml", f"""
name: a
run: '[ {{x}} != 2 ] && echo ::berth acc={{x}}'
params: {{x: [1, 2, 3]}}
goal: {{metric: acc}}
parallel: 1
notify: [{{webhook: '{hook.url}', secret_file: secret, on: [end, failure, first_result]}}]
""")
        self.assertEqual(self.house.run("run", "sweep.yaml").code, 1)
        until(lambda: self.log("a-1").count(": done\n") == 3, "all have been told", 30)
        told = {}
        for headers, body in hook.got:
            self.assertEqual(headers["Berth-Signature"],
                             "sha256=" + hmac.new(b"s3cret", body, hashlib.sha256).hexdigest())
            said = json.loads(body)
            self.assertEqual(said["event"], headers["Berth-Event"])
            told.setdefault(said["event"], []).append(said)
        self.assertEqual(sum(map(len, told.values())), 4, "one of them was refused once")
        self.assertIn("answers 503", self.log("a-1"))
        self.assertEqual(told["failure"][0]["task"], "a-1/2")
        self.assertIn("a-1/2 failed: exit 1", told["failure"][0]["text"])
        self.assertIn("a-1/1 is the first that is done: acc 1", told["first_result"][0]["text"])
        self.assertEqual((told["end"][0]["state"], told["end"][0]["counts"]["done"]), ("failed", 2))
        self.assertIn("best a-1/3", told["end"][0]["text"])

    def test_a_server_that_never_answers_holds_up_nothing(self):
        hook = self.hook(None)
        began = time.monotonic()
        self.assertEqual(self.house.run("run", "--notify", hook.url, "--name", "b", "--", "true").code, 0)
        self.assertLess(time.monotonic() - began, 15)
        until(lambda: hook.got, "it has been called", 30)

    def test_a_mail_and_a_command(self):
        self.script("bin/sendmail", f'#!/bin/sh\n{{ echo "$@"; cat; }} > {self.dir}/new.$$; mv {self.dir}/new.$$ {self.dir}/mail.$$\n')
        self.house.environment["PATH"] = f"{self.dir}/bin:" + os.environ["PATH"]
        self.write("flow.yaml", """
name: f
steps: {a: {out: {o: o.txt}, run: 'echo > {out.o}'}}
notify:
- {mail: me@example.com}
- {mail: you@example.com}
- {run: 'echo "$BERTH_EVENT $BERTH_RUN $BERTH_RUN_STATE" > told.new && test -s $BERTH_RUN_JSON && mv told.new told'}
""")
        self.assertEqual(self.house.run("run", "flow.yaml").code, 0)
        told = self.dir / "told"

        def mails():
            return sorted(path.read_text() for path in self.dir.glob("mail.*"))

        until(lambda: told.exists() and len(mails()) == 2, lambda: self.log("f-1"), 30)
        self.assertEqual(told.read_text(), "end f-1 done\n")
        for who, text in zip(("me", "you"), mails()):
            self.assertTrue(text.startswith(f"-oi -t\nTo: {who}@example.com\nSubject: f-1: end\n"), text)
            self.assertIn("f-1 is done: 1 done", text)
        # Each end is told once, whoever looks at it again; a person may have it told again.
        until(lambda: self.log("f-1").count(": done\n") == 3, "all are marked", 30)
        told.unlink()
        self.house.run("resume", "f-1")
        self.assertEqual(self.house.run("notify", "f-1").code, 0)
        self.assertEqual(told.read_text(), "end f-1 done\n")
        self.assertEqual(self.log("f-1").count(": done\n"), 3)

    def test_a_standstill(self):
        hook, patient = self.hook(), self.hook()
        self.write("s.yaml", f"run: 'sleep 600 # {{x}}'\nparams: {{x: [1]}}\n"
                   f"notify: [{{webhook: '{hook.url}', on: stalled, stalled_after: 1s}},\n"
                   f"  {{webhook: '{patient.url}', on: stalled, stalled_after: 1h}}]\n")
        run = self.house.start("run", "s.yaml")
        until(lambda: hook.got, "it is told", 90)
        self.assertIn("s-1 is stalled: 1 running", json.loads(hook.got[0][1])["text"])
        self.house.run("stop", "s-1")
        run.wait(timeout=60)
        self.assertEqual((len(hook.got), len(patient.got)), (1, 0))

    def test_wrong_words(self):
        self.write("s.yaml", "run: 'true # {x}'\nparams: {x: [1]}\nnotify: {webhook: nowhere}\n")
        done = self.house.run("run", "s.yaml")
        self.assertEqual(done.code, 2)
        self.assertIn(b"s.yaml:3: notify.webhook: expected an http or https URL, got 'nowhere'", done.err)
        self.assertIn(b"--notify: expected mail:ADDRESS", self.house.run("run", "--notify", "mail:me", "--", "true").err)
        self.house.run("run", "--name", "c", "--", "true")
        self.assertIn(b"has no one to notify", self.house.run("notify", "c-1").err)


if __name__ == "__main__":
    unittest.main()
