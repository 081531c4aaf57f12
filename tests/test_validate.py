"""The maintenance check from end to end, with its renderers and exit codes."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import jsonschema
import pytest
import referencing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence import shapes, shipped, toolsets, validate
from evidence.archive import layout
from evidence.errors import EvidenceError
from tests.archive.packages import base, lay, publish

ACCEPTS = """\
import json, sys
mutations = [{"mutation": "m", "altered": "a", "expected": "X", "observed": ["X"], "verdict": "killed"}]
print(json.dumps({"verifier": "v", "package": sys.argv[1], "verdict": "verified", "exitCode": 0, "counts": {"samples": 3},
                  "findings": [], "mutations": mutations if any("mutation" in a for a in sys.argv) else []}))
"""


def script(verdict, code, findings=(), mutations=()):
    said = {"verdict": verdict, "counts": {}, "findings": list(findings), "mutations": list(mutations)}
    return f"import sys\nprint({json.dumps(said)!r})\nsys.exit({code})\n"


@pytest.fixture
def archive(tmp_path):
    (tmp_path / "published").mkdir()
    return publish(base.full(), tmp_path / "published")


@pytest.fixture
def retained(archive, tmp_path):
    """The retained tree of the archive, as a repository keeps it."""
    digest = (archive.parent / f"{archive.name}.sha256").read_text()[:64]
    files = {name: data for name, data in base.full().items() if layout.is_retained(name)}
    guide = f"see {archive.name}, {len(base.full())} files, SHA-256 {digest}\n".encode()
    return lay(base.seal({**files, "README.md": guide}), tmp_path / "demo")


@pytest.fixture
def trust(monkeypatch, tmp_path):
    """Use these scripts as the trusted verifiers, whose own rules are tested elsewhere."""

    def use(**scripts):
        folder = tmp_path / "trusted"
        folder.mkdir()
        for name, text in scripts.items():
            (folder / f"verify-{name}.py").write_text(text)
        monkeypatch.setattr(shipped, "verifiers", lambda: folder)

    return use


def codes(validation):
    return {finding.code for finding in validation.findings}


def test_a_whole_package_is_verified_and_every_stage_counts(archive, retained, trust):
    trust(one=ACCEPTS, two=ACCEPTS)
    found = validate.validate(archive, source_root=retained, verify_results=True)
    assert found.exit_code == 0, found.render("text")
    names = [
        "digests",
        "members",
        "checksums",
        "schemas",
        "trusted",
        "inputs",
        "retained",
        "verify-one.py",
        "verify-two.py",
    ]
    assert [stage.name for stage in found.stages] == names
    assert all(stage.verified == stage.expected >= 1 for stage in found.stages)
    assert len(found.mutations) == 2


def test_without_verifiers_nothing_is_unpacked_or_run(archive, trust):
    trust(one="raise SystemExit(1)")
    assert validate.validate(archive).exit_code == 0


def test_a_folder_is_verified_where_it_stands(trust, tmp_path):
    trust(one=ACCEPTS)
    folder = lay(base.full(), tmp_path / "anything")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert validate.verify(folder, mutation_control="all").exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("text", "exit_code", "code"),
    [
        (script("rejected", 1, [{"code": "RECEIPT", "path": "p", "found": "f", "expected": "e"}]), 1, "RECEIPT"),
        (script("unreadable", 2), 2, None),
        (script("blind", 3, (), [{"mutation": "m", "expected": "X", "observed": [], "verdict": "survived"}]), 3, None),
        (script("verified", 0), 3, "mutation-none"),
        ("import sys; sys.exit(0)", 2, "verifier-failed"),
        ("raise ValueError('broken')", 2, "verifier-failed"),
        ("print('{}')", 2, "verifier-failed"),
    ],
)
def test_what_a_verifier_says_decides(text, exit_code, code, archive, trust):
    trust(one=ACCEPTS, other=text)
    found = validate.validate(archive, verify_results=True)
    assert found.exit_code == exit_code
    assert code is None or code in codes(found)
    for form in ("text", "json", "junit", "github"):
        assert found.render(form)


def test_code_from_inside_an_archive_is_never_run(trust, tmp_path):
    trust(one=ACCEPTS)
    witness = tmp_path / "was-run"
    evil = f"open({str(witness)!r}, 'w')\n".encode()
    path = publish(base.seal({**base.full(), "verify-results.py": evil, "json.py": evil}), tmp_path)
    found = validate.validate(path, verify_results=True)
    assert {"trusted-differs", "trusted-unknown"} == codes(found)
    assert not witness.exists()


def test_tools_of_a_published_set_are_genuine_and_still_not_run(trust, tmp_path, monkeypatch):
    """Archives are never changed, the verifiers here go on changing: an earlier release's tools are known by digest."""
    trust(one=ACCEPTS)
    witness = tmp_path / "was-run"
    older = f"open({str(witness)!r}, 'w')\n".encode()
    files = base.seal({**base.full(), "verify-results.py": older})
    path = publish(files, tmp_path)
    assert codes(validate.validate(path, verify_results=True)) == {"trusted-differs"}
    tools = {name: hashlib.sha256(files[name]).hexdigest() for name in toolsets.current()}
    monkeypatch.setattr(toolsets, "published", lambda: {toolsets.digest(tools): "0.0.9"})
    found = validate.validate(path, verify_results=True)
    assert found.exit_code == 0
    assert "release 0.0.9" in found.render("text")
    assert not witness.exists()
    (tmp_path / "strange").mkdir()
    strange = publish(base.seal({**files, "checking/more.py": older}), tmp_path / "strange")
    assert "trusted-unknown" in codes(validate.validate(strange, verify_results=True))


