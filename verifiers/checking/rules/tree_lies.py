"""Lies about what lies in a package: files that have no place in it, and files that it cannot be without."""

from __future__ import annotations

from typing import Callable, Optional

from checking.damage import Bench

Lie = Callable[[Bench], Optional[str]]


def _add(path: str, data: bytes) -> Lie:
    def damage(bench: Bench) -> str:
        bench.put(path, data)
        return path

    return damage


def _drop(path: str) -> Lie:
    def damage(bench: Bench) -> Optional[str]:
        if not bench.has(path):
            return None
        bench.remove(path)
        return path

    return damage


def unnamed_registry(bench: Bench) -> str:
    """Lay a probe into a registry of no engine."""
    bench.put("registry-unnamed/probes/nobody.json", b"{}\n")
    return "registry-unnamed"


page_of_claims = _add("RESULTS.md", b"# Release qualified\n")
import_paths = _add("extra.pth", b"import os\n")
start_up_hook = _add("sitecustomize.py", b"import builtins\n")
shadow_json = _add("json.py", b"loads = dict\n")
compiled_module = _add("checking/rules/settings.pyc", b"\0")
further_verifier = _add("verify-everything.py", b"print('verified')\n")
further_folder = _add("notes/summary.md", b"all is well\n")
further_report = _add("results/summary.json", b"{}\n")
further_schema = _add("schemas/extra.schema.json", b"{}\n")
drop_codes = _drop("CHECKS.md")
drop_verifier = _drop("verify-lifecycle.py")
drop_guide = _drop("README.md")
unlisted_checksums = _add("weights/unlisted.sha256", b"0" * 64 + b"  model.safetensors\n")
