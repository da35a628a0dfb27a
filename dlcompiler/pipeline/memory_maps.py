"""Maps of an accelerator's memories: which values lie where, and how long; simulated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dlcompiler.display import Drawn
from dlcompiler.errors import UserError
from dlcompiler.pipeline.timelines import check_window
from dlcompiler.simulate.accelerators.timing.run import TimedRun
from dlcompiler.terminal import escaped


@dataclass(frozen=True, eq=False)
class MemoryMap(Drawn):
    """The values in the memories of an accelerator, by address and time; simulated.

    A notebook shows it as a picture. `table` and `svg` are the same as text and as a file.
    """

    kind = "accelerator_memories"
    name: str
    runs: tuple[TimedRun, ...]
    """The parts of the program, one after another."""
    first: int = 0
    """The first cycle that is shown; [clock]."""
    last: int | None = None
    """The cycle before which it ends; None shows all; [clock]."""
    cycle: int | None = None
    """The cycle whose values the table lists; None lists how much of each memory is used."""

    @property
    def cycles(self) -> int:
        """Cycles of all parts; [clock]."""
        return sum(run.cycles for run in self.runs)

    def between(self, first: int, last: int) -> MemoryMap:
        """Return the map of some cycles only.

        Parameters
        ----------
        first, last : int
            The first cycle, and the one before which it ends; [clock].

        Raises
        ------
        UserError
            These are not two cycles in order.
        """
        check_window("show a part of a map of memories", first, last, self.cycles)
        return replace(self, first=first, last=last)

    def at(self, cycle: int) -> MemoryMap:
        """Return the map with a line at a cycle, and a table of the values that lie there then.

        Parameters
        ----------
        cycle : int
            The cycle; [clock].

        Raises
        ------
        UserError
            The program does not run in this cycle.
        """
        if type(cycle) is not int or not 0 <= cycle <= self.cycles:
            raise UserError(
                "show the values of a cycle", "the program does not run in it", got=repr(cycle),
                expected=f"0 to {self.cycles}",
            )  # fmt: skip
        return replace(self, cycle=cycle)

    def __repr__(self) -> str:
        return f"MemoryMap({escaped(self.name)}: {self.cycles:,} cycles, simulated)"
