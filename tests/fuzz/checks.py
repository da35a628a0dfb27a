"""Check that a scheduled program computes its expression, in each way that it can run."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.codegen import emit
from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import PrimFunc, structural_equal
from dlcompiler.measurement.equality import differences, poison_for
from dlcompiler.passes import storage_rewrite
from dlcompiler.pipeline import EXTRA_PASSES, Kernel, lower, passes_of
from dlcompiler.pipeline.build import build_program
from dlcompiler.pipeline.pipelines import pipeline_of
from dlcompiler.runtime.device import Executable
from dlcompiler.runtime.llvm import Options, compile_ir
from dlcompiler.schedule import Schedule, Step, Trace, create_schedule
from dlcompiler.schedule.inference.recurrences import hosts, is_init
from dlcompiler.schedule.inference.thread_loops import uses_threads
from dlcompiler.schedule.state import AtRoot
from dlcompiler.simulate import interpret
from dlcompiler.target import resolve
from dlcompiler.te import Tensor, evaluate, symbols_of, thread_axis, tolerance
from tests.fuzz.expressions import (
    Expression,
    Values,
    numpy_dtype,
    random_expression,
)
from tests.fuzz.targets import (
    code_of_threads,
    is_tried_on_gpu,
    kernel_elsewhere,
    kernel_in_opencl,
    kernel_on_gpu,
)
from tests.fuzz.walks import Walk
from tests.thread_programs import as_one_nest

MAX_STEPS = 300_000
MAX_MOVES = 14
MAX_SYMBOLIC_MOVES = 6
"""Lowering takes seconds where many loops have symbolic extents."""
THOROUGH = 0.25
"""Share of the cases whose trace is checked, and that are compiled as users' kernels are."""
SHARING = partial(storage_rewrite, min_bytes=0)
EAGER = (
    *(
        replace(item, run=SHARING) if item.run is storage_rewrite else item
        for item in passes_of(resolve("cpu"))
    ),
    *EXTRA_PASSES.values(),
)
"""The passes of users' kernels and those on request; small buffers share memory, too."""
LIMITS = ("its body would be copied too many times",)
"""Refusals of `lower` that legal schedules may get: they depend on sizes and later steps."""
THREAD_LIMITS = (
    "only some of the virtual threads would reach a barrier",
    "the number of virtual threads is not a constant",
    "has one of its own, under a condition",
)
"""Refusals of the pass *virtual threads*, and of *double buffer* for what that leaves."""
UNKNOWN = "could not be shown to be independent"
"""Where extents are symbols, the race analysis may not decide."""


class Wrong(Exception):
    """Raised for a program with a wrong result, or a tool that violates its specification."""


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


def case_of(
    seed: object,
    template: str | None = None,
    choices: Sequence[int] = (),
    walk: type[Walk] = Walk,
) -> Case:
    """Return the case of a seed: a random schedule of a random expression."""
    rng = random.Random(f"case {seed}")
    expression = random_expression(random.Random(f"expression {seed}"), template, choices)
    schedule = create_schedule([tensor.op for tensor in expression.outputs])
    most = MAX_SYMBOLIC_MOVES if symbols_of(expression.outputs) else MAX_MOVES
    walk(rng, schedule).run(rng.randint(0, most))
    return Case(expression, schedule.trace.steps, rng.randrange(2**31))


# -- the check ------------------------------------------------------------------------------------


