"""Seeded adapters: the same bytes everywhere, and the same numbers in both forms."""

import hashlib
import importlib.util
import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "engines/make_lora.py"
spec = importlib.util.spec_from_file_location("make_lora", SCRIPT)
make_lora = importlib.util.module_from_spec(spec)
sys.modules["make_lora"] = make_lora
spec.loader.exec_module(make_lora)


def run(*words):
    return subprocess.run([sys.executable, "-I", "-S", SCRIPT, *map(str, words)], capture_output=True, text=True)


def read_peft(data):
    """Name -> (shape, upper halves) of a safetensors file."""
    (length,) = struct.unpack("<Q", data[:8])
    head, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    found = {}
    for name, row in head.items():
        if name != "__metadata__":
            start, end = row["data_offsets"]
            assert row["dtype"] == "BF16"
            found[name] = (tuple(row["shape"]), struct.unpack(f"<{(end - start) // 2}H", rest[start:end]))
    return found


def read_gguf(data):
    """(key -> value, name -> (rows, columns, floats as upper halves)) of a GGUF file."""
    at = 4

    def take(form):
        nonlocal at
        size = struct.calcsize("<" + form)
        (value,) = struct.unpack("<" + form, data[at : at + size])
        at += size
        return value

    def text():
        nonlocal at
        length = take("Q")
        at += length
        return data[at - length : at].decode()

    assert data[:4] == b"GGUF"
    assert take("I") == 3
    tensors, pairs = take("Q"), take("Q")
    keys = {}
    for _ in range(pairs):
        key = text()
        keys[key] = text() if take("I") == 8 else take("f")
    rows = []
    for _ in range(tensors):
        name, sides = text(), take("I")
        columns, height = take("Q"), take("Q")
        assert (sides, take("I")) == (2, 0)
        rows.append((name, height, columns, take("Q")))
    base = at + -at % 32
    found = {}
    for name, height, columns, offset in rows:
        assert offset % 32 == 0
        raw = data[base + offset : base + offset + 4 * height * columns]
        values = struct.unpack(f"<{height * columns}I", raw)
        assert not any(value & 0xFFFF for value in values)
        found[name] = (height, columns, tuple(value >> 16 for value in values))
    return keys, found


def test_bytes_are_the_same_everywhere(tmp_path):
    for model, form, digest in (
        ("smollm2", "peft", "2d8316ee65aafd8598f52adb402b4722d8d35804663ade22a3faa57a0bebc849"),
        ("smollm2", "gguf", "190b16f4ffd321c3506b1472f6b55ceae7c706ddfba94684f8227e238931d401"),
        ("minilm", "peft", "74454f192e45d4f3a8d6cb879563d1143082471c13c112d71c1f619ed823a116"),
    ):
        ran = run(tmp_path / form, "a=2", "--model", model, "--form", form)
        assert ran.returncode == 0, ran.stderr
        told, _, path = ran.stdout.strip().partition("  ")
        assert told == digest == hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_both_forms_hold_the_same_numbers():
    model = make_lora.MODELS["smollm2"]
    matrices = list(make_lora.draw(model, 7, 0.2))
    peft = read_peft(make_lora.render_peft(model, matrices))
    keys, gguf = read_gguf(make_lora.render_gguf(model, matrices))
    assert keys == {
        "general.type": "adapter",
        "general.architecture": "llama",
        "adapter.type": "lora",
        "adapter.lora.alpha": 8.0,
    }
    assert len(peft) == len(gguf) == 120
    for one in matrices:
        name, letter = model.names[one.projection], "qv"[one.projection]
        shape, values = peft[f"base_model.model.model.layers.{one.layer}.self_attn.{name}.lora_{one.side}.weight"]
        rows, columns, own = gguf[f"blk.{one.layer}.attn_{letter}.weight.lora_{one.side.lower()}"]
        assert shape == (rows, columns)
        if (letter, one.side) == ("q", "B"):
            # within a head of 64 rows, original row 32 * half + place stands at 2 * place + half
            assert own[columns : 2 * columns] == values[32 * columns : 33 * columns]
            assert sorted(own) == sorted(values)
        else:
            assert own == values


def test_seeds_differ_and_scales_scale():
    model = make_lora.MODELS["minilm"]
    one, other, wide = (
        make_lora.render_peft(model, list(make_lora.draw(model, seed, scale)))
        for seed, scale in ((1, 0.2), (2, 0.2), (1, 0.4))
    )
    assert len({one, other, wide}) == 3
    assert len(one) == len(other) == len(wide)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a"], "ALIAS=SEED"),
        (["a=x"], "ALIAS=SEED"),
        (["../a=1"], "ALIAS=SEED"),
        (["a=1", "--model", "minilm", "--form", "gguf"], "smollm2"),
    ],
)
def test_wrong_words_are_refused(words, said, tmp_path):
    ran = run(tmp_path / "out", *words)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert not (tmp_path / "out").exists()
