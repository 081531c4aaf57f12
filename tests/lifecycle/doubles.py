"""Targets for the harnesses that run inside the test: honest, or with one named lie.

Every model that a `Supervisor` double has loaded owns a real child process, so that the system's account of it is real.
"""

import asyncio
import contextlib
import json
import math
import subprocess
import time

from evidence.errors import EvidenceError
from evidence.lifecycle.events import NAME, EventLog, parse_events
from evidence.supervisor.fleet import read_started
from evidence.supervisor.server import Request

MB = 1 << 20
TOTAL, SIZE = 1000 * MB, 200 * MB
WAIT = "0.02"


def respond(status, value, **headers):
    """A whole response."""
    body = json.dumps(value).encode()
    lines = [
        f"HTTP/1.1 {status} X",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
    ]
    lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Double:
    """One listening address; `answer(method, path, value)` gives the bytes to send, or None to hang."""

    def __init__(self, lie=""):
        self.lie = lie

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.handle, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.close()

    def close(self):
        """End what was started."""

    async def handle(self, reader, writer):
        request = Request()
        with contextlib.suppress(OSError):
            if await request.read(reader):
                value = request.json() if request.method == b"POST" else {}
                said = await self.answer(request.method.decode(), request.target.decode(), value)
                if said is None:
                    await reader.read()
                else:
                    writer.write(said)
                    await writer.drain()
        writer.close()


class Model:
    def __init__(self, name, pinned):
        self.name, self.pinned = name, pinned
        self.state, self.child, self.ticks, self.used, self.failed = "unloaded", None, None, 0.0, -1e9
        self.ready_at = 0.0

    def start(self):
        self.child = subprocess.Popen(["sleep", "60"])
        self.ticks = read_started(self.child.pid)

    def stop(self):
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None


