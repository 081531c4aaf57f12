"""Modules that not every run needs: imported when one of their functions is called.

A verifier that is not asked to prove itself never reads what only a forger needs, nor the rules of what a package does
not have; to read them is most of what its start would cost.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable


class Later:
    """A module by its name, each of whose functions can be handed on before the module is imported."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Deferred:
        return Deferred(self._module, name)


class Deferred:
    """A function by its module and its name, to be called as the function itself."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self.__name__ = name

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself. Raises AttributeError where the module has none of that name."""
        return getattr(import_module(self._module), self.__name__)  # type: ignore[no-any-return]

    def __call__(self, *values: Any, **named: Any) -> Any:
        return self.function(*values, **named)
