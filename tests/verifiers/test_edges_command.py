"""The command line of a verifier and the bench of its mutations, in this process, on folders of a few bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from checking import command
from checking.check import Check, Family, Mutation, judge
from checking.command import Verifier, arguments, counts_of, main, retained_only
from checking.control import control, lay_copy, scratch_for
from checking.damage import NOTHING, Bench, Outcome, sums_of, try_all, try_mutation, written_json
from checking.package import Folder, Memory, Overlay, Recall

from tests.verifiers.forge import sha


def sums(files: dict[str, bytes]) -> bytes:
    return "".join(f"{sha(data)}  {name}\n" for name, data in sorted(files.items())).encode()


FILES = {"a.txt": b"good", "manifest.json": b"{}\n", "results/x/y": b"1"}
FILES["SHA256SUMS"] = sums(FILES)


def lay(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return lay(tmp_path / "p", FILES)


def no_bad_word(scope: Any) -> Any:
    for name in ("a.txt", "results/x/y"):
        if b"bad" in scope.view.read(name):
            yield name, "a bad word", "good ones"


def spoil(name: str, data: bytes = b"bad", resealed: bool = True) -> Mutation:
    return Mutation(f"spoil {name}", lambda bench: bench.put(name, data) or name, resealed)


ABSENT = Mutation("spoil what is not there", lambda bench: None)
SLEEPY = Mutation("alter what nobody looks at", lambda bench: bench.put("z", b"bad") or "z")
SAME = Mutation("alter nothing", lambda bench: bench.put("a.txt", b"good") or "a.txt", False)


def broken(bench: Bench) -> str:
    raise KeyError("nothing there")


def fall(scope: Any) -> Any:
    if b"fall" in scope.view.read("a.txt"):
        raise RuntimeError("fell over")
    return ()


def family(*mutations: Mutation, hold: Callable[[Any], Any] = no_bad_word) -> Family:
    facts: Callable[[Any], Any] = lambda scope: {"counts": {"files": 3, "words": 1}}  # noqa: E731
    return Family(
        "package",
        lambda view: ("",),
        lambda scope: scope,
        (Check("bad-word", "a truth", hold, mutations),),
        facts=facts,
    )


def verifier(*mutations: Mutation, controls: tuple[tuple[str, Mutation], ...] = (), **more: Any) -> Verifier:
    return Verifier(
        "verify-words", "what is learnt", (family(*mutations, **more),), controls, "what is not", ("a remark",)
    )


def script(folder: Path, codes: list[str], exit_code: int, text: str | None = None) -> str:
    """A verifier in a new process that says this."""
    said = json.dumps({"findings": [{"code": code} for code in codes]}) if text is None else text
    path = folder / "verify-words.py"
    path.write_text(f"import sys\nprint({said!r})\nsys.exit({exit_code})\n")
    return str(path)


def run(one: Verifier, package: Path, *options: str, at: str | None = None) -> int:
    return main(one, at or str(package / "verify-words.py"), [str(package), *options])


def test_a_good_package_is_verified_with_counts_and_remarks(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(verifier(spoil("a.txt")), package) == 0
    assert capsys.readouterr().out == "remark: a remark\nverify-words: verified (3 files, 1 words)\n"


def test_asked_for_the_first_it_stops_there_with_all_that_is_wrong_with_it(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def hold(scope: Any) -> Any:
        for name in (scope.folder + "/one", scope.folder + "/two"):
            if b"bad" in scope.view.read(name):
                yield name, "a bad word", "good ones"

    lay(package, {f"results/{folder}/{name}": b"bad" for folder in ("b", "c") for name in ("one", "two")})
    words = family(hold=hold)._replace(kind="words", find=lambda view: ["results/b", "results/c"])
    one = Verifier("verify-words", "", (words, family()), (), "")
    wrong = [
        f"bad-word results/{folder}/{name}: found a bad word, expected good ones"
        for folder in "bc"
        for name in ("one", "two")
    ]
    assert run(one, package) == 1
    assert capsys.readouterr().out.splitlines()[:-1] == wrong
    assert run(one, package, "--first") == 1
    out = capsys.readouterr()
    assert out.out.splitlines()[:-1] == wrong[:2]
    assert out.err == "verify-words: stopped at the first part that is rejected; there may be more\n"
    lay(package, {f"results/{folder}/{name}": b"good" for folder in ("b", "c") for name in ("one", "two")})
    assert run(one, package, "--first") == 0
    assert capsys.readouterr().err == ""


def test_a_bad_one_is_rejected_with_a_line_a_finding(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (package / "a.txt").write_bytes(b"bad")
    assert run(verifier(spoil("a.txt")), package, "--mutation-control=all") == 1
    out = capsys.readouterr()
    assert out.out.splitlines() == [
        "bad-word a.txt: found a bad word, expected good ones",
        "remark: a remark",
        "verify-words: rejected (3 files, 1 words)",
    ]
    assert out.err == ""


def test_the_same_as_one_document(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(verifier(spoil("a.txt")), package, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {
        "verifier": "verify-words", "package": str(package), "verdict": "verified", "exitCode": 0,
        "counts": {"files": 3, "words": 1}, "findings": [], "mutations": [],
    }  # fmt: skip
    (package / "a.txt").write_bytes(b"bad")
    assert run(verifier(spoil("a.txt")), package, "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["verdict"], said["exitCode"]) == ("rejected", 1)
    assert said["findings"] == [{"code": "bad-word", "path": "a.txt", "found": "a bad word", "expected": "good ones"}]


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        ("gone", "is no folder; expected an unpacked package"),
        ("file", "is no folder; expected an unpacked package"),
        ("link", "is no folder; expected an unpacked package"),
        ("empty", "holds neither SHA256SUMS nor manifest.json; expected a package"),
        ("retained", "this folder keeps only part of the package and no results; unpack the complete archive"),
    ],
)
def test_what_is_no_package_cannot_be_judged(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoiled: str, message: str
) -> None:
    other = tmp_path / "other"
    if spoiled == "file":
        other.write_text("x")
    elif spoiled == "link":
        other.symlink_to(package)
    elif spoiled == "empty":
        lay(other, {"results/x": b""})
    elif spoiled == "retained":
        lay(other, {"manifest.json": b"{}", "a/results/x": b""})
    assert run(verifier(spoil("a.txt")), other) == 2
    out = capsys.readouterr()
    assert message in out.err
    assert out.out.endswith("verify-words: unreadable\n")
    assert run(verifier(spoil("a.txt")), other, "--json") == 2
    said = json.loads(capsys.readouterr().out)
    assert message in said["message"]
    assert (said["verdict"], said["counts"]) == ("unreadable", {})


def test_one_of_the_two_lists_makes_a_package(tmp_path: Path) -> None:
    for name in ("SHA256SUMS", "manifest.json"):
        folder = lay(tmp_path / name.lower(), {name: b"", "results/x/y": b"1", "a.txt": b""})
        assert run(verifier(spoil("a.txt")), folder) == 0
    assert retained_only(Folder(str(lay(tmp_path / "x", {"manifest.json": b"", "result/x": b""}))))
    assert not retained_only(Folder(str(lay(tmp_path / "y", {"results/x": b""}))))


def test_a_check_that_falls_over_cannot_be_trusted(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (package / "a.txt").write_bytes(b"fall")
    assert run(verifier(spoil("a.txt"), hold=fall), package) == 2
    out = capsys.readouterr()
    assert out.err == "verify-words: a check failed on its own: bad-word : RuntimeError('fell over')\n"
    assert out.out.endswith("verify-words: unreadable (3 files, 1 words)\n")


@pytest.mark.parametrize("error", [OSError("no disk"), MemoryError("no memory"), RecursionError("too deep")])
def test_what_the_system_refuses_is_told(
    package: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(command, "judge", fail)
    assert run(verifier(spoil("a.txt")), package) == 2
    assert capsys.readouterr().err == f"verify-words: could not run: {error}\n"


def test_all_mutations_are_tried_and_a_sleeping_check_is_blind(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    awake = verifier(spoil("a.txt"), spoil("results/x/y"), ABSENT)
    assert run(awake, package, "--mutation-control=all") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["VERDICT", "MUTATION", "EXPECTED", "OBSERVED"]
    assert lines[1].split() == ["inert", "damage", "a", "copy", *NOTHING.split()]
    assert lines[2].split() == ["killed", "spoil", "a.txt", "bad-word", "bad-word"]
    assert lines[4].split() == ["inert", "spoil", "what", "is", "not", "there", "bad-word", *NOTHING.split()]
    assert lines[5] == "mutations: 2 killed, 0 survived, 0 crashed, 2 inert"
    for asleep in (SLEEPY, SAME, Mutation("fall", broken)):
        assert run(verifier(spoil("a.txt"), asleep), package, "--mutation-control=all") == 3
        out = capsys.readouterr()
        assert out.out.endswith("verify-words: blind (3 files, 1 words)\n")
        assert out.err == "verify-words: a mutation was not rejected: this verifier is blind, trust nothing it said\n"
    # Without `all` the rows are not tried.
    assert run(verifier(spoil("a.txt"), SLEEPY), package, "--mutation-control") == 0


def test_the_table_of_mutations_as_one_document(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(verifier(spoil("a.txt")), package, "--json", "--mutation-control=all") == 0
    (first, second) = json.loads(capsys.readouterr().out)["mutations"]
    assert first == {
        "mutation": "damage a copy",
        "altered": NOTHING,
        "expected": "",
        "observed": [],
        "verdict": "inert",
    }
    assert second == {
        "mutation": "spoil a.txt", "altered": "a.txt", "expected": "bad-word", "observed": ["bad-word"], "verdict": "killed",
    }  # fmt: skip


CONTROLS = (("other", ABSENT), ("bad-word", spoil("a.txt")), ("bad-word", SLEEPY))


@pytest.mark.parametrize(
    ("codes", "exit_code", "verdict", "code"),
    [
        (["bad-word"], 1, "killed", 0),
        (["other", "bad-word"], 1, "killed", 0),
        (["bad-word"], 0, "survived", 3),
        (["bad-word"], 2, "survived", 3),
        (["other"], 1, "survived", 3),
        ([], 1, "survived", 3),
    ],
)
def test_the_control_is_the_first_that_finds_something_and_runs_in_a_new_process(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], codes: list[str], exit_code: int, verdict: str, code: int
) -> None:  # fmt: skip
    one = verifier(spoil("a.txt"), controls=CONTROLS)
    assert run(one, package, "--mutation-control", "--json", at=script(tmp_path, codes, exit_code)) == code
    (outcome,) = json.loads(capsys.readouterr().out)["mutations"]
    assert outcome == {
        "mutation": "spoil a.txt (new process)", "altered": "a.txt", "expected": "bad-word", "observed": sorted(codes),
        "verdict": verdict,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["no json", "[]", "{}", '{"findings": [1]}', '{"findings": [{}]}'])
def test_a_control_whose_process_says_no_verdict_crashed(package: Path, tmp_path: Path, text: str) -> None:
    outcome = control(CONTROLS, Folder(str(package)), script(tmp_path, [], 5, text))
    assert outcome == Outcome("spoil a.txt", "a.txt", "bad-word", ("exit 5",), "crashed", True)
    assert outcome.blind()


def test_the_control_judges_a_damaged_copy_that_is_gone_afterwards(package: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    path = tmp_path / "look.py"
    path.write_text(
        "import json, os, sys\n"
        f"out = open({str(seen)!r}, 'w')\n"
        "root, *flags = sys.argv[1:]\n"
        "files = {n: open(os.path.join(root, n)).read() for n in ('a.txt', 'results/x/y', 'SHA256SUMS')}\n"
        "print(json.dumps([root, flags, files, sys.flags.isolated]), file=out)\n"
        "print(json.dumps({'findings': [{'code': 'bad-word'}]}))\nsys.exit(1)\n"
    )
    for resealed in (True, False):
        one = spoil("a.txt", resealed=resealed)
        outcome = control((("bad-word", one),), Folder(str(package)), str(path))
        assert (outcome.verdict, outcome.resealed) == ("killed", resealed)
        root, flags, files, isolated = json.loads(seen.read_text())
        assert (flags, isolated, files["a.txt"], files["results/x/y"]) == (["--first", "--json"], 1, "bad", "1")
        assert (files["SHA256SUMS"].encode() == FILES["SHA256SUMS"]) is not resealed
        assert not Path(root).exists()
        assert not Path(root).parent.exists()
    assert {name: (package / name).read_bytes() for name in FILES} == FILES


def test_a_copy_shares_what_is_not_altered_and_writes_through_no_link(package: Path, tmp_path: Path) -> None:
    overlay = Overlay(
        Folder(str(package)), {"a.txt": b"bad", "new/deep": b"n", "manifest.json": None}, {"pipe": "special"}
    )
    target = tmp_path / "copy"
    target.mkdir()
    lay_copy(overlay, str(package), str(target))
    there = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    assert there == {"a.txt": b"bad", "new/deep": b"n", "results/x/y": b"1", "SHA256SUMS": FILES["SHA256SUMS"]}
    assert (package / "a.txt").read_bytes() == b"good"
    same = [(root / "results/x/y").stat().st_ino for root in (package, target)]
    assert same[0] == same[1]


def test_a_copy_is_made_where_links_to_the_package_can_be_laid(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = tmp_path / "usual"
    usual.mkdir()
    monkeypatch.setattr("checking.control.tempfile.gettempdir", lambda: str(usual))
    assert Path(scratch_for(str(package))).parent == usual
    devices = {str(usual): 1, str(package): 2}
    monkeypatch.setattr("checking.control.os.stat", lambda path: SimpleNamespace(st_dev=devices[path]))
    assert Path(scratch_for(str(package))).parent == package.parent
    monkeypatch.setattr("checking.control.os.access", lambda path, mode: False)
    assert Path(scratch_for(str(package))).parent == usual


def test_where_no_link_can_be_laid_the_bytes_are_copied(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no links here")

    monkeypatch.setattr("checking.control.os.link", refuse)
    (tmp_path / "copy").mkdir()
    lay_copy(Overlay(Folder(str(package)), {}), str(package), str(tmp_path / "copy"))
    assert {name: (tmp_path / "copy" / name).read_bytes() for name in FILES} == FILES


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    one = verifier()
    told = arguments(one, "/home/of/it", [])
    assert (told.package, told.json, told.mutation_control) == ("/home/of/it", False, None)
    told = arguments(one, "/home/of/it", ["p", "--json", "--mutation-control"])
    assert (told.package, told.json, told.mutation_control) == ("p", True, "one")
    assert arguments(one, "", ["--mutation-control=all"]).mutation_control == "all"
    assert (told.first, arguments(one, "", ["--first"]).first) == (False, True)
    for wrong in (["--mutation-control=some"], ["a", "b"], ["--other"]):
        with pytest.raises(SystemExit) as caught:
            arguments(one, "", wrong)
        assert caught.value.code == 2
    with pytest.raises(SystemExit):
        arguments(one, "", ["--help"])
    out = capsys.readouterr().out
    assert "verify-words.py" in out
    assert "what is learnt" in out
    assert "what is not" in out


def test_without_a_package_it_is_the_folder_of_the_script(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(verifier(), str(package / "verify-words.py"), []) == 0
    assert "verified" in capsys.readouterr().out


def test_counts_are_added_up_over_all_subjects() -> None:
    def counting(kind: str, *facts: Any) -> Family:
        told = {str(number): one for number, one in enumerate(facts)}
        return Family(
            kind, lambda view: sorted(told), lambda scope: scope.folder, (), facts=lambda subject: told[subject]
        )

    families = [
        counting("one", {"counts": {"a": 1, "b": 2}}, {"counts": {"a": 3}}),
        counting("two", None, {"c": 1}, {"counts": {"b": 5}}),
    ]
    assert counts_of(judge(Memory({}), families)) == {"a": 4, "b": 7}


# The bench


def test_a_value_is_written_in_the_form_of_the_package() -> None:
    value = {
        "b": [1, Decimal("0.10"), None, True, '\u00e9"\n'],
        "a": {},
        "c": [],
        "d": {"y": [[2]], "x": Decimal("1E-9")},
    }
    assert written_json(value) == (
        '{\n  "a": {},\n  "b": [\n    1,\n    0.10,\n    null,\n    true,\n    "\u00e9\\"\\n"\n  ],\n  "c": [],\n'
        '  "d": {\n    "x": 0.000000001,\n    "y": [\n      [\n        2\n      ]\n    ]\n  }\n}'
    )


def bench(files: dict[str, bytes] | None = None) -> Bench:
    source = Memory({"r/a/1": b"1", "r/a/2": b"2", "r/b/3": b"3", "t": b"t", **(files or {})})
    return Bench(source, {name: sha(data) for name, data in source.files.items() if name != "SHA256SUMS"})


def test_the_bench_shows_the_package_as_it_was_altered() -> None:
    on = bench()
    assert on.below("r") == ["r/a/1", "r/a/2", "r/b/3"]
    assert on.folders("r") == ["r/a", "r/b"]
    on.put("r/c/4", b"4")
    on.put("r/d", b"5")
    on.remove("r/b/3")
    on.put("rr/x", b"6")
    assert on.below("r") == ["r/a/1", "r/a/2", "r/c/4", "r/d"]
    assert on.below("") == ["r/a/1", "r/a/2", "r/c/4", "r/d", "rr/x", "t"]
    assert on.folders("r") == ["r/a", "r/c"]
    assert on.below("r/a") == ["r/a/1", "r/a/2"]
    assert [on.has(name) for name in ("r/a/1", "r/b/3", "r/c/4", "none")] == [True, False, True, False]
    assert (on.read("r/a/1"), on.read("r/c/4")) == (b"1", b"4")
    assert on.source.read("r/b/3") == b"3"


def test_changes_that_change_nothing_are_left_out_of_the_overlay() -> None:
    on = bench()
    on.put("r/a/1", b"1")
    on.put("r/a/2", b"two")
    on.put("new", b"")
    on.remove("r/b/3")
    on.remove("never")
    on.place("t", "link")
    overlay = on.overlay()
    assert overlay.changed == {"r/a/2", "new", "r/b/3", "t"}
    assert overlay.entries == {"r/a/1": "file", "r/a/2": "file", "new": "file", "t": "link"}


def test_documents_are_edited_and_stored_unless_they_stay_the_same() -> None:
    on = bench({"d.json": b'{\n  "a": 1.50\n}\n'})
    with on.edit("d.json") as value:
        value["b"] = 2
    assert on.read("d.json") == b'{\n  "a": 1.50,\n  "b": 2\n}\n'
    on = bench({"d.json": b'{\n  "a": 1.50\n}\n'})
    on.store_if_other("d.json", on.load("d.json"))
    assert on.changes == {}
    on.store_if_other("d.json", {"a": 2})
    assert on.read("d.json") == b'{\n  "a": 2\n}\n'
    name = on.body("r", b"body")
    assert (name, on.read(f"r/bodies/{name}")) == (sha(b"body"), b"body")


def document(value: Any) -> bytes:
    return (written_json(value) + "\n").encode()


def sealed() -> Bench:
    """A package with every index, all of it true."""
    files = {
        "results/settings/x/comparison.json": document({"a": 1}),
        "results/settings/x/decision.json": document({"b": 1}),
        "results/lifecycle/r.json": document({"c": 1}),
        "results/converged/y/bodies/1": b"1",
        "manifest.json": document({"counts": {"bodies": 1}}),
    }
    entry = {"folder": "results/settings/x", "files": {"comparison": sha(files["results/settings/x/comparison.json"]),
             "decision": sha(files["results/settings/x/decision.json"]), "samples": None}}  # fmt: skip
    files["results/settings-index.json"] = document({"comparisons": [entry]})
    record = {"path": "results/lifecycle/r.json", "sha256": sha(files["results/lifecycle/r.json"])}
    files["results/lifecycle-index.json"] = document({"records": [record]})
    files["SHA256SUMS"] = sums(files)
    source = Memory(files)
    return Bench(source, sums_of(source))


def test_resealing_makes_everything_true_again_and_touches_nothing_else() -> None:
    on = sealed()
    on.reseal()
    assert on.overlay().changed == frozenset()
    on.put("results/settings/x/comparison.json", document({"a": 2}))
    on.put("results/lifecycle/r.json", document({"c": 2}))
    on.put("results/converged/y/bodies/2", b"2")
    on.put("results/converged/y/bodies/3", b"3")
    on.remove("results/converged/y/bodies/1")
    on.reseal()
    overlay = on.overlay()
    (entry,) = on.load("results/settings-index.json")["comparisons"]
    assert entry["files"] == {
        "comparison": sha(document({"a": 2})), "decision": sha(document({"b": 1})), "samples": None,
    }  # fmt: skip
    assert on.load("results/lifecycle-index.json")["records"][0]["sha256"] == sha(document({"c": 2}))
    assert on.load("manifest.json")["counts"]["bodies"] == 2
    assert overlay.read("SHA256SUMS") == sums(
        {name: overlay.read(name) for name in overlay.entries if name != "SHA256SUMS"}
    )
    assert overlay.moved == {
        "results/converged/y/bodies/1",
        "results/converged/y/bodies/2",
        "results/converged/y/bodies/3",
    }


def test_what_is_no_file_any_more_is_in_no_sums() -> None:
    on = sealed()
    on.put("results/lifecycle/r.json", b"x")
    on.place("results/lifecycle/r.json", "link")
    on.place("pipe", "special")
    on.reseal_sums()
    names = [line.split("  ")[1] for line in on.read("SHA256SUMS").decode().splitlines()]
    assert "results/lifecycle/r.json" not in names
    assert names == sorted(names)
    assert len(names) == 6


@pytest.mark.parametrize(
    ("mutation", "altered", "observed", "verdict"),
    [
        (spoil("a.txt"), "a.txt", ("bad-word",), "killed"),
        (SLEEPY, "z", (), "survived"),
        (SAME, "a.txt", (), "inert"),
        (ABSENT, NOTHING, (), "inert"),
        (Mutation("fall", broken), "damage failed: KeyError('nothing there')", (), "crashed"),
    ],
)
def test_a_mutation_is_killed_survives_is_inert_or_crashes(
    mutation: Mutation, altered: str, observed: Any, verdict: str
) -> None:
    source, families = Memory(FILES), (family(mutation),)
    before = judge(source, families, again=True)
    outcome = try_mutation("bad-word", mutation, source, families, before, Bench(source, sums_of(source)))
    assert outcome == Outcome(mutation.name, altered, "bad-word", observed, verdict, mutation.resealed)
    assert outcome.blind() is (verdict in ("survived", "crashed") or (verdict == "inert" and altered != NOTHING))
    (again,) = try_all(source, families, before, families[0].checks, Recall())
    assert again == outcome


def test_a_mutation_on_which_a_check_falls_over_is_a_crash_and_another_code_no_kill() -> None:
    source = Memory(FILES)
    falling = (family(spoil("a.txt", b"fall"), hold=fall),)
    before = judge(source, falling)
    (outcome,) = try_all(source, falling, before, falling[0].checks, Recall())
    assert (outcome.verdict, outcome.observed) == ("crashed", ())
    assert outcome.altered == "a.txt; bad-word : RuntimeError('fell over')"
    families = (family(spoil("a.txt")),)
    bench = Bench(source, sums_of(source))
    other = try_mutation("other", spoil("a.txt"), source, families, judge(source, families), bench)
    assert (other.verdict, other.observed) == ("survived", ("bad-word",))
