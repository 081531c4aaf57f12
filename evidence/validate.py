"""The maintenance check: is this archive whole, is it ours, and do the trusted verifiers accept it?

    digests      the detached files give the digests of the .tgz and of the tar stream
    members      every header, name and limit is what the writer writes (evidence.archive)
    checksums    `SHA256SUMS` lists exactly what is there, with its digests
    schemas      every JSON file is strict JSON and fits its schema
    trusted      verifiers, proxy and schemas inside are byte for byte the ones shipped here, or a published set
    inputs       what package files state of one another is true, and nothing lies there that a package does not have
    retained     the files that a repository keeps are the archive's bytes
    verify-*.py  the trusted verifiers, with mutation controls, on an unpacked copy

A stage passes only when it had something to verify and verified all of it. Code that came inside an archive is
never run.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

from evidence import shipped, toolsets
from evidence.archive import folder, inputs, layout, reader, sums
from evidence.archive.grammar import SUMS_NAME, Refusal
from evidence.errors import EvidenceError
from evidence.examining import Aside, Examined, as_findings, wanted
from evidence.progress import Progress
from evidence.verdict import Finding, Stage, Validation, unreadable

VERIFIER_SECONDS = 900
VERIFIERS = 4
_BODIES = "results/"
"""A file below this that is named after its digest is no tool, no JSON, and for the verifiers to judge."""


def validate(
    archive: Path,
    *,
    source_root: Path | None = None,
    verify_results: bool = False,
    mutation_control: str | None = "plain",
    quiet: bool = True,
) -> Validation:
    """Check the archive with its detached digests, the retained tree and, when asked, the trusted verifiers.

    Raises `EvidenceError` when something cannot be read at all; whatever is wrong with what was read is a finding.
    """
    if archive.is_dir():
        raise unreadable(
            archive,
            "a folder",
            "an unpacked package is for `evidence verify`; a retained folder goes with --source-root",
        )
    return _check(archive, True, source_root, mutation_control, verify_results, quiet)


def verify(path: Path, *, mutation_control: str | None = None, quiet: bool = True) -> Validation:
    """Check a package folder or an archive, and run the trusted verifiers on it. Detached digests may be absent.

    Raises `EvidenceError` for a folder that is no package, and for one that keeps only a part of it.
    """
    if path.is_dir():
        _refuse_others(path)
    return _check(path, False, None, mutation_control, True, quiet)


def _refuse_others(path: Path) -> None:
    """Refuse a folder whose every file would be a finding: none of a package, or the part that a repository retains."""
    if not any(os.path.lexists(path / name) for name in (SUMS_NAME, "manifest.json")):
        raise EvidenceError(
            f"{path}: found neither {SUMS_NAME} nor manifest.json, expected an unpacked package",
            "name the folder that holds manifest.json, or the .tgz; `evidence check` is for a campaign",
        )
    if os.path.lexists(path / "manifest.json") and not os.path.lexists(path / "results"):
        raise EvidenceError(
            f"{path}: found no results, expected a complete package",
            "a retained folder is a part: `evidence validate ARCHIVE --source-root FOLDER` compares it with its archive",
        )


def _check(
    path: Path, detached: bool, source_root: Path | None, mutation: str | None, run: bool, quiet: bool
) -> Validation:
    steps = 1 + (source_root is not None) + (VERIFIERS if run else 0)
    with Progress(steps, unit="step", quiet=quiet, title=path.name) as progress:
        return _examine(path, detached, source_root, mutation, run, progress)


def _examine(
    path: Path, detached: bool, source_root: Path | None, mutation: str | None, run: bool, progress: Progress
) -> Validation:
    validation = Validation(str(path))
    collects = gc.isenabled()
    gc.disable()  # parsed files hold no cycles, and looking for some costs a tenth of the time
    handle = None if path.is_dir() else reader.open_archive(path)
    try:
        aside = handle is not None and reader.pays(os.fstat(handle).st_size)
        with Aside() if aside else Examined() as examined:
            progress.phase("members, checksums and schemas")
            reading = _read(validation, handle, path, detached, examined)
        if not reading.complete:
            return validation
        progress.advance()
        if source_root is not None:
            progress.phase("retained files")
            validation.stages.append(_retained(source_root, path.name, reading))
            progress.advance()
        if run and not any(stage.exit_code for stage in validation.stages):
            progress.phase("verifiers")
            _run(validation, handle, path, reading, mutation, progress)
        return validation
    finally:
        if collects:
            gc.enable()
        if handle is not None:
            os.close(handle)


def _read(validation: Validation, handle: int | None, path: Path, detached: bool, examined: Examined) -> reader.Reading:
    """Read folder or archive once, and add every stage that needs nothing else."""
    if handle is None:
        reading = folder.read_folder(path, examine=examined.take, wanted=wanted)
    else:
        reading = reader.read_archive(handle, path.name, examine=examined.take, wanted=wanted)
        validation.facts |= {"archive SHA-256": reading.tgz_sha256, "tar SHA-256": reading.tar_sha256 or "unknown"}
        digests = _digests(path, reading, detached)
        if digests is not None:
            validation.stages.append(digests)
    members = Stage("members", max(1, len(reading.members)), len(reading.members), as_findings(reading.findings))
    validation.stages.append(members)
    if reading.complete:
        members.note = f"{reading.payload_bytes} bytes"
        checksums = _checksums(reading, examined)
        examined.close(name for name, _ in reading.members.rows(_BODIES))
        trusted, stated = _trusted(reading, examined.tools), _inputs(reading, examined, handle is not None)
        validation.stages += [checksums, examined.stage, trusted, stated]
    return reading


def _digests(path: Path, reading: reader.Reading, required: bool) -> Stage | None:
    """Compare with `x.tgz.sha256`, and with `x.tar.sha256` where that is; say when only the compressor differs."""
    packed, stream = path.with_name(f"{path.name}.sha256"), path.with_name(f"{path.stem}.tar.sha256")
    stage = Stage("digests")
    agrees: dict[str, bool] = {}
    for file, name, digest in (
        (packed, path.name, reading.tgz_sha256),
        (stream, f"{path.stem}.tar", reading.tar_sha256),
    ):
        if not os.path.lexists(file) and not (required and file is packed):
            continue
        stage.expected += 1
        if not digest:
            continue  # the stream was refused before its end; that finding says why
        try:
            stated = sums.read_detached(file, name)
        except Refusal as refusal:
            stage.findings += as_findings([refusal])
            continue
        agrees[name] = stated == digest
        stage.verified += stated == digest
        if stated != digest:
            code = "archive-digest" if file is packed else "tar-digest"
            stage.findings.append(Finding(code, file.name, f"{name} has SHA-256 {digest}", stated))
    if agrees.get(path.name) is False and agrees.get(f"{path.stem}.tar"):
        stage.findings = [
            Finding("gzip-differs", path.name, "tar equal, gzip differs: the same stream, compressed by another program",
                    "the published .tgz bytes")
        ]  # fmt: skip
    return stage if stage.expected else None


def _checksums(reading: reader.Reading, examined: Examined) -> Stage:
    stage = Stage("checksums", len(reading.members) - (SUMS_NAME in reading.members))
    stated = reading.members.get(SUMS_NAME)
    if stated is None:
        stage.findings.append(Finding("sums-missing", SUMS_NAME, "no such file", "the checksums of every file"))
    elif stage.expected and sums.digest(reading.members) == stated:
        stage.verified = stage.expected
    elif examined.sums is None:
        stage.findings.append(Finding("sums-mismatch", SUMS_NAME, "not the checksums of what is here", "those"))
    else:
        stage.findings = as_findings(sums.compare(examined.sums, reading.members))
    return stage


def _trusted(reading: reader.Reading, trusted: dict[str, str]) -> Stage:
    """The package's verifiers, proxy and schemas are the shipped ones or a published set, and no other code is there."""
    inside = {name: digest for name, digest in reading.members.rows(_BODIES) if _is_tool(name) or name in trusted}
    release = toolsets.published().get(toolsets.digest(inside))
    if release is not None and inside != trusted:
        note = f"tools as published by release {release}; the ones shipped here are run"
        return Stage("trusted", len(inside), len(inside), note=note)
    stage = Stage("trusted", len(trusted))
    for name, digest in trusted.items():
        found = inside.get(name)
        stage.verified += found == digest
        if found is None:
            stage.findings.append(Finding("trusted-missing", name, "not there", "the shipped file"))
        elif found != digest:
            stage.findings.append(Finding("trusted-differs", name, f"SHA-256 {found}", f"{digest} as shipped"))
    for name in inside.keys() - trusted.keys():
        stage.findings.append(
            Finding("trusted-unknown", name, "code or schema of unknown origin", "only shipped files")
        )
    return stage