def check(case: Case) -> str:
    """Check a case; return how far it came, or what stopped it: ``limit`` or ``unknown``.

    Without threads it is ``built``. With threads it is ``simulated``; some seeds are ``compiled``
    for this CPU, and some of these run ``in OpenCL``.

    Raises
    ------
    Wrong
        If the program is wrong, or a replay differs.
    """
    schedule = case.schedule()
    inputs = list(case.expression.inputs)
    results = stored(case, schedule)
    if uses_threads(schedule.state):
        return check_on_threads(case, schedule, inputs + results, results)
    programs: list[PrimFunc] = []
    is_thorough = not case.seed or random.Random(f"thorough {case.seed}").random() < THOROUGH
    try:
        again = replayed(schedule) if is_thorough else None
        func = lower(
            schedule,
            inputs + results,
            observers=[lambda change: programs.append(change.after)],
            passes=None if is_thorough else EAGER,
        )
        if again is not None:
            is_whole = set(results) <= set(case.expression.outputs)
            check_same(case, schedule, again, (inputs + results, func) if is_whole else None)
    except ScheduleError as error:
        if any(limit in str(error) for limit in LIMITS):
            return "limit"
        if UNKNOWN in str(error) and symbols_of(case.expression.outputs):
            return "unknown"
        raise
    kernels: dict[str, Executable] = {
        "built": build_program(func) if is_thorough else quickly_built(func)
    }
    if elsewhere := kernel_elsewhere(case.seed, schedule, inputs + results):
        kernels[f"built for {elsewhere[0]}"] = elsewhere[1]
    for values in case.expression.sizes(case.seed):
        oracle = Oracle(case, results, values)
        check_interpreted(oracle, {"nests": programs[0], "lowered": func})
        for name, kernel in kernels.items():
            check_kernel(oracle, kernel, func, name)
    return "built"


def check_on_threads(
    case: Case, schedule: Schedule, args: Sequence[Tensor], results: Sequence[Tensor]
) -> str:
    """Check a program of threads in the simulator: as scheduled, and as a GPU gets it."""
    try:
        if random.Random(f"thorough {case.seed}").random() < THOROUGH:
            check_trace(case, schedule)
        programs = {
            "as scheduled": lower(schedule, args, simple_mode=True),
            "for a GPU": lower(schedule, args, target="gpu"),
        }
    except ScheduleError as error:
        if any(limit in str(error) for limit in (*LIMITS, *THREAD_LIMITS)):
            return "limit"
        if UNKNOWN in str(error) and symbols_of(case.expression.outputs):
            return "unknown"
        raise
    kernels: dict[str, Executable] = {}
    reached = "simulated"
    if is_tried_on_gpu(case.seed):
        program = pipeline_of(resolve("gpu")).divide(programs["for a GPU"])
        if func := code_of_threads(program):
            if not any(launch.loops for launch in program.launches):
                programs["merged threads"] = as_one_nest(program)
            kernels["threads as loops of a CPU"] = quickly_built(func)
            reached = "compiled"
        if device := kernel_on_gpu(case.seed, schedule, args):
            kernels[f"simulated for {device.target.name}"] = device
            if in_opencl := kernel_in_opencl(case.seed, device.program):
                kernels["in OpenCL C"], reached = in_opencl, "in OpenCL"
    for values in case.expression.sizes(case.seed):
        oracle = Oracle(case, results, values)
        for order in (None, case.seed):
            check_interpreted(oracle, programs, order)
        for name, kernel in kernels.items():
            check_kernel(oracle, kernel, programs["for a GPU"], name)
    return reached


def check_interpreted(
    oracle: Oracle, programs: Mapping[str, PrimFunc], order: int | None = None
) -> None:
    """Check that the interpreter computes the expected values and reports no error."""
    for name, program in programs.items():
        arrays = oracle.poisoned()
        try:
            given = [*oracle.arrays.values(), *arrays]
            interpret(program, given, max_steps=MAX_STEPS, order=order)
        except DLCompilerError as error:
            if getattr(error, "kind", "") != "step_budget":
                raise Wrong(f"{name} interpreted: {error}\n{oracle.sizes}\n{program}") from error
            continue
        oracle.compare(f"{name} interpreted", arrays, program)


def check_kernel(oracle: Oracle, kernel: Executable, func: PrimFunc, name: str = "built") -> None:
    """Check that an executable computes the expected values, twice the same bits."""
    first, again = oracle.poisoned(), oracle.poisoned()
    kernel(*oracle.arrays.values(), *first)
    oracle.compare(name, first, func)
    kernel(*oracle.arrays.values(), *again)
    if any(a.tobytes() != b.tobytes() for a, b in zip(first, again, strict=True)):
        raise Wrong(f"{name}: two calls give different bits\n{func}")


