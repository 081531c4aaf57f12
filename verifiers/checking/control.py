"""The control in a new process: a damaged copy of the package, and the real verifier called on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Optional, Sequence, Tuple

from checking.check import Mutation
from checking.damage import NOTHING, Bench, Outcome, sums_of
from checking.package import Folder, Overlay

REJECTED = 1


def run(words: Sequence[str]) -> Tuple[int, Optional[Tuple[str, ...]]]:
    """Call a verifier: its exit code, and the codes of its findings, None when it did not tell them."""
    ran = subprocess.run(
        [sys.executable, "-I", "-B", os.path.abspath(words[0]), *words[1:], "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    try:
        said = json.loads(ran.stdout.decode("utf-8"))
        return ran.returncode, tuple(sorted({finding["code"] for finding in said["findings"]}))
    except (ValueError, KeyError, TypeError):
        return ran.returncode, None


def judged(mutation: Mutation, altered: str, code: str, ran: Tuple[int, Optional[Tuple[str, ...]]]) -> Outcome:
    """What became of a mutation on which a verifier ran."""
    status, observed = ran
    if observed is None:
        return Outcome(mutation.name, altered, code, ("exit %d" % status,), "crashed", mutation.resealed)
    verdict = "killed" if status == REJECTED and code in observed else "survived"
    return Outcome(mutation.name + " (new process)", altered, code, observed, verdict, mutation.resealed)


def lay_copy(overlay: Overlay, root: str, target: str) -> None:
    """Lay an altered package into a new folder: what is not altered is linked where the system lets it,
    else copied; altered files are new files, so nothing is ever written through a link."""
    for folder in overlay.entries.all_folders():
        path = os.path.join(target, *folder.split("/"))
        source = os.path.join(root, *folder.split("/"))
        os.makedirs(path, exist_ok=True)
        start = folder + "/" if folder else ""
        for last in overlay.entries.files(folder):
            data = overlay.changes.get(start + last)
            if data is not None:
                with open(os.path.join(path, last), "xb") as file:
                    file.write(data)
                continue
            try:
                os.link(os.path.join(source, last), os.path.join(path, last), follow_symlinks=False)
            except (OSError, NotImplementedError):
                shutil.copyfile(os.path.join(source, last), os.path.join(path, last), follow_symlinks=False)


def scratch_for(root: str) -> str:
    """A new folder for a copy of a package: where files of the package can be linked, if there is such a place."""
    usual = tempfile.gettempdir()
    beside = os.path.dirname(root)
    near = os.stat(usual).st_dev != os.stat(root).st_dev and os.access(beside, os.W_OK)
    return tempfile.mkdtemp(prefix="mutation-control-", dir=beside if near else usual)


def control(controls: Sequence[Tuple[str, Mutation]], folder: Folder, script: str) -> Outcome:
    """Alter a temporary copy and call the real verifier on it in a new process, which must reject it by code."""
    sums = sums_of(folder)
    for code, mutation in controls:
        bench = Bench(folder, sums)
        altered = mutation.damage(bench)
        if altered is None:
            continue
        if mutation.resealed:
            bench.reseal()
        scratch = scratch_for(folder.root)
        try:
            target = os.path.join(scratch, "package")
            os.mkdir(target)
            lay_copy(bench.overlay(), folder.root, target)
            observed = run([script, target, "--first"])
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return judged(mutation, altered, code, observed)
    return Outcome("damage a copy", NOTHING, "", (), "inert", False)
