#!/usr/bin/env python3
"""Seeded, untrained LoRA adapters for lifecycle runs: they show that an adapter is selected and that the base comes
back, and nothing of quality.

One rank-4 adapter (alpha 8) on the query and value projections of every layer, for one of two models, in one of two
forms. A seed, a scale and a model give the same numbers in both forms, and the same bytes on every machine: uniform
numbers of Python's generator with standard deviation SCALE, rounded to bfloat16. Needs the standard library alone.

    smollm2   PEFT (vLLM), or GGUF (llama.cpp): `--form gguf`
    minilm    PEFT (SIE)

usage: make_lora.py OUT_DIR ALIAS=SEED ... [--model smollm2|minilm] [--form peft|gguf] [--scale X]

Writes OUT_DIR/ALIAS/adapter_config.json and adapter_model.safetensors, or OUT_DIR/ALIAS.gguf, and prints the SHA-256
of each weights file. With the scale 0.2 a short greedy answer of SmolLM2 changes; 0.05 may leave it as it was.
"""

import argparse
import array
import hashlib
import json
import random
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RANK, ALPHA = 4, 8


@dataclass(frozen=True)
class Model:
    """Shape of a model as far as its adapters go: output width of query and value, and how PEFT names them."""

    hidden: int
    layers: int
    widths: tuple[int, int]
    names: tuple[str, str]
    path: str
    task: str
    heads: int


MODELS = {
    "smollm2": Model(
        576, 30, (576, 192), ("q_proj", "v_proj"), "model.layers.{layer}.self_attn.{name}", "CAUSAL_LM", 9
    ),
    "minilm": Model(
        384, 6, (384, 384), ("query", "value"), "encoder.layer.{layer}.attention.self.{name}", "FEATURE_EXTRACTION", 12
    ),
}


@dataclass(frozen=True)
class Matrix:
    """One half of an adapter at one projection; `rows` x `columns` upper halves of float32, row by row."""

    layer: int
    projection: int  # 0 query, 1 value
    side: str  # A or B
    rows: int
    columns: int
    halves: "array.array[int]"


def round_bfloat16(number: float) -> int:
    """The upper half of a float32, rounded to nearest, ties to even."""
    bits = int(struct.unpack("<I", struct.pack("<f", number))[0])
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def draw(model: Model, seed: int, scale: float) -> Iterator[Matrix]:
    """The matrices of an adapter, layer by layer, query before value, A before B."""
    source, width = random.Random(seed), scale * 3**0.5  # noqa: S311 - the same numbers everywhere
    for layer in range(model.layers):
        for projection in (0, 1):
            for side, rows, columns in (("A", RANK, model.hidden), ("B", model.widths[projection], RANK)):
                halves = array.array(
                    "H", (round_bfloat16((2 * source.random() - 1) * width) for _ in range(rows * columns))
                )
                yield Matrix(layer, projection, side, rows, columns, halves)


def little(values: "array.array[int]") -> bytes:
    """The values as little-endian bytes, whatever this machine is."""
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def render_peft(model: Model, matrices: list[Matrix]) -> bytes:
    """A safetensors file: length of the header, header as JSON, bfloat16 data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    data = b""
    for one in matrices:
        path = model.path.format(layer=one.layer, name=model.names[one.projection])
        raw = little(one.halves)
        header[f"base_model.model.{path}.lora_{one.side}.weight"] = {
            "dtype": "BF16",
            "shape": [one.rows, one.columns],
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + data


def pair_rows(one: Matrix, heads: int) -> "array.array[int]":
    """Rows of a query's B in the order of llama.cpp, whose rotary embedding pairs neighbours within a head.

    Row (head, half, place) of the original becomes (head, place, half).
    """
    half = one.rows // heads // 2
    made = array.array("H")
    for head in range(heads):
        for place in range(half):
            for side in (0, 1):
                row = (head * 2 + side) * half + place
                made += one.halves[row * one.columns : (row + 1) * one.columns]
    return made


def render_gguf(model: Model, matrices: list[Matrix]) -> bytes:
    """A GGUF file, version 3: key-value pairs, tensor directory, float32 data at multiples of 32 bytes."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = [
        text(key) + struct.pack("<I", 8) + text(value)
        for key, value in (("general.type", "adapter"), ("general.architecture", "llama"), ("adapter.type", "lora"))
    ]
    pairs.append(text("adapter.lora.alpha") + struct.pack("<If", 6, ALPHA))
    directory, data = b"", b""
    for one in matrices:
        letter = "qv"[one.projection]
        halves = pair_rows(one, model.heads) if (letter, one.side) == ("q", "B") else one.halves
        directory += text(f"blk.{one.layer}.attn_{letter}.weight.lora_{one.side.lower()}")
        directory += struct.pack("<IQQIQ", 2, one.columns, one.rows, 0, len(data))
        raw = b"".join(struct.pack("<I", value << 16) for value in halves)
        data += raw + b"\0" * (-len(raw) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(matrices), len(pairs)) + b"".join(pairs) + directory
    return head + b"\0" * (-len(head) % 32) + data


def main() -> int:
    """Write the adapters of the command line; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("adapter", nargs="+", metavar="ALIAS=SEED")
    parser.add_argument("--model", choices=sorted(MODELS), default="smollm2")
    parser.add_argument("--form", choices=("peft", "gguf"), default="peft")
    parser.add_argument("--scale", type=float, default=0.2)
    options = parser.parse_args()
    if options.form == "gguf" and options.model != "smollm2":
        parser.error("llama.cpp has no adapters of minilm here: --form gguf needs --model smollm2")
    model = MODELS[options.model]
    for word in options.adapter:
        alias, _, seed = word.partition("=")
        if not alias.isidentifier() or not seed.isdecimal():
            parser.error(f"{word!r}: expected ALIAS=SEED, a name and a whole number")
        matrices = list(draw(model, int(seed), options.scale))
        options.out.mkdir(parents=True, exist_ok=True)
        if options.form == "gguf":
            path, data = options.out / f"{alias}.gguf", render_gguf(model, matrices)
        else:
            folder = options.out / alias
            folder.mkdir(exist_ok=True)
            path, data = folder / "adapter_model.safetensors", render_peft(model, matrices)
            config = {
                "base_model_name_or_path": options.model,
                "bias": "none",
                "fan_in_fan_out": False,
                "inference_mode": True,
                "lora_alpha": ALPHA,
                "lora_dropout": 0.0,
                "peft_type": "LORA",
                "r": RANK,
                "target_modules": list(model.names),
                "task_type": model.task,
            }
            (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        path.write_bytes(data)
        print(f"{hashlib.sha256(data).hexdigest()}  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
