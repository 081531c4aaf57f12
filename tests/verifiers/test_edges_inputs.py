"""Registries, recipes and what requalifies them, at their edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from checking.damage import Bench, sha256

from tests.verifiers.edges import CONVERGED, RESULTS, only, told

REGISTRY = "registry-synthetic/manifest.json"


def with_engine(**values: Any) -> Callable[[Bench], None]:
    def change(bench: Bench) -> None:
        with bench.edit("manifest.json") as data:
            # An engine without a registry, and one of another registry, stand before it.
            first = {**data["engines"][0], "id": "a-first", "registry": None}
            second = {**data["engines"][0], "id": "a-second", "registry": "registry-elsewhere"}
            data["engines"] = [first, second, {**data["engines"][0], **values}]

    return change


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ({}, []),
        ({"version": "2"}, []),  # a version that the engine reported need not be the registry's
        ({"version": "2", "source": "declared"}, ["#/version: found 1, expected that of manifest.json: 2"]),
        ({"adapter": "another"}, ["#/adapter: found synthetic, expected that of manifest.json: another"]),
        ({"id": "another"}, ["#/engine: found synthetic, expected that of manifest.json: another"]),
    ],
)
def test_a_registry_is_of_the_engine_that_names_it(values: dict[str, str], lines: list[str]) -> None:
    found = told(CONVERGED, "registry", with_engine(**values))
    missing = "registry manifest.json#/engines/a-second: found registry-elsewhere, expected a registry that is there"
    assert found == [f"registry {REGISTRY}{line}" for line in lines] + [missing]


def requalifying(*values: str | None, **attempt: Any) -> Callable[[Bench], None]:
    """An accepted attempt that ran with these values, one a worker (None: without the argument)."""

    def change(bench: Bench) -> None:
        desk = only(bench, "converged", "a03-rr")
        with desk.edit("attempt.json") as data:
            data["startedAt"] = "2026-11-30T05:00:00.000000Z"
            for launch, value in zip(data["launches"], values, strict=True):
                launch["arguments"] += [] if value is None else ["--gpu-memory", value]
            if not values:
                data["launches"] = []
            scope = attempt.pop("accepted", None)
            data.update(attempt)
            if scope is not None:
                data["scope"]["accepted"] = scope

    return change


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (requalifying("0.5", "0.5"), True),
        (requalifying("0.4", "0.4"), False),
        (requalifying("0.9", "0.9"), False),
        (requalifying("0.5", "0.9"), False),
        (requalifying("0.5", None), False),
        (requalifying("0.5", "0.5", startedAt="2026-11-30T01:00:00.000000Z"), False),  # with the comparison itself
        (requalifying("0.5", "0.5", startedAt="2026-11-30T01:00:00.000001Z"), True),
        (requalifying("0.5", "0.5", accepted=False), False),
        (requalifying("0.5", "0.5", ended=False), False),
        (requalifying("0.5", "0.5", outcome="NATIVE_FAILURE"), False),
        (requalifying("0.5", "0.5", profile="tiny-b"), False),
        (requalifying("0.5", "0.5", topology="single"), False),
        (requalifying("0.5", "0.5", engine="another"), False),
    ],
)
def test_a_candidate_is_requalified_by_a_later_attempt_with_its_value_alone(change: Any, again: bool) -> None:
    lines = told(RESULTS, "decision-requalification", change)
    at = "decision-requalification results/settings/memory-half/decision.json#/requalification"
    right = "not-required: by the attempts that are there"
    assert lines == ([f"{at}: found required, expected {right}"] if again else [])


def test_an_attempt_that_does_not_fit_keeps_no_later_one_from_being_looked_at() -> None:
    def another(bench: Bench) -> None:
        desk = only(bench, "converged", "a04-exact")
        with desk.edit("attempt.json") as data:
            data["startedAt"] = "2026-11-30T05:00:00.000000Z"
            for launch in data["launches"]:
                launch["arguments"] += ["--gpu-memory", "0.5"]

    def unreadable(launch: Any, **values: Any) -> Callable[[Bench], None]:
        def change(bench: Bench) -> None:
            requalifying("0.5", "0.5")(bench)
            desk = only(bench, "converged", "a03-rr")
            with desk.edit("attempt.json") as data:
                data["launches"] = [launch]
                data.update(values)

        return change

    odd = [
        unreadable({}),
        unreadable({"arguments": None, "environment": {}}),
        unreadable({"arguments": [1], "environment": {}}),
        unreadable({"arguments": [], "environment": {}}, startedAt=7),
    ]

    def both(*changes: Callable[[Bench], object]) -> Callable[[Bench], None]:
        return lambda bench: [change(bench) for change in changes] and None

    for change in (another, *(both(another, one) for one in odd), both(another, requalifying("0.4", "0.4"))):
        assert len(told(RESULTS, "decision-requalification", change)) == 1
    for change in odd:
        assert told(RESULTS, "decision-requalification", change) == []


def document(name: str, change: Callable[[Any], object]) -> Callable[[Bench], None]:
    def apply(bench: Bench) -> None:
        with bench.edit(name) as value:
            change(value)

    return apply


def put(name: str, data: bytes = b"x") -> Callable[[Bench], None]:
    return lambda bench: bench.put(name, data)


def removed(name: str) -> Callable[[Bench], None]:
    return lambda bench: bench.remove(name)


def said(code: str, *changes: Callable[[Bench], object]) -> list[str]:
    """What stands after the code in the lines that the changes give."""

    def damage(bench: Bench) -> None:
        for change in changes:
            change(bench)

    return [line[len(code) + 1 :] for line in told(CONVERGED, code, damage)]


IDENTITIES = "model-identities.json"


def profile(name: str, **values: Any) -> Callable[[Bench], None]:
    return document(
        IDENTITIES, lambda value: next(one for one in value["profiles"] if one["id"] == name).update(values)
    )


def test_models_holds_every_profile_once_with_the_same_facts() -> None:
    twice = document(IDENTITIES, lambda value: value["profiles"].append(value["profiles"][0]))
    assert said("model-files", twice) == [f"{IDENTITIES}: found a profile twice, expected each profile once"]
    assert said("model-files", removed("models/gated.json")) == [
        "models/gated.json: found no such file, expected one for every profile"
    ]

    def copy(bench: Bench) -> None:
        bench.put("models/other.json", bench.read("models/gated.json"))

    assert said("model-files", copy) == [
        "models/other.json: found a file of no profile, expected profiles of model-identities.json only"
    ]
    assert said("model-files", profile("gated", license="mit")) == [
        'models/gated.json: found other facts: ["license"], expected those of model-identities.json'
    ]


def test_a_revision_is_told_or_null_with_its_reason() -> None:
    def both(**values: Any) -> list[Callable[[Bench], None]]:
        return [profile("tiny", **values), document("models/tiny.json", lambda value: value["profile"].update(values))]

    at = f"{IDENTITIES}#tiny/revision"
    assert said("model-files", *both(revision=None, revisionReason="a registry of packages")) == []
    assert said("model-files", *both(revision=None)) == [
        f"{at}: found null, expected a revision, or null with its reason"
    ]
    (line,) = said("model-files", *both(revisionReason="a reason"))
    assert line.startswith(f"{at}: found 0123456789abcdef")


def test_a_definition_is_of_its_profile_and_nothing_lies_beside_them() -> None:
    assert said("model-definition", put("source-definitions/other.toml")) == [
        "source-definitions/other.toml: found a definition of no profile, expected definitions that a profile names"
    ]
    right = "expected a file source-definitions/tiny.*"
    assert said("model-definition", removed("source-definitions/tiny.toml")) == [
        f"{IDENTITIES}#tiny: found definition source-definitions/tiny.toml, {right}"
    ]
    path = {"path": "source-definitions/tiny-b.toml", "sha256": "0" * 64}
    lines = said("model-definition", profile("tiny", definition=path))
    assert lines[0] == f"{IDENTITIES}#tiny: found definition source-definitions/tiny-b.toml, {right}"
    (line,) = said("model-definition", put("source-definitions/tiny.toml"))
    assert line.startswith(
        "source-definitions/tiny.toml: found sha256 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db"
    )


INDEX, SUMS = "weights/tiny.source-index", "weights/tiny.sha256"


def test_a_source_index_is_there_with_its_hash() -> None:
    assert said("model-weights", removed(INDEX)) == [f"{INDEX}: found no such file, expected the index that tiny names"]
    (line,) = said("model-weights", put(INDEX))
    assert line.startswith(f"{INDEX}: found sha256 2d711642")
    assert said("model-weights", put("weights/gated.source-index")) == [
        f"weights/gated.source-index: found an index that no profile names, expected indices with a hash in {IDENTITIES}"
    ]
    assert said("model-weights", put("weights/gated.other")) == []


@pytest.mark.parametrize(
    "index", [b"", b"\xff", b"{", b"[]", b'"x"', b"{}", b'{"weight_map": []}', b'{"weight_map": {"a": ["b"]}}', b'{"weight_map": 3}']
)  # fmt: skip
def test_an_index_that_is_none_names_no_shard(index: bytes) -> None:
    named = profile("tiny", sourceIndexSha256=sha256(index))
    assert said("model-weights", put(INDEX, index), named) == []


def test_checksums_are_of_an_accessible_profile_with_artifacts() -> None:
    assert said("model-weights", removed(SUMS)) == [
        f"{SUMS}: found no such file, expected checksums of an accessible profile"
    ]
    assert said("model-weights", removed(SUMS), removed(INDEX), profile("tiny", sourceIndexSha256=None)) == []
    line = "{}: found checksums of a {} profile without artifacts, expected none"
    assert said("model-weights", put("weights/gated.sha256")) == [line.format("weights/gated.sha256", "gated")]
    assert said("model-weights", put("weights/deferred.sha256")) == [line.format("weights/deferred.sha256", "deferred")]
    assert line.format(SUMS, "accessible") in said("model-weights", profile("tiny", artifacts=[]))
    assert line.format(SUMS, "gated") in said("model-weights", profile("tiny", state="gated"))


def test_a_checksum_is_that_of_its_artifact() -> None:
    def twist(bench: Bench) -> None:
        bench.put(SUMS, b"e" * 64 + bench.read(SUMS)[64:])

    (line,) = said("model-weights", twist)
    assert line.startswith(f"{SUMS}#")
    assert f": found {'e' * 64}, expected " in line
    more = put(SUMS, b"")

    def add(bench: Bench) -> None:
        bench.put(SUMS, bench.read(SUMS) + b"e" * 64 + b"  other.bin\n")

    assert said("model-weights", add) == [f"{SUMS}#other.bin: found {'e' * 64}, expected null"]
    assert said("model-weights", more) == [
        f"{SUMS}: found no line for model-0000{n}-of-00002.safetensors, expected one for every shard" for n in (1, 2)
    ]


PROBE = "registry-synthetic/probes/tiny.json"


def probe(**values: Any) -> Callable[[Bench], None]:
    return document(REGISTRY, lambda value: value["probes"][0].update(values))


def test_a_registry_names_what_lies_in_it() -> None:
    stray = "registry-synthetic/probes/other.json"
    assert said("registry", put(stray)) == [
        f"{stray}: found a file that the registry does not name, expected its manifest and probes"
    ]
    (line,) = said("registry", put(PROBE, b"{}"))
    assert line.startswith(f"{PROBE}: found sha256 44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e83")
    assert said("registry", removed(PROBE)) == [
        f"{REGISTRY}: found probe {PROBE}, expected a file in registry-synthetic/probes"
    ]
    lines = said("registry", probe(path="models/tiny.json"))
    assert lines[0] == f"{REGISTRY}: found probe models/tiny.json, expected a file in registry-synthetic/probes"
    (line,) = said("registry", probe(tokenIdsSha256="e" * 64))
    assert line.startswith(f"{REGISTRY}#/probes/tiny: found {'e' * 64}, expected ")
    nobody = document(REGISTRY, lambda value: value["candidates"][0].update(profile="nobody"))
    assert said("registry", nobody) == [f"{REGISTRY}: found candidate nobody, expected a profile of {IDENTITIES}"]


def test_a_probe_that_tells_its_token_ids_tells_those_of_its_registry() -> None:
    def ids(text: bytes) -> list[str]:
        return said("registry", put(PROBE, text), probe(sha256=sha256(text)))

    assert ids(b'{"expectedTokenIds": [1, 15043, 3186]}') == []
    assert ids(b"[1]") == []
    assert ids(b'{"expectedTokenIds": [1]}') == [f"{PROBE}#/expectedTokenIds: found [1], expected [1, 15043, 3186]"]


def recipe(name: str, **values: Any) -> Callable[[Bench], None]:
    return document(
        "recipes.json", lambda value: next(one for one in value["recipes"] if one["id"] == name).update(values)
    )


def test_a_recipe_stands_once_and_is_of_a_case_that_succeeded() -> None:
    at = "recipes.json#tiny-exact"
    assert said(
        "recipe-case", document("recipes.json", lambda value: value["recipes"].append(value["recipes"][0]))
    ) == ["recipes.json: found a recipe twice, expected each recipe once"]
    assert said("recipe-case", document("recipes.json", lambda value: value["recipes"].reverse())) == []
    assert said("recipe-case", recipe("tiny-exact", case="nothing")) == [
        f"{at}/case: found nothing, null, expected a case with SUCCESS"
    ]
    assert said("recipe-case", recipe("tiny-exact", case="tiny-b-synthetic-exact")) == [
        f"{at}/case: found tiny-b-synthetic-exact, EXACT_PARTIAL_ONE_PREFILL, expected a case with SUCCESS"
    ]
    assert said("recipe-case", recipe("tiny-exact", topology="single")) == [
        f"{at}/topology: found single, expected two-worker"
    ]
    assert said("recipe-case", profile("tiny", state="gated"))[0].endswith(
        "/profile: found gated, expected an accessible profile"
    )
    assert said("recipe-case", recipe("tiny-exact", modes=["exact", "native-pd"])) == [
        f'{at}/modes: found native-pd, expected modes that an accepted attempt bears: ["exact", "native", "rr"]'
    ]
    lines = said("recipe-case", recipe("tiny-exact", engine="another"))
    assert lines == [
        f"{at}/engine: found another, expected synthetic",
        f"{at}/modes: found exact, expected modes that an accepted attempt bears: []",
    ]


def test_a_selected_value_is_the_one_that_its_comparison_decided_for() -> None:
    at = "recipes.json#tiny-exact"
    for value in ("baseline", "candidate"):
        assert said("recipe-selection", recipe("tiny-exact", selected=value)) == [
            f"{at}/selected: found {value}, expected null without a comparison"
        ]
    at = "recipes.json#tiny-seqs"
    assert said("recipe-selection", recipe("tiny-seqs", selected="baseline")) == [
        f"{at}/selected: found baseline, expected candidate"
    ]
    (line,) = said("recipe-selection", recipe("tiny-seqs", setting={"argument": "--max-num-seqs", "value": "2"}))
    assert line.startswith(f'{at}/setting: found {{"argument": "--max-num-seqs", "value": "2"}}, expected {{')
    arguments = ["serve", "--max-num-seqs", "2"]
    assert said("recipe-selection", recipe("tiny-seqs", arguments=arguments)) == [
        f'{at}/arguments: found ["2"], expected ["4"]'
    ]
    assert said("recipe-selection", recipe("tiny-seqs", comparison="nothing")) == [
        f"{at}/comparison: found nothing, expected a complete comparison"
    ]
    assert said("recipe-selection", recipe("tiny-seqs", comparison="aborted")) == [
        f"{at}/comparison: found aborted (incomplete), expected a complete comparison"
    ]
    assert said("recipe-selection", recipe("tiny-seqs", profile="tiny-b")) == [
        f"{at}/comparison: found one of profile tiny, expected tiny-b"
    ]


def test_the_arguments_of_a_recipe_are_those_of_a_launch_of_what_it_cites() -> None:
    base = ["serve", "--port", "{port}", "--model", "{model}"]
    for name, arguments, fits in (
        ("tiny-seqs", [*base, "--max-num-seqs", "2"], False),
        ("tiny-seqs", [*base, "--max-num-seqs", "4"], True),
        ("tiny-exact", base, True),
        ("tiny-exact", [*base, "-x"], False),
    ):
        assert (said("recipe-launch", recipe(name, arguments=arguments)) == []) is fits, (name, arguments)
    as_baseline = recipe("tiny-seqs", arguments=[*base, "--max-num-seqs", "2"], selected="baseline")
    assert said("recipe-launch", as_baseline) == []
    (line,) = said("recipe-launch", recipe("tiny-seqs", selected="baseline"))
    assert line.startswith("recipes.json#tiny-seqs/arguments: found [")
    assert line.endswith(", expected those of a launch of results/settings/seqs-four/comparison.json")
    (line,) = said("recipe-launch", recipe("tiny-exact", requalification={"required": False, "attempt": "a01-native", "statement": "s"}, arguments=["x"]))  # fmt: skip
    assert line.endswith(", expected those of a launch of a01-native")


def again(attempt: str | None, required: bool) -> dict[str, Any]:
    return {"requalification": {"required": required, "attempt": attempt, "statement": "see the attempts"}}


def serving(name: str, *values: str | None) -> Callable[[Bench], None]:
    """Launches of an attempt with these values of the setting, one a launch."""

    def change(bench: Bench) -> None:
        desk = only(bench, "converged", name)
        with desk.edit("attempt.json") as data:
            for launch, value in zip(data["launches"], values, strict=True):
                launch["arguments"] += [] if value is None else ["--max-num-seqs", value]

    return change


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ([recipe("tiny-seqs", **again("a02-native", False)), serving("a02", "4")], None),
        ([recipe("tiny-seqs", **again("a02-native", False)), serving("a02", "2")], "attempt"),
        ([recipe("tiny-seqs", **again("a02-native", False))], "attempt"),
        ([recipe("tiny-seqs", **again("a03-rr-20261130t000300.000000z", False)), serving("a03", "4", "4")], None),
        ([recipe("tiny-seqs", **again("a03-rr-20261130t000300.000000z", False)), serving("a03", "4", "2")], "attempt"),
        ([recipe("tiny-seqs", **again("a01-native", False)), serving("a01", "4")], "attempt"),
        ([recipe("tiny-seqs", **again("a05-exact", False)), serving("a05", "4", "4")], "attempt"),
        ([recipe("tiny-seqs", **again("a02-native", True)), serving("a02", "4")], "required"),
        ([recipe("tiny-seqs", **again(None, False))], "required"),
        ([recipe("tiny-seqs", **again(None, True), selected="baseline")], "required"),
        ([recipe("tiny-seqs", **again(None, False), selected="baseline")], None),
        ([recipe("tiny-exact", **again("nothing", False))], "attempt"),
        ([recipe("tiny-exact", **again("a05-exact", False))], "attempt"),
        ([recipe("tiny-exact", **again("a02-native", False))], None),
        ([recipe("tiny-exact", **again("a01-native", False))], "attempt"),
        ([recipe("tiny-exact", **again("a02-native", False), profile="tiny-b")], "attempt"),
    ],
)
def test_a_candidate_needs_requalification_until_an_attempt_with_its_value_succeeded(changes: Any, place: str | None) -> None:  # fmt: skip
    lines = said("recipe-requalification", *changes)
    assert [line.split(":")[0].rpartition("/")[2] for line in lines] == ([] if place is None else [place])
    for line in lines:
        if place == "attempt":
            assert line.endswith(", expected a success of this profile with the selected value")


def test_every_recipe_has_its_settings_file_line_for_line() -> None:
    at = "recipes.json#tiny-exact"
    assert said("settings-file", removed("settings/tiny-exact.env")) == [
        f"{at}: found settings file settings/tiny-exact.env, expected settings/tiny-exact.env"
    ]
    lines = said("settings-file", recipe("tiny-exact", settingsFile="settings/tiny-seqs.env"))
    assert lines == [
        f"{at}: found settings file settings/tiny-seqs.env, expected settings/tiny-exact.env",
        "settings/tiny-exact.env: found a settings file of no recipe, expected one for each recipe",
    ]
    assert said("settings-file", put("settings/other.env")) == [
        "settings/other.env: found a settings file of no recipe, expected one for each recipe"
    ]


@pytest.mark.parametrize(
    ("environment", "line", "fits"),
    [
        ({"A": "plain/word:1,2=3+4-5._"}, b"A=plain/word:1,2=3+4-5._", True),
        ({"A": "two words"}, b'A="two words"', True),
        ({"A": "two words"}, b"A=two words", False),
        ({"A": ""}, b'A=""', True),
        ({"A": ""}, b"A=", True),
        ({"A": "x=y"}, b"A=x=y", True),
        ({"A": "x"}, b"A=y", False),
        ({"A": 'q"'}, b'A="q\\""', True),
    ],
)
def test_a_line_of_a_settings_file_is_a_plain_word_or_a_json_string(environment: Any, line: bytes, fits: bool) -> None:
    def write(bench: Bench) -> None:
        old = bench.read("settings/tiny-exact.env")
        bench.put("settings/tiny-exact.env", old[: old.index(b"DEVICE")] + line + b"\n")

    lines = said("settings-file", recipe("tiny-exact", environment=environment), write)
    assert (lines == []) is fits, lines


def test_arguments_in_a_settings_file_are_one_json_list_whatever_its_blanks() -> None:
    def write(change: Callable[[bytes], bytes]) -> list[str]:
        def apply(bench: Bench) -> None:
            bench.put("settings/tiny-exact.env", change(bench.read("settings/tiny-exact.env")))

        return said("settings-file", apply)

    assert write(lambda data: data.replace(b'", "', b'","')) == []
    assert write(lambda data: data.replace(b'", "', b'",  "')) == []
    lines = write(lambda data: data.replace(b'"serve"', b'"other"'))
    assert len(lines) == 2
    assert all(line.startswith("settings/tiny-exact.env: found a difference: ARGUMENTS=") for line in lines)
    assert all(line.endswith(", expected what follows from its recipe") for line in lines)
    assert len(write(lambda data: data + b"MORE=1\n")) == 1
    assert len(write(lambda data: data.replace(b"MODES=exact\n", b""))) == 1


RULE = "rules/tiny-exact.exact.json"


def rule(**values: Any) -> Callable[[Bench], None]:
    return document(RULE, lambda value: value.update(values))


def test_a_rule_is_of_a_recipe_and_a_mode_of_it_with_that_modes_strategy() -> None:
    def copy(name: str) -> Callable[[Bench], None]:
        return lambda bench: bench.put(name, bench.read(RULE))

    assert said("rule", copy("rules/tiny-exact.other.json")) == [
        "rules/tiny-exact.other.json: found no rule's name, expected rules/<recipe>.<mode>.json"
    ]
    assert said("rule", copy("rules/tiny-other.exact.json")) == [
        "rules/tiny-other.exact.json: found tiny-exact, exact, expected tiny-other, exact"
    ]
    assert said("rule", rule(strategy="direct")) == [f"{RULE}: found strategy direct, expected exact-prefix"]
    lines = said("rule", rule(mode="rr"))
    assert lines == [
        f"{RULE}: found tiny-exact, rr, expected tiny-exact, exact",
        f"{RULE}: found mode rr of recipe tiny-exact, expected an accepted mode of a recipe",
        f"{RULE}: found strategy exact-prefix, expected round-robin",
    ]
    (first, second) = said("rule", rule(recipe="nobody"))
    assert first == f"{RULE}: found nobody, exact, expected tiny-exact, exact"
    assert second == f"{RULE}: found mode exact of recipe nobody, expected an accepted mode of a recipe"


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("http://192.0.2.1:8000", True),
        ("https://198.51.100.255/v1", True),
        ("http://203.0.113.0", True),
        ("http://192.0.2.256", False),
        ("http://192.0.3.1", False),
        ("http://10.0.0.1", False),
        ("http://[2001:db8::1]:80", True),
        ("http://[2001:DB8:1::]", True),
        ("http://[2001:db9::1]", False),
        ("http://worker.example", True),
        ("http://example.com", True),
        ("http://a.b.example.org:1/x/y-z_.html", True),
        ("http://localhost:8000", True),
        ("http://a.test", True),
        ("http://a.invalid", True),
        ("http://example.net", True),
        ("http://example.de", False),
        ("http://notexample.com", False),
        ("http://worker.internal", False),
        ("ftp://192.0.2.1", False),
        ("http://192.0.2.1:123456", False),
        ("http://user@192.0.2.1", False),
        ("http://192.0.2.1/?x", False),
        ("192.0.2.1", False),
    ],
)
@pytest.mark.parametrize("worker", [False, True])
def test_addresses_are_those_of_documentation(url: str, fits: bool, worker: bool) -> None:
    def change(value: Any) -> None:
        if worker:
            value["workers"][-1]["url"] = url
        else:
            value["listen"] = url

    right = f"{RULE}: found address {url}, expected one of RFC 5737, RFC 3849 or RFC 2606"
    assert said("rule", document(RULE, change)) == ([] if fits else [right])
