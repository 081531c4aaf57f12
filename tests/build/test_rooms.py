"""The smaller rooms of the tree: registries with probes, prefill/decode summaries, lifecycle records, historical states."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from forged_world import World, make_world

from evidence.campaign import read_campaign
from evidence.errors import EvidenceError

PROBE = b'{"request": {"messages": [], "max_tokens": 4}, "expectedTokenIds": [1, 2, 3]}'
CANDIDATES: dict[str, Any] = {
    "image": "example/engine:1",
    "imageDigest": "sha256:" + "a" * 64,
    "candidates": [{"profile": "one", "state": "CANDIDATE", "arguments": ["--x", "1"], "note": "a plan"}],
}
QUALIFIED = f"""
[[prefill_decode]]
id = "pd-good"
case = "one-rr-1"
profile = "one"
engine = "synthetic-1"
reviewed = true
outcome = "QUALIFIED"
state_preserved = true
bootstrap_identity = "{"b" * 64}"
recovery = true
cleanup = true
completed_checks = ["roles", "counters"]
roles = {{prefill = {{request_sha256 = "{"1" * 64}", response_sha256 = "{"2" * 64}"}}, decode = {{request_sha256 = "{"3" * 64}", response_sha256 = "{"4" * 64}"}}}}
decode_transfer_counters = {{before = 1, after = 5}}
negatives = [{{id = "no-prefill", rejected = true}}]
[[prefill_decode]]
id = "pd-bad"
case = "one-rr-1"
profile = "one"
engine = "synthetic-1"
reviewed = true
outcome = "FAILED"
reason = "TRANSFER_TIMEOUT"
completed_checks = ["roles"]
[[lifecycle]]
id = "crash-once"
protocol = "crash"
record = "records/crash.json"
[[historical]]
profile = "older-model"
engine = "engine-0"
state = "LISTED"
note = "an older list named it"
"""


PUBLISHED = Path(__file__).parents[1] / "vectors/lifecycle/published-record.json"


def prepared(folder: Path, extra: str, candidates: dict[str, Any] | None = None) -> World:
    world = make_world(folder)
    root = world.campaign.folder
    (root / "records").mkdir()
    (root / "records/crash.json").write_bytes(PUBLISHED.read_bytes())
    (root / "registry/probes").mkdir(parents=True)
    (root / "registry/probes/one.json").write_bytes(PROBE)
    (root / "registry/candidates.json").write_text(json.dumps(candidates or CANDIDATES))
    text = world.campaign.path.read_text().replace("version = '1.1'", "version = '1.1'\nregistry = 'registry'")
    world.campaign.path.write_text(text + extra)
    world.campaign = read_campaign(root)
    world.compare()
    world.attempt("one-rr-1")
    return world


def contents(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {m.name.partition("/")[2]: opened.extractfile(m).read() for m in opened}  # type: ignore[union-attr]


def test_every_room_is_filled_and_bound_by_hash(tmp_path: Path) -> None:
    files = contents(prepared(tmp_path, QUALIFIED).build().archive)
    registry = json.loads(files["registry-synthetic-1/manifest.json"])
    assert registry["candidates"] == CANDIDATES["candidates"]
    [probe] = registry["probes"]
    assert files[probe["path"]] == PROBE
    assert probe["sha256"] == hashlib.sha256(PROBE).hexdigest()
    assert probe["tokenIdsSha256"] == hashlib.sha256(b"[1,2,3]").hexdigest()
    cases = {case["id"]: case for case in json.loads(files["results/pd-index.json"])["cases"]}
    assert cases["pd-bad"]["completedChecks"] == ["roles"]
    assert cases["pd-bad"]["roles"] is None
    assert cases["pd-good"]["decodeTransferCounters"] == {"before": 1, "after": 5}
    [record] = json.loads(files["results/lifecycle-index.json"])["records"]
    assert record["experiments"] == [one["id"] for one in json.loads(PUBLISHED.read_bytes())["experiments"]]
    assert hashlib.sha256(files[record["path"]]).hexdigest() == record["sha256"]
    identities = json.loads(files["model-identities.json"])
    assert [row["profile"] for row in identities["historicalCatalog"]] == ["older-model"]
    assert "older-model" not in [profile["id"] for profile in identities["profiles"]]
    manifest = json.loads(files["manifest.json"])
    assert manifest["engines"][0]["registry"] == "registry-synthetic-1"
    assert manifest["counts"]["lifecycleRecords"] == 1


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("after = 5", "after = 1", "counters that did not rise"),
        ("rejected = true", "rejected = false", "negative no-prefill not rejected"),
        ("cleanup = true", "cleanup = false", "found no cleanup"),
        ("reviewed = true\noutcome = \"QUALIFIED\"", "reviewed = false\noutcome = \"QUALIFIED\"", "not reviewed"),
        ('reason = "TRANSFER_TIMEOUT"\n', "", "expected the reason code of a failed case"),
    ],
)  # fmt: skip
def test_a_summary_that_claims_too_much_is_a_reason_against_the_package(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    assert old in QUALIFIED
    world = prepared(tmp_path, QUALIFIED.replace(old, new))
    with pytest.raises(EvidenceError, match=reason):
        world.build()


@pytest.mark.parametrize(
    "change",
    [
        {"candidates": [{"profile": "nobody", "state": "CANDIDATE", "arguments": [], "note": ""}]},
        {"candidates": [{"profile": "one", "state": "SUCCESS", "arguments": [], "note": ""}]},
        {"more": 1},
        {"candidates": None},
        {"candidates": [{"profile": ["one"], "state": "CANDIDATE", "arguments": [], "note": ""}]},
        {"candidates": [{"profile": "one", "state": "CANDIDATE", "arguments": "--x", "note": ""}]},
    ],
)
def test_a_registry_promotes_nothing_and_names_profiles_of_the_campaign(tmp_path: Path, change: dict[str, Any]) -> None:
    world = prepared(tmp_path, "", CANDIDATES | change)
    with pytest.raises(EvidenceError, match=r"candidates\.json: found"):
        world.build()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"expectedTokenIds": "1"}', b'{"expectedTokenIds": [true]}', b"\xff"]
)
def test_a_probe_of_a_registry_names_its_token_ids(tmp_path: Path, content: bytes) -> None:
    world = prepared(tmp_path, "")
    (world.campaign.folder / "registry/probes/one.json").write_bytes(content)
    with pytest.raises(EvidenceError, match=r"one\.json: found .*expected a probe"):
        world.build()


def test_a_record_that_its_schema_would_refuse_is_a_reason_against_the_package(tmp_path: Path) -> None:
    world = prepared(tmp_path, QUALIFIED)
    (world.campaign.folder / "records/crash.json").write_text('{"experiments": [{"id": "e-1"}]}')
    with pytest.raises(
        EvidenceError, match=r"schema-required results/lifecycle/crash-once\.json#: 'title' is a required"
    ) as caught:
        world.build()
    assert caught.value.code == 1
