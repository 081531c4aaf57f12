"""A report on disk: verified first, then written whole or not at all, as HTML or as Markdown with its drawings.

A page and the folder of a Markdown page's drawings take the place of what was made here, and of nothing else.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from evidence import validate
from evidence.errors import EvidenceError
from evidence.report import page, sheet
from evidence.report.illustrations import OPENING
from evidence.report.tables import read_package
from evidence.verdict import Validation


def write_report(path: Path, output: Path, *, mutation_control: str | None = None, quiet: bool = False) -> Validation:
    """Verify the package at `path`, write its page to `output`, and return what the verification said.

    The suffix decides: .html is one file, .md a page with its drawings in the folder of its name beside it. The page is
    written whatever the verdict, and says it. Raises EvidenceError when there is nothing to read, when the output cannot
    be written there, or when the package changed between verification and reading.
    """
    if output.suffix not in (".html", ".md"):
        raise EvidenceError(
            f"{output}: found {output.suffix or 'no suffix'}, expected a file name that ends in .html or .md",
            ".html is one self-contained page, .md one for a repository with its drawings beside it",
        )
    if not output.parent.is_dir():
        raise EvidenceError(f"{output.parent}: no such folder, expected one for the report", f"mkdir {output.parent}")
    if output.is_dir():
        raise EvidenceError(f"{output}: a folder, expected a file name for the report")
    folder = output.with_suffix("")
    _refuse_others(output, folder)
    validation = validate.verify(path, mutation_control=mutation_control, quiet=quiet)
    view = None
    try:
        view = read_package(path)
    except EvidenceError:
        if not validation.exit_code:
            raise
    verified = validation.facts.get("archive SHA-256")
    if view is not None and verified not in (None, view.archive_sha256):
        raise EvidenceError(
            f"{path}: found SHA-256 {view.archive_sha256}, expected {verified} as verified",
            "it changed meanwhile; try again",
        )
    if output.suffix == ".html":
        text, drawings = page.render(validation, view, quiet=quiet), None
    else:
        text, drawings = sheet.render(validation, view, folder.name, quiet=quiet)
    try:
        if drawings is None:
            _put(output, text)
        else:
            _put_with_drawings(output, folder, text, drawings)
    except OSError as error:
        raise EvidenceError(
            f"{output}: cannot be written: {error.strerror}, expected a writable folder with room",
            "name another place with --output",
        ) from None
    return validation


def _refuse_others(output: Path, folder: Path) -> None:
    """Raise EvidenceError unless what stands at both places was made here or is not there."""
    hint = "move it away, or give the report another name"
    made = page.MADE if output.suffix == ".html" else sheet.MADE
    if output.is_symlink() or (output.exists() and made.encode() not in output.read_bytes()):
        raise EvidenceError(f"{output}: found a file that was not made by this command, expected none or its own", hint)
    if output.suffix == ".html":
        return
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise EvidenceError(f"{folder}: found no folder, expected none or one of drawings for {output.name}", hint)
    for one in sorted(folder.iterdir()) if folder.is_dir() else []:
        if one.suffix != ".svg" or one.is_symlink() or not one.is_file() or not _drawn(one):
            raise EvidenceError(f"{one}: found a file that was not made by this command, expected drawings alone", hint)


def _drawn(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(OPENING)) == OPENING.encode()


def _put(output: Path, content: str) -> None:
    handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(output)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _put_with_drawings(output: Path, folder: Path, content: str, drawings: dict[str, str]) -> None:
    """Both are made aside; then the folders change places and the page follows, or everything is as it was."""
    aside = Path(tempfile.mkdtemp(dir=output.parent, prefix=f".{output.name}."))
    before, fresh = aside / "before", aside / "drawings"
    try:
        fresh.mkdir(mode=0o755)
        for name, drawing in drawings.items():
            (fresh / name).write_text(drawing, encoding="utf-8")
            (fresh / name).chmod(0o644)
        if folder.exists():
            folder.rename(before)
        try:
            if drawings:
                fresh.rename(folder)
            _put(output, content)
        except BaseException:
            if drawings and not fresh.exists():
                folder.rename(fresh)
            if before.exists():
                before.rename(folder)
            raise
    finally:
        shutil.rmtree(aside)
