"""Launches of kernels as data: what the host does to run a program on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from dlcompiler.runtime.formulas import Formula, compiled


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One launch of a kernel."""

    symbol: str
    """Name of the kernel."""
    arrays: tuple[int, ...]
    """The arrays that it takes: places among the program's arrays, followed by temporaries."""
    numbers: tuple[tuple[str, str], ...]
    """Names and dtypes of the numbers that it takes next; an index of 32 bits is an ``int32``."""
    blocks: tuple[Formula, Formula, Formula]
    """Number of blocks along x, y and z."""
    threads: tuple[int, int, int]
    """Number of threads of a block along x, y and z."""
    reports: bool
    """Whether it takes the address of the status of checks, after the numbers."""
    shared_bytes: int = 0
    """Memory that the threads of a block share, and that its code declares [byte]."""
    added_bytes: Formula = 0
    """Memory that they share, and that a launch adds [byte]."""

    def all_shared_bytes(self, values: Mapping[str, Any]) -> int:
        """Return the memory that the threads of a block share, for some symbols [byte]."""
        return self.shared_bytes + int(compiled(self.added_bytes)(values))


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A loop of the host around launches."""

    variable: str
    extent: Formula
    steps: tuple[Step, ...]


Step: TypeAlias = KernelCall | HostLoop


@dataclass(frozen=True, slots=True)
class Temporary:
    """Memory of the device that one kernel writes and another one reads."""

    dtype: str
    elements: Formula
    """Number of elements."""


@dataclass(frozen=True, slots=True)
class Launches:
    """All launches of a program, and the memory that they need."""

    temporaries: tuple[Temporary, ...]
    steps: tuple[Step, ...]

    def run(
        self,
        values: Mapping[str, Any],
        launch: Callable[[KernelCall, tuple[int, ...], Mapping[str, Any]], None],
    ) -> None:
        """Call a function for each launch, in order.

        Parameters
        ----------
        values : mapping
            The values of the symbols and numbers of the call, by name.
        launch : callable
            Gets the launch, its number of blocks along x, y and z, and the values by name, loop
            variables included. A launch without blocks is left out.
        """
        _run(self.steps, dict(values), launch)

    def calls(self) -> Iterator[KernelCall]:
        """Yield each launch of a kernel once, in order."""
        yield from _calls(self.steps)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, to be sent to another process."""
        return asdict(self)

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Launches:
        """Read what `to_json` wrote."""
        temporaries = (Temporary(**item) for item in fields["temporaries"])
        return Launches(tuple(temporaries), _steps_from_json(fields["steps"]))


def _calls(steps: tuple[Step, ...]) -> Iterator[KernelCall]:
    for step in steps:
        if isinstance(step, KernelCall):
            yield step
        else:
            yield from _calls(step.steps)


def _steps_from_json(items: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    steps: list[Step] = []
    for item in items:
        if "symbol" not in item:
            steps.append(
                HostLoop(item["variable"], item["extent"], _steps_from_json(item["steps"]))
            )
            continue
        x, y, z = item["threads"]
        numbers = tuple((name, dtype) for name, dtype in item["numbers"])
        triples = {"arrays": tuple(item["arrays"]), "blocks": tuple(item["blocks"])}
        steps.append(KernelCall(**{**item, **triples, "numbers": numbers, "threads": (x, y, z)}))
    return tuple(steps)


def _run(steps: tuple[Step, ...], values: dict[str, Any], launch: Callable[..., None]) -> None:
    for step in steps:
        if isinstance(step, KernelCall):
            blocks = tuple(compiled(count)(values) for count in step.blocks)
            if all(blocks):
                launch(step, blocks, values)
            continue
        for number in range(compiled(step.extent)(values)):
            _run(step.steps, {**values, step.variable: number}, launch)
