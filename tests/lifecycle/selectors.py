"""Doubles of engines whose adapters a request selects: honest, or with one named lie."""

import asyncio
import math

from tests.lifecycle.doubles import Double, respond

SPREAD = {None: 0.0, "a": 0.2, "b": 0.5, "c": 0.9}


class Llama(Double):
    """llama.cpp: adapters a, b and c by the scales of a request."""

    names = ("a", "b", "c")

    def __init__(self, lie=""):
        super().__init__(lie)
        self.asked = 0

    async def answer(self, method, path, value):
        if path == "/lora-adapters":
            names = self.names[:2] if self.lie == "list forgets an adapter" else self.names
            return respond(
                200, [{"id": number, "path": f"/{name}.gguf", "scale": 0.0} for number, name in enumerate(names)]
            )
        self.asked += 1
        chosen = [self.names[one["id"]] for one in value["lora"] if one["scale"] > 0 and one["id"] < 3]
        alias = chosen[0] if chosen else None
        if self.lie == "adapter silently answered by the base" and alias == "b":
            alias = None
        if self.lie == "one adapter for all" and alias is not None:
            alias = "a"
        if self.lie == "base not restored" and alias is None and self.asked > 8:
            alias = "c"
        if self.lie == "undeclared adapter served" and any(one["id"] > 2 for one in value["lora"]):
            alias = "b"
        place = SPREAD[alias]
        if self.lie == "another answer when selected again" and alias == "a" and self.asked > 8:
            place += 0.05
        chances = {"x": 0.05 + place / 2, "y": 0.9 - place / 2}
        rows = [{"token": token, "logprob": math.log(chance)} for token, chance in chances.items()]
        content = [] if self.lie == "no probabilities" else [{**rows[0], "top_logprobs": rows}]
        text = "" if self.lie == "empty answer" else f"text {alias}"
        return respond(
            200,
            {
                "model": "m",
                "choices": [{"message": {"content": text}, "logprobs": {"content": content}, "finish_reason": "stop"}],
            },
        )


class Sie(Double):
    """SIE: the first request for an adapter loads it, two stay, the least recently used goes; its log tells of both."""

    def __init__(self, lie, log):
        super().__init__(lie)
        self.log, self.loaded, self.loading, self.model_loading = log, [], set(), 1
        self.log.write_text("")

    def tell(self, line):
        with self.log.open("a") as file:
            file.write(f"12:00:00 INFO     sie_server.core.registry: {line}\n")

    def bring(self, path):
        """Begin to load; the adapter that has to go goes at once, even for one that does not exist."""
        if len(self.loaded) >= 2 and self.lie != "residency above capacity":
            gone = self.loaded[-1 if self.lie == "the most recently used evicted" else 0]
            if self.lie != "log forgets the eviction":
                self.tell(f"LoRA LRU eviction for model 'm': evicting '{gone}' (max=2)")
            self.loaded.remove(gone)
        if not path.endswith("nowhere"):
            self.loaded.append(path)
            if self.lie != "log forgets the load":
                self.tell(f"LoRA '{path}' loaded for model 'm' (0.14 MB)")

    async def answer(self, method, path, value):
        chosen = value.get("params", {}).get("options", {}).get("lora_id")
        if self.lie == "hangs":
            await asyncio.sleep(3)
        more = {} if self.lie == "503 without Retry-After" else {"retry_after": "0.01"}
        if self.model_loading:
            self.model_loading -= 1
            return respond(503, {"detail": {"code": "MODEL_LOADING", "message": "loading"}}, **more)
        if chosen is not None and chosen not in self.loaded:
            self.bring(chosen)
            return respond(503, {"detail": {"code": "LORA_LOADING", "message": "loading"}}, **more)
        if chosen is not None:
            self.loaded.remove(chosen)
            self.loaded.append(chosen)
        turn = SPREAD[None if chosen is None else chosen[-1]]
        if self.lie == "adapter silently answered by the base":
            turn = 0.0
        vector = [round(math.cos(turn), 9), round(math.sin(turn), 9)]
        items = [{"dense": {"dims": 2, "dtype": "float32", "values": vector}} for _ in value["items"]]
        return respond(200, {"model": "m", "items": [] if self.lie == "empty answer" else items})
