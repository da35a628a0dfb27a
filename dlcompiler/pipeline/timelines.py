"""Timelines: when the engines of an accelerator ran their instructions, to be drawn and saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlcompiler.display import Drawn, render
from dlcompiler.errors import UserError
from dlcompiler.output_files import write_file
from dlcompiler.simulate.accelerators.timing.run import TimedRun
from dlcompiler.terminal import escaped


@dataclass(frozen=True, eq=False)
class Timeline(Drawn):
    """What each engine did in each cycle, of one program or several on one axis; simulated.

    A notebook shows it as a picture. `table` and `svg` are the same as text and as a file.
    """

    kind = "timeline"

    names: tuple[str, ...]
    """Of the programs, from top to bottom."""
    runs: tuple[tuple[TimedRun, ...], ...]
    """Of each program its parts, one after another: what the host does between them is left out."""
    first: int = 0
    """The first cycle that is shown; [clock]."""
    last: int | None = None
    """The cycle before which it ends; None shows all; [clock]."""

    @property
    def cycles(self) -> int:
        """Cycles of the longest program; [clock]."""
        return max((sum(run.cycles for run in parts) for parts in self.runs), default=0)

    def between(self, first: int, last: int) -> Timeline:
        """Return the timeline of some cycles only.

        Parameters
        ----------
        first, last : int
            The first cycle, and the one before which it ends; [clock].

        Raises
        ------
        UserError
            These are not two cycles in order.
        """
        check_window("show a part of a timeline", first, last, self.cycles)
        return replace(self, first=first, last=last)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a trace in the format of Chrome, which https://ui.perfetto.dev opens.

        Engines are threads, tokens are flows. The times are those of the accelerator's clock; the
        arguments of each instruction have its cycles.

        Parameters
        ----------
        path : path
            A new or existing file, usually ``*.json``.

        Raises
        ------
        UserError
            The file cannot be written.
        """
        write_file(path, render("timeline_trace", self))

    def __repr__(self) -> str:
        names = ", ".join(map(escaped, self.names))
        return f"Timeline({names}: {self.cycles:,} cycles, simulated)"


def timeline_of(
    programs: Sequence[tuple[str, Sequence[TimedRun]]], names: Sequence[str] | None = None
) -> Timeline:
    """Return the timeline of programs, above each other on one axis.

    Parameters
    ----------
    programs : sequence of pairs
        The name of each program, and the simulated times of its parts.
    names : sequence of str, optional
        Other names for the picture.

    Raises
    ------
    UserError
        There are more or fewer names than programs.
    """
    shown = list(names) if names is not None else [name for name, _ in programs]
    if len(shown) != len(programs):
        raise UserError(
            "draw a timeline", "each program needs a name",
            got=f"{len(shown)} names", expected=str(len(programs)),
        )  # fmt: skip
    if len(set(shown)) < len(shown):
        shown = [f"{name}, {n}" for n, name in enumerate(shown, 1)]
    return Timeline(tuple(shown), tuple(tuple(runs) for _, runs in programs))


def check_window(operation: str, first: int, last: int, cycles: int) -> None:
    """Refuse a part of a run that does not begin before it ends, or behind the end of the run.

    Parameters
    ----------
    operation
        What is shown, for the message.
    first, last
        The first cycle, and the one before which it ends; [clock].
    cycles
        Cycles of the whole; [clock].

    Raises
    ------
    UserError
        These are not two cycles in order, or the first one is behind the end.
    """
    if not (type(first) is type(last) is int and 0 <= first < last):
        raise UserError(
            operation, "the cycles are not in order",
            got=f"from {first!r} to {last!r}", expected=f"0 <= first < last <= {cycles}",
        )  # fmt: skip
    if first >= cycles > 0:
        raise UserError(
            operation, "the program has ended before", got=f"from {first} to {last}",
            expected=f"0 <= first < {cycles}",
        )  # fmt: skip
