"""Modules that only a forger needs: imported when one of their functions is called.

A verifier that is not asked to prove itself never reads them, which is most of what its start would cost.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable


class Later:
    """A module by its name, each of whose functions can be handed on before the module is imported."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            return getattr(import_module(self._module), name)(*values, **named)

        call.__name__ = name
        return call
