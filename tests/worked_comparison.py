"""Writes docs/worked-comparison.md from one repetition that the demo recorded: `python -m tests.worked_comparison`.

Every number on the page is worked out here from `tests/vectors/worked-comparison/`, and must equal the decision that
the builder made of the same run.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/worked-comparison.md"
VECTORS = ROOT / "tests/vectors/worked-comparison"
REPETITION = 3


def read(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"), parse_float=str)


def indent(value: Any) -> str:
    """JSON as it stands in a package: times with the digits that were written."""
    text = json.dumps(value, indent=2, sort_keys=True)
    for key in ("startedSeconds", "endedSeconds", "sendLagSeconds", "totalSeconds", "ttftSeconds"):
        text = "\n".join(
            line.replace('"', "").replace(f"  {key}:", f'  "{key}":') if f'"{key}": "' in line else line
            for line in text.splitlines()
        )
    return text


def nearest_rank(rows: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """Rank ceil(0.95 n) in integers, and the sample that stands there."""
    ordered = sorted(rows, key=lambda row: Fraction(row["ttftSeconds"]))
    rank = -(-95 * len(ordered) // 100)
    return rank, ordered[rank - 1]


def ladder(rows: list[dict[str, Any]], rank: int) -> str:
    ordered = sorted(rows, key=lambda row: Fraction(row["ttftSeconds"]))
    return "\n".join(
        f"{place:>2}  {row['ttftSeconds']:<12}{row['offer']}{'   <- p95' if place == rank else ''}"
        for place, row in enumerate(ordered, 1)
    )


def nanoseconds(text: str) -> int:
    value = Fraction(text) * 10**9
    assert value.denominator == 1
    return value.numerator


def render() -> str:
    """The page."""
    samples, receipt, decision = read("samples.json"), read("receipt.json"), read("decision.json")
    arms = {arm: [row for row in samples if row["arm"] == arm] for arm in "AB"}
    rank, slow_a = nearest_rank(arms["A"])
    _, slow = nearest_rank(arms["B"])
    request, response = (VECTORS / "request.body").read_bytes(), (VECTORS / "response.body").read_bytes()
    for side, body in (("request", request), ("response", response)):
        assert hashlib.sha256(body).hexdigest() == slow[f"{side}Sha256"] == receipt[f"{side}Sha256"]
        assert len(body) == slow[f"{side}Bytes"] == receipt[f"{side}Bytes"]
    events = [event for event in response.decode().split("\n\n") if event]
    texts = [json.loads(event[6:])["choices"] for event in events[:-1]]
    first = next(at for at, choices in enumerate(texts) if choices and choices[0]["delta"].get("content"))

    pair = next(pair for pair in decision["pairs"] if pair["repetition"] == REPETITION)
    base, cand = nanoseconds(slow_a["ttftSeconds"]), nanoseconds(slow["ttftSeconds"])
    assert (pair["baseline"]["p95TtftSeconds"], pair["candidate"]["p95TtftSeconds"]) == (
        slow_a["ttftSeconds"], slow["ttftSeconds"])  # fmt: skip
    relative = Fraction(cand - base, base)
    rows = {
        gate["gate"]: [row for row in gate["rows"] if row["repetition"] == REPETITION] for gate in decision["gates"]
    }
    assert Fraction(rows["latency-regression"][0]["relative"]) == relative
    tokens = {arm: sum(row["completionTokens"] for row in arms[arm]) for arm in "AB"}
    assert tokens["A"] == rows["token-volume"][0]["baseline"]
    memory = {shot["arm"]: shot["devices"][0]["usedBytes"] for shot in read("snapshots.json")}
    saved = Fraction(memory["A"] - memory["B"], memory["A"])
    assert saved == Fraction(rows["memory-reduction"][0]["relative"])
    gap = abs(tokens["B"] - tokens["A"])

    def holds(left: int, right: int) -> str:
        return "holds" if left <= right else "does not hold"

    def percent(part: Fraction) -> str:
        return f"{float(part):.2%}".replace("%", " %")

    return f"""\
# One comparison, worked out by hand

Written by `tests/worked_comparison.py` from repetition {REPETITION} of a run of the demo's `demo-memory`; a test holds it to the
recorded bytes. The engine is synthetic, so the numbers show the arithmetic and nothing about a model. Files are named
as in [the formats](format.md).

