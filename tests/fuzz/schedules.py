"""Random legal schedules, and the check that a scheduled program computes its expression."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import structural_equal, verify_func
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import Move, Schedule, Step, Trace, create_schedule
from dlcompiler.schedule.state import AtRoot
from dlcompiler.simulate import interpret
from dlcompiler.te import Tensor, evaluate, tolerance
from tests.fuzz.expressions import Expression

MAX_STEPS = 300_000
WEIGHTS = {
    "split": 6, "tile": 2, "fuse": 3, "reorder": 3, "vectorize": 2, "unroll": 2, "parallel": 2,
    "compute_at": 5, "compute_inline": 1.5, "compute_root": 0.3, "cache_write": 1,
}  # fmt: skip


class Wrong(Exception):
    """A program that does not compute its expression, or a tool that breaks its promise."""


@dataclass(frozen=True)
class Case:
    """An expression and the steps of its schedule."""

    expression: Expression
    steps: tuple[Step, ...]
    seed: int = 0

    def schedule(self) -> Schedule:
        schedule = create_schedule([tensor.op for tensor in self.expression.outputs])
        Trace(self.steps).replay(schedule)
        return schedule

    def __str__(self) -> str:
        return f"{self.expression}\n{self.schedule().trace.to_python()}"


# -- random schedules -----------------------------------------------------------------------------


@dataclass
class Walk:
    """A random walk over legal moves."""

    rng: random.Random
    schedule: Schedule
    refused: list[str] = field(default_factory=list)
    """Texts of the refusals that only a chosen parameter brought about."""

    def run(self, steps: int) -> None:
        for _ in range(steps):
            choice = self.rng.random()
            if choice < 0.04 and len(self.schedule.trace):
                self.schedule.undo()
            elif choice < 0.12:
                self.permute()
            else:
                self.move()
        self.settle()

    def move(self) -> None:
        """Apply a random legal move, with random parameters."""
        stages = [s for s in self.schedule.stages if not s.state.is_placeholder]
        moves = self.schedule.legal_moves(self.rng.choice(stages))
        if not moves:
            return
        names = sorted({move.primitive for move in moves})
        name = self.rng.choices(names, [WEIGHTS[name] for name in names])[0]
        move = self.rng.choice([move for move in moves if move.primitive == name])
        self.apply(move.primitive, move.stage, {**move.args, **self.parameters(move)})

    def parameters(self, move: Move) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        for domain in move.domains:
            suggested = self.rng.random() < 0.5 and domain.suggested
            chosen[domain.parameter] = (
                self.rng.choice(domain.suggested)
                if suggested
                else self.rng.choice((1, 2, 3, 4, 5, 8, 40))
            )
        if move.primitive == "split" and self.rng.random() < 0.3:
            chosen = {"nparts": chosen["factor"]}
        return chosen

    def permute(self) -> None:
        """Reorder some of the loops of a stage."""
        stages = [s for s in self.schedule.stages if len(s.leaf_iter_vars) > 1]
        if not stages:
            return
        stage = self.rng.choice(stages)
        axes = list(stage.leaf_iter_vars)
        self.rng.shuffle(axes)
        self.apply("reorder", stage.name, {"axes": tuple(axes[: self.rng.randint(2, len(axes))])})

    def apply(self, primitive: str, stage: str, args: dict[str, Any]) -> None:
        try:
            self.schedule.apply(primitive, stage, args)
        except ScheduleError as error:
            self.refused.append(str(error))

    def settle(self) -> None:
        """Attach again, or move to the root, the stages whose loop is gone."""
        while self.schedule.obligations:
            owed = self.rng.choice(self.schedule.obligations)
            stage = next(s for s in self.schedule.stages if s.name == owed.stage)
            moves = [
                m for m in self.schedule.legal_moves(stage) if m.primitive.startswith("compute")
            ]
            for move in self.rng.sample(moves, len(moves)):
                self.apply(move.primitive, move.stage, dict(move.args))
                if owed not in self.schedule.obligations:
                    break
            else:  # what is attached inside it must move first
                self.schedule.undo()


def random_case(rng: random.Random, expression: Expression, max_steps: int = 14) -> Case:
    """Return a random schedule of an expression."""
    schedule = create_schedule([tensor.op for tensor in expression.outputs])
    walk = Walk(rng, schedule)
    walk.run(rng.randint(0, max_steps))
    return Case(expression, schedule.trace.steps, rng.randrange(2**31))


# -- the check ------------------------------------------------------------------------------------


def check(case: Case) -> str:
    """Check a case; return what it did: ``built``, or the limit that stopped it.

    Raises
    ------
    Wrong
        If the program is wrong, or a replay differs.
    """
    schedule = case.schedule()
    inputs = list(case.expression.inputs)
    results = stored(case, schedule)
    programs: list[Any] = []
    try:
        check_trace(case, schedule)
        func = lower(schedule, inputs + results, observers=[lambda c: programs.append(c.after)])
    except ScheduleError as error:
        if "the copies of its body are too many" in str(error):
            return "too many copies"
        raise
    verify_func(programs[0])
    verify_func(func)
    oracle = Oracle(case, results)
    for name, program in {"nests": programs[0], "lowered": func}.items():
        arrays = poisoned(results)
        try:
            interpret(program, [*oracle.arrays.values(), *arrays], max_steps=MAX_STEPS)
        except DLCompilerError as error:
            if getattr(error, "kind", "") != "step_budget":
                raise Wrong(f"{name} interpreted: {error}\n{program}") from error
            continue
        oracle.compare(f"{name} interpreted", arrays, program)
    kernel = build(schedule, inputs + results)
    arrays = poisoned(results)
    kernel(*oracle.arrays.values(), *arrays)
    oracle.compare("built", arrays, func)
    return "built"


def stored(case: Case, schedule: Schedule) -> list[Tensor]:
    """Return the outputs, and sometimes other tensors that are stored as a whole."""
    rng = random.Random(case.seed)
    inner = [
        stage.tensor
        for stage in schedule.stages
        if not stage.state.is_placeholder
        and not stage.state.is_output
        and isinstance(stage.state.attachment, AtRoot)
        and rng.random() < 0.15
    ]
    outputs = [t for t in case.expression.outputs if t not in case.expression.inputs]
    results = list(dict.fromkeys(outputs)) + inner
    rng.shuffle(results)
    return results


def check_trace(case: Case, schedule: Schedule) -> None:
    """A trace survives JSON, and its Python makes the same program."""
    read = Trace.from_json(schedule.trace.to_json())
    if read.steps != schedule.trace.steps:
        raise Wrong("the trace does not survive JSON")
    code = schedule.trace.to_python()
    variables = {stage.name: stage.tensor for stage in schedule.stages}

    class Language:
        create_schedule = staticmethod(create_schedule)

    scope = {"te": Language, **variables}
    exec(code, scope)
    args = case.expression.args
    again, first = lower(scope["s"], args), lower(schedule, args)
    if not structural_equal(again.body, first.body):
        raise Wrong(f"the Python of the trace makes another program:\n{code}")


def poisoned(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """Return arrays full of a value that no result has."""
    return [np.full(t.shape, 77, t.dtype) for t in tensors]


class Oracle:
    """The inputs of a case, and what must come out."""

    def __init__(self, case: Case, results: Sequence[Tensor]) -> None:
        self.is_exact = case.expression.is_exact
        self.arrays = case.expression.arrays(case.seed)
        self.results = results
        given = self.arrays
        self.expected = evaluate(
            results, given, accumulate="declared" if self.is_exact else "float64"
        )
        self.bounds = [0.0 if self.is_exact else tolerance(t, given) for t in results]

    def compare(self, where: str, arrays: Sequence[np.ndarray], program: object) -> None:
        checks = zip(self.results, arrays, self.expected, self.bounds, strict=True)
        for tensor, got, expected, bound in checks:
            same = (got == expected) | ((got != got) & (expected != expected))
            wrong = ~same if self.is_exact else ~(same | (np.abs(got - expected) <= bound))
            if wrong.any():
                at = tuple(int(n) for n in np.argwhere(wrong)[0])
                raise Wrong(
                    f"{where}: {tensor.name}{list(at)} is {got[at]}, expected {expected[at]} "
                    f"({int(wrong.sum())} of {wrong.size} wrong)\n{program}"
                )


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Return a case with fewer steps that still fails."""
    steps = list(case.steps)
    changed = True
    while changed:
        changed = False
        for n in reversed(range(len(steps))):
            fewer = Case(case.expression, tuple(steps[:n] + steps[n + 1 :]), case.seed)
            try:
                fewer.schedule()
            except DLCompilerError:
                continue
            if fails(fewer):
                steps = list(fewer.steps)
                changed = True
    return Case(case.expression, tuple(steps), case.seed)
