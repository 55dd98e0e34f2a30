"""A real browser: Chromium without a window, the network off, spoken to through a pipe."""

import base64
import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
KEYS = {"Tab": 9, "Enter": 13, " ": 32, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40}


def _gone():
    raise EOFError("the browser has ended")


class Tab:
    """One tab of a browser that is spoken to through a pipe."""

    def __init__(self, program: str, profile: str) -> None:
        here, there = os.pipe(), os.pipe()
        words = f"exec {program} --headless --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage"
        words += f" --user-data-dir={profile} --remote-debugging-pipe 3<&{here[0]} 4>&{there[1]}"
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(["bash", "-c", words], pass_fds=(here[0], there[1]), **quiet)
        os.close(here[0])
        os.close(there[1])
        self.write, self.read = os.fdopen(here[1], "wb", 0), os.fdopen(there[0], "rb", 0)
        self.rest, self.count, self.events, self.session = b"", 0, [], ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def ask(self, method, **parameters):
        """What the browser answers; what it tells meanwhile is kept."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        self.write.write(json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                self.rest += self.read.read(2**16) or _gone()
            line, _, self.rest = self.rest.partition(b"\0")
            told = json.loads(line)
            if told.get("id") == self.count:
                assert "error" not in told, told
                return told["result"]
            self.events.append(told)

    def js(self, expression):
        """The value of an expression in the page, after it has drawn."""
        code = f"new Promise(done => requestAnimationFrame(() => setTimeout(() => done({expression}), 20)))"
        found = self.ask("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, *keys, shift=False):
        """Keys as a person presses them."""
        for key in keys:
            code = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
            code |= {"modifiers": 8 if shift else 0}
            text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
            self.ask("Input.dispatchKeyEvent", type="keyDown", **code, **text)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **code)

    def open(self, address, ready="true"):
        """Load a page anew, until an expression in it is true."""
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=address)
        while not self.js(f"document.readyState === 'complete' && location.href !== 'about:blank' && {ready}"):
            time.sleep(0.05)

    def picture(self, file, **view):
        """A screenshot of the whole page."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True, **view)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def opened_tab(profile):
    """A tab of whichever Chromium is installed."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    assert program, "no Chromium is installed: apt install chromium"
    opened = Tab(program, str(profile))
    try:
        yield opened
    finally:
        opened.write.close()
        opened.read.close()
        opened.process.terminate()
        opened.process.wait(20)


def troubles(tab):
    """What the console and the log say of errors, and every address but those of files."""
    said = [e for e in tab.events if e["method"] == "Runtime.exceptionThrown"]
    said += [e for e in tab.events if e["method"] == "Log.entryAdded" and e["params"]["entry"]["level"] == "error"]
    said += [e for e in tab.events if e["method"] == "Runtime.consoleAPICalled"]
    asked = [e["params"]["request"]["url"] for e in tab.events if e["method"] == "Network.requestWillBeSent"]
    return said + [url for url in asked if not url.startswith(("file:", "about:", "data:"))]
