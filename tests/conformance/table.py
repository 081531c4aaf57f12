"""`python3 table.py [PYTHON_WITH_BAGIT]`: what other readers say to the suite, as the table of docs/conformance.md.

Only reading is asked of the others (list, read through, check sums), so that nothing hostile is unpacked here: a
reader accepts a case when it ends well. A cell is `accepted/asked` of the cases that must be refused.
"""

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import make

GROUPS = ("tar-names", "tar-headers", "tar-framing", "gzip", "sums", "json")
STREAM = ("tar-names", "tar-headers", "tar-framing", "gzip")


def ends_well(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def with_hashdeep(known, folder):
    """Negative matching prints the files that are not known; exit 1 is said of unused hashes, of a whole package too."""
    command = ["sha256deep", "-r", "-l", "-x", known, "."]
    ran = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return ran.returncode in (0, 1) and not ran.stdout


def with_tarfile(path):
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                if member.isfile():
                    archive.extractfile(member).read()
    except Exception:  # it also lets TypeError out of a short file
        return False
    return True


def lay(files, folder):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def with_json(data):
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def bag(files, folder):
    lay({name: data for name, data in files.items() if name != "SHA256SUMS"}, folder / "data")
    (folder / "bagit.txt").write_text("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
    lines = files.get("SHA256SUMS", b"").split(b"\n")
    moved = [line.replace(b"  ", b"  data/", 1) for line in lines]
    (folder / "manifest-sha256.txt").write_bytes(b"\n".join(moved))


def ask(case, folder, python):
    """Yield (reader, accepted) for every reader that the case concerns."""
    damage = case.build()
    path = damage.write(folder / "case")
    if case.group in STREAM:
        yield "GNU tar", ends_well(["tar", "-tzf", path], folder)
        if shutil.which("bsdtar"):
            yield "bsdtar", ends_well(["bsdtar", "-tzf", path], folder)
        yield "Python tarfile", with_tarfile(path)
    if case.group == "sums" and case.name.startswith("detached"):
        yield "sha256sum -c", ends_well(["sha256sum", "-c", f"{path.name}.sha256"], path.parent)
    elif case.group == "sums":
        lay(damage.files, folder / "open")
        yield "sha256sum -c", ends_well(["sha256sum", "-c", "SHA256SUMS"], folder / "open")
        if shutil.which("sha256deep"):
            shutil.move(folder / "open" / "SHA256SUMS", folder / "known") if "SHA256SUMS" in damage.files else None
            yield "hashdeep", with_hashdeep(folder / "known", folder / "open")
        if python:
            bag(damage.files, folder / "bag")
            check = "import bagit, sys; bagit.Bag(sys.argv[1]).validate()"
            yield "bagit-python", ends_well([python, "-c", check, folder / "bag"], folder)
    if case.group == "json" and "recipes.json" in damage.files:
        yield "Python json", with_json(damage.files["recipes.json"])
    ours = [sys.executable, str(Path(__file__).with_name("ours.py")), str(path)]
    yield "evidence validate", subprocess.run(ours, capture_output=True, check=False).returncode == 0


def main(arguments):
    asked, accepted = defaultdict(int), defaultdict(int)
    readers = [
        "GNU tar",
        "bsdtar",
        "Python tarfile",
        "sha256sum -c",
        "hashdeep",
        "bagit-python",
        "Python json",
        "evidence validate",
    ]
    for case in make.read_cases():
        if not case.say:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for reader, verdict in ask(case, Path(folder), arguments[0] if arguments else None):
                asked[reader, case.group] += 1
                accepted[reader, case.group] += verdict
    print(f"| reader | {' | '.join(GROUPS)} |\n|---{'|---:' * len(GROUPS)}|")
    for reader in readers:
        cells = [
            f"{accepted[reader, group]}/{asked[reader, group]}" if asked[reader, group] else "" for group in GROUPS
        ]
        if any(cells):
            print(f"| {reader} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
