"""Builds a package: every run of a campaign and its retained files, checked, packed and pinned.

    runs -> attempts -> matrix -> comparisons -> incomplete ones -> recipes -> manifest -> SHA256SUMS -> archive

Everything that stands against the package is collected and refused at once; nothing is written before all of
it is known. The same input gives the same bytes.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from evidence import records, shipped
from evidence.archive import layout
from evidence.build import comparisons, identities, lifecycle, manifest, matrix, pd, readme
from evidence.build import recipes as recipe_room
from evidence.build import registries as registry_room
from evidence.build.archive import unwritable, write_archive, write_digests
from evidence.build.comparisons import Settled
from evidence.build.converged import Packed
from evidence.build.packing import Outcome, Packer, Result, Task
from evidence.build.privacy import Machine, Scanner
from evidence.build.runs import Run, find_runs
from evidence.build.tree import Tree
from evidence.campaign import Campaign, read_campaign
from evidence.errors import EvidenceError
from evidence.progress import Progress

LISTED = 30


@dataclass(frozen=True)
class Built:
    """What was written, and what to publish of it. `payload_bytes` are the members' contents."""

    archive: Path
    archive_sha256: str
    tar_sha256: str
    members: int
    payload_bytes: int
    archive_bytes: int
    sha256_file: Path
    retained: Path


def build(campaign_dir: Path, runs: Path, output: Path, *, preparation: bool = False, quiet: bool = False) -> Built:
    """Build the archive, its digests and the retained folder in `output`.

    A campaign whose status is not FINAL gives a preparation artifact only, and only when asked for one. Raises
    EvidenceError with exit code 1 that lists every reason against the package.
    """
    campaign = read_campaign(campaign_dir)
    if campaign.status != "FINAL" and not preparation:
        raise EvidenceError(
            f"{campaign.path}: found status {campaign.status}, expected FINAL",
            'set status = "FINAL" in its [campaign] when every run is done, or build a marked preparation artifact with --preparation',
            code=1,
        )
    collects = gc.isenabled()
    gc.disable()  # records hold no cycles, and looking for some costs a twentieth of the time
    try:
        with _made(output):
            return _assemble(campaign, runs, output, preparation, quiet)
    except OSError as error:
        place = Path(error.filename or output)
        if place == output or output in place.parents:
            raise unwritable(place, error) from error
        raise EvidenceError(
            f"{place}: cannot be read ({error.strerror}), expected a file of the campaign or its runs",
            "is it there, and may you read it? a build reads everything that capture wrote",
        ) from error
    finally:
        if collects:
            gc.enable()


@contextlib.contextmanager
def _made(output: Path) -> Iterator[None]:
    """The folder to write to; one that was made for a build that is then refused goes away again."""
    was_there = output.exists()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvidenceError(
            f"{output}: cannot be made ({error.strerror}), expected a folder to write to",
            "name a folder with --output that is there, or that can be made",
        ) from None
    try:
        yield
    except BaseException:
        if not was_there:
            with contextlib.suppress(OSError):
                output.rmdir()
        raise


def _assemble(campaign: Campaign, runs: Path, output: Path, preparation: bool, quiet: bool) -> Built:
    stem = f"{campaign.name}-preparation" if preparation else campaign.name
    retained = output / stem
    _check_replaceable(retained, campaign)
    found = find_runs(runs, campaign)
    archive = output / f"{stem}-evaluation.tgz"
    with tempfile.TemporaryDirectory(prefix=f".{stem}-", dir=output) as staging:
        tree = Tree(Path(staging), Scanner(Machine.here(), campaign.privacy_exceptions))
        with Progress(len(found) + 1, unit="run", quiet=quiet, title="build") as progress:
            record, rows = _gather(campaign, found, tree, archive.name, preparation, progress)
            _refuse(campaign, tree)
            tree.add("README.md", readme.full(record, rows))
            _refuse(campaign, tree)
            tree.seal()
            progress.phase("archive")
            entries = ((path, content) for path, _, content in tree.rows())
            digest = write_archive(entries, archive, campaign.name, in_order=True, payload=tree.payload_bytes)
            progress.advance()
        try:
            sha256_file, _ = write_digests(archive, digest)
            guide = readme.partial(record, digest.tgz_sha256, digest.members)
            _retain(tree, retained, guide)
        except BaseException:
            archive.unlink(missing_ok=True)
            raise
    return Built(
        archive=archive,
        archive_sha256=digest.tgz_sha256,
        tar_sha256=digest.tar_sha256,
        members=digest.members,
        payload_bytes=tree.payload_bytes,
        archive_bytes=digest.tgz_bytes,
        sha256_file=sha256_file,
        retained=retained,
    )


