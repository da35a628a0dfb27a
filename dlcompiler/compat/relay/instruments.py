"""Instruments: objects that see the passes on graphs while a `PassContext` is entered."""

from __future__ import annotations

import inspect
import time
from typing import Any

from dlcompiler.compat.missing import Named
from dlcompiler.compat.relay.passes import PassInfo


class PassInstrument(Named):
    """Base of instruments; a subclass overrides what it wants to see."""

    classic = "tvm.ir.instrument.PassInstrument"

    def enter_pass_ctx(self) -> None:
        """Do something when the context is entered."""

    def exit_pass_ctx(self) -> None:
        """Do something when the context is left."""

    def should_run(self, mod: Any, info: PassInfo) -> bool:
        """Tell whether a pass runs."""
        del mod, info
        return True

    def run_before_pass(self, mod: Any, info: PassInfo) -> None:
        """Look at the module before a pass."""

    def run_after_pass(self, mod: Any, info: PassInfo) -> None:
        """Look at the module after a pass."""


EVENTS = tuple(name for name, _ in inspect.getmembers(PassInstrument, inspect.isfunction)
               if not name.startswith("_"))  # fmt: skip
"""Names of the methods of an instrument."""


def pass_instrument(pi_cls: type | None = None) -> Any:
    """Make instruments of a class; also a decorator.

    Parameters
    ----------
    pi_cls : type
        Its methods have the names of those of `PassInstrument`; others do nothing.
    """

    def decorate(given: type) -> type:
        rest = {name: getattr(PassInstrument, name) for name in EVENTS if not hasattr(given, name)}
        return type(given.__name__, (given,), {**rest, "__doc__": given.__doc__})

    return decorate if pi_cls is None else decorate(pi_cls)


class PassTimingInstrument(PassInstrument):
    """Measures how long each pass takes, passes inside others included."""

    classic = "tvm.ir.instrument.PassTimingInstrument"

    def __init__(self) -> None:
        self._open: list[tuple[int, float]] = []
        self._lines: list[str] = []

    def enter_pass_ctx(self) -> None:
        """Forget earlier times."""
        self._open, self._lines = [], []

    def run_before_pass(self, mod: Any, info: PassInfo) -> None:
        """Start the clock."""
        del mod, info
        self._lines.append("")
        self._open.append((len(self._lines) - 1, time.perf_counter()))

    def run_after_pass(self, mod: Any, info: PassInfo) -> None:
        """Stop the clock."""
        del mod
        line, started = self._open.pop()
        microseconds = (time.perf_counter() - started) * 1e6
        self._lines[line] = f"{'    ' * len(self._open)}{info.name}: {microseconds:.0f} us"

    def render(self) -> str:
        """Return the measured times of the passes as lines of text; indented passes are inside."""
        return "\n".join(self._lines)


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    classic = "tvm.ir.instrument.PrintBeforeAll"

    def run_before_pass(self, mod: Any, info: PassInfo) -> None:
        """Print the module."""
        print(f"Before Running Pass: {info.name}\n{mod}")  # noqa: T201  as in TVM


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass."""

    classic = "tvm.ir.instrument.PrintAfterAll"

    def run_after_pass(self, mod: Any, info: PassInfo) -> None:
        """Print the module."""
        print(f"After Running Pass: {info.name}\n{mod}")  # noqa: T201  as in TVM
