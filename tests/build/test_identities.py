"""Checksums of weights come from the index and the artifacts, and are checked against a folder."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from forged_world import World

from evidence.build import identities
from evidence.build.identities import check_weights
from evidence.campaign import read_campaign
from evidence.errors import EvidenceError

FILES = {
    "config.json": b"{}",
    "model-00001-of-00002.safetensors": b"first shard",
    "model-00002-of-00002.safetensors": b"second shard",
}
INDEX = {
    "metadata": {},
    "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"},
}


def with_weights(world: World, files: dict[str, bytes]) -> None:
    folder = world.campaign.folder
    (folder / "weights").mkdir(exist_ok=True)
    (folder / "weights/one.source-index").write_text(json.dumps(INDEX))
    rows = ", ".join(
        f"{{path = '{name}', sha256 = '{hashlib.sha256(data).hexdigest()}', bytes = {len(data)}}}"
        for name, data in files.items()
    )
    text = world.campaign.path.read_text()
    old = "definition = 'source-definitions/one.toml'"
    world.campaign.path.write_text(
        text.replace(old, f"{old}\nsource_index = 'weights/one.source-index'\nartifacts = [{rows}]")
    )
    world.campaign = read_campaign(folder)


def test_the_lines_are_those_that_sha256sum_reads(world: World, tmp_path: Path) -> None:
    with_weights(world, FILES)
    text, lacking = identities.weight_sums(world.campaign.profiles["one"])
    assert lacking == []
    model = tmp_path / "model"
    model.mkdir()
    for name, data in FILES.items():
        (model / name).write_bytes(data)
    (tmp_path / "one.sha256").write_bytes(text)
    done = subprocess.run(["sha256sum", "--strict", "-c", "../one.sha256"], cwd=model, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": OK") == 3


def test_a_shard_without_a_hash_is_a_reason_against_the_package(world: World) -> None:
    with_weights(world, {name: data for name, data in FILES.items() if not name.startswith("model-00002")})
    _, lacking = identities.weight_sums(world.campaign.profiles["one"])
    assert lacking == [
        "weights/one.sha256: found no artifact 'model-00002-of-00002.safetensors', which the source index names, expected its hash"
    ]


def test_an_artifact_outside_the_folder_is_a_reason_against_the_package(world: World) -> None:
    with_weights(world, FILES | {"../evil": b"x"})
    _, lacking = identities.weight_sums(world.campaign.profiles["one"])
    assert "'../evil'" in lacking[0]


def test_an_index_without_a_weight_map_is_refused(world: World) -> None:
    with_weights(world, FILES)
    (world.campaign.folder / "weights/one.source-index").write_text("{}")
    with pytest.raises(EvidenceError, match="found no weight_map"):
        identities.weight_sums(read_campaign(world.campaign.folder).profiles["one"])


def test_a_model_folder_is_checked_against_archive_package_and_retained_folder(world: World, tmp_path: Path) -> None:
    with_weights(world, FILES)
    world.compare()
    world.attempt("one-rr-1")
    built = world.build()
    model = tmp_path / "model"
    model.mkdir()
    for name, data in FILES.items():
        (model / name).write_bytes(data)
    for package in (built.archive, built.retained):
        assert all(row.found == row.expected for row in check_weights("one", model, package))
    (model / "config.json").write_bytes(b"{ }")
    (model / "model-00001-of-00002.safetensors").unlink()
    rows = {row.path: row for row in check_weights("one", model, built.archive)}
    assert rows["config.json"].found == hashlib.sha256(b"{ }").hexdigest()
    assert rows["model-00001-of-00002.safetensors"].found is None


@pytest.mark.parametrize("profile", ["two", "three", "nobody"])
def test_gated_deferred_and_unknown_profiles_have_no_checksums(
    packed: tuple[World, object], profile: str, tmp_path: Path
) -> None:
    world, _ = packed
    with pytest.raises(EvidenceError, match=rf"found no weights/{profile}\.sha256"):
        check_weights(profile, tmp_path, world.folder / "dist/forged")
