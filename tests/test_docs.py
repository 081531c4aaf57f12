"""Every command that README.md and docs/ show is run here, or says why it cannot be; what they print is compared.

A fence `sh run` is run, block by block and in order, each block in the page's own folder, which looks like a clone
with a package named demo in `dist/` and in `archive/`. A comment `# exit N` is the exit status to expect, and a fence
`text output` is what the block before it printed. A fence `sh not run: REASON` is not run. There are no others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from evidence.archive import layout
from evidence.campaign.model import ADAPTERS
from evidence.cli import main
from evidence.manners import EXIT_CODES
from tests.archive.packages import lay, publish
from tests.conformance.make import read_cases
from tests.lifecycle import test_liars, test_selection
from tests.verifiers.forged_package import guide, sealed
from tests.worked_comparison import PAGE, render

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Pages that `evidence report` made of a published archive; tests/test_published.py holds them to it, commands and all.
MADE = {path.name.replace("-evaluation.tgz", ".md") for path in (ROOT / "archive").glob("*-evaluation.tgz")}
SHARED = {"--json", "--quiet", "--verbose", "--title", "--logs", "--format"}
SHELLS = ("sh", "bash", "shell", "console", "zsh")


@dataclass
class Fence:
    """One fenced block of a page and the line it begins on."""

    info: str
    text: str
    line: int


def fences(page: Path) -> Iterator[Fence]:
    opened: Fence | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            if opened is not None:
                yield opened
                opened = None
            else:
                opened = Fence(line[3:].strip(), "", number)
        elif opened is not None:
            opened.text += f"{line}\n"
    assert opened is None, f"{page.name}: the fence of line {opened.line} is not closed"


def demo() -> dict[str, bytes]:
    """The forged package under the name demo, sealed again."""
    before = sealed()
    files = {
        name: data.replace(b'"forged', b'"demo') if name.endswith(".json") and "/bodies/" not in name else data
        for name, data in before.items()
    }
    renewed = {
        hashlib.sha256(before[name]).hexdigest().encode(): hashlib.sha256(data).hexdigest().encode()
        for name, data in files.items()
        if data != before[name]
    }
    for name in files:
        if name.endswith("-index.json"):
            for old, new in renewed.items():
                files[name] = files[name].replace(old, new)
    return seal({**files, "README.md": guide(json.loads(files["manifest.json"]))})


def seal(files: dict[str, bytes]) -> dict[str, bytes]:
    rest = {name: data for name, data in files.items() if name != "SHA256SUMS"}
    text = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(rest.items()))
    return {**rest, "SHA256SUMS": text.encode()}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with demo-evaluation.tgz, its digests and the retained folder."""
    folder = tmp_path_factory.mktemp("published")
    files = demo()
    archive = publish(files, folder)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    guide = f"# What is kept of {archive.name}\n\nSHA-256 {digest}, {len(files)} files\n".encode()
    kept = {name: data for name, data in files.items() if layout.is_retained(name)}
    lay(seal({**kept, "README.md": guide}), folder / "demo")
    return folder


@pytest.fixture
def clone(published: Path, tmp_path: Path) -> Path:
    """What a reader of the page stands in."""
    folder = tmp_path / "clone"
    for name in ("campaigns", "docs", "engines", "examples", "schemas", "verifiers", "evidence", "tests", "benchmarks"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(ROOT / name)
    for name in ("dist", "archive"):
        shutil.copytree(published, folder / name)
    shutil.copytree(ROOT / "archive/lifecycle-cpu", folder / "archive/lifecycle-cpu")
    for path in (ROOT / "archive").glob("llama-cpu-evaluation.*"):
        shutil.copy(path, folder / "archive")
    for path in published.glob("demo-evaluation.*"):
        shutil.copy(path, folder)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (("evidence", "-m evidence"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {command} "$@"\n')
        (programs / name).chmod(0o755)
    return folder


def script(fence: Fence) -> str:
    """The block as a shell script that ends with 99 at the first command whose exit status is not the one told."""
    if "<<" in fence.text:
        return f"set -e\n{fence.text}"
    lines = []
    for command in re.sub(r"\\\n\s*", "", fence.text).splitlines():
        if not command.strip() or command.startswith("#"):
            continue
        told = re.search(r"#.*\bexit (\d+)", command)
        expected = int(told[1]) if told else 0
        lines += [
            command,
            f'code=$?; [ $code = {expected} ] || {{ echo "exit $code:" {shlex.quote(command)} >&2; exit 99; }}',
        ]
    return "\n".join(lines)


def run(fence: Fence, clone: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{clone.parent / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(clone.parent),
        "LC_ALL": "C.UTF-8",
        "MPLCONFIGDIR": str(clone.parent),
    }
    return subprocess.run(
        ["bash", "-c", script(fence)],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in MADE], ids=lambda page: page.name)
def test_every_command_is_run_or_says_why_not(page: Path) -> None:
    for fence in fences(page):
        word, _, rest = fence.info.partition(" ")
        place = f"{page.name}:{fence.line}"
        if word in SHELLS:
            assert word == "sh", f"{place}: found {word}, expected sh"
            assert rest == "run" or re.fullmatch(r"not run: \S.{5,}", rest), f"{place}: run or not run?"
        else:
            assert not re.search(r"(?m)^(\$ )?(evidence|python3?|make|pip|tar|sha256sum) \w", fence.text), (
                f"{place}: a command?"
            )


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(fence.info == "sh run" for fence in fences(page))],
    ids=lambda page: page.name,
)
def test_what_a_page_shows_works(page: Path, clone: Path) -> None:
    printed, runs = "", 0
    for fence in fences(page):
        if fence.info == "sh run":
            ran = run(fence, clone)
            assert ran.returncode == 0, f"{page.name}:{fence.line}\n{ran.stdout}{ran.stderr}"
            printed, runs = ran.stdout, runs + 1
        elif fence.info == "text output":
            assert fence.text == printed, f"{page.name}:{fence.line}: prints\n{printed}"
    assert runs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if f"(docs/{page.name})" not in text] == []


