"""What was served, exactly: repositories, revisions, artifact hashes, and the checksums of the weights.

A package never holds a weight; it holds the full bytes of the source index and, for a profile that can be
got at, the expected SHA-256 of every file of the model folder, in the form that `sha256sum -c` reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import orjson

from evidence import records
from evidence.build.tree import Tree
from evidence.campaign import Campaign, Profile
from evidence.errors import EvidenceError
from evidence.progress import Progress


def pack(campaign: Campaign, tree: Tree) -> None:
    """model-identities.json, models/, source-definitions/ and weights/."""
    profiles = []
    for profile in campaign.profiles.values():
        definition = f"source-definitions/{profile.id}{PurePosixPath(profile.definition.name).suffix}"
        tree.add(definition, profile.definition.read())
        record = records.Profile(
            id=profile.id,
            repository=profile.repository,
            revision=profile.revision,
            revision_reason=profile.revision_reason,
            state=profile.state,
            date_sensitive=profile.date_sensitive,
            license=profile.license,
            artifacts=[records.Artifact(one.path, one.sha256, one.bytes) for one in profile.artifacts],
            source_index_sha256=profile.source_index.sha256 if profile.source_index else None,
            template=records.Template(profile.template_source, profile.template_sha256),
            definition=records.Definition(definition, profile.definition.sha256),
        )
        profiles.append(record)
        tree.add(f"models/{profile.id}.json", records.to_bytes(records.Model(record)))
        if profile.source_index is not None:
            tree.add(f"weights/{profile.id}.source-index", profile.source_index.read())
        if profile.state == "accessible" and profile.artifacts:
            text, lacking = weight_sums(profile)
            tree.refusals += lacking
            tree.add(f"weights/{profile.id}.sha256", text)
    profiles.sort(key=lambda record: record.id)
    historical = [records.HistoricalState(h.profile, h.engine, h.state, h.note) for h in campaign.historical]
    tree.add("model-identities.json", records.to_bytes(records.ModelIdentities(profiles, historical)))


def weight_sums(profile: Profile) -> tuple[bytes, list[str]]:
    """The `sha256sum -c` text of a profile's files, and what stands against it.

    The files are the shards of the index's weight_map and the small metadata files; each needs its hash among
    the artifacts.
    """
    known = {artifact.path: artifact.sha256 for artifact in profile.artifacts}
    lacking = [
        f"weights/{profile.id}.sha256: found no artifact {shard!r}, which the source index names, expected its hash"
        for shard in _shards(profile)
        if shard not in known
    ]
    odd = [path for path in known if not _plain_path(path)]
    lacking += [
        f"weights/{profile.id}.sha256: found artifact {path!r}, expected a plain path in the folder" for path in odd
    ]
    rows = sorted((path, digest) for path, digest in known.items() if path not in odd)
    return "".join(f"{digest}  {path}\n" for path, digest in rows).encode(), lacking


def _shards(profile: Profile) -> list[str]:
    if profile.source_index is None:
        return []
    place = f"weights/{profile.id}.source-index"
    try:
        index = orjson.loads(profile.source_index.read())
        shards = {str(name) for name in index["weight_map"].values()}
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise EvidenceError(
            f"{place}: found no weight_map, expected the index of the model's repository as it is", code=1
        ) from None
    return sorted(shards)


def _plain_path(path: str) -> bool:
    parts = path.split("/")
    return path.isprintable() and "\\" not in path and all(part not in ("", ".", "..") for part in parts)


class Row(NamedTuple):
    """One file of a model folder: the SHA-256 that a package expects, and the one found (None: no such file)."""

    path: str
    expected: str
    found: str | None


def check_weights(profile: str, folder: Path, package: Path, *, quiet: bool = True) -> Sequence[Row]:
    """Compare a model folder with weights/<profile>.sha256 of a package folder, archive or retained folder."""
    name = f"weights/{profile}.sha256"
    text = _read(package, name)
    if not folder.is_dir():
        raise EvidenceError(f"{folder}: found no folder, expected the model's files")
    rows = []
    lines = text.splitlines()
    with Progress(len(lines), unit="file", quiet=quiet, title=profile) as progress:
        for line in lines:
            expected, _, path = line.partition("  ")
            if not _plain_path(path):
                raise EvidenceError(f"{name}: found the path {path!r}, expected one inside the model folder", code=1)
            progress.phase(path)
            rows.append(Row(path, expected, _digest(folder / path)))
            progress.advance()
    if not rows:
        raise EvidenceError(f"{name}: found no line, expected a checksum for each file", code=1)
    return rows


def _digest(path: Path) -> str | None:
    try:
        if path.exists() and not path.is_file():
            return None
        with path.open("rb") as file:
            digest = hashlib.sha256()
            while piece := file.read(1 << 20):
                digest.update(piece)
            return digest.hexdigest()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _read(package: Path, name: str) -> str:
    import tarfile  # not above: a build reads no archive
    import zlib

    hint = "gated profiles that never ran and deferred profiles have no checksums"
    try:
        if package.is_dir():
            return (package / name).read_text(encoding="ascii")
        if package.exists() and not package.is_file():
            raise EvidenceError(f"{package}: found no regular file, expected a package folder or archive")
        with tarfile.open(package) as archive:
            for member in archive:
                if member.name.partition("/")[2] == name and member.isreg():
                    file = archive.extractfile(member)
                    return file.read().decode("ascii") if file else ""
    except FileNotFoundError:
        if not package.exists():
            raise EvidenceError(f"{package}: not found, expected a package folder or archive") from None
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as error:
        said = "no archive" if isinstance(error, tarfile.ReadError) else getattr(error, "strerror", None) or error
        raise EvidenceError(f"{package}: cannot be read ({said}), expected a package folder or archive") from None
    raise EvidenceError(f"{package}: found no {name}, expected the checksums of a profile", hint)