def test_a_verifier_that_hangs_is_stopped(archive, trust, monkeypatch):
    trust(one="import time\ntime.sleep(600)\n")
    monkeypatch.setattr(validate, "VERIFIER_SECONDS", 0.2)
    found = validate.validate(archive, verify_results=True)
    assert found.exit_code == 2
    assert codes(found) == {"verifier-failed"}


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda root: (root / "recipes.json").write_bytes(b"{}"), {"retained-differs", "sums-mismatch"}),
        (lambda root: (root / "recipes.json").unlink(), {"retained-missing", "sums-missing"}),
        (lambda root: (root / "more.txt").write_bytes(b""), {"retained-unknown", "sums-unlisted"}),
        (lambda root: (root / "SHA256SUMS").unlink(), {"retained-missing", "sums-empty", "sums-more", "sums-unlisted"}),
        (lambda root: (root / "README.md").write_bytes(b"hello\n"), {"retained-guide", "sums-mismatch"}),
        (lambda root: (root / "link").symlink_to("README.md"), {"type-link"}),
    ],
)
def test_the_retained_tree_is_the_archive_bytes(spoil, code, archive, retained):
    spoil(retained)
    found = validate.validate(archive, source_root=retained)
    assert codes(found) == code
    assert found.exit_code == 1


def test_results_and_probes_need_not_be_retained():
    kept = ["manifest.json", "schemas/manifest.schema.json", "settings/a.env", "weights/a.sha256", "verify-results.py"]
    apart = ["results/settings-index.json", "results/pd-index.json", "registry-x/probes/a.json"]
    assert [layout.is_retained(name) for name in kept + apart] == [True] * 5 + [False] * 3


def test_another_compressor_is_named_and_nothing_else(archive):
    stream = subprocess.run(["gzip", "-dc", archive], capture_output=True, check=True).stdout
    again = subprocess.run(["gzip", "-nc1"], input=stream, capture_output=True, check=True).stdout
    archive.write_bytes(again[:8] + b"\x00\xff" + again[10:])
    found = validate.validate(archive)
    assert codes(found) == {"gzip-differs"}
    assert "tar equal, gzip differs" in found.render("text")
    (archive.parent / "demo-evaluation.tar.sha256").write_text("0" * 64 + "  demo-evaluation.tar\n")
    assert codes(validate.validate(archive)) == {"archive-digest", "tar-digest"}


def test_detached_digests_are_demanded_by_validate_and_optional_for_verify(archive, trust):
    trust(one=ACCEPTS)
    for path in archive.parent.glob("*.sha256"):
        path.unlink()
    assert codes(validate.validate(archive)) == {"detached-missing"}
    assert validate.verify(archive).exit_code == 0


def test_nothing_verified_is_no_success():
    assert validate.Validation("x").exit_code == 1
    assert validate.Stage("x").exit_code == 1
    assert validate.Stage("x", 2, 1).exit_code == 1
    assert validate.Stage("x", 1, 1).exit_code == 0


