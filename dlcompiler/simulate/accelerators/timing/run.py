"""The times of a program's instructions, and what each of them waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import TargetError
from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.simulate.accelerators.timing.general import GeneralProfile
from dlcompiler.simulate.accelerators.timing.machine import FETCH, FREE, Machine, Profile
from dlcompiler.simulate.accelerators.timing.profile_2019 import Profile2019
from dlcompiler.simulate.accelerators.timing.profile_2021 import Profile2021
from dlcompiler.target.accelerators import Accelerator
from dlcompiler.target.accelerators.vta import ENGINES, QUEUES, VtaConfig

PROFILES: MappingProxyType[str, Callable[[Machine], Profile]] = MappingProxyType(
    {"": GeneralProfile, "A": Profile2019, "B": Profile2021}
)
"""Name of a profile -> its rules; '' are those for accelerators without one."""


@dataclass(frozen=True)
class Wait:
    """What an instruction waited for while its engine was idle, and the port while it ran."""

    cycles: int
    """Cycles in which the engine was idle before it; [clock]."""
    reason: str
    """``""`` for nothing, ``"fetch"``, or the name of the token queue that was empty last."""
    step: int | None
    """The instruction that pushed the token."""
    port_cycles: int
    """Cycles in which it waited for the memory port, besides the latency of memory; [clock]."""

    def __str__(self) -> str:
        parts = []
        if self.cycles:
            source = f" of instruction {self.step}" if self.step is not None else ""
            what = (
                "it to be fetched" if self.reason == "fetch" else f"a token {self.reason}{source}"
            )
            parts.append(f"waited {self.cycles} cycles for {what}")
        if self.port_cycles:
            parts.append(f"{self.port_cycles} cycles for the memory port")
        return ", ".join(parts) or "did not wait"


@dataclass(frozen=True, eq=False)
class TimedRun:
    """When each instruction of a program ran; all numbers are simulated."""

    program: InstructionProgram
    cycles: int
    """Cycles until the program finishes: its FINISH starts, or its last instruction ends;
    [clock]."""
    start: npt.NDArray[np.int64]
    """The first cycle in which the engine of each instruction is busy with it; (count,) [clock]."""
    end: npt.NDArray[np.int64]
    """The first cycle in which it is idle again; (count,) [clock]."""
    dispatched: npt.NDArray[np.int64]
    """The cycle in which each instruction came into its engine's queue; (count,) [clock]."""
    engine: npt.NDArray[np.int64]
    """Number of each instruction's engine; (count,)."""
    idle_since: npt.NDArray[np.int64]
    """The cycle from which each instruction's engine was idle; (count,) [clock]."""
    reason: npt.NDArray[np.int64]
    """Why it did not start before: -1 nothing, -2 fetch, else the number of a queue; (count,)."""
    reason_step: npt.NDArray[np.int64]
    """The instruction that pushed the token of `reason`, or -1; (count,)."""
    port_wait: npt.NDArray[np.int64]
    """Cycles in which each instruction waited for the port; (count,) [clock]."""
    extrapolated: tuple[str, ...]
    """In what the machine differs from the one on which the profile was measured."""

    def wait(self, step: int) -> Wait:
        """Return what an instruction waited for."""
        code = int(self.reason[step])
        assert self.program.accelerator.queues is not None
        reason = {FREE: "", FETCH: "fetch"}.get(code) if code < 0 else None
        name = self.program.accelerator.queues[code].name if reason is None else reason
        pusher = int(self.reason_step[step])
        cycles = int(self.start[step] - 1 - self.idle_since[step])
        return Wait(cycles, name, pusher if pusher >= 0 else None, int(self.port_wait[step]))

    def of(self, engine: str) -> npt.NDArray[np.int64]:
        """Return the numbers of an engine's instructions, in order."""
        names = [each.name for each in self.program.accelerator.engines]
        return np.flatnonzero(self.engine == names.index(engine))

    @property
    def busy(self) -> dict[str, int]:
        """Cycles in which each engine was busy; [clock]."""
        spans = self.end - self.start
        names = (each.name for each in self.program.accelerator.engines)
        return {name: int(spans[self.engine == n].sum()) for n, name in enumerate(names)}

    @property
    def seconds(self) -> float:
        """Time at the accelerator's clock [s]."""
        return self.cycles / self.program.accelerator.clock_hz

    def __repr__(self) -> str:
        count = max(self.cycles, 1)
        busy = ", ".join(f"{name} {cycles / count:.0%}" for name, cycles in self.busy.items())
        profile = self.program.accelerator.profile
        how = f"simulated, profile {profile}" if profile else "simulated"
        if self.extrapolated:
            how += f"; extrapolated: {', '.join(self.extrapolated)}"
        return f"TimedRun({self.cycles} cycles ({how}); busy: {busy})"