def test_the_worked_comparison_is_what_its_numbers_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run: python -m tests.worked_comparison"


def test_exit_codes_are_told() -> None:
    text = (ROOT / "docs/command.md").read_text(encoding="utf-8")
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning} |" in text


def named(schema: Any) -> Iterator[str]:
    """Every key and every word of an enumeration in a schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from (word for word in schema.get("enum", []) if isinstance(word, str))
        schema = list(schema.values())
    for part in schema if isinstance(schema, list) else []:
        yield from named(part)


@pytest.mark.parametrize("path", sorted((ROOT / "schemas").glob("*.json")), ids=lambda path: path.name)
def test_the_formats_name_every_key_and_value(path: Path) -> None:
    if path.name == "lifecycle-record.schema.json":
        return  # keeps its published form, docs/lifecycle.md
    text = (ROOT / "docs/format.md").read_text(encoding="utf-8")
    assert [word for word in dict.fromkeys(named(json.loads(path.read_bytes()))) if word not in text] == []


def test_the_formats_name_every_command_and_option() -> None:
    text = (ROOT / "docs/format.md").read_text(encoding="utf-8")
    lines = " ".join(text[text.index("`evidence`: ") : text.index("Exit codes of `evidence`")].split())
    for name, command in leaves(main):
        told = re.search(rf"`{name} ([^`]*)`", lines)
        assert told is not None, name
        flags = {one.opts[-1] for one in command.params if isinstance(one, click.Option)} - SHARED
        assert [flag for flag in flags if flag not in told[1]] == [], name


def leaves(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for word, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, f"{before}{word} ")
        else:
            yield f"{before}{word}", command


def test_the_counts_of_cases_and_lies_are_those_of_the_tests() -> None:
    text = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")
    refused = [case.group for case in read_cases() if case.say]
    assert f"one valid package and {len(refused)} ways" in text
    groups = re.findall(r"(?m)^\| reader \| (.*) \|$", text)[0].split(" | ")
    ours = re.findall(r"(?m)^\| evidence validate \| (.*) \|$", text)[0].split(" | ")
    assert ours == [f"0/{refused.count(group)}" for group in groups]
    asked = dict(zip(groups, ours, strict=True))
    for row in re.findall(r"(?m)^\| (?:GNU tar|bsdtar|Python tarfile|Python json) \| (.*) \|$", text):
        for group, cell in zip(groups, row.split("|"), strict=True):
            assert cell.strip().partition("/")[2] in ("", asked[group][2:])
    lies = len(test_liars.LIES) + len(test_selection.LIES)
    assert f"tell each of {lies} lies" in (ROOT / "docs/lifecycle.md").read_text(encoding="utf-8")


def test_every_adapter_is_told() -> None:
    text = (ROOT / "docs/engines.md").read_text(encoding="utf-8")
    assert [name for name in ADAPTERS if f"| {name} |" not in text] == []


def test_examples_are_valid() -> None:
    workflow = (ROOT / "examples/github-workflow.yml").read_text(encoding="utf-8")
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    config = (ROOT / "examples/pre-commit-config.yaml").read_text(encoding="utf-8")
    assert "--format github" in workflow
    for text in (workflow, hooks, config):
        assert "\t" not in text
    identity = re.search(r"- id: (\S+)", hooks)
    assert identity is not None
    assert f"- id: {identity[1]}" in config
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert json.dumps(yaml.safe_load(workflow)["jobs"])
    assert [set(hook) >= {"id", "name", "entry", "language"} for hook in yaml.safe_load(hooks)] == [True]
