"""What speaks of the whole campaign, at the edges of its rules: manifest, matrix, summaries, sums and names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from checking.check import Scope
from checking.damage import Bench, sha256
from checking.package import Memory, Overlay, Recall, View
from checking.rules.checksums import LISTING, Listed

from tests.verifiers.edges import CONVERGED, RESULTS, told

MANIFEST, MATRIX, PD = "manifest.json", "runtime-matrix.json", "results/pd-index.json"
Row = dict[str, Any]
Change = Callable[[Bench], object]


def said(code: str, *changes: Change) -> list[str]:
    """What stands after the code in the lines that the changes give."""
    verifier = CONVERGED if code.startswith(("matrix", "pd")) else RESULTS

    def damage(bench: Bench) -> None:
        for change in changes:
            change(bench)

    return [line[len(code) + 1 :] for line in told(verifier, code, damage)]


def document(name: str, change: Callable[[Any], object]) -> Change:
    def apply(bench: Bench) -> None:
        with bench.edit(name) as value:
            change(value)

    return apply


def manifest(**values: Any) -> Change:
    return document(MANIFEST, lambda value: value.update(values))


def row(case: str, **values: Any) -> Change:
    return document(MATRIX, lambda value: next(one for one in value["rows"] if one["case"] == case).update(values))


def attempt(name: str, **values: Any) -> Change:
    def apply(bench: Bench) -> None:
        (folder,) = [one for one in bench.folders("results/converged") if one.rpartition("/")[2].startswith(name)]
        document(folder + "/attempt.json", lambda value: value.update(values))(bench)

    return apply


def comparison(name: str, **values: Any) -> Change:
    return document(f"results/settings/{name}/comparison.json", lambda value: value.update(values))


def aborted(**values: Any) -> Change:
    def apply(bench: Bench) -> None:
        (folder,) = bench.folders("results/incomplete")
        document(folder + "/comparison.json", lambda value: value.update(values))(bench)

    return apply


# The manifest


@pytest.mark.parametrize(
    ("key", "right"),
    [
        ("profiles", 4), ("cases", 12), ("attempts", 9), ("comparisons", 2), ("incompleteComparisons", 1),
        ("mainSamples", 288), ("warmSamples", 216), ("lifecycleRecords", 0),
    ],
)  # fmt: skip
def test_every_count_is_of_what_is_there(key: str, right: int) -> None:
    for value in (right - 1, right + 1) if right else (1,):
        wrong = document(MANIFEST, lambda data, value=value: data["counts"].update({key: value}))
        assert said("manifest-counts", wrong) == [f"{MANIFEST}#/counts/{key}: found {value}, expected {right}"]


def test_bodies_are_counted_where_bodies_lie() -> None:
    def counted(name: str) -> bool:
        # Resealing counts every body more that is put anywhere.
        return said("manifest-counts", lambda bench: bench.put(name, b"x")) == []

    body = "bodies/" + "e" * 64
    assert counted(f"results/settings/memory-half/{body}")
    assert counted(f"results/converged/a02-native/{body}")
    assert counted(f"results/incomplete/aborted-20261130t090000.000000z/{body}")
    assert not counted(f"results/other/x/{body}")
    assert not counted(f"results/settings/memory-half/x/{body}")
    assert not counted(f"results/settings/memory-half/{body}e")


def test_the_recorder_lies_in_the_package_and_is_the_one_that_is_named() -> None:
    assert said("manifest-proxy", lambda bench: bench.remove("receipt-proxy.py")) == [
        "receipt-proxy.py: found no such file, expected the recorder that made the ledgers"
    ]
    assert said("manifest-proxy", lambda bench: bench.put("receipt-proxy.py", b"x"))[0].startswith(
        f"{MANIFEST}#/proxySha256: found "
    )
    assert said("manifest-proxy", lambda bench: bench.put("receipt-proxy.py", b"x"))[0].endswith(sha256(b"x"))


def boundaries(change: Callable[[list[Row]], object]) -> Change:
    return document(MANIFEST, lambda value: change(value["boundaries"]))


@pytest.mark.parametrize(
    "name",
    ["not-release-qualification", "not-optimum", "not-sla", "not-model-maximum", "snapshot-not-peak", "one-prefill-only", "not-gpu-result"],
)  # fmt: skip
def test_every_boundary_is_stated_once(name: str) -> None:
    def without(rows: list[Row]) -> None:
        rows[:] = [one for one in rows if one["id"] != name]

    def twice(rows: list[Row]) -> None:
        rows.append(next(one for one in rows if one["id"] == name))

    for change, count in ((without, 0), (twice, 2)):
        assert said("manifest-boundaries", boundaries(change)) == [
            f"{MANIFEST}#/boundaries: found {name} stated {count} times, expected once"
        ]
    # Where nothing is synthetic, the boundary of synthetic figures may be left out, and no other.
    assert len(said("manifest-boundaries", boundaries(without), manifest(synthetic="none"))) == (
        name != "not-gpu-result"
    )
    assert len(said("manifest-boundaries", boundaries(without), manifest(synthetic="some"))) == 1


def test_a_boundary_is_one_that_the_format_knows() -> None:
    more = boundaries(lambda rows: rows.append({"id": "not-anything", "statement": "x"}))
    assert said("manifest-boundaries", more) == [
        f"{MANIFEST}#/boundaries: found not-anything, expected a boundary that the format knows"
    ]


EVERYONE = ["a01", "a02", "a03", "a04", "a05", "a06", "a07", "a08", "a09"]


def genuine(*kept: str) -> list[Change]:
    """Nothing is synthetic but what is kept."""
    changes: list[Change] = [attempt(name, synthetic=False) for name in EVERYONE if name not in kept]
    changes += [comparison(name, synthetic=False) for name in ("memory-half", "seqs-four") if name not in kept]
    return [*changes, *([] if "aborted" in kept else [aborted(synthetic=False)])]


def test_synthetic_says_how_much_the_synthetic_engine_made() -> None:
    at = f"{MANIFEST}#/synthetic: found "
    assert said("manifest-synthetic", manifest(synthetic="some")) == [f"{at}some, expected all"]
    assert said("manifest-synthetic", manifest(synthetic="none", statement="x")) == [f"{at}none, expected all"]
    assert said("manifest-synthetic", *genuine()) == [f"{at}all, expected none"]
    for kept in ("a05", "seqs-four", "aborted"):
        assert said("manifest-synthetic", *genuine(kept)) == [f"{at}all, expected some"]
        assert said("manifest-synthetic", *genuine(kept), manifest(synthetic="some")) == []


def test_the_statement_says_synthetic_in_words() -> None:
    at = f"{MANIFEST}#/statement: found "
    assert said("manifest-synthetic", manifest(statement="All of it.")) == [
        f"{at}All of it., expected a statement that says synthetic"
    ]
    assert said("manifest-synthetic", manifest(statement="SYNTHETIC, all of it.")) == []
    assert said("manifest-synthetic", *genuine(), manifest(statement="All of it.", synthetic="none")) == []


def engines(change: Callable[[list[Row]], object]) -> Change:
    return document(MANIFEST, lambda value: change(value["engines"]))


def test_an_engine_is_synthetic_exactly_when_its_adapter_is() -> None:
    at = f"{MANIFEST}#/engines/synthetic/synthetic: found "
    assert said("manifest-synthetic", engines(lambda rows: rows[0].update(synthetic=False))) == [
        f"{at}false, expected true"
    ]
    for adapter in ("vllm", "command"):
        assert said("manifest-synthetic", engines(lambda rows, adapter=adapter: rows[0].update(adapter=adapter))) == [
            f"{at}true, expected false"
        ]


def test_each_engine_stands_once_and_every_run_names_one() -> None:
    assert said("manifest-engines", engines(lambda rows: rows.append(rows[0]))) == [
        f"{MANIFEST}#/engines: found synthetic twice, expected each engine once"
    ]
    for change, run in (
        (attempt("a02", engine="other"), "a02-native"),
        (comparison("memory-half", engine="other"), "memory-half-20261130t010000.000000z"),
        (aborted(engine="other"), "aborted-20261130t090000.000000z"),
    ):
        assert said("manifest-engines", change) == [
            f"{MANIFEST}#/engines: found no engine other, of run {run}, expected every engine that ran"
        ]


def distribution(**values: Any) -> Change:
    return document(MANIFEST, lambda value: value["distribution"].update(values))


def test_only_a_preparation_is_not_final_and_says_so() -> None:
    at = f"{MANIFEST}#/distribution/"
    draft = [manifest(status="IN_PROGRESS_NOT_FINAL"), document(MATRIX, lambda value: value.update(status="IN_PROGRESS_NOT_FINAL"))]  # fmt: skip
    assert said("manifest-status", *draft) == [
        f"{at}preparation: found false, expected true",
        f"{at}archive: found forged-evaluation.tgz, expected a name that says preparation",
    ]
    assert said("manifest-status", distribution(preparation=True)) == [f"{at}preparation: found true, expected false"]
    for name, lines in (
        ("forged-PREPARATION.tgz", 0), ("forged-not-final.tgz", 0), ("forged-final.tgz", 1), ("forged-evaluation.tgz", 1),
    ):  # fmt: skip
        assert len(said("manifest-status", *draft, distribution(preparation=True, archive=name))) == lines, name
    assert said("manifest-status", draft[1]) == [
        f"{MANIFEST}#/status: found FINAL, expected that of the matrix: IN_PROGRESS_NOT_FINAL"
    ]


def test_one_campaign_names_everything() -> None:
    at = f"{MANIFEST}#/distribution: found "
    assert said("manifest-campaign", distribution(topFolder="x")) == [
        f"{at}forged-evaluation.tgz in x, expected both named forged"
    ]
    for name in ("forgedevaluation.tgz", "x-evaluation.tgz"):
        assert said("manifest-campaign", distribution(archive=name)) == [
            f"{at}{name} in forged, expected both named forged"
        ]
    assert said("manifest-campaign", document(MATRIX, lambda value: value.update(campaign="x"))) == [
        f"{MATRIX}#/campaign: found x, expected forged"
    ]
    for change, run in (
        (comparison("memory-half", campaign="x"), "memory-half-2"),
        (aborted(campaign="x"), "aborted-2"),
    ):
        (line,) = said("manifest-campaign", change)
        assert line.startswith(f"{MANIFEST}#/campaign: found forged, expected that of run {run}")
        assert line.endswith(": x")


def dates(**values: Any) -> Change:
    return document(MANIFEST, lambda value: value["dates"].update(values))


BEGUN, SECOND = "2026-11-30T00:01:00.000000Z", "2026-11-30T00:01:00.000001Z"


def test_the_dates_span_every_run() -> None:
    at = f"{MANIFEST}#/dates/"
    assert said("manifest-dates", dates(firstRunStartedAt=SECOND)) == [
        f"{at}firstRunStartedAt: found {SECOND}, expected not after {BEGUN}"
    ]
    assert said("manifest-dates", dates(firstRunStartedAt=BEGUN)) == []
    assert said("manifest-dates", dates(firstRunStartedAt=None)) == [
        f"{at}firstRunStartedAt: found null, expected not after {BEGUN}"
    ]
    # The last arm of the second comparison began at 02:05; when the run of the aborted one ended nobody knows.
    last = "2026-11-30T02:05:00.000000Z"
    assert said("manifest-dates", dates(lastRunEndedAt=last)) == []
    for value, shown in (("2026-11-30T02:04:59.999999Z", "2026-11-30T02:04:59.999999Z"), (None, "null")):
        assert said("manifest-dates", dates(lastRunEndedAt=value)) == [
            f"{at}lastRunEndedAt: found {shown}, expected not before {last}"
        ]
    late = attempt("a04", endedAt="2026-11-30T23:30:00.000000Z")
    assert said("manifest-dates", late)[0].endswith("expected not before 2026-11-30T23:30:00.000000Z")
    early = "2026-11-30T00:00:59.999999Z"
    assert said("manifest-dates", attempt("a04", startedAt=early)) == [
        f"{at}firstRunStartedAt: found {BEGUN}, expected not after {early}"
    ]


def first_arm(change: Callable[..., Change], begun: str) -> Change:
    def apply(bench: Bench) -> None:
        parent = "results/incomplete" if change is aborted else "results/settings"
        folder = bench.folders(parent)[0]
        document(folder + "/comparison.json", lambda value: value["arms"][0].update(startedAt=begun))(bench)

    return apply


@pytest.mark.parametrize("which", [aborted, comparison])
def test_the_arms_of_a_comparison_and_of_one_that_did_not_finish_began_within_the_dates(which: Any) -> None:
    early = "2026-11-30T00:00:00.000000Z"
    assert said("manifest-dates", first_arm(which, early)) == [
        f"{MANIFEST}#/dates/firstRunStartedAt: found {BEGUN}, expected not after {early}"
    ]
    late = said("manifest-dates", first_arm(which, "2026-11-30T23:59:00.000000Z"))
    assert len(late) == (which is comparison)


def gateways(*rows: Row) -> Change:
    return manifest(gateways=[{"sourceCommit": None, "reason": "a reason", **one} for one in rows])


BUILT_IN = {"kind": "built-in", "name": "round-robin", "sha256": None}
COMMAND = {"kind": "command", "name": "gw", "sha256": "e" * 64}


def went_through(which: str, **gateway: Any) -> Change:
    return attempt(which, gateway={"reason": "a reason", **gateway})


def test_every_gateway_that_a_run_went_through_stands_in_the_manifest_and_no_other() -> None:
    at = f"{MANIFEST}#/gateways: found "
    assert said("manifest-gateways", gateways(BUILT_IN, BUILT_IN)) == [f"{at}a gateway twice, expected each once"]
    assert said("manifest-gateways", gateways(BUILT_IN, COMMAND)) == [
        f"{at}command gw, sha256 {'e' * 64}, that no run went through, expected gateways of comparisons and attempts"
    ]
    none = f"{at}none of kind command, name gw, sha256 {'e' * 64}, expected that of run a03-rr-20261130t000300.000000z"
    assert said("manifest-gateways", went_through("a03", **COMMAND)) == [none]
    assert said("manifest-gateways", went_through("a03", **COMMAND), gateways(BUILT_IN, COMMAND)) == []
    for other in ({"kind": "url"}, {"name": "gx"}, {"name": "ga"}, {"sha256": "f" * 64}):
        lines = said("manifest-gateways", went_through("a03", **COMMAND), gateways(BUILT_IN, {**COMMAND, **other}))
        assert len(lines) == 2, other


def test_the_hash_of_a_gateway_may_be_declared_where_the_run_could_not_take_it() -> None:
    loose = went_through("a03", **{**COMMAND, "sha256": None})
    assert said("manifest-gateways", loose, gateways(BUILT_IN, COMMAND)) == []
    hashed = went_through("a03", **BUILT_IN)
    assert said("manifest-gateways", hashed) == []
    # A built-in one has none to declare.
    lines = said("manifest-gateways", gateways({**BUILT_IN, "sha256": "e" * 64}))
    assert len(lines) == 7
    assert lines[-1].endswith("that no run went through, expected gateways of comparisons and attempts")


def test_a_run_that_did_not_finish_may_have_gone_through_a_gateway_of_its_own() -> None:
    assert said("manifest-gateways", aborted(gateway={**COMMAND, "reason": "a reason"})) == []
    assert (
        said("manifest-gateways", aborted(gateway={**COMMAND, "reason": "a reason"}), gateways(BUILT_IN, COMMAND)) == []
    )


@pytest.mark.parametrize("key", ["surface", "topology", "profile", "engine"])
def test_the_case_of_a_comparison_is_a_row_of_the_matrix_with_its_facts(key: str) -> None:
    (one, two, three) = said("manifest-case", row("tiny-synthetic-rr", **{key: "x"}))
    for line, name in ((one, "memory-half"), (two, "seqs-four"), (three, "aborted-20261130t090000.000000z")):
        assert line.startswith(f"{MATRIX}#tiny-synthetic-rr/{key}: found x, expected that of comparison {name}: ")


def test_a_comparison_without_a_row_is_told_with_every_fact() -> None:
    lines = said("manifest-case", comparison("memory-half", case="nothing"))
    assert [line.split(":")[0].rpartition("/")[2] for line in lines] == ["surface", "topology", "profile", "engine"]
    assert lines[0] == f"{MATRIX}#nothing/surface: found null, expected that of comparison memory-half: rr"


def guide(change: Callable[[bytes], bytes]) -> Change:
    return lambda bench: bench.put("README.md", change(bench.read("README.md")))


def test_the_guide_begins_with_what_the_manifest_says_and_says_how_to_verify_it() -> None:
    assert said("manifest-readme", guide(lambda data: data.replace(b"\n", b"  \n\n"))) == []
    assert said("manifest-readme", guide(lambda data: data + b"more\n")) == []
    (line,) = said("manifest-readme", guide(lambda data: b"x" + data))
    assert line.startswith("README.md: found ...x# A forged campaign Everything ")
    (line,) = said("manifest-readme", guide(lambda data: data.replace(b"2 complete", b"3 complete")))
    found, _, expected = line[len("README.md: found ...") :].partition(", expected ")
    assert found.startswith("cases, 9 functional attempts, 3 complete comparisons")
    assert expected.startswith("cases, 9 functional attempts, 2 complete comparisons")
    assert (len(found), len(expected)) == (70, 70)
    for old in (b"sha256sum -c forged-evaluation.tgz.sha256", b"cd forged", b"sha256sum -c SHA256SUMS"):
        (line,) = said("manifest-readme", guide(lambda data, old=old: data.replace(old, b"")))
        assert line == f"README.md: found no line {old.decode()}, expected how to verify the archive of the manifest"
    lines = said("manifest-readme", lambda bench: bench.remove("README.md"))
    assert len(lines) == 4
    assert lines[0] == 'README.md: found ..."", expected # A forged campaign Everything here is s'


# The matrix


def test_every_profile_has_a_row_on_every_surface_once_and_sorted() -> None:
    rows = document(MATRIX, lambda value: value["rows"].reverse())
    order = f"{MATRIX}: found cases out of order or twice, expected each case once, sorted"
    assert said("matrix-complete", rows) == [order]
    assert said("matrix-complete", document(MATRIX, lambda value: value["rows"].append(value["rows"][-1]))) == [order]
    last = document(MATRIX, lambda value: value["rows"].pop())
    assert said("matrix-complete", last) == [
        f"{MATRIX}: found no row for tiny on rr, expected one for every profile and surface"
    ]
    lines = said("matrix-complete", row("tiny-synthetic-rr", surface="native-pd"))
    assert lines[1] == f"{MATRIX}#tiny-synthetic-rr: found surface native-pd, expected a surface of the campaign"
    lines = said("matrix-complete", row("tiny-synthetic-rr", profile="nobody"))
    assert lines[1] == f"{MATRIX}#tiny-synthetic-rr: found profile nobody, expected a profile of model-identities.json"


def test_a_row_cites_all_attempts_of_its_case_oldest_first() -> None:
    at = f"{MATRIX}#tiny-synthetic-native/attempts: found "
    right = '["a01-native", "a02-native"]'
    for cited in (["a02-native", "a01-native"], ["a02-native"], ["a01-native", "a02-native", "a04-exact"]):
        (line,) = said("matrix-attempts", row("tiny-synthetic-native", attempts=cited))
        assert line.startswith(at)
        assert line.endswith(f", expected {right}")
    # Begun at the same instant, they stand in the order of their ids.
    same = attempt("a02", startedAt="2026-11-30T00:01:00.000000Z")
    assert said("matrix-attempts", same) == []
    (line,) = said("matrix-attempts", attempt("a02", startedAt="2026-11-30T00:00:59.000000Z"))
    assert line.endswith('expected ["a02-native", "a01-native"]')
    lines = said("matrix-attempts", attempt("a02", case="nothing"))
    assert lines[1] == f"{MATRIX}: found no row for case nothing of attempt a02-native, expected a row for every case"


def test_the_attempt_that_ended_last_decides() -> None:
    at = f"{MATRIX}#tiny-synthetic-native"
    later = attempt("a01", endedAt="2026-11-30T00:03:00.000000Z")
    assert said("matrix-decided", later) == [
        f"{at}/decidedBy: found a02-native, expected a01-native",
        f"{at}: found SUCCESS, OK, expected NATIVE_FAILURE, BAD_ANSWER",
    ]
    # Ended at the same instant, the one that began last decides, and of two that began together the id.
    same = attempt("a01", endedAt="2026-11-30T00:02:30.000000Z")
    assert said("matrix-decided", same) == []
    both = attempt("a01", endedAt="2026-11-30T00:02:30.000000Z", startedAt="2026-11-30T00:02:00.000001Z")
    assert len(said("matrix-decided", both)) == 2
    open_one = attempt("a02", ended=False, endedAt=None)
    assert said("matrix-decided", open_one) == [
        f"{at}/decidedBy: found a02-native, expected a01-native",
        f"{at}: found SUCCESS, OK, expected NATIVE_FAILURE, BAD_ANSWER",
    ]
    assert said("matrix-decided", row("tiny-synthetic-native", reason="x")) == [
        f"{at}: found SUCCESS, x, expected SUCCESS, OK"
    ]
    nobody = f"{MATRIX}#deferred-synthetic-rr/decidedBy: found a02-native, expected null"
    assert said("matrix-decided", row("deferred-synthetic-rr", decidedBy="a02-native")) == [nobody]
    assert said("matrix-decided", row("tiny-synthetic-native", decidedBy=None)) == [
        f"{at}/decidedBy: found null, expected a02-native"
    ]


def test_without_an_attempt_that_ended_a_case_was_deferred_or_not_attempted() -> None:
    at = f"{MATRIX}#"
    assert said("matrix-undecided", row("deferred-synthetic-rr", outcome="NOT_ATTEMPTED")) == [
        f"{at}deferred-synthetic-rr: found NOT_ATTEMPTED, USER_DEFERRED, expected USER_DEFERRED, USER_DEFERRED"
    ]
    assert said("matrix-undecided", row("gated-synthetic-rr", outcome="USER_DEFERRED")) == [
        f"{at}gated-synthetic-rr: found USER_DEFERRED, NOT_ATTEMPTED, expected NOT_ATTEMPTED, NOT_ATTEMPTED"
    ]
    tried = attempt("a02", case="deferred-synthetic-rr")
    assert said("matrix-undecided", tried) == [
        f"{at}deferred-synthetic-rr: found an attempt of a deferred profile, expected none"
    ]


def test_a_success_is_borne_by_a_normal_answer_of_its_own_case() -> None:
    at = f"{MATRIX}#tiny-synthetic-native"
    bare = f"{at}: found SUCCESS, expected a converged attempt with raw bodies and a normal answer"
    assert said("matrix-borne", row("tiny-synthetic-native", decidedBy=None)) == [bare]
    assert said("matrix-borne", row("tiny-synthetic-native", decidedBy="nothing")) == [bare]
    assert said("matrix-borne", row("gated-synthetic-native", outcome="SUCCESS")) == [
        f"{MATRIX}#gated-synthetic-native: found SUCCESS, expected a converged attempt with raw bodies and a normal answer"
    ]
    for key, old, new in (
        ("profile", "tiny", "x"), ("engine", "synthetic", "x"), ("topology", "single", "two-worker"), ("surface", "native", "rr"),
    ):  # fmt: skip
        assert said("matrix-borne", row("tiny-synthetic-native", **{key: new})) == [
            f"{at}/{key}: found {new}, expected that of a02-native: {old}"
        ]
    assert said("matrix-borne", row("tiny-synthetic-native", synthetic=False)) == [
        f"{at}/synthetic: found false, expected that of a02-native: true"
    ]


def test_a_blocker_stands_exactly_where_there_is_no_success() -> None:
    at, right = f"{MATRIX}#tiny-synthetic-", "expected null exactly with SUCCESS"
    assert said("matrix-blocker", row("tiny-synthetic-rr", blocker="x")) == [f"{at}rr/blocker: found x, {right}"]
    assert said("matrix-blocker", row("tiny-b-synthetic-rr", blocker=None)) == [
        f"{MATRIX}#tiny-b-synthetic-rr/blocker: found null, {right}"
    ]
    for outcome in ("NATIVE_FAILURE", "USER_DEFERRED"):
        assert said("matrix-blocker", row("tiny-synthetic-rr", outcome=outcome)) == [
            f"{at}rr/blocker: found null, {right}"
        ]


def test_a_deferred_case_has_no_recipe() -> None:
    def case(name: str) -> Change:
        return document("recipes.json", lambda value: value["recipes"][1].update(case=name))

    assert said("matrix-deferred", case("deferred-synthetic-rr")) == [
        "recipes.json#tiny-exact: found a recipe of a deferred case, expected none"
    ]
    assert said("matrix-deferred", case("gated-synthetic-rr")) == []
    assert said("matrix-deferred", case("nothing")) == []


def test_access_is_blocked_for_a_gated_profile_alone_unless_an_engine_ran() -> None:
    at = "results/converged/a06-native/attempt.json#/outcome: found "
    blocked = attempt("a06", outcome="BLOCKED_ACCESS", reason="ACCESS_DENIED")
    assert said("matrix-access", blocked) == [
        f"{at}BLOCKED_ACCESS of a profile that is accessible, expected a gated profile"
    ]
    assert said("matrix-access", attempt("a02", outcome="BLOCKED_ACCESS")) == []
    missing = attempt("a08", outcome="MISSING_STORAGE", reason="MODEL_NOT_FOUND")
    assert said("matrix-access", missing) == [
        "results/converged/a08-native/attempt.json#/outcome: found MISSING_STORAGE, MODEL_NOT_FOUND of a gated profile, "
        "expected BLOCKED_ACCESS, ACCESS_DENIED"
    ]


# Prefill/decode


def case(place: int, **values: Any) -> Change:
    return document(PD, lambda value: value["cases"][place].update(values))


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"reviewed": False}, "/reviewed: found false, expected true: only reviewed cases are published"),
        ({"id": "pd-bad"}, None),
        ({"profile": "nobody"}, "/profile: found nobody, expected a profile of model-identities.json"),
    ],
)
def test_a_case_was_reviewed_stands_once_and_is_of_a_profile(values: Row, line: str | None) -> None:
    lines = said("pd-reviewed", case(0, **values))
    right = f"{PD}#pd-bad: found the case twice, expected each case once"
    assert lines == [right if line is None else f"{PD}#pd-good{line}"]


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"reason": "X"}, "/reason: found X, expected null, since the case is qualified"),
        ({"statePreserved": None}, "/statePreserved: found null, expected stated, since the case is qualified"),
        ({"statePreserved": False}, "/statePreserved: found false, expected stated, since the case is qualified"),
        ({"recovery": None}, "/recovery: found null, expected stated, since the case is qualified"),
        ({"cleanup": False}, "/cleanup: found false, expected stated, since the case is qualified"),
        ({"negatives": []}, "/negatives: found [], expected negatives, all rejected"),
        ({"decodeTransferCounters": {"before": 2, "after": 3}}, None),
    ],
)
def test_a_qualified_case_states_every_proof(values: Row, line: str | None) -> None:
    assert said("pd-qualified", case(0, **values)) == ([] if line is None else [f"{PD}#pd-good{line}"])


def test_counters_show_a_transfer_and_every_negative_was_rejected() -> None:
    for after in (2, 1):
        (line,) = said("pd-qualified", case(0, decodeTransferCounters={"before": 2, "after": after}))
        assert line.startswith(f"{PD}#pd-good/decodeTransferCounters: found {{")
        assert line.endswith("expected a transfer: after greater than before")
    mixed = [{"id": "one", "rejected": True}, {"id": "two", "rejected": False}]
    (line,) = said("pd-qualified", case(0, negatives=mixed))
    assert line.endswith("expected negatives, all rejected")


def test_a_failed_case_has_a_reason_and_need_state_nothing() -> None:
    assert said("pd-qualified", case(1, reason=None)) == [f"{PD}#pd-bad/reason: found null, expected a reason code"]
    assert said("pd-qualified", case(1, negatives=[], cleanup=None, recovery=False)) == []


# Names and sums


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a/b/c/d/e/f/g", None),
        ("a/b/c/d/e/f/g/h", "found 8 levels, expected at most 7"),
        ("a" * 100, None),
        ("a" * 101, "component"),
        ("x/" + "b" * 101 + "/c", "component"),
        ("A_+9.z-_+", None),
        ("a.", "component"),
        (".a", "component"),
        ("-a", "component"),
        ("a b", "component"),
        ("a\u00e9", "component"),
        ("con", "component"),
        ("CON.txt", "component"),
        ("x/lpt9/y", "component"),
        ("com1.a.b", "component"),
        ("console", None),
        ("com", None),
    ],
)
def test_names_are_of_the_alphabet_short_enough_and_shallow_enough(name: str, line: str | None) -> None:
    lines = said("name-character", lambda bench: bench.put(name, b""))
    if line is None:
        assert lines == []
    elif line == "component":
        assert lines[0].startswith(f"{name.encode('ascii', 'backslashreplace').decode()}: found component ")
        assert lines[0].endswith(", expected letters, digits and ._+- in at most 100, no device name")
    else:
        assert lines == [f"{name}: {line}"]


@pytest.mark.parametrize(
    ("name", "plain"),
    [("a", True), ("a/b/c/d/e/f/g", True), ("a/b/c/d/e/f/g/h", False), ("con", False), ("x/" + "b" * 101, False)],
)
def test_a_look_at_a_whole_folder_admits_what_each_name_would(name: str, plain: bool) -> None:
    subject = LISTING.open(Scope(View(Memory({name: b""})), "package", "", {}))
    assert subject.plain() is plain


@pytest.mark.parametrize(
    ("made", "code"),
    [(b"x\n", "sums-form"), (b"", "sums-empty"), (b"%(a)s  b\n%(a)s  a\n", "sums-order"), (b"%(a)s  a", "sums-form")],
)
def test_a_list_with_a_fault_has_it_beside_a_known_one_too(made: bytes, code: str) -> None:
    ours = b"%s  a\n" % sha256(b"1").encode()
    recall = Recall()
    recall.sums, recall.lines = {"a": sha256(b"1")}, frozenset(ours.splitlines())
    made = made.replace(b"%(a)s", sha256(b"1").encode())
    source = Overlay(Memory({"a": b"1", "SHA256SUMS": ours}), {"SHA256SUMS": made})
    for known in (recall, None):
        listed = Listed(Scope(View(source, known), "package", "", {}), lambda name: True)
        assert listed.fault is not None
        assert listed.fault.code == code
        assert list(listed.rows()) == []


def test_every_name_with_a_bad_component_is_told_once() -> None:
    bad = ["x/con/y", "x/con/z", "con/con"]
    lines = said("name-character", *[lambda bench, name=name: bench.put(name, b"") for name in bad])
    assert [line.split(":")[0] for line in lines] == sorted(bad)


def test_names_differ_by_more_than_their_letters_case() -> None:
    lines = said("name-collision", lambda bench: bench.put("readme.MD", b""))
    assert lines == [
        "readme.MD: found the same as README.md but for letter case, expected names that differ everywhere"
    ]
    assert said("name-collision", lambda bench: bench.put("readme.MDX", b"")) == []


def test_weights_and_registries_are_of_what_the_documents_name() -> None:
    def put(name: str) -> list[str]:
        return said("tree-owned", lambda bench: bench.put(name, b""))

    right = "found a file of no profile, expected profiles of model-identities.json only"
    for end in ("sha256", "source-index"):
        assert put(f"weights/nobody.{end}") == [f"weights/nobody.{end}: {right}"]
        assert put(f"weights/gated.{end}") == []
    assert put("weights/nobody.bin") == []
    assert put("registry-other/manifest.json") == [
        'registry-other: found a registry that no engine of manifest.json names, expected ["registry-synthetic"]'
    ]
