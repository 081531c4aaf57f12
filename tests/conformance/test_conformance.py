"""Every case of the suite gets exactly the codes that it names, from the whole of `validate`."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import make

from evidence import validate
from evidence.archive import reader

CASES = make.read_cases()
HEAVY = ["limit-members", "limit-ratio", "json-depth", "gnu-long-name-one-gib", "schema-unknown-key", "limit-json"]


def codec_names():
    names = ["zlib"]
    try:
        import isal.isal_zlib  # noqa: F401
    except ImportError:
        return names
    return [*names, "isal"]


def codec(name):
    if name == "zlib":
        return zlib
    from isal import isal_zlib

    return isal_zlib


def test_the_suite_has_at_least_150_cases_with_names_of_their_own():
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case, tmp_path):
    path = case.build().write(tmp_path / "case")
    spent = []
    while len(spent) < 3 and min(spent, default=1) >= 1:  # a busy machine gets another try
        start = time.process_time()
        found = validate.validate(path)
        spent.append(time.process_time() - start)
    assert min(spent) < 1
    assert {finding.code for finding in found.findings} == case.say, found.render("text")
    assert found.exit_code == bool(case.say)
    if case.at:
        assert any(case.at in finding.place for finding in found.findings), found.render("text")
    if case.group in ("tar-names", "tar-headers", "tar-framing", "gzip") and case.say - {"input-differs"}:
        assert any("byte" in finding.place for finding in found.findings), found.render("text")
    assert {one.name for one in tmp_path.rglob("*")} == {
        "case", path.name, f"{path.name}.sha256", "demo-evaluation.tar.sha256"
    }, "nothing was written"  # fmt: skip


def of_a_family_the_first(case):
    """Cases of one name differ in a letter."""
    return case.name.endswith("-0") or not case.name[-1].isdigit()


SPREAD = [
    case
    for case in CASES
    if case.group not in ("json", "sums")
    and case.name not in ("limit-members", "limit-ratio")
    and of_a_family_the_first(case)
]


@pytest.mark.skipif(len(codec_names()) < 2, reason="isal is not installed, so there is nothing to compare")
@pytest.mark.parametrize("case", SPREAD, ids=lambda case: case.name)
def test_zlib_and_isal_and_one_and_two_processes_say_the_same(case, tmp_path):
    counts = (1, 2) if case.group in ("gzip", "tar-framing") else (1,)  # starting processes is slow
    path = case.build().write(tmp_path / "case")
    handle = os.open(path, os.O_RDONLY)
    try:
        seen = []
        for name in codec_names():
            for processes in counts:
                one = reader.read_archive(handle, path.name, codec=codec(name), processes=processes)
                seen.append([(finding.code, finding.place) for finding in one.findings] + [one.tar_sha256])
    finally:
        os.close(handle)
    assert seen.count(seen[0]) == len(seen), seen


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the high-water mark is read from Linux's /proc")
@pytest.mark.parametrize("name", HEAVY)
def test_hostile_input_costs_at_most_64_mib(name, tmp_path):
    case = next(case for case in CASES if case.name in (name, f"{name}-0"))
    path = case.build().write(tmp_path / "case")
    program = (
        "import sys; from pathlib import Path; from evidence import validate;"
        "validate.validate(Path(sys.argv[1]));"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    ran = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert int(ran.stdout) <= 64 * 1024, "kilobytes at the highest"


def listing_of_tarfile(path):
    with tarfile.open(path) as archive:
        return {one.name: hashlib.sha256(archive.extractfile(one).read()).hexdigest() for one in archive}


def listing_of(program, path, folder):
    folder.mkdir()
    subprocess.run([program, "-xzf", path, "-C", folder], check=True, capture_output=True)
    listed = subprocess.run([program, "-tzf", path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in listed}


@pytest.mark.parametrize("case", [case for case in CASES if not case.say], ids=lambda case: case.name)
@pytest.mark.parametrize("program", ["tar", "bsdtar", "tarfile"])
def test_what_is_accepted_means_the_same_to_every_reader(case, program, tmp_path):
    path = case.build().write(tmp_path / "case")
    handle = os.open(path, os.O_RDONLY)
    ours = reader.read_archive(handle, path.name)
    os.close(handle)
    if program == "tarfile":
        theirs = listing_of_tarfile(path)
    elif shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    else:
        theirs = listing_of(program, path, tmp_path / "out")
    assert theirs == {f"{ours.top}/{name}": digest for name, digest in ours.members.items()}
    assert len(theirs) >= 1