def time_program(program: InstructionProgram) -> TimedRun:
    """Simulate when each instruction of a program runs.

    Parameters
    ----------
    program : InstructionProgram
        The program. Its accelerator's `profile` chooses the rules.

    Raises
    ------
    InstructionError
        A deadlock, tokens that are left or too many, or an instruction that hardware does not end.
    TargetError
        The accelerator has an unknown profile.
    """
    accelerator = program.accelerator
    if accelerator.profile not in PROFILES:
        raise TargetError(
            "time the program", "no such profile", got=repr(accelerator.profile),
            expected=", ".join(map(repr, PROFILES)),
        )  # fmt: skip
    _check_finishes(program)
    machine = Machine(program)
    machine.profile = PROFILES[accelerator.profile](machine)
    machine.run()
    return TimedRun(
        program, _cycles(machine), _array(machine.start), _array(machine.end),
        _array(machine.dispatched), _array([work.engine for work in machine.works]),
        _array(machine.idle_since), _array(machine.reason), _array(machine.reason_step),
        _array(machine.port_wait), differences(accelerator),
    )  # fmt: skip


def differences(accelerator: Accelerator) -> tuple[str, ...]:
    """Return in what an accelerator differs from the one on which its profile was measured.

    Examples
    --------
    >>> from dlcompiler.target.accelerators.vta import VtaConfig, vta
    >>> differences(vta("wide", VtaConfig(LOG_BUS_WIDTH=7)))
    ('a bus of 16 bytes (measured: 8)',)
    """
    if not accelerator.profile:
        return ()
    measured = VtaConfig(profile=accelerator.profile)
    found = []
    port, other = accelerator.port, measured.port
    if port.bytes_per_cycle != other.bytes_per_cycle:
        found.append(f"a bus of {port.bytes_per_cycle} bytes (measured: {other.bytes_per_cycle})")
    if port.latency != other.latency:
        found.append(f"a latency of {port.latency} cycles (measured: {other.latency})")
    theirs = {memory.name: memory for memory in measured.memories()}
    for memory in accelerator.memories:
        if memory != theirs.get(memory.name):
            found.append(f"the memory {memory.name}")
    if tuple(accelerator.engines) != ENGINES:
        found.append("the engines")
    if accelerator.queues != QUEUES:
        found.append("the token queues")
    return tuple(found)


def _check_finishes(program: InstructionProgram) -> None:
    """Refuse a program without FINISH on an accelerator that has one.

    Raises
    ------
    InstructionError
        The host would wait for it forever.
    """
    if any(step.instruction.kind == "finish" for step in program.steps):
        return
    if any(each.kind == "finish" for each in program.accelerator.instructions):
        raise InstructionError(
            "time the program",
            "it never finishes",
            kind="deadlock",
            expected="a FINISH instruction, for which the host waits",
        )


def _cycles(machine: Machine) -> int:
    """Return when a program finishes."""
    for step, work in enumerate(machine.works):
        if work.instruction.kind == "finish":
            return machine.start[step]
    return max(machine.end, default=0)


def _array(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)
