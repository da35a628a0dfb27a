"""Replace functions of the compiler while a mutant lives, and put them back."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from dlcompiler.passes import Pass
from dlcompiler.pipeline import PIPELINES
from dlcompiler.schedule.primitives import REGISTRY
from tests.fuzz.checks import EAGER

Wrapper = Callable[..., Any]
"""Called with the original function and its arguments."""


class Patch(ExitStack):
    """The replacements that make up one mutant."""

    def method(self, owner: str, name: str, wrapper: Wrapper) -> None:
        """Let `wrapper` run in place of a method; it gets the original first."""
        owner = found(owner)
        original = getattr(owner, name)
        self._set(owner, name, original, _around(original, wrapper))

    def function(self, address: str, wrapper: Wrapper) -> None:
        """Let `wrapper` run in place of a function, wherever a module of dlcompiler binds it."""
        original = found(address)
        new = _around(original, wrapper)
        places = 0
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] != "dlcompiler":
                continue
            for attribute, value in list(vars(module).items()):
                if value is original:
                    self._set(module, attribute, original, new)
                    places += 1
        for holder in _holders():
            for field in dataclasses.fields(holder):
                if getattr(holder, field.name) is original:
                    self._set_frozen(holder, field.name, original, new)
                    places += 1
        assert places, f"nothing calls {original!r}"

    def value(self, owner: str, name: str, new: object) -> None:
        """Give an attribute of a module or class another value."""
        owner = found(owner)
        self._set(owner, name, getattr(owner, name), new)

    def _set(self, owner: object, name: str, old: object, new: object) -> None:
        setattr(owner, name, new)
        self.callback(setattr, owner, name, old)

    def _set_frozen(self, owner: object, name: str, old: object, new: object) -> None:
        object.__setattr__(owner, name, new)
        self.callback(object.__setattr__, owner, name, old)


def found(address: str) -> Any:
    """Return a module of dlcompiler, ``arith.region``, or what is in it, ``arith.region:relax``."""
    module, _, name = address.partition(":")
    result = importlib.import_module(f"dlcompiler.{module}")
    return getattr(result, name) if name else result


def _around(original: Callable[..., Any], wrapper: Wrapper) -> Callable[..., Any]:
    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    return replacement


def _holders() -> list[Any]:
    """Return the frozen values that hold functions: primitives and passes."""
    passes: list[Pass] = [item for line in PIPELINES.values() for item in line.passes]
    return [*REGISTRY.values(), *passes, *EAGER]
