"""A program for a GPU that is not here: kernels to look at, which the simulator runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler.analysis import Work, work_of
from dlcompiler.analysis.device_limits import check_memory, check_threads
from dlcompiler.display import render
from dlcompiler.ir import Expr, PrimFunc
from dlcompiler.passes.split_host_device import DeviceProgram, split_host_device
from dlcompiler.pipeline.lower import Argument, lower
from dlcompiler.pipeline.observers import Change, Observer
from dlcompiler.schedule import Schedule
from dlcompiler.simulate import Report, interpret
from dlcompiler.target import Target
from dlcompiler.te import Tensor, symbols_of

MAX_STEPS = 20_000_000
"""Steps of a call: about a minute; [1]."""


class SimulatedKernel:
    """A built program for a GPU: call it with NumPy arrays, outputs last; the simulator runs it.

    It stops at races, divergent barriers, and what is read before it is written. It is right, and
    slow: for sizes of a class.
    """

    def __init__(self, program: DeviceProgram, target: Target, work: Work | None) -> None:
        self.program = program
        """Its kernels, and what the host does."""
        self.target = target
        """What it was built for."""
        self.work = work
        """The work that its expression asks for; None where symbols decide."""

    @property
    def func(self) -> PrimFunc:
        """The loop IR of the whole."""
        return self.program.func

    @property
    def name(self) -> str:
        """Its name."""
        return self.func.name

    @property
    def source(self) -> str:
        """The kernels as text, each with its launch."""
        return str(self.program)

    def __call__(self, *arguments: Any) -> None:
        """Run it in the simulator.

        Parameters
        ----------
        arguments : ndarray and numbers
            One for each parameter; outputs are written.

        Raises
        ------
        CallError
            If the arguments do not fit.
        ProgramError
            At a race, an access out of bounds or an element that nothing has written, with the loop
            and the statement; or when the program takes too many steps.
        """
        self.simulate(*arguments)

    def simulate(
        self, *arguments: Any, order: int | None = None, max_steps: int = MAX_STEPS
    ) -> Report:
        """Run it, and return what was counted; `order` and `max_steps` as of `interpret`."""
        return interpret(self.func, arguments, order=order, max_steps=max_steps)

    def __repr__(self) -> str:
        count = len(self.program.launches)
        kernels = "1 kernel" if count == 1 else f"{count} kernels"
        return f"SimulatedKernel({self.name} for {self.target.name}: {kernels}; run by simulation)"

    def _repr_html_(self) -> str:
        return render("func", self.func)


def build_simulated(
    schedule: Schedule,
    args: Sequence[Argument],
    target: Target,
    name: str,
    *,
    observers: Sequence[Observer] = (),
    extra: Sequence[str] = (),
    instrument: str | None = None,
    conditions: Sequence[Expr] = (),
    unread: Sequence[Tensor] = (),
) -> SimulatedKernel:
    """Build a program for a GPU; see `pipeline.build`.

    Raises
    ------
    TargetError
        If it asks for more than the GPU has, or a stage is computed outside any thread.
    """

    def check(change: Change) -> None:
        if change.before is None:  # loops are as the schedule names them
            check_threads(change.after, target)

    func = lower(
        schedule,
        args,
        name=name,
        target=target,
        observers=(check, *observers),
        extra=extra,
        instrument=instrument,
        conditions=conditions,
        unread=unread,
    )
    check_memory(func, target)
    work = None if symbols_of(schedule.outputs) else work_of(schedule.outputs)
    return SimulatedKernel(split_host_device(func), target, work)
