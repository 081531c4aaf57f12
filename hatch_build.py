"""Puts schemas/, verifiers/, SHA256SUMS and the page of limits into a wheel as `evidence/_shipped`; an editable install reads the checkout."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = ("schemas", "verifiers", "SHA256SUMS", "docs/what-this-does-not-prove.md")


class ShippedFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Without this an editable install would get a stale copy that hides the package itself."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"].update({name: f"evidence/_shipped/{name}" for name in SHIPPED})