def quickly_built(func: PrimFunc) -> Kernel:
    """Build a kernel with few of LLVM's passes, which take most of a small case's time."""
    machine = resolve("cpu")
    source = emit(func, machine)
    module = compile_ir(source.text, Options.for_target(machine, opt_level=1))
    return Kernel(module, source, machine)


def stored(case: Case, schedule: Schedule) -> list[Tensor]:
    """Return the outputs, and sometimes other tensors that are stored as a whole."""
    rng = random.Random(case.seed)
    parts = {
        *hosts(schedule.state),
        *(s.name for s in schedule.state.stages if is_init(schedule.state, s)),
    }
    inner = [
        tensor
        for stage in schedule.stages
        if not stage.state.is_placeholder
        and isinstance(stage.state.attachment, AtRoot)
        and stage.name not in parts
        for tensor in stage.state.tensors
        if tensor not in case.expression.outputs and rng.random() < 0.15
    ]
    outputs = [t for t in case.expression.outputs if t not in case.expression.inputs]
    results = list(dict.fromkeys(outputs)) + inner
    rng.shuffle(results)
    return results


def check_trace(case: Case, schedule: Schedule) -> None:
    """A trace survives JSON, and its Python makes the same program."""
    check_same(case, schedule, replayed(schedule))


def replayed(schedule: Schedule) -> Schedule:
    """Return the schedule that the Python of a trace makes; the trace must survive JSON."""
    read = Trace.from_json(schedule.trace.to_json())
    if read.steps != schedule.trace.steps:
        raise Wrong("the trace does not survive JSON")
    code = schedule.trace.to_python()
    first = schedule.trace.nodes[0].state
    variables = {stage.name: stage.tensor for stage in first.stages}

    class Language:
        create_schedule = staticmethod(create_schedule)
        thread_axis = staticmethod(thread_axis)
        tensor_intrin = staticmethod(te.tensor_intrin)
        AXIS_SEPARATOR = te.AXIS_SEPARATOR

    scope: dict[str, Any] = {"te": Language, **variables}
    exec(code, scope)
    made: Schedule = scope["s"]
    return made


def check_same(
    case: Case,
    schedule: Schedule,
    again: Schedule,
    lowered: tuple[list[Tensor], PrimFunc] | None = None,
) -> None:
    """Check that a schedule and its replay make the same program.

    `lowered` is the program of `schedule` with its arguments, if these are tensors of the
    expression only.
    """
    args, program = lowered or (case.expression.args, lower(schedule, case.expression.args))
    if not structural_equal(lower(again, args).body, program.body):
        code = schedule.trace.to_python()
        raise Wrong(f"the Python of the trace makes another program:\n{code}")


class Oracle:
    """The inputs of a case for one size, and the expected results."""

    def __init__(self, case: Case, results: Sequence[Tensor], values: Values | None = None) -> None:
        self.values = values or {}
        self.is_exact = case.expression.is_exact
        self.arrays = case.expression.arrays(case.seed, self.values)
        self.results = results
        given = {**self.arrays, **self.values}
        self.expected = evaluate(
            results, given, accumulate="declared" if self.is_exact else "float64"
        )
        self.bounds = [0.0 if self.is_exact else tolerance(t, given) for t in results]

    @property
    def sizes(self) -> str:
        return ", ".join(f"{symbol.name} = {value}" for symbol, value in self.values.items())

    def poisoned(self) -> list[np.ndarray]:
        """Return arrays for the results in which every element is wrong."""
        pairs = zip(self.results, self.expected, strict=True)
        return [poison_for(expected, numpy_dtype(t.dtype)) for t, expected in pairs]

    def compare(self, where: str, arrays: Sequence[np.ndarray], program: object) -> None:
        checks = zip(self.results, arrays, self.expected, self.bounds, strict=True)
        for tensor, got, expected, bound in checks:
            found = differences(got, expected, bound)
            at = found.first
            if at is not None:
                raise Wrong(
                    f"{where}: {tensor.name}{list(at)} is {got[at]}, expected {expected[at]} "
                    f"({int(found.wrong.sum())} of {got.size} wrong)\n{self.sizes}\n{program}"
                )