def _is_tool(name: str) -> bool:
    return name.endswith((".py", ".pyc", ".so")) or name.startswith(("checking/", "schemas/"))


def _inputs(reading: reader.Reading, examined: Examined, packed: bool) -> Stage:
    stage = Stage("inputs")
    stage.expected, stage.verified, refusals = inputs.check(
        examined.kept, reading.members, reading.top if packed else None, examined.guide
    )
    stage.findings = as_findings(refusals)
    for name, _ in reading.members.rows(_BODIES):
        if not (_is_tool(name) or layout.is_known(name) or name in examined.tools):
            stage.findings.append(Finding("file-unknown", name, "a file of no kind", "a path of the package tree"))
    return stage


def _retained(root: Path, archive: str, reading: reader.Reading) -> Stage:
    """Compare the retained tree with the archive: the same bytes, but for README.md and SHA256SUMS."""
    texts: dict[str, bytes] = {}
    kept = folder.read_folder(
        root,
        examine=texts.__setitem__,
        wanted=lambda name: name.endswith((b"package/README.md", b"package/SHA256SUMS")),
    )
    required = {name for name in reading.members if layout.is_retained(name)}
    stage = Stage("retained", len(required | set(kept.members)), findings=as_findings(kept.findings), where=str(root))
    if not kept.complete:
        return stage
    for name in sorted(required | set(kept.members)):
        found, right = kept.members.get(name), reading.members.get(name)
        if found is None:
            stage.findings.append(Finding("retained-missing", name, "not in the retained tree", "every retained file"))
        elif right is None:
            stage.findings.append(Finding("retained-unknown", name, "not in the archive", "only files of the archive"))
        elif name not in layout.FORMS and found != right:
            stage.findings.append(Finding("retained-differs", name, f"SHA-256 {found}", f"{right} as in the archive"))
        else:
            stage.verified += 1
    stage.findings += as_findings(sums.compare(texts.get(SUMS_NAME, b""), kept.members, f"{root.name}/{SUMS_NAME}"))
    guide = texts.get("README.md", b"").decode(errors="replace")
    for fact, what in ((archive, "archive's name"), (reading.tgz_sha256, "archive's SHA-256"),
                       (f"{len(reading.members)} files", "number of files")):  # fmt: skip
        if fact not in guide.replace(",", ""):
            stage.findings.append(Finding("retained-guide", "README.md", f"no word of the {what}", fact))
    return stage


