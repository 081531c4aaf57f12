"""The package as a whole: its bytes, what the trusted verifiers say of it, and what it refuses to be."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from forged_world import World, make_world

from benchmarks.forged_runs import Shape
from evidence import validate
from evidence.archive.layout import is_retained
from evidence.build.package import Built
from evidence.campaign import read_campaign
from evidence.errors import EvidenceError

Packed = tuple[World, Built]


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {
            member.name.partition("/")[2]: opened.extractfile(member).read()  # type: ignore[union-attr]
            for member in opened
        }


def load(archive: Path, name: str) -> Any:
    return json.loads(members(archive)[name])


def test_the_trusted_verifiers_accept_it_and_its_retained_folder(packed: Packed) -> None:
    _, built = packed
    found = validate.validate(built.archive, source_root=built.retained, verify_results=True, quiet=True)
    assert found.exit_code == 0, found.render("text")


def test_coreutils_accept_its_checksums(packed: Packed, tmp_path: Path) -> None:
    _, built = packed
    for command, place in (
        (["sha256sum", "--strict", "-c", built.sha256_file.name], built.archive.parent),
        (["tar", "-xzf", str(built.archive)], tmp_path),
        (["sha256sum", "--strict", "--quiet", "-c", "SHA256SUMS"], tmp_path / "forged"),
    ):
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_same_input_gives_the_same_bytes(packed: Packed, tmp_path: Path) -> None:
    from evidence.build.package import build

    world, built = packed
    again = build(world.campaign.folder, world.runs, tmp_path / "elsewhere", quiet=True)
    assert again.archive.read_bytes() == built.archive.read_bytes()
    assert (again.tar_sha256, again.payload_bytes) == (built.tar_sha256, built.payload_bytes)


def test_what_is_reported_is_what_is_there(packed: Packed) -> None:
    _, built = packed
    content = members(built.archive)
    assert built.members == len(content)
    assert built.payload_bytes == sum(map(len, content.values()))
    assert built.archive_bytes == built.archive.stat().st_size
    assert built.archive_sha256 == hashlib.sha256(built.archive.read_bytes()).hexdigest()


def test_nothing_is_left_beside_archive_digests_and_retained_folder(packed: Packed) -> None:
    _, built = packed
    names = sorted(path.name for path in built.archive.parent.iterdir())
    assert names == ["forged", "forged-evaluation.tar.sha256", "forged-evaluation.tgz", "forged-evaluation.tgz.sha256"]


def test_the_retained_folder_has_no_results_and_no_probes_and_equal_bytes(packed: Packed) -> None:
    _, built = packed
    content = members(built.archive)
    kept = {
        path.relative_to(built.retained).as_posix(): path.read_bytes()
        for path in built.retained.rglob("*")
        if path.is_file()
    }
    assert set(kept) == {name for name in content if is_retained(name)}
    assert {name for name in kept if kept[name] != content[name]} == {"README.md", "SHA256SUMS"}
    assert built.archive_sha256.encode() in kept["README.md"]


def test_every_complete_run_is_kept_and_the_latest_has_the_plain_id(packed: Packed) -> None:
    _, built = packed
    entries = load(built.archive, "results/settings-index.json")["comparisons"]
    assert [entry["id"] for entry in entries] == ["compare-1", "compare-1.run-1", "compare-2"]
    latest = load(built.archive, "results/settings/compare-1/comparison.json")
    assert latest["run"] == "compare-1-20260101t080100.000000z"


def test_decisions_say_which_gates_failed(packed: Packed) -> None:
    _, built = packed
    decisions = {
        name: load(built.archive, f"results/settings/{name}/decision.json") for name in ("compare-1", "compare-2")
    }
    assert (decisions["compare-1"]["decision"], decisions["compare-1"]["failedGates"]) == ("candidate", [])
    assert decisions["compare-1"]["requalification"] == "required"
    assert decisions["compare-2"]["failedGates"] == ["median-improvement"]
    assert decisions["compare-2"]["decision"] == "baseline"


def test_the_recipe_says_what_was_selected_and_that_it_still_needs_an_attempt(packed: Packed) -> None:
    _, built = packed
    [recipe] = load(built.archive, "recipes.json")["recipes"]
    assert (recipe["selected"], recipe["setting"]) == ("candidate", {"argument": "--context-tokens", "value": "1024"})
    assert recipe["requalification"]["required"] is True
    settings = members(built.archive)["settings/recipe-1.env"].decode().splitlines()
    assert settings[:4] == ["RECIPE=recipe-1", "PROFILE=one", "ENGINE=synthetic-1", "MODES=rr"]
    assert json.loads(settings[4].removeprefix("ARGUMENTS=")) == recipe["arguments"]
    rule = load(built.archive, "rules/recipe-1.rr.json")
    assert rule["strategy"] == "round-robin"
    assert all(url.startswith(("http://192.0.2.", "http://198.51.100.")) for url in
               [rule["listen"], *(worker["url"] for worker in rule["workers"])])  # fmt: skip


def test_the_manifest_says_synthetic_and_what_is_not_claimed(packed: Packed) -> None:
    _, built = packed
    manifest = load(built.archive, "manifest.json")
    assert manifest["synthetic"] == "all"
    assert "not-gpu-result" in [boundary["id"] for boundary in manifest["boundaries"]]
    assert manifest["counts"]["comparisons"] == 3
    assert manifest["counts"]["incompleteComparisons"] == 2
    assert manifest["counts"]["mainSamples"] == 432
    assert [gateway["kind"] for gateway in manifest["gateways"]] == ["built-in"]
    assert manifest["gateways"][0]["reason"]


def test_bodies_are_there_once_and_only_those_that_are_cited(packed: Packed) -> None:
    _, built = packed
    content = members(built.archive)
    folder = "results/settings/compare-1/"
    bodies = {name.rpartition("/")[2] for name in content if name.startswith(folder + "bodies/")}
    cited = set()
    for name, data in content.items():
        if name.startswith(folder) and name.endswith(".json"):
            cited |= {word for word in data.decode().replace('"', " ").split() if len(word.strip(",")) == 64}
    assert bodies <= {word.strip(",") for word in cited}
    assert all(hashlib.sha256(content[f"{folder}bodies/{name}"]).hexdigest() == name for name in bodies)


def test_guides_name_the_commands_and_the_limits(packed: Packed) -> None:
    _, built = packed
    guide = members(built.archive)["README.md"].decode()
    for words in (
        "sha256sum -c forged-evaluation.tgz.sha256", "test ! -e forged", "python3 verify-results.py --mutation-control",
        "python3 verify-incomplete-results.py --mutation-control", "python3 verify-converged.py --mutation-control",
        "IN_PROGRESS_NOT_FINAL", "23rd of 24", "not the peak", "never an answer", "performanceComparisonQualified: false",
    ):  # fmt: skip
        assert words in guide


def refused(world: World, *, preparation: bool = False) -> str:
    with pytest.raises(EvidenceError) as caught:
        world.build(preparation=preparation)
    assert caught.value.code == 1
    dist = world.folder / "dist"
    assert not dist.exists() or list(dist.iterdir()) == []
    return caught.value.message


def test_a_comparison_that_nobody_ran_is_refused_but_not_of_a_preparation(world: World) -> None:
    world.attempt("one-rr-1")
    assert "comparison compare-1: found no run of it" in refused(world)
    built = world.build(preparation=True)
    assert built.archive.name == "forged-preparation-evaluation.tgz"
    manifest = load(built.archive, "manifest.json")
    assert manifest["distribution"]["preparation"] is True
    assert manifest["status"] == load(built.archive, "runtime-matrix.json")["status"] == "IN_PROGRESS_NOT_FINAL"
    assert load(built.archive, "recipes.json")["recipes"] == []


def test_a_campaign_that_is_not_final_gives_no_delivery(tmp_path: Path) -> None:
    world = make_world(tmp_path, status="IN_PROGRESS_NOT_FINAL")
    world.compare()
    assert "found status IN_PROGRESS_NOT_FINAL" in refused(world)
    assert world.build(preparation=True).archive.name == "forged-preparation-evaluation.tgz"


def test_every_reason_is_listed_at_once(world: World) -> None:
    folder = world.compare()
    world.attempt("two-native-1", reason="ACCESS_DENIED", outcome="BLOCKED_ACCESS", requests=0)
    journal = (folder / "journal.jsonl").read_text()
    digest = json.loads(next(line for line in journal.splitlines() if '"sample"' in line))["responseSha256"]
    (folder / "bodies" / digest).unlink()
    (folder / "witness/bodies" / digest).unlink()
    (world.campaign.folder / "source-definitions/one.toml").write_text("host = '10.1.2.3'\n")
    message = refused(world)
    assert f"no file has the body {digest}" in message
    assert "recipe recipe-1: found mode rr, which the matrix shows as NOT_ATTEMPTED" in message
    assert "source-definitions/one.toml, line 1: ip-address '10.1.2.3'" in message
    assert message.startswith("forged: found 3 reasons against a package:")


def test_an_address_in_a_body_is_refused_unless_the_campaign_says_why(tmp_path: Path) -> None:
    def shape() -> Shape:
        from dataclasses import replace

        return Shape(
            alter=lambda one: replace(one, response_body=one.response_body.replace(b"chatcmpl-", b"10.9.8.7-"))
        )

    world = make_world(tmp_path / "a")
    world.compare(shape=shape())
    world.attempt("one-rr-1")
    assert "ip-address '10.9.8.7'" in refused(world)
    exception = '[[privacy_exception]]\npattern = "10.9.8.7"\nkind = "ip-address"\nreason = "made up by the forge"'
    world = make_world(tmp_path / "b", extra=exception)
    world.compare(shape=shape())
    world.attempt("one-rr-1")
    manifest = load(world.build().archive, "manifest.json")
    assert manifest["privacyExceptions"] == [
        {"kind": "ip-address", "pattern": "10.9.8.7", "reason": "made up by the forge"}
    ]


def test_what_a_campaign_says_of_its_own_runs_stands_among_the_boundaries_and_in_both_guides(world: World) -> None:
    path = world.campaign.path
    told = "Another program ran beside the first comparison."
    path.write_text(path.read_text().replace("surfaces =", f"limitations = ['{told}', 'Second.']\nsurfaces =", 1))
    world.campaign = read_campaign(path)
    world.compare()
    world.attempt("one-rr-1")
    built = world.build()
    boundaries = load(built.archive, "manifest.json")["boundaries"]
    assert boundaries[-2:] == [
        {"id": "limitation-1", "statement": told},
        {"id": "limitation-2", "statement": "Second."},
    ]
    guides = (members(built.archive)["README.md"], (built.retained / "README.md").read_bytes())
    assert all(told.encode() in guide for guide in guides)
    found = validate.validate(built.archive, source_root=built.retained, verify_results=True, quiet=True)
    assert found.exit_code == 0, found.render("text")


def test_a_folder_that_no_build_made_is_not_replaced(world: World) -> None:
    world.compare()
    world.attempt("one-rr-1")
    mine = world.folder / "dist/forged"
    mine.mkdir(parents=True)
    (mine / "notes.txt").write_text("mine")
    with pytest.raises(EvidenceError, match="found something that no build of forged made"):
        world.build()
    assert (mine / "notes.txt").read_text() == "mine"


def test_building_again_replaces_what_an_earlier_build_left(world: World) -> None:
    world.compare()
    world.attempt("one-rr-1")
    first = world.build()
    world.compare(number=1, shape=Shape(seed=9))
    second = world.build()
    assert second.archive_sha256 != first.archive_sha256
    assert second.archive_sha256 in (second.retained / "README.md").read_text()


def test_a_complete_run_that_lacks_an_arm_is_refused(world: World) -> None:
    folder = world.compare()
    lines = (folder / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder / "journal.jsonl").write_text("".join(line for line in lines if '"repetition": 3' not in line))
    message = refused(world)
    assert "expected r1-a to r3-b in order" in message
    assert "samples, expected" in message


def test_a_date_sensitive_profile_without_a_date_control_is_not_qualified(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    told = world.campaign.path.read_text()
    world.campaign.path.write_text(told.replace("id = 'one'", "id = 'one'\ndate_sensitive = true", 1))
    world.campaign = read_campaign(world.campaign.path)
    world.compare()
    built = world.build(preparation=True)
    decision = load(built.archive, "results/settings/compare-1/decision.json")
    assert [one["code"] for one in decision["disqualifications"]] == ["DATE_INPUT_DIFFERS"]
    assert (decision["performanceComparisonQualified"], decision["decision"]) == (False, "baseline")
    found = validate.validate(built.archive, source_root=built.retained, verify_results=True, quiet=True)
    assert found.exit_code == 0, found.render("text")
