"""Debian's Chromium, driven through its DevTools protocol: messages of JSON, each ended by a NUL, over two pipes.

Skips where there is none. Nothing that is asked for leaves the machine: what a page asks of others is recorded.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

PATIENCE_S = 30
KEYS = {"Enter": ("\r", 13), "Tab": ("", 9), "Escape": ("", 27), " ": (" ", 32), "ArrowDown": ("", 40), "ArrowUp": ("", 38),
        "ArrowRight": ("", 39), "ArrowLeft": ("", 37)}


class Chromium:
    def __init__(self, directory):
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        program = shutil.which("chromium")
        # Root has no sandbox to give, and a container's /dev/shm may be small.
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", program, "--headless=new", "--no-sandbox",
             "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--hide-scrollbars", f"--user-data-dir={directory}", "--remote-debugging-pipe",
             "about:blank"],
            pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(directory)})
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.answers, self.pages = b"", 0, {}, {}

    def call(self, method, session=None, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        deadline = time.monotonic() + PATIENCE_S
        while number not in self.answers:
            self.listen(deadline - time.monotonic(), method)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def listen(self, seconds, what):
        ready, _, _ = select.select([self.into], [], [], max(0, seconds))
        part = os.read(self.into, 1 << 20) if ready else b""
        if not part:
            raise AssertionError(f"Chromium does not answer {what}")
        *messages, self.buffer = (self.buffer + part).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            elif page := self.pages.get(message.get("sessionId")):
                page.heard(message["method"], message["params"])

    def page(self, *, dark=False, width=1200, height=900):
        """A page of a viewer of its own: no other has its cookies."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context, width=width, height=height)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.look(dark=dark)
        page.resize(width, height)
        return page

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)


class Page:
    """What a viewer sees and does. `errors`: what its console and its scripts complained of."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.errors, self.requests, self.dialogs = [], [], []

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def heard(self, method, parameters):
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(each.get("value", each.get("description"))) for each in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(parameters["message"])

    def look(self, *, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, script):
        """What an expression, or the promise that it is, comes to."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"].get("exception", {}).get("description"))
        return found["result"].get("value")

    def until(self, script, patience_s=PATIENCE_S):
        deadline = time.monotonic() + patience_s
        while not (value := self.run(script)):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {patience_s} s in vain: {script}\n{self.errors}\n{self.text()[:2000]}")
            time.sleep(0.03)
        return value

    def text(self):
        return self.run("document.body.innerText")

    def until_text(self, *texts):
        for text in texts:
            self.until(f"document.body.textContent.includes({json.dumps(text)})")

    def press(self, *keys):
        for key in keys:
            text, code = KEYS.get(key, (key, ord(key[0])))
            common = {"key": key, "code": key if len(key) > 1 else "", "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def tab_to(self, text):
        """Tabs until what has the focus bears the text: what a keyboard does not reach fails."""
        for _ in range(200):
            self.press("Tab")
            if self.run(f"document.activeElement.innerText?.trim() === {json.dumps(text)}"):
                return
        raise AssertionError(f"the keyboard does not reach {text!r}")

    def screenshot(self, path):
        """The whole page, not only what the window shows of it."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        Path(path).write_bytes(base64.b64decode(data))