class Supervisor(Double):
    """What `evidence serve` does, in the small."""

    def __init__(self, lie="", pinned="p", cooldown=0.1):
        super().__init__(lie)
        self.models = {name: Model(name, name == pinned) for name in ("p", "a", "b")}
        self.cooldown, self.ballast, self.account = cooldown, 0, []
        self.kept = []  # processes that a lie keeps alive
        self.withheld = 0  # memory that a lie gives back late
        self.crashed, self.reloads, self.first_pid = False, 0, {}

    def close(self):
        for model in self.models.values():
            model.stop()
        for child in self.kept:
            child.kill()
            child.wait()

    def free(self):
        if self.lie == "memory 0":
            return 0
        return TOTAL - SIZE * sum(m.child is not None for m in self.models.values()) - self.ballast - self.withheld

    def note(self, what, model):
        self.account.append({"event": what, "t": time.monotonic(), "model": model, "device_free_bytes": self.free()})

    def settle(self):
        """Find crashes and finish loads."""
        now = time.monotonic()
        for m in self.models.values():
            if m.state == "loaded" and m.child is not None and m.child.poll() is not None:
                self.crashed = True
                if self.lie == "hang after SIGKILL":
                    continue
                m.child, m.state, m.failed = None, "cooldown", now
            if m.state == "loading" and now >= m.ready_at:
                m.state = "loaded"
                if self.crashed and self.lie == "recovery by a second reload" and not self.reloads:
                    self.reloads += 1
                if self.lie == "healthy engine restarted silently" and self.crashed:
                    self.models["p"].stop()
                    self.models["p"].start()

    def begin(self, m):
        if self.free() < SIZE and self.lie != "no eviction":
            loaded = [
                o for o in self.models.values() if o.state == "loaded" and (not o.pinned or self.lie == "pin evicted")
            ]
            gone = min(loaded, key=lambda o: o.used)
            if self.lie == "evicted model keeps its process":
                self.kept.append(gone.child)
                gone.child = None
            if self.lie == "evicted only after the load":
                self.late = gone
            else:
                gone.stop()
                gone.state = "unloaded"
                self.note("evicted", gone.name)
        self.note("load_started", m.name)
        m.state, m.ready_at = "loading", time.monotonic() + 0.05
        m.start()

    async def answer(self, method, path, value):
        self.settle()
        if path == "/v1/models":
            return respond(200, self.listing())
        if path == "/admin/events":
            return respond(200, {"events": self.account, "now": 0})
        if path == "/admin/ballast":
            self.ballast = value["bytes"]
            return respond(200, {})
        m = self.models[value["model"]]
        if path == "/admin/unload":
            if self.lie == "unload keeps serving":
                self.kept.append(m.child)
                m.child = None
            if self.lie == "memory freed late":
                self.withheld = SIZE
            m.stop()
            m.state = "unloaded"
            return respond(200, {})
        return await self.chat(m)

    async def chat(self, m):
        now = time.monotonic()
        if m.state == "loaded" and m.child is not None and m.child.poll() is None:
            m.used = now
            if self.lie == "health 200 while chat hangs" and m.pinned:
                return None
            if getattr(self, "late", None) is not None:
                late, self.late = self.late, None
                await asyncio.sleep(0.1)
                late.stop()
                late.state = "unloaded"
                self.note("evicted", late.name)
            if self.crashed and self.lie == "recovery by a second reload" and self.reloads == 1 and not m.pinned:
                self.reloads = 2
                await asyncio.sleep(0.15)
                m.stop()
                m.start()
                await asyncio.sleep(0.15)
            name = "p" if self.lie == "response from the wrong model" else m.name
            text = "" if self.lie == "empty answer" else "Blue."
            return respond(200, {"model": name, "choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
        if (m.state == "cooldown" and now < m.failed + self.cooldown) or m.state == "loaded":
            error = {"code": "MODEL_LOAD_FAILED", "permanent": self.lie == "cooldown called permanent"}
            more = {"retry_after": WAIT} if self.lie == "502 with Retry-After" else {}
            return respond(
                503 if self.lie == "cooldown told as loading" else 502,
                {"error": error},
                **({"retry_after": WAIT} if self.lie == "cooldown told as loading" else more),
            )
        if m.state in ("unloaded", "cooldown"):
            self.begin(m)
            self.first_pid.setdefault(m.name, m.child.pid)
        if self.lie == "502 without Retry-After while it loads" and self.crashed:
            return respond(502, {"error": {"code": "MODEL_LOAD_FAILED", "permanent": False}})
        more = {} if self.lie == "503 without Retry-After" else {"retry_after": WAIT}
        return respond(503, {"error": {"code": "MODEL_LOADING", "permanent": False}}, **more)

    def listing(self):
        rows = []
        for m in self.models.values():
            shown = m.state in ("loaded", "loading") and m.child is not None
            pid, ticks = (m.child.pid, m.ticks) if shown else (None, None)
            if self.lie == "process id reused" and self.crashed and m.name in self.first_pid and shown:
                pid = self.first_pid[m.name]
            pinned = m.pinned and self.lie != "list forgets the pin"
            rows.append(
                {
                    "id": m.name,
                    "state": m.state,
                    "pid": pid,
                    "started_ticks": ticks,
                    "reservation_bytes": SIZE,
                    "pinned": pinned,
                }
            )
        return {
            "data": rows,
            "device": {"source": "process-rss-against-budget", "total_bytes": TOTAL, "free_bytes": self.free()},
        }


class Vllm(Double):
    """Adapters by name, as vLLM has them."""

    def __init__(self, lie="", pid=0):
        super().__init__(lie)
        self.ready, self.served, self.ever, self.pid, self.asked = set(), set(), set(), pid, 0

    def words(self, alias):
        """(text, probabilities of the first token) of the base (None) or an adapter."""
        self.asked += 1
        if alias is None and self.lie == "base not restored" and self.asked > 8:
            alias = "d"
        if self.lie == "adapter silently answered by the base":
            alias = None
        place = {None: 0, "pin": 1, "a": 2, "b": 3, "c": 4, "d": 5}.get(alias, 0)
        return f"text {place}", {f"t{place}": 0.6, "x": 0.1 + place / 100}

    async def answer(self, method, path, value):
        if path == "/v1/models":
            shown = self.ready - ({"pin"} if self.lie == "list forgets the pinned adapter" else set())
            shown |= self.ever if self.lie == "residency above capacity" else set()
            return respond(200, {"data": [{"id": "base"}, *({"id": one, "parent": "base"} for one in shown)]})
        if path == "/v1/load_lora_adapter":
            self.ready.add(value["lora_name"])
            self.ever.add(value["lora_name"])
            self.served.add(value["lora_name"])
            return respond(404 if self.lie == "load fails" else 200, {})
        if path == "/v1/unload_lora_adapter":
            if self.lie != "unload forgets nothing":
                self.ready.discard(value["lora_name"])
            if self.lie != "unload keeps serving the adapter":
                self.served.discard(value["lora_name"])
            return respond(200, {})
        name = value["model"]
        known = name == "base" or name in self.served or self.lie == "undeclared adapter served"
        if not known:
            return respond(404, {"error": {"code": 404, "message": "no such model"}})
        text, chances = self.words(None if name == "base" else name)
        rows = [{"token": token, "logprob": math.log(chance)} for token, chance in chances.items()]
        first = {**rows[0], "top_logprobs": [] if self.lie == "no probabilities" else rows}
        content = [] if self.lie == "no probabilities" else [first]
        return respond(
            200,
            {
                "model": name,
                "choices": [{"message": {"content": text}, "logprobs": {"content": content}, "finish_reason": "stop"}],
            },
        )


def carry_out(run, folder):
    """The raw events of `run(log)` in a folder, told to its end or until it could not go on."""
    folder.mkdir(exist_ok=True)
    log = EventLog(folder / NAME)
    try:
        asyncio.run(run(log))
    except EvidenceError as error:
        log.write("aborted", message=error.message)
    log.close()
    return parse_events((folder / NAME).read_bytes())
