"""The data behind tables and plots as CSV files, for a spreadsheet or a program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evidence.errors import EvidenceError
from evidence.report import tables
from evidence.report.tables import PackageView, Table


def export(view: PackageView, folder: Path) -> list[Path]:
    """Write one CSV file a table, all samples and all offers into `folder`, which is made if need be; return them.

    Raises EvidenceError where `folder` is a file; each file is there whole or not at all.
    """
    contents = dict(_contents(view))
    if folder.exists() and not folder.is_dir():
        raise EvidenceError(f"{folder}: a file, expected a folder for the CSV files")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_put(folder / name, content) for name, content in contents.items()]
    except OSError as error:
        raise EvidenceError(
            f"{folder}: cannot be written: {error.strerror}, expected a writable folder with room",
            "name another folder with --export",
        ) from None


def _put(target: Path, content: str) -> Path:
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(content)
        Path(scratch).chmod(0o644)
        return Path(scratch).replace(target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def _contents(view: PackageView) -> Iterator[tuple[str, str]]:
    for name, build in tables.TABLES.items():
        yield f"{name}.csv", tables.render_csv(build(view))
    yield "samples.csv", tables.samples_csv(view)
    yield "offers.csv", tables.render_csv(offer_table(view))


def offer_table(view: PackageView) -> Table:
    """One row an offer of every incomplete comparison, with its fate."""
    columns = ("run", "offer", "repetition", "arm", "phase", "worker", "fate", "sample")
    rows = [
        [entry["id"], *(offer[column] for column in columns[1:])]
        for entry in view.incomplete
        for offer in view.one(f"{entry['folder']}/offers.json")["offers"]
    ]
    return Table("Offers", columns, rows)
