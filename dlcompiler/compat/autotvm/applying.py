"""Dispatch contexts: the innermost one that has a config for a workload provides it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from dlcompiler.compat.autotvm.configs import FallbackConfigEntity
from dlcompiler.compat.notes import note
from dlcompiler.compat.targets import Target
from dlcompiler.space import Choices

_stack: ContextVar[tuple[DispatchContext, ...]] = ContextVar("classic_dispatch", default=())


class DispatchContext:
    """Provides configs of workloads inside a ``with``."""

    def find(self, target: Target | None, workload: tuple[Any, ...] | None) -> Choices | None:
        """Return the config of a workload; None if this context has none."""
        del target, workload
        return None

    def query(self, target: Target | None, workload: tuple[Any, ...] | None) -> Choices:
        """Return the config of a workload, from this context or an enclosing one."""
        return self.find(target, workload) or FALLBACK.find(target, workload)

    def __enter__(self) -> DispatchContext:
        _stack.set((*_stack.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _stack.set(_stack.get()[:-1])


class ApplyConfig(DispatchContext):
    """Provides one config for every template.

    Parameters
    ----------
    config : ConfigSpace or ConfigEntity
        The config of every workload.
    """

    def __init__(self, config: Choices) -> None:
        self.config = config
        """The config of every workload."""

    def find(self, target: Target | None, workload: tuple[Any, ...] | None) -> Choices:
        """Return the config."""
        del target, workload
        return self.config


class FallbackContext(DispatchContext):
    """Provides the first value of each knob, and shows a note once for each workload."""

    def __init__(self) -> None:
        self._told: set[tuple[Any, ...]] = set()

    def find(self, target: Target | None, workload: tuple[Any, ...] | None) -> Choices:
        """Return the config of first values; show the note if it is new."""
        del target
        if workload is not None and workload not in self._told:
            self._told.add(workload)
            note(f"{workload}: no config is known; the first value of each knob is used", 5)
        return FallbackConfigEntity()

    def clear_cache(self, target: Target | None, workload: tuple[Any, ...]) -> None:
        """Forget a workload, so that its note is shown again."""
        del target
        self._told.discard(workload)


FALLBACK = FallbackContext()
"""The outermost context."""


def current(target: Target | None, workload: tuple[Any, ...] | None) -> Choices:
    """Return the config of a workload, from the innermost context that has one."""
    for context in reversed(_stack.get()):
        if (found := context.find(target, workload)) is not None:
            return found
    return FALLBACK.find(target, workload)


def get_config() -> Any:
    """Return the config of the template that is running."""
    return current(None, None)
