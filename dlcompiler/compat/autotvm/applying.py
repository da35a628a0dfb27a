"""Which config a template gets: contexts, the innermost one that knows."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from dlcompiler.compat.autotvm.configs import FallbackConfigEntity
from dlcompiler.compat.notes import note
from dlcompiler.compat.targets import Target
from dlcompiler.space import Choices

_stack: ContextVar[tuple[DispatchContext, ...]] = ContextVar("classic_dispatch", default=())


class DispatchContext:
    """Knows configs of workloads; a ``with`` asks it first."""

    def find(self, target: Target | None, workload: tuple[Any, ...] | None) -> Choices | None:
        """Return the config of a workload; None: it is not known."""
        del target, workload
        return None

    def query(self, target: Target | None, workload: tuple[Any, ...] | None) -> Choices:
        """Return the config of a workload, from here or from further out."""
        return self.find(target, workload) or FALLBACK.find(target, workload)

    def __enter__(self) -> DispatchContext:
        _stack.set((*_stack.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _stack.set(_stack.get()[:-1])


class ApplyConfig(DispatchContext):
    """Gives one config to every template.

    Parameters
    ----------
    config : ConfigSpace or ConfigEntity
        What they get.
    """

    def __init__(self, config: Choices) -> None:
        self.config = config
        """What templates get."""

    def find(self, target: Target | None, workload: tuple[Any, ...] | None) -> Choices:
        """Return the config."""
        del target, workload
        return self.config


class FallbackContext(DispatchContext):
    """Gives the first value of each knob, and says so once for each workload."""

    def __init__(self) -> None:
        self._told: set[tuple[Any, ...]] = set()

    def find(self, target: Target | None, workload: tuple[Any, ...] | None) -> Choices:
        """Return first values."""
        del target
        if workload is not None and workload not in self._told:
            self._told.add(workload)
            note(f"{workload}: no config is known; the first value of each knob is used", 5)
        return FallbackConfigEntity()

    def clear_cache(self, target: Target | None, workload: tuple[Any, ...]) -> None:
        """Say it again for a workload."""
        del target
        self._told.discard(workload)


FALLBACK = FallbackContext()
"""The outermost context."""


def current(target: Target | None, workload: tuple[Any, ...] | None) -> Choices:
    """Return the config that the innermost context has which knows one."""
    for context in reversed(_stack.get()):
        if (found := context.find(target, workload)) is not None:
            return found
    return FALLBACK.find(target, workload)


def get_config() -> Any:
    """Return the config of the template that is running."""
    return current(None, None)
