"""What a validation found, stage by stage, and how it reads as text, JSON, JUnit XML and GitHub annotations."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from evidence.errors import EvidenceError


class Finding(NamedTuple):
    """One thing that is wrong: a stable code, the place (path, with line, pointer or byte), found and expected."""

    code: str
    place: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.code} {self.place}: {self.found}, expected {self.expected}"


class Stage:
    """One part of a validation: how many things should hold, how many were shown to hold, and what does not."""

    def __init__(
        self,
        name: str,
        expected: int = 0,
        verified: int = 0,
        findings: list[Finding] | None = None,
        note: str = "",
        status: int = 0,
        where: str = "",
    ) -> None:
        self.name = name
        self.expected = expected
        self.verified = verified
        self.findings = [] if findings is None else findings
        self.note = note
        self.status = status
        self.where = where  # the folder that it speaks of, where that is not the package

    @property
    def exit_code(self) -> int:
        """0 only when something was there to verify and all of it was; 3 blind, 2 could not run, 1 rejected."""
        if self.status in (2, 3):
            return self.status
        return int(bool(self.findings) or self.verified != self.expected or not self.expected)


class Validation:
    """Everything that one validation says of the package at `path`."""

    def __init__(
        self,
        path: str,
        stages: list[Stage] | None = None,
        facts: dict[str, Any] | None = None,
        mutations: list[dict[str, Any]] | None = None,
    ) -> None:
        self.path = path
        self.stages = [] if stages is None else stages
        self.facts = {} if facts is None else facts
        self.mutations = [] if mutations is None else mutations

    @property
    def findings(self) -> list[Finding]:
        """All findings, in the order of the stages."""
        return [finding for stage in self.stages for finding in stage.findings]

    @property
    def exit_code(self) -> int:
        """3 when a verifier is blind, 1 when anything was rejected, 2 when a verifier could not run, else 0."""
        codes = {stage.exit_code for stage in self.stages} or {1}
        return next(code for code in (3, 1, 2, 0) if code in codes)

    @property
    def verdict(self) -> str:
        """The exit code in a word."""
        return ("verified", "rejected", "unreadable", "blind")[self.exit_code]

    def render(self, form: str) -> str:
        """Return the validation as `text`, `json`, `junit` or `github`, without a final newline."""
        return {"text": _text, "json": _json, "junit": _junit, "github": _github}[form](self)


def refused(message: str, hint: str, code: int, form: str | None) -> str | None:
    """What a program reads that asked for `json` or `github` and gets an error in place of an answer; None in other forms."""
    if form == "json":
        return as_json({"error": message, "exitCode": code, "hint": hint})
    return f"::error::{_escape(message)}" if form == "github" else None


def _counts(stage: Stage) -> str:
    return f"{stage.verified} of {stage.expected}" + (f", {stage.note}" if stage.note else "")


def _text(validation: Validation) -> str:
    lines = [f"{name}: {value}" for name, value in validation.facts.items()]
    width = max((len(stage.name) for stage in validation.stages), default=0)
    for stage in validation.stages:
        word = ("ok", "REJECTED", "COULD NOT RUN", "BLIND")[stage.exit_code]
        lines.append(f"{stage.name:<{width}}  {word}  {_counts(stage)}")
        lines += [f"  {finding}" for finding in stage.findings]
    if validation.mutations:
        killed = sum(row["verdict"] == "killed" for row in validation.mutations)
        inert = sum(row["verdict"] == "inert" for row in validation.mutations)
        aside = f", {inert} found nothing of their kind to alter" if inert else ""
        lines.append(f"mutation controls: {killed} of {len(validation.mutations) - inert} killed{aside}")
        for row in validation.mutations:
            if row["verdict"] != "killed":
                observed = " ".join(row["observed"]) or row.get("altered", "nothing")
                expected = f", expected {row['expected']}" if row["expected"] else ""
                lines.append(f"  {row['verdict']}: {row['verifier']}: {row['mutation']}: {observed}{expected}")
    lines.append(f"{validation.path}: {validation.verdict}")
    return _shown("\n".join(lines))


def as_json(content: Any) -> str:
    """One JSON document without a final newline; in ASCII, so that no terminal obeys it and no encoding fails at it."""
    import json

    return json.dumps(content, indent=2, sort_keys=True)


def _json(validation: Validation) -> str:
    document = {
        "path": validation.path,
        "verdict": validation.verdict,
        "exitCode": validation.exit_code,
        "facts": validation.facts,
        "stages": [
            {"name": stage.name, "expected": stage.expected, "verified": stage.verified, "note": stage.note,
             "exitCode": stage.exit_code, "findings": len(stage.findings)}
            for stage in validation.stages
        ],
        "findings": [finding._asdict() | {"stage": stage.name} for stage in validation.stages for finding in stage.findings],
        "mutations": validation.mutations,
    }  # fmt: skip
    return as_json(document)


def _junit(validation: Validation) -> str:
    stages = validation.stages
    failed = sum(stage.exit_code in (1, 3) for stage in stages)
    errors = sum(stage.exit_code == 2 for stage in stages)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name={_attribute(f"evidence {validation.path}")} tests="{len(stages)}" failures="{failed}" errors="{errors}">',
    ]
    for stage in stages:
        lines.append(f'  <testcase classname="evidence" name={_attribute(stage.name)}>')
        if stage.exit_code:
            tag = "error" if stage.exit_code == 2 else "failure"
            body = "\n".join(str(finding) for finding in stage.findings) or _counts(stage)
            lines.append(f"    <{tag} message={_attribute(body)}/>")
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>"])


def _attribute(text: str) -> str:
    """Quote for XML; what XML cannot hold at all is shown as its number."""
    from xml.sax.saxutils import quoteattr

    plain = "".join(
        one
        if one in "\n\t" or " " <= one < "\ud800" or "\ue000" <= one < "\ufffe" or one > "\uffff"
        else f"\\x{ord(one):02x}"
        for one in text
    )
    return quoteattr(plain, {"\n": "&#10;"})


def _github(validation: Validation) -> str:
    """The verdict first: of a step's annotations GitHub shows the first ten."""
    word = "notice" if validation.exit_code == 0 else "error"
    lines = [_command(word, validation.path, "", "", f"{validation.path}: {validation.verdict}")]
    for stage in validation.stages:
        where = stage.where or validation.path
        lines += [_command("error", where, one.place, stage.name, str(one)) for one in stage.findings]
        if stage.exit_code and not stage.findings:
            lines.append(_command("error", where, "", stage.name, _counts(stage)))
    return "\n".join(lines)


