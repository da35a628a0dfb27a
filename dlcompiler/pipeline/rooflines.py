"""Rooflines of accelerators: what programs reach, below the peak and the bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlcompiler.display import Drawn
from dlcompiler.errors import UserError
from dlcompiler.simulate.accelerators.demand import Demand, bandwidth_of, peak_of
from dlcompiler.target.accelerators import Accelerator
from dlcompiler.terminal import escaped


@dataclass(frozen=True)
class RooflinePoint:
    """A program on an accelerator."""

    name: str
    demand: Demand
    cycles: int
    """[clock], simulated"""
    series: str = ""
    """Points of one name in two series are joined: one work, in two ways."""

    @property
    def rate(self) -> float:
        """Operations of tensor instructions in a cycle; [1/clock]."""
        return self.demand.operations / max(self.cycles, 1)


@dataclass(frozen=True, eq=False)
class AcceleratorRoofline(Drawn):
    """Programs on an accelerator: operations a cycle over operations a byte; simulated.

    A notebook shows it as a picture. `table` and `svg` are the same as text and as a file.
    """

    kind = "accelerator_roofline"
    accelerator: Accelerator
    points: tuple[RooflinePoint, ...]

    @property
    def peak(self) -> float:
        """Most operations of tensor instructions in a cycle; [1/clock]."""
        return peak_of(self.accelerator)

    @property
    def bandwidth(self) -> float:
        """Most bytes to and from DRAM in a cycle [byte/clock]."""
        return bandwidth_of(self.accelerator)

    def bound(self, point: RooflinePoint) -> float:
        """Return the most operations a cycle that a program of this intensity can reach."""
        return min(self.peak, self.bandwidth * point.demand.intensity)

    def __repr__(self) -> str:
        names = ", ".join(escaped(point.name) for point in self.points)
        return f"AcceleratorRoofline({self.accelerator.name}: {names}; simulated)"


def roofline_of(
    points: Sequence[tuple[Accelerator, RooflinePoint]],
    names: Sequence[str] | None = None,
    series: Sequence[str] | None = None,
) -> AcceleratorRoofline:
    """Return the roofline of programs.

    Parameters
    ----------
    points : sequence of pairs
        Programs, each with its accelerator.
    names, series : sequence of str, optional
        Other names and series for the picture.

    Raises
    ------
    UserError
        The accelerators have other peaks or bandwidths, one has no tensor instruction, or there
        are more or fewer names or series than programs.
    """
    if not points:
        raise UserError("draw a roofline", "there is no program", expected="at least one")
    first = points[0][0]
    for machine, _ in points[1:]:
        if _roof(machine) != _roof(first):
            raise UserError(
                "draw a roofline", "the programs are for machines with other roofs",
                got=f"{machine.name}: {_words(machine)}", expected=f"{first.name}: {_words(first)}",
                hint="draw one for each machine",
            )  # fmt: skip
    for what, given in (("name", names), ("series", series)):
        if given is not None and len(given) != len(points):
            raise UserError(
                "draw a roofline", f"each program needs a {what}",
                got=f"{len(given)}", expected=f"{len(points)}",
            )  # fmt: skip
    shown = [
        replace(
            point,
            name=point.name if names is None else names[n],
            series=point.series if series is None else series[n],
        )
        for n, (_, point) in enumerate(points)
    ]
    return AcceleratorRoofline(first, tuple(shown))


def _roof(machine: Accelerator) -> tuple[float, float]:
    return peak_of(machine), bandwidth_of(machine)


def _words(machine: Accelerator) -> str:
    peak, bandwidth = _roof(machine)
    return f"{peak:g} operations and {bandwidth:g} bytes a cycle"
