"""The data behind tables and plots as CSV files, for a spreadsheet or a program."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from evidence.errors import EvidenceError
from evidence.report import tables
from evidence.report.tables import PackageView, Table


@tables.in_form
def package_tables(view: PackageView) -> dict[str, Table]:
    """Every table of a package, all its samples and all offers of what did not finish, by name."""
    shown = {name: build(view) for name, build in tables.TABLES.items()}
    return shown | {"samples": tables.sample_table(view), "offers": offer_table(view)}


def export(content: Mapping[str, Table], folder: Path) -> list[Path]:
    """Write each table as `<name>.csv` into `folder`, which is made if need be; return the files, in the same order.

    A file that this command made, by its first line, is replaced. Raises EvidenceError where another one has such a
    name, where `folder` is a file, or where it cannot be written; then no file was touched.
    """
    if folder.exists() and not folder.is_dir():
        raise EvidenceError(
            f"{folder}: a file, expected a folder for the CSV files", "name another folder with --export"
        )
    texts = {f"{name}.csv": tables.render_csv(table) for name, table in content.items()}
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        for name, text in texts.items():
            _refuse_another(folder / name, text)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".export.") as aside:
            for name, text in texts.items():
                (Path(aside) / name).write_text(text, encoding="utf-8", newline="")
            return [(Path(aside) / name).replace(folder / name) for name in texts]
    except OSError as error:
        for one in made:
            with contextlib.suppress(OSError):
                one.rmdir()
        raise EvidenceError(
            f"{folder}: cannot be written: {error.strerror}, expected a writable folder with room",
            "name another folder with --export",
        ) from None


def _refuse_another(target: Path, text: str) -> None:
    if not os.path.lexists(target):
        return
    head = text.partition("\n")[0].encode()
    if not target.is_symlink() and target.is_file():
        with target.open("rb") as file:
            if file.readline(len(head) + 2).rstrip() == head:
                return
    raise EvidenceError(
        f"{target}: found a file that was not made by this command, expected none or its own",
        "move it away, or name another folder with --export",
    )


def offer_table(view: PackageView) -> Table:
    """One row an offer of every incomplete comparison, with its fate."""
    columns = ("run", "offer", "repetition", "arm", "phase", "worker", "fate", "sample")
    rows = [
        [entry["id"], *(offer[column] for column in columns[1:])]
        for entry in view.incomplete
        for offer in view.one(f"{entry['folder']}/offers.json")["offers"]
    ]
    return Table("Offers", columns, rows)