def _command(word: str, where: str, place: str, title: str, text: str) -> str:
    """An annotation at the file of the repository that `place` names, below or beside `where`; else at `where` itself."""
    name = re.split("[#:]", place)[0]
    beside = name.startswith(os.path.basename(where).removesuffix(".tgz"))  # noqa: PTH119
    below = [os.path.join(where, name), *([os.path.join(os.path.dirname(where), name)] if beside else [])]  # noqa: PTH118, PTH120
    file = next((one for one in below if os.path.isfile(one)), where)  # noqa: PTH113  # a name may be too long to ask with pathlib
    line = re.search(r": line (\d+)", place) if file != where else None
    near = os.path.relpath(file, os.environ.get("GITHUB_WORKSPACE") or ".")
    facts = {
        "file": file if near.startswith("..") else near,
        "line": line[1] if line else "",
        "title": title,
    }
    said = ",".join(f"{key}={_escape(value, ',:')}" for key, value in facts.items() if value)
    return f"::{word} {said}::{_escape(text)}"


def _shown(text: str) -> str:
    """Text that no terminal obeys; what needs no change does not load what would change it."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    from evidence.visible import visible

    return visible(text)


def _escape(text: str, more: str = "") -> str:
    """The percent form of GitHub's workflow commands."""
    text = _shown(text)
    for one in "%\r\n" + more:
        text = text.replace(one, f"%{ord(one):02X}")
    return text


def unreadable(path: object, reason: str, hint: str) -> EvidenceError:
    """The error for a path that holds nothing to validate."""
    return EvidenceError(f"{path}: {reason}, expected a package archive (.tgz)", hint)