def _run(
    validation: Validation,
    handle: int | None,
    path: Path,
    reading: reader.Reading,
    mutation: str | None,
    progress: Progress,
) -> None:
    """Run every trusted verifier in a process of its own, several at once, as a sceptic would."""
    import tempfile
    from concurrent.futures import ThreadPoolExecutor

    from evidence.archive.unpack import unpack

    scripts = sorted(shipped.verifiers().glob("verify-*.py"))
    if not scripts:
        raise EvidenceError("found no verifiers, expected verify-*.py among the shipped files", "install again")
    with tempfile.TemporaryDirectory(prefix="evidence-") as scratch:
        package = path if handle is None else unpack(handle, reading, Path(scratch) / "unpacked")
        with ThreadPoolExecutor(max_workers=min(len(scripts), os.cpu_count() or 1)) as pool:
            # the one that reads every file first, so that the others run beside it
            running = {
                script: pool.submit(_verifier, script, package.resolve(), Path(scratch), mutation)
                for script in sorted(scripts, key=lambda script: script.name != "verify-results.py")
            }
            for script in scripts:
                stage, mutations = running[script].result()
                validation.stages.append(stage)
                validation.mutations += mutations
                progress.phase(stage.name)
                progress.advance()


def _verifier(script: Path, package: Path, scratch: Path, mutation: str | None) -> tuple[Stage, list[dict[str, Any]]]:
    import json
    import subprocess

    stage = Stage(script.name, 1)
    # The standard library is all that a verifier uses, and nothing that it compiles may lie in a package.
    command = [sys.executable, "-I", "-S", "-B", str(script), str(package), "--json"]
    if mutation is not None:
        command.append("--mutation-control" if mutation == "plain" else f"--mutation-control={mutation}")
    environment = {"PATH": os.environ.get("PATH", ""), "TMPDIR": str(scratch), "LC_ALL": "C.UTF-8"}
    try:
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, cwd=scratch, env=environment,
            timeout=VERIFIER_SECONDS, check=False,
        )  # fmt: skip
        said = json.loads(ran.stdout)
        findings = [Finding(row["code"], row["path"], row["found"], row["expected"]) for row in said["findings"]]
        mutations = [{"verifier": script.name} | row for row in said["mutations"]]
        counts, message = dict(said["counts"]), str(said.get("message", ""))
    except subprocess.TimeoutExpired:
        stage.status = 2
        stage.findings = [Finding("verifier-failed", script.name, f"no verdict in {VERIFIER_SECONDS} s", "a verdict")]
        return stage, []
    except (ValueError, KeyError, TypeError):
        stage.status = 2
        last = (ran.stderr.decode(errors="replace").strip().splitlines() or ["no output"])[-1]
        stage.findings = [Finding("verifier-failed", script.name, f"exit {ran.returncode}: {last[:200]}", "JSON")]
        return stage, []
    stage.findings = findings
    stage.note = ", ".join([*(f"{number} {what}" for what, number in sorted(counts.items())), *filter(None, [message])])
    stage.verified = int(ran.returncode == 0)
    stage.status = ran.returncode if ran.returncode in (2, 3) else 0
    if mutation is not None and ran.returncode == 0 and not mutations:
        stage.status = 3
        stage.findings.append(Finding("mutation-none", script.name, "no mutation control was run", "at least one"))
    return stage, mutations
