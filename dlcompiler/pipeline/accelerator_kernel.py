"""Programs of accelerators, simulated: what they compute, how many cycles they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.codegen import emit
from dlcompiler.display import render
from dlcompiler.ir import Buffer
from dlcompiler.ir.program import Launch, Program
from dlcompiler.pipeline.executables import Kernel, LoadedSource
from dlcompiler.pipeline.memory_maps import MemoryMap
from dlcompiler.pipeline.rooflines import AcceleratorRoofline, RooflinePoint, roofline_of
from dlcompiler.pipeline.timelines import Timeline, timeline_of
from dlcompiler.runtime.arguments import check_all
from dlcompiler.runtime.llvm import compile_ir
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.simulate.accelerators import InstructionProgram
from dlcompiler.simulate.accelerators.demand import NOTHING, Demand, demand_of
from dlcompiler.simulate.accelerators.functional.run import run_program
from dlcompiler.simulate.accelerators.images import array_of, dram_image
from dlcompiler.simulate.accelerators.timing.run import TimedRun, time_program
from dlcompiler.simulate.accelerators.timing.waits import waits_of
from dlcompiler.target import Target, resolve

_WORTH_SAYING = 0.05
"""Least share of the cycles of a wait that the report's sentence names."""


@dataclass(frozen=True, eq=False)
class AcceleratorReport:
    """How long the parts of a program take on an accelerator; all numbers are simulated.

    What the host computes between them is not counted.
    """

    target: Target
    runs: tuple[TimedRun, ...]
    """The times of each part that the accelerator runs, in order."""
    name: str = "main"
    """Of the program."""

    @property
    def cycles(self) -> int:
        """Cycles of all parts; [clock]."""
        return sum(run.cycles for run in self.runs)

    @property
    def seconds(self) -> float:
        """Time of all parts at the accelerator's clock [s]."""
        return sum(run.seconds for run in self.runs)

    @property
    def busy(self) -> dict[str, int]:
        """Cycles in which each engine was busy; [clock]."""
        engines = self.target.accelerator.engines
        return {e.name: sum(run.busy[e.name] for run in self.runs) for e in engines}

    @cached_property
    def waits(self) -> dict[str, dict[str, int]]:
        """Engine -> what it waited for, ``"fetch"`` or the name of a token queue; [clock]."""
        found: dict[str, dict[str, int]] = {name: {} for name in self.busy}
        for run in self.runs:
            for engine, reasons in waits_of(run).items():
                for reason, cycles in reasons.items():
                    found[engine][reason] = found[engine].get(reason, 0) + cycles
        return found

    @cached_property
    def demand(self) -> Demand:
        """Operations, and bytes to and from DRAM."""
        return sum((demand_of(run.program) for run in self.runs), NOTHING)

    @property
    def timeline(self) -> Timeline:
        """When each engine ran its instructions."""
        return timeline_of([(self.name, self.runs)])

    @property
    def extrapolated(self) -> tuple[str, ...]:
        """In what the accelerator differs from the one on which its profile was measured."""
        return tuple(dict.fromkeys(text for run in self.runs for text in run.extrapolated))

    @property
    def provenance(self) -> Provenance:
        """Where the numbers come from."""
        return times_on(self.target)

    def __str__(self) -> str:
        total = max(self.cycles, 1)
        (first, cycles), *others = self.busy.items()
        busy = [f"{first} busy {cycles / total:.0%}"]
        busy += [f"{name} {cycles / total:.0%}" for name, cycles in others]
        text = f"{self.cycles:,} cycles (simulated): {', '.join(busy)}"
        tensor = {i.engine for i in self.target.accelerator.instructions if i.kind == "tensor"}
        parts = [text]
        for name, reasons in self.waits.items():
            long = [
                f"{cycles / total:.0%} for {reason.partition('->')[0]}"
                for reason, cycles in reasons.items()
                if cycles >= _WORTH_SAYING * total
            ]
            # What the engines that copy wait for is the other side of the same waits.
            if long and name in tensor:
                parts.append(f"{name} waits {', '.join(long)}")
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        return render("accelerator_report", self)

    def __repr__(self) -> str:
        return f"AcceleratorReport({self})"


def times_on(target: Target) -> Provenance:
    """Return the provenance of times: simulated, on this accelerator."""
    profile = target.accelerator.profile
    return Provenance("simulated", f"{target.name}, profile {profile}" if profile else target.name)


