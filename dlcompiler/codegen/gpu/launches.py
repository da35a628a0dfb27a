"""Describe the launches of a program as data, for the devices that run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from dlcompiler.codegen.interface import formula
from dlcompiler.ir import Const, Extent, For, Var, free_vars
from dlcompiler.ir.names import unique_name
from dlcompiler.ir.program import Launch, Program
from dlcompiler.passes.flatten_storage import elements_spanned
from dlcompiler.runtime.launches import HostLoop, KernelCall, Launches, Step, Temporary


def host_variables(launch: Launch) -> dict[Var, Var]:
    """Return the loop of the host, by its variable, that a number of the kernel counts."""
    if launch.nest is None:
        return {}
    free = free_vars(launch.nest)
    used = [loop.var for loop in launch.loops if loop.var in free]
    numbers = launch.kernel.variables
    return dict(zip(numbers[len(numbers) - len(used) :], used, strict=True))


@dataclass(frozen=True, slots=True)
class GeneratedKernel:
    """A kernel in generated code, as the host launches it."""

    symbol: str
    """Its name in the code."""
    index: str
    """The dtype of its indices."""
    reports: bool
    """Whether it reports failed checks."""
    shared_bytes: int
    """Shared memory that its code declares [byte]."""
    added_bytes: Extent
    """Shared memory that each launch adds [byte]."""


def launches_of(program: Program, calls: Mapping[int, GeneratedKernel]) -> Launches:
    """Return the launches of a program.

    Parameters
    ----------
    program
        The program.
    calls
        For each launch, by its place, its kernel in the code.
    """
    names: dict[Var, str] = {}
    for var in program.func.variables:  # as in the interface
        names[var] = unique_name(var.name, names.values())
    temporaries = tuple(
        Temporary(buffer.dtype, formula(elements_spanned(buffer), names))
        for buffer in program.temporaries
    )
    steps = _Launches(program, names, calls).steps(range(len(program.launches)), 0)
    return Launches(temporaries, steps)


class _Launches:
    def __init__(
        self,
        program: Program,
        names: dict[Var, str],
        calls: Mapping[int, GeneratedKernel],
    ) -> None:
        self.program = program
        self.names = names
        self.calls = calls
        arrays = (*program.func.buffers, *program.temporaries)
        self.places = {buffer: place for place, buffer in enumerate(arrays)}

    def steps(self, places: Sequence[int], depth: int) -> tuple[Step, ...]:
        """Return the steps of neighbouring launches, inside `depth` loops of the host."""
        found: list[Step] = []
        for loop, group in groupby(places, lambda place: self._loop(place, depth)):
            if loop is None:
                found += [self._call(place) for place in group]
                continue
            extent = formula(loop.extent, self.names)
            name = self.names[loop.var] = unique_name(loop.var.name, self.names.values())
            found.append(HostLoop(name, extent, self.steps(list(group), depth + 1)))
        return tuple(found)

    def _loop(self, place: int, depth: int) -> For | None:
        loops = self.program.launches[place].loops
        return loops[depth] if depth < len(loops) else None

    def _call(self, place: int) -> KernelCall:
        launch = self.program.launches[place]
        made = self.calls[place]
        host = host_variables(launch)
        known = {**self.names, **{var: self.names[loop] for var, loop in host.items()}}
        one = Const(1, "index")
        blocks = [formula(launch.threads.get(f"blockIdx.{axis}", one), known) for axis in "xyz"]
        threads = [launch.count(f"threadIdx.{axis}") or 1 for axis in "xyz"]
        return KernelCall(
            made.symbol,
            tuple(self.places[buffer] for buffer in launch.kernel.buffers),
            tuple(
                (known[var], made.index if var.dtype == "index" else var.dtype)
                for var in launch.kernel.variables
            ),
            (blocks[0], blocks[1], blocks[2]),
            (threads[0], threads[1], threads[2]),
            made.reports,
            made.shared_bytes,
            formula(made.added_bytes, known),
        )
