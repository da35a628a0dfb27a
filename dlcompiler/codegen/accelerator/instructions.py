"""Choose the instructions of a program: the host's loops run here, and each nest makes some.

The host of an accelerator runs the loops that no instruction runs by itself. All extents are
numbers, so that they can be run when the program is built: the result is the list of instructions.
"""

from __future__ import annotations

import itertools

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.codegen.accelerator.copies import CopyPattern
from dlcompiler.codegen.accelerator.forms import Number, Slots, host_number
from dlcompiler.codegen.accelerator.micro_ops import NoRoomError
from dlcompiler.codegen.accelerator.patterns import Pattern, Patterns
from dlcompiler.codegen.accelerator.writer import Writer
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Allocate, Const, For, If, PrimFunc, Seq, Stmt, walk_statements
from dlcompiler.simulate.accelerators import InstructionProgram
from dlcompiler.simulate.accelerators.listing import origin_text
from dlcompiler.target.accelerators import Accelerator


def instructions_of(func: PrimFunc, accelerator: Accelerator) -> InstructionProgram:
    """Return the program of an accelerator that computes a function.

    Parameters
    ----------
    func
        A lowered function. Its tensors are copied into the memories of the accelerator and out.
    accelerator
        What runs it.

    Raises
    ------
    ScheduleError
        A nest is no instruction of the accelerator; the message says why.
    TargetError
        The buffers do not fit into its memories.
    """
    try:
        return _program(func, accelerator, preloads=_can_preload(accelerator))
    except NoRoomError:
        return _program(func, accelerator, preloads=False)


def _program(func: PrimFunc, accelerator: Accelerator, *, preloads: bool) -> InstructionProgram:
    host = _Host(func, accelerator, preloads=preloads)
    host.run(func.body)
    return host.writer.finished()


def _can_preload(accelerator: Accelerator) -> bool:
    """Tell whether the engines that run micro-ops load them, so that no token is needed."""
    if accelerator.lowering == "classic":
        return False
    running = {i.engine for i in accelerator.instructions if i.micro_ops}
    memories = {i.micro_ops for i in accelerator.instructions if i.micro_ops}
    loading = {i.engine for i in accelerator.instructions if i.memory in memories}
    return len(running) == 1 and running == loading


class _Host:
    """Runs the loops of a function, and writes instructions for its nests."""

    def __init__(self, func: PrimFunc, accelerator: Accelerator, *, preloads: bool) -> None:
        self.func, self.accelerator = func, accelerator
        loops = [stmt for stmt in walk_statements(func.body) if isinstance(stmt, For)]
        variables = list(dict.fromkeys(loop.var for loop in loops))
        self.slots: Slots = {var: n for n, var in enumerate(variables)}
        self.numbers = [0] * len(variables)
        """The value of each loop variable."""
        analyzer = Analyzer({loop.var: _range(loop) for loop in loops})
        self.patterns = Patterns(func, accelerator, analyzer, self.slots)
        threads = {loop.var: range(_extent(loop)) for loop in loops if loop.kind == "vthread"}
        numbers = itertools.product(*threads.values())
        self.writer = Writer(
            func,
            accelerator,
            [dict(zip(threads, each, strict=True)) for each in numbers],
            preloads=preloads,
        )
        self._conditions: dict[int, tuple[Stmt, Number]] = {}

    def run(self, stmt: Stmt) -> None:
        """Run a statement."""
        patterns = self.patterns.of(stmt)
        if patterns is not None:
            for pattern in patterns:
                self._write(pattern)
            return
        match stmt:
            case Seq(items):
                for item in items:
                    self.run(item)
            case Allocate(_, body):
                self.run(body)
            case For(_, Const()):
                self._run_loop(stmt)
            case If(_, then, otherwise):
                chosen = then if self._holds(stmt) else otherwise
                if chosen is not None:
                    self.run(chosen)
            case _:
                raise ScheduleError(
                    f"build {self.func.name} for {self.accelerator.name}",
                    "it has no instruction for this", got=origin_text(stmt),
                )  # fmt: skip

    def _run_loop(self, loop: For) -> None:
        for value in range(_extent(loop)):
            self.numbers[self.slots[loop.var]] = value
            if loop.kind == "vthread":
                self.writer.thread[loop.var] = value
            self.run(loop.body)
        self.writer.thread.pop(loop.var, None)

    def _holds(self, stmt: If) -> bool:
        if id(stmt) not in self._conditions:
            self._conditions[id(stmt)] = stmt, host_number(stmt.condition, self.slots)
        return bool(self._conditions[id(stmt)][1](self.numbers))

    def _write(self, pattern: Pattern) -> None:
        if isinstance(pattern, CopyPattern):
            for block in pattern.blocks(self.numbers):
                self.writer.copy(pattern, block)
        else:
            for loops, bases in pattern.runs(self.numbers):
                self.writer.compute(pattern, loops, bases)


def _range(loop: For) -> Interval:
    return Interval(0, _extent(loop) - 1)


def _extent(loop: For) -> int:
    if not isinstance(loop.extent, Const):
        raise ScheduleError(
            f"run the loop {loop.var.name}", "its extent is not a number", got=str(loop.extent),
            because="the host of an accelerator makes all instructions beforehand",
        )  # fmt: skip
    return int(loop.extent.value)