The question: with `--context-tokens 1024` in place of `4096`, is at least 30 % of the memory saved, and is the time to
first text at most 5 % longer? Both arms offer the same fixed body {len(arms["A"])} times, eight at a time, in three repetitions.

## 1. A sample is what the client saw

From `samples.json`; of this arm it is the one that will decide:

```json
{indent(slow)}
```

`requestSha256` names a file in `bodies/`, the {len(request)} bytes that were sent. `responseSha256` names the {len(response)} bytes that came
back; of its {len(events)} events these are the first with text, the one with the finish reason, and the last two:

```text
{events[first]}

{events[-3]}

{events[-2]}

{events[-1]}
```

The event before the first of these carries a role and an empty string: it is not text, and does not stop the clock of
`ttftSeconds`. Status 200, a text that is not empty, finish reason `stop` and `[DONE]` make the sample `NORMAL`; the tokens
are those of `usage`. Only the times are not in the bytes: they are what the client wrote down.

## 2. A receipt is what stood in front of the worker

From `ledgers/r{REPETITION}-b.{slow["worker"]}.json`, written by the recording proxy, which shares no code with the client:

```json
{indent(receipt)}
```

The same two hashes, so client and proxy saw the same bytes. Each traffic receipt belongs to one sample and each sample
to one receipt. The proxy's clock is another one, but on it the exchange took {seconds(receipt)} s, and the client, who stood
behind it, cannot have had less: {slow["totalSeconds"]} s.

## 3. p95 is the {rank}rd of {len(arms["B"])}

Nearest rank: the value at rank ceil(0.95 x {len(arms["B"])}) = {rank}, with nothing interpolated. Arm A:

```text
{ladder(arms["A"], rank)}
```

Arm B:

```text
{ladder(arms["B"], rank)}
```

## 4. Gates in fractions

No float decides. Times are taken as they were written, in nanoseconds, and both sides are multiplied out.

| gate | baseline | candidate | must hold | worked out | |
|---|---|---|---|---|---|
| `token-volume` | {tokens["A"]} | {tokens["B"]} | 20 x \\|c - b\\| <= b | {20 * gap} <= {tokens["A"]} | {holds(20 * gap, tokens["A"])} |
| `memory-reduction` | {memory["A"]} | {memory["B"]} | 10 x c <= 7 x b | {10 * memory["B"]} <= {7 * memory["A"]} | {holds(10 * memory["B"], 7 * memory["A"])} |
| `latency-regression` | {base} | {cand} | 20 x c <= 21 x b | {20 * cand} <= {21 * base} | {holds(20 * cand, 21 * base)} |

`decision.json` keeps the ratios as reduced fractions: memory (b - c)/b = `{saved.numerator}/{saved.denominator}`, latency (c - b)/b =
`{relative.numerator}/{relative.denominator}`, which is {percent(relative)} and leaves {percent(Fraction(1, 20) - relative)} to the gate. The same is asked of every repetition, and
of each device; one row that does not hold retains the baseline. Here all hold: `{decision["decision"]}`.

## 5. Again, by yourself

In an unpacked package, with nothing but `python3`:

```sh run
tar -xzf demo-evaluation.tgz
python3 - demo/results/settings/*/samples.json <<'END'
{SCRIPT.strip()}
END
```
"""


SCRIPT = """
import json, sys
from fractions import Fraction
for path in sys.argv[1:]:
    document = json.load(open(path), parse_float=Fraction)
    for repetition in 1, 2, 3:
        p95 = {}
        for arm in "AB":
            times = sorted(row["ttftSeconds"] for row in document["samples"]
                           if (row["repetition"], row["arm"], row["phase"]) == (repetition, arm, "main"))
            p95[arm] = times[22]
        print(document["comparison"], repetition, float(p95["A"]), float(p95["B"]), 20 * p95["B"] <= 21 * p95["A"])
"""


def seconds(receipt: dict[str, Any]) -> str:
    took = Fraction(receipt["endedSeconds"]) - Fraction(receipt["startedSeconds"])
    return f"{float(took):.9f}".rstrip("0")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