def _gather(
    campaign: Campaign, found: Sequence[Run], tree: Tree, archive: str, preparation: bool, progress: Progress
) -> tuple[records.Manifest, records.RuntimeMatrix]:
    """Everything but README.md and SHA256SUMS, in the tree."""
    comparisons.require_known(found, campaign)
    for path, data in shipped.files().items():
        tree.add(path.removeprefix("verifiers/"), data, trusted=True)
    facts = manifest.Facts()
    status = "IN_PROGRESS_NOT_FINAL" if preparation else campaign.status
    with Packer(campaign, tree, len(found)) as packer:
        attempts = packer.pack([Task(run) for run in found if run.kind == "attempt"])
        packed = [one for one in _each(attempts, facts, progress) if isinstance(one, Packed)]
        under_way = packer.pack(_comparisons(campaign, found, packed))
        rows = matrix.build(campaign, packed, status)
        identities.pack(campaign, tree)
        folders = registry_room.pack(campaign, tree)
        pd.pack(campaign, tree)
        lifecycle_records = lifecycle.pack(campaign, tree)
        results = list(_each(under_way, facts, progress))
    settled = [one for one in results if isinstance(one, Settled)]
    aborted = [one for one in results if isinstance(one, records.IncompleteEntry)]
    if not preparation:
        tree.refusals += comparisons.check_named(campaign, found)
    tree.add("runtime-matrix.json", records.to_bytes(rows))
    tree.add(
        "results/converged-index.json",
        records.to_bytes(records.ConvergedIndex(sorted((one.entry for one in packed), key=lambda entry: entry.id))),
    )
    tree.add(
        "results/settings-index.json",
        records.to_bytes(records.SettingsIndex(sorted((one.entry for one in settled), key=lambda entry: entry.id))),
    )
    tree.add(
        "results/incomplete-settings-index.json",
        records.to_bytes(records.IncompleteSettingsIndex(sorted(aborted, key=lambda entry: entry.id))),
    )
    recipe_room.pack(campaign, tree, rows, settled, packed, preparation=preparation)
    facts.gateways += [one.gateway for one in settled]
    facts.gateways += [one.attempt.gateway for one in packed if one.attempt.gateway is not None]
    facts.synthetic += [one.entry.synthetic for one in packed] + [one.entry.synthetic for one in settled]
    facts.synthetic += [entry.synthetic for entry in aborted]
    facts.counts = {
        "profiles": len(campaign.profiles),
        "cases": len(campaign.cases),
        "attempts": len(packed),
        "comparisons": len(settled),
        "incomplete_comparisons": len(aborted),
        "main_samples": 144 * len(settled),
        "warm_samples": 108 * len(settled),
        "bodies": tree.count_bodies(),
        "lifecycle_records": lifecycle_records,
    }
    proxy = hashlib.sha256(shipped.files()["verifiers/receipt-proxy.py"]).hexdigest()
    record = manifest.build(
        campaign, facts, archive=archive, preparation=preparation, proxy_sha256=proxy, registries=folders
    )
    tree.add("manifest.json", records.to_bytes(record))
    return record, rows


def _comparisons(campaign: Campaign, found: Sequence[Run], packed: Sequence[Packed]) -> list[Task]:
    """Complete comparisons and incomplete ones, oldest first, and how each is to be packed."""
    mine = [run for run in found if run.kind == "comparison"]
    ids = comparisons.folder_ids([run for run in mine if run.complete])
    return [
        Task(run, ids.get(run.id), recipe_room.requalifying(campaign, run.name, packed, run.started_at) is not None)
        for run in mine
    ]


def _each(outcomes: Iterable[Outcome], facts: manifest.Facts, progress: Progress) -> Iterator[Result]:
    """The results of runs in their order, the runs' dates and engines noted."""
    for outcome in outcomes:
        run = outcome.run
        progress.phase(run.name)
        facts.started.append(run.started_at)
        facts.ended += [run.told_end] if run.told_end is not None else []
        facts.identities |= outcome.engines
        progress.advance()
        yield outcome.result


def _refuse(campaign: Campaign, tree: Tree) -> None:
    reasons = [*tree.refusals, *(f"{finding}, expected none in a package" for finding in tree.scanner.findings)]
    if not reasons:
        return
    many = "reason" if len(reasons) == 1 else "reasons"
    listed = reasons[:LISTED] + ([f"and {len(reasons) - LISTED} more"] if len(reasons) > LISTED else [])
    hint = "nothing was written"
    if tree.scanner.findings:
        hint += (
            "; what may stand in the package all the same needs a [[privacy_exception]] with pattern, kind and reason"
        )
    raise EvidenceError(
        f"{campaign.name}: found {len(reasons)} {many} against a package:\n  " + "\n  ".join(listed), hint, code=1
    )


def _check_replaceable(retained: Path, campaign: Campaign) -> None:
    """A folder of the same name is replaced only if an earlier build made it."""
    if not retained.exists():
        return
    try:
        mine = orjson.loads((retained / "manifest.json").read_bytes())["campaign"] == campaign.name
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        mine = False
    if not mine:
        raise EvidenceError(
            f"{retained}: found something that no build of {campaign.name} made, expected no such folder or an earlier one",
            "choose another folder with --output",
            code=1,
        )


def _retain(tree: Tree, retained: Path, guide: bytes) -> None:
    """Write the retained folder beside the archive, whole or not at all."""
    fresh = tree.staging / "retained"
    rows: list[tuple[str, str]] = []
    for path, (digest, content) in sorted(tree.files.items()):
        if not layout.is_retained(path) or path == layout.FORMS[1]:
            continue
        data = guide if path == "README.md" else content if isinstance(content, bytes) else content.read()
        rows.append((path, hashlib.sha256(data).hexdigest() if path == "README.md" else digest))
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755 if "/" not in path and path.endswith(".py") else 0o644)
    (fresh / "SHA256SUMS").write_bytes("".join(f"{digest}  {path}\n" for path, digest in rows).encode())
    old = tree.staging / "replaced"
    if retained.exists():
        retained.rename(old)
    try:
        fresh.rename(retained)
    except OSError:
        if old.exists():
            old.replace(retained)
        raise
    shutil.rmtree(old, ignore_errors=True)