@pytest.mark.parametrize("name", ["missing.tgz", "fifo", "folder"])
def test_what_cannot_be_read_is_one_clear_error(name, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with pytest.raises(EvidenceError) as caught:
        validate.validate(tmp_path / name)
    assert caught.value.code == 2
    assert name in caught.value.message


def test_a_folder_goes_to_verify_and_not_to_validate(tmp_path):
    with pytest.raises(EvidenceError, match=r"a folder, expected a package archive \(\.tgz\)$") as caught:
        validate.validate(tmp_path)
    assert "`evidence verify`" in caught.value.hint
    assert "--source-root" in caught.value.hint


def test_what_is_no_package_or_a_part_of_one_is_said_once(retained, trust, tmp_path):
    """And not by a finding for every file in it."""
    (tmp_path / "campaign.toml").write_text("")
    for folder, found, hint in (
        (tmp_path, "found neither SHA256SUMS nor manifest.json", "`evidence check`"),
        (retained, "found no results", "--source-root"),
    ):
        with pytest.raises(EvidenceError, match=found) as caught:
            validate.verify(folder)
        assert (caught.value.code, hint in caught.value.hint) == (2, True)


def test_a_control_without_anything_to_forge_is_told_as_that(tmp_path):
    row = {"verifier": "verify-x.py", "mutation": "damage a copy", "expected": "", "observed": [], "verdict": "inert"}
    found = validate.Validation(
        "p", [validate.Stage("members", 1, 1)], {}, [row | {"altered": "nothing of that kind in this package"}]
    )
    assert "  inert: verify-x.py: damage a copy: nothing of that kind in this package\n" in found.render("text")
    found.mutations[0] |= {"expected": "X", "observed": ["a", "b"], "verdict": "survived"}
    assert "  survived: verify-x.py: damage a copy: a b, expected X\n" in found.render("text")


def test_renderers_carry_every_finding_and_are_well_formed(tmp_path):
    path = publish(base.seal({**base.full(), "json.py": b"", "models/tiny.json": b'{"a<&\\"]]>": 1}\n'}), tmp_path)
    found = validate.validate(path)
    assert len(found.findings) >= 3
    document = json.loads(found.render("json"))
    assert document["exitCode"] == 1
    assert [row["code"] for row in document["findings"]] == [finding.code for finding in found.findings]
    suite = xml.etree.ElementTree.fromstring(found.render("junit"))
    assert int(suite.get("tests")) == len(found.stages)
    assert (
        int(suite.get("failures"))
        == len(suite.findall(".//failure"))
        == sum(bool(one.exit_code) for one in found.stages)
    )
    lines = found.render("github").splitlines()
    assert all(line.startswith("::error") for line in lines)
    assert len(lines) >= len(found.findings)
    assert all(finding.code in found.render("text") for finding in found.findings)


def test_junit_shows_what_xml_cannot_hold():
    stage = validate.Stage("members", 1, 0, [validate.Finding("x", "a\x00\x1b", "<&>\"'", "\ud800")])
    text = validate.Validation("p", [stage]).render("junit")
    assert xml.etree.ElementTree.fromstring(text.encode()) is not None


def test_jsonschema_is_not_even_imported_for_a_package_that_fits(archive):
    program = "import sys; from pathlib import Path; from evidence import validate; " \
              "print(validate.validate(Path(sys.argv[1])).exit_code, 'jsonschema' in sys.modules)"  # fmt: skip
    ran = subprocess.run([sys.executable, "-c", program, archive], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["0", "False"]


SCHEMAS = {path.name: json.loads(path.read_text()) for path in (shipped.root() / "schemas").glob("*.json")}
REGISTRY = referencing.Registry().with_resources(
    (name, referencing.Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)


def judge(name, value):
    return jsonschema.Draft202012Validator(SCHEMAS[name], registry=REGISTRY).is_valid(value)


@pytest.mark.parametrize("name", sorted(set(SCHEMAS) - {"common.schema.json", "lifecycle-record.schema.json"}))
def test_the_quick_proof_is_there_for_every_package_schema(name):
    assert shapes.acceptor(SCHEMAS, name) is not None


def test_proofs_compiled_together_judge_as_those_compiled_alone():
    together = shapes.Acceptors(SCHEMAS)
    document = {"schemaVersion": 1, "comparison": "demo", "samples": [SAMPLE]}
    broken = {**document, "samples": [{**SAMPLE, "requestSha256": "A" * 64}]}
    for name in ("ledger.schema.json", "lifecycle-record.schema.json", "decision.schema.json"):
        accept = together.find(name)
        assert (accept is None) == (shapes.acceptor(SCHEMAS, name) is None)
        assert accept is None or not accept(document)
    accept = together.find("samples.schema.json")
    assert accept(document)
    assert not accept(broken)


SAMPLE = {
    "offer": "r1-a-main-001", "repetition": 1, "arm": "A", "phase": "main", "worker": "worker-1",
    "requestSha256": "a" * 64, "requestBytes": 1, "responseSha256": "b" * 64, "responseBytes": 2, "status": 200,
    "transport": "complete", "startedSeconds": 0.5, "ttftSeconds": 0.1, "reasoningSeconds": None, "totalSeconds": 1.5,
    "sendLagSeconds": 0.0, "classification": "NORMAL", "finishReason": "stop", "promptTokens": 1, "completionTokens": 2,
}  # fmt: skip
ODD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.0,
    1.0,
    0.5,
    2**60,
    "",
    "x",
    "A",
    "a" * 64,
    "A" * 64,
    "worker-1\n",
    "worker-1",
    [],
    {},
    [1],
    {"a": 1},
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([*SAMPLE, "more"]), st.sampled_from(ODD), st.booleans())
def test_the_quick_proof_never_accepts_what_jsonschema_refuses(key, value, removed):
    sample = {**SAMPLE, key: value}
    if removed:
        del sample[key]
    document = {"schemaVersion": 1, "comparison": "demo", "samples": [SAMPLE, sample]}
    accept = shapes.acceptor(SCHEMAS, "samples.schema.json")
    assert accept({**document, "samples": [SAMPLE]})
    if accept(document):
        assert judge("samples.schema.json", document)


def paths_of(value, at=()):
    yield at
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in rows:
        yield from paths_of(inner, (*at, key))


@pytest.mark.parametrize("name", ["manifest", "model-identities", "runtime-matrix"])
def test_the_quick_proof_agrees_on_every_altered_field(name):
    """Each value of a real file is replaced by each odd one; a wrong acceptance would be a hole in the law."""
    document = json.loads(base.full()[f"{name}.json"])
    accept = shapes.acceptor(SCHEMAS, f"{name}.schema.json")
    assert accept(document)
    assert judge(f"{name}.schema.json", document)
    tried = 0
    for path in paths_of(document):
        for odd in ODD:
            changed = json.loads(json.dumps({"x": document}))
            target = changed
            for key in ("x", *path)[:-1]:
                target = target[key]
            target[("x", *path)[-1]] = odd
            if accept(changed["x"]):
                assert judge(f"{name}.schema.json", changed["x"]), (path, odd)
                tried += 1
    assert tried > 10


def test_validate_works_from_another_folder_by_a_relative_path(archive, trust, monkeypatch, tmp_path):
    trust(one=ACCEPTS)
    monkeypatch.chdir(archive.parent)
    assert validate.validate(Path(archive.name), verify_results=True).exit_code == 0
    shutil.copytree(lay(base.full(), tmp_path / "here"), "copy")
    assert validate.verify(Path("copy")).exit_code == 0


def test_an_annotation_stands_at_the_file_that_it_speaks_of(tmp_path, monkeypatch):
    """Below a folder, in the retained one, beside an archive; a place inside an archive is at the archive."""
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    for name in ("kept/SHA256SUMS", "kept/a,b.json", "x.tgz", "x.tgz.sha256", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    places = {
        "kept": ["kept/SHA256SUMS: line 7: z", "a,b.json#/c", "gone.json"],
        "": ["x.tgz.sha256", "README.md", "n" * 5000, "x.tgz: byte 3"],
    }
    stages = [
        validate.Stage("s", findings=[validate.Finding("c", place, "f", "e") for place in found], where=where and str(tmp_path / where))
        for where, found in places.items()
    ]  # fmt: skip
    lines = validate.Validation(str(tmp_path / "x.tgz"), stages).render("github").splitlines()
    assert [line.partition(" ")[2].partition(",title")[0].partition("::")[0] for line in lines] == [
        "file=x.tgz", "file=kept/SHA256SUMS,line=7", "file=kept/a%2Cb.json", "file=kept",
        "file=x.tgz.sha256", "file=x.tgz", "file=x.tgz", "file=x.tgz",
    ]  # fmt: skip


def test_no_terminal_obeys_a_verdict():
    stage = validate.Stage("members", 1, 0, [validate.Finding("x", "a\x1b[2J\u202e\udcff", "f", "e")])
    for form in ("text", "github"):
        assert "a\\u001b[2J\\u202e\\udcff" in validate.Validation("p\x9b", [stage]).render(form)