class AcceleratorKernel(LoadedSource):
    """A program built for an accelerator: call it with NumPy arrays, outputs last."""

    @property
    def parts(self) -> tuple[InstructionProgram | None, ...]:
        """The instructions of each launch; None where the host computes."""
        return self.generated.parts

    @property
    def instructions(self) -> InstructionProgram:
        """The instructions of the first part that the accelerator runs."""
        return next(part for part in self.parts if part is not None)

    def __call__(self, *arguments: Any, seed: int | None = None) -> None:
        """Compute what the engines compute, simulated; see `run`."""
        self.run(*arguments, seed=seed)

    def run(self, *arguments: Any, seed: int | None = None) -> dict[str, int]:
        """Compute what the engines compute, simulated, and count it.

        Parameters
        ----------
        arguments : ndarray
            One for each parameter; outputs are written.
        seed : int, optional
            The engines take turns at random. Without it, each runs as far as it can.

        Returns
        -------
        dict
            ``inp_load_nbytes``, ``gemm_counter``, …: names of VTA's functional simulator.

        Raises
        ------
        CallError
            The arguments do not fit, or the program leaves out instructions.
        InstructionError
            The program deadlocks, reads what nothing has written, or two engines access an element
            without a token between them.
        """
        check_all(self.name, self.generated.interface.params, arguments)
        arrays: dict[Buffer, npt.NDArray[Any]] = {
            buffer: np.asarray(array)
            for buffer, array in zip(self.func.buffers, arguments, strict=True)
        }
        for buffer in self.program.temporaries:
            arrays[buffer] = np.zeros(buffer.static_shape, buffer.dtype)
        counters: Counter[str] = Counter()
        for launch, part, host in zip(self.program.launches, self.parts, self._hosts, strict=True):
            given = [arrays[buffer] for buffer in launch.kernel.buffers]
            if host is not None:
                host(*given)
            elif part is not None:
                counters.update(self._run(part, launch, given, seed))
        return dict(counters)

    def _run(
        self,
        part: InstructionProgram,
        launch: Launch,
        arrays: Sequence[npt.NDArray[Any]],
        seed: int | None,
    ) -> dict[str, int]:
        names = [buffer.name for buffer in launch.kernel.buffers]
        outputs = {buffer.name for buffer in launch.kernel.outputs}
        given = dict(zip(names, arrays, strict=True))
        used = {each.name: given[each.name] for each in part.buffers if each.name in given}
        after = run_program(part, dram_image(part, used), seed=seed)
        for buffer in part.buffers:
            if buffer.name in outputs:
                np.copyto(given[buffer.name], array_of(after.dram, buffer))
        return after.counters

    @cached_property
    def _hosts(self) -> tuple[Kernel | None, ...]:
        """The machine code of the launches that the host computes."""
        machine = resolve("cpu")
        hosts: list[Kernel | None] = []
        for launch, part in zip(self.program.launches, self.parts, strict=True):
            if part is not None:
                hosts.append(None)
                continue
            source = emit(Program.of(launch.kernel), machine)
            module = compile_ir(source.text, Options.for_target(machine))
            hosts.append(Kernel(module, source, machine))
        return tuple(hosts)

    def __repr__(self) -> str:
        count = sum(len(part) for part in self.parts if part is not None)
        return (
            f"AcceleratorKernel({self.name} for {self.target.name}: {count:,} instructions;"
            " run by simulation)"
        )

    def _repr_html_(self) -> str:
        return render("func", self.func)

    def timeline(self, *others: AcceleratorKernel, names: Sequence[str] | None = None) -> Timeline:
        """Return when each engine ran its instructions, above the timelines of other kernels.

        Parameters
        ----------
        *others : AcceleratorKernel
            Kernels that are shown below this one, on the same axis.
        names : sequence of str, optional
            Names of all kernels in the picture.

        Raises
        ------
        UserError
            There are more or fewer names than kernels.
        """
        kernels = (self, *others)
        return timeline_of([(each.name, each.report().runs) for each in kernels], names)

    def memories(self) -> MemoryMap:
        """Return which values lie where in the memories of the accelerator, and how long."""
        return MemoryMap(self.name, self.report().runs)

    def roofline(
        self,
        *others: AcceleratorKernel,
        names: Sequence[str] | None = None,
        series: Sequence[str] | None = None,
    ) -> AcceleratorRoofline:
        """Return what the kernels reach, below the peak and the bandwidth of the accelerator.

        Parameters
        ----------
        *others : AcceleratorKernel
            Kernels that are shown beside this one.
        names : sequence of str, optional
            Names of all kernels in the picture.
        series : sequence of str, optional
            The series of each kernel: one work in two series is joined by a line.

        Raises
        ------
        UserError
            The kernels are for machines with other roofs, or there are more or fewer names.
        """
        points = [
            (
                each.target.accelerator,
                RooflinePoint(each.name, each.report().demand, each.report().cycles),
            )
            for each in (self, *others)
        ]
        return roofline_of(points, names, series)

    def report(self, *arguments: Any) -> AcceleratorReport:  # type: ignore[override]
        """Return the cycles of its parts, simulated; the arguments make no difference."""
        del arguments
        return self._report

    @cached_property
    def _report(self) -> AcceleratorReport:
        runs = tuple(time_program(part) for part in self.parts if part is not None)
        return AcceleratorReport(self.target, runs, self.name)
