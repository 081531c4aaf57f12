"""Headless Chromium over a pair of pipes: opens a page, evaluates expressions, and keeps all that it said or asked for."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps", "--mute-audio",
]  # fmt: skip


class Browser:
    """One page of one browser; `said` holds console errors and exceptions, `asked` the addresses it tried to load."""

    def __init__(self) -> None:
        self.home = tempfile.mkdtemp(prefix="evidence-browser-")
        down, up = os.pipe(), os.pipe()
        # The browser reads its commands from descriptor 3 and answers on descriptor 4.
        command = f'exec "$0" "$@" 3<&{down[0]} 4>&{up[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, CHROMIUM, *QUIET, "--remote-debugging-pipe", f"--user-data-dir={self.home}", "about:blank"],
            pass_fds=(down[0], up[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(down[0])
        os.close(up[1])
        self.commands, self.answers = os.fdopen(down[1], "wb", 0), os.fdopen(up[0], "rb")
        self.number, self.rest, self.session = 0, b"", ""
        self.said: list[str] = []
        self.asked: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Send one command and return its result; what is reported meanwhile is kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            piece = os.read(self.answers.fileno(), 1 << 16)
            assert piece, "the browser ended"
            self.rest += piece
        one, _, self.rest = self.rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(one)
        method, facts = answer.get("method"), answer.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(facts["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(facts["args"]))
        elif method == "Log.entryAdded":
            self.said.append(facts["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.asked.append(facts["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.said.append(f"dialog: {facts['message']}")
        return answer

    def open(self, path: Path, dark: bool = False) -> None:
        """Load the file and wait until it has loaded."""
        self.said.clear()
        self.asked.clear()
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.as_uri())
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        """The value of an expression in the page; an exception there fails the test."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def close(self) -> None:
        """End the browser and forget its profile."""
        self.commands.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.answers.close()
        shutil.rmtree(self.home, ignore_errors=True)
