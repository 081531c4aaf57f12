"""What a validation found, stage by stage, and how it reads as text, JSON, JUnit XML and GitHub annotations."""

from __future__ import annotations

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
    ) -> None:
        self.name = name
        self.expected = expected
        self.verified = verified
        self.findings = [] if findings is None else findings
        self.note = note
        self.status = status

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
    return "\n".join(lines)


def _json(validation: Validation) -> str:
    import json

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
    return json.dumps(document, indent=2, sort_keys=True)


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
    lines = []
    for stage in validation.stages:
        for finding in stage.findings:
            text = f"{finding.code} {finding.place}: {finding.found}, expected {finding.expected}"
            lines.append(f"::error title={_escape(stage.name, ',:')}::{_escape(text)}")
        if stage.exit_code and not stage.findings:
            lines.append(f"::error title={_escape(stage.name, ',:')}::{_escape(_counts(stage))}")
    word = "notice" if validation.exit_code == 0 else "error"
    return "\n".join([*lines, f"::{word}::{_escape(f'{validation.path}: {validation.verdict}')}"])


def _escape(text: str, more: str = "") -> str:
    """The percent form of GitHub's workflow commands."""
    for one in "%\r\n" + more:
        text = text.replace(one, f"%{ord(one):02X}")
    return text


def unreadable(path: object, reason: str, hint: str) -> EvidenceError:
    """The error for a path that holds nothing to validate."""
    return EvidenceError(f"{path}: {reason}, expected a package archive (.tgz)", hint)
