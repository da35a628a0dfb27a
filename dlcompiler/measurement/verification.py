"""Verify a schedule: run its kernel in a worker, and compare with oracles."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.codegen import emit
from dlcompiler.display import render
from dlcompiler.errors import CallError, MeasurementError, ProgramError, VerificationError
from dlcompiler.ir import Expr, PrimFunc, Var, condition_value
from dlcompiler.ir import specialize as specialize_func
from dlcompiler.ir.program import Program
from dlcompiler.measurement.equality import (
    differences,
    error_text,
    has_bounds,
    poison_for,
    unwritten,
)
from dlcompiler.measurement.inputs import KINDS
from dlcompiler.measurement.loading import runs_in_worker
from dlcompiler.measurement.oracle import Oracle, oracle_of, oracles_of
from dlcompiler.measurement.remote import RemoteKernel
from dlcompiler.measurement.shrunk import shrunk_schedules
from dlcompiler.passes.specialize_conditions import facts_of
from dlcompiler.pipeline import Built, NullKernel, lower, lower_program
from dlcompiler.pipeline.devices import check_available, load
from dlcompiler.pipeline.executables import source_for_host
from dlcompiler.pipeline.lower import Argument, check_outputs
from dlcompiler.runtime.externs import calls_outside
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.workers import Worker
from dlcompiler.schedule import Schedule
from dlcompiler.simulate import interpret
from dlcompiler.simulate.steps import count_steps
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor, specialize, symbols_of

Array = npt.NDArray[Any]
MAX_INTERPRETED_STEPS = 200_000
"""Most steps of a program that the interpreter checks; it needs about a second for them."""
MAX_SIMULATED_STEPS = 20_000_000
"""The same of threads in statements written by hand: about a minute."""

ProgramsOf: TypeAlias = Callable[[Schedule, Sequence[Argument]], tuple[PrimFunc, ...]]
Check: TypeAlias = Callable[[Oracle], float]


@dataclass(frozen=True)
class Verified:
    """The result of a verification: the kernel agreed with the oracles."""

    oracles: tuple[str, ...]
    """What it was compared with: ``numpy``, ``interpreter``, or the latter on a smaller shape."""
    shape: tuple[int, ...]
    """Shape of the (first) output."""
    seed: int
    """Seed of the inputs."""
    worst: float
    """Largest difference from the oracle, as a fraction of what rounding allows."""
    inputs: tuple[str, ...] = ("random",)
    """Kinds of inputs that were tried, as of `measurement.inputs`."""
    indices: tuple[str, ...] = ()
    """What was drawn for inputs that are used as indices: ``I from 0 to 9``."""

    def __repr__(self) -> str:
        oracles = "+".join(self.oracles)
        drawn = "".join(f", indices {text}" for text in self.indices)
        return f"Verified(oracle={oracles!r}, shape={self.shape}, {error_text(self.worst)}{drawn})"

    def _repr_html_(self) -> str:
        return render("verified", self)


def verify(
    schedule: Schedule,
    args: Sequence[Argument],
    *,
    target: str | Target = "cpu",
    seed: int = 0,
    timeout_s: float = 60.0,
    worker: Worker | None = None,
    conditions: Sequence[Expr] = (),
) -> Verified:
    """Check that a schedule computes its expression.

    The kernel runs in a worker process, its outputs poisoned, on several kinds of inputs: random
    ones, the extremes of each dtype, equal numbers, alternating signs, large and tiny floats
    (`measurement.inputs`); of an expensive expression, only the first two. Inputs that are used as
    indices get valid values; the result says which.

    The oracle is `te.evaluate` (NumPy, accumulating in float64); programs of few steps also run in
    the interpreter, which finds reads out of bounds, uninitialised elements and races. For longer
    ones the steps of the schedule are replayed on a smaller shape, where the expression has one. A
    program for a GPU runs in the interpreter alone. One that calls code from outside, or that is C,
    runs in this process.

    Parameters
    ----------
    schedule : Schedule
        The schedule, at the state to check.
    args : sequence of Tensor
        Parameters of the kernel: inputs first, outputs last.
    target : str or Target
        What to build for, as of `build`: for a GPU, the simulator runs it; for ``c``, the C
        compiler of this machine makes the code; any other must be what this machine can run.
    seed : int
        Seed of the inputs.
    timeout_s : float
        Limit of the kernel's run [s].
    worker : Worker, optional
        Where to run; by default, in the worker of this process.
    conditions : sequence of Expr
        As in `build`. Sizes that satisfy all of them are tried, and sizes that do not.

    Returns
    -------
    Verified

    Raises
    ------
    VerificationError
        With oracle, shape, seed, first wrong index, got, expected and the bound.
    MeasurementError
        If the kernel crashes or hangs, if no inputs were found that tell right from wrong, or if
        the device of the target runs nothing.
    TargetError
        If `build` refuses the schedule for this target, or the target does not run here.
    ProgramError
        If the program or the expression is invalid, such as one that reads out of bounds.
    """
    machine = resolve(target)
    check_outputs(schedule, args, "main")
    program = lower_program(schedule, args, machine, conditions=conditions)
    func = program.func
    check = _check_of(program, args, machine, worker, timeout_s)
    # Usually only the program before the passes is interpreted. Conditions, rolling buffers and the
    # order of threads are implemented by passes, so their result is interpreted as well.
    is_decided = bool(conditions) or any(stage.rolled_by for stage in schedule.state.stages)
    programs_of: ProgramsOf = _nests
    if is_decided or machine.thread_axes:
        programs_of = partial(_nests_and_result, target=machine, conditions=conditions)
    programs = programs_of(schedule, args)
    found = _Findings(seed)
    sizes = {}
    for number, values in enumerate(sizes_to_try(schedule, func, conditions)):
        steps = count_steps(specialize_func(func, values))
        sizes[steps] = values
        found.begin("numpy", steps)
        for oracle in _oracles(schedule, seed, values, number):
            found.add(oracle, check(oracle))
            if found.may_interpret(programs, values):
                found.add(oracle, _interpret(programs, args, oracle), "interpreter")
        if steps > MAX_INTERPRETED_STEPS and not values:
            _interpret_smaller(schedule, args, programs_of, found)
    is_by_hand = any(stage.is_extern for stage in schedule.state.stages)
    if machine.thread_axes and is_by_hand and min(sizes, default=0) > MAX_INTERPRETED_STEPS:
        _interpret_slowly(schedule, args, programs, min(sizes.items(), key=itemgetter(0)), found)
    return found.verdict(func)


def _check_of(
    program: Program,
    args: Sequence[Argument],
    machine: Target,
    worker: Worker | None,
    timeout_s: float,
) -> Check:
    """Return what runs a program on the inputs of an oracle, and compares."""
    if machine.runs_on == "simulator":
        source, machine = source_for_host(program), resolve("cpu")
    else:
        source = emit(program, machine)
    check_available(machine, f"verify {program.func.name}")
    if machine.runs_on == "host":
        Options.for_target(machine).check()
    if runs_in_worker(machine) and not calls_outside(source.text):
        kernel = RemoteKernel(source, machine, worker=worker)
        return partial(_verify_there, kernel, args, timeout_s=timeout_s)
    # Registered functions exist only in this process, and a library from the C compiler is loaded
    # here, so such kernels cannot run in a worker.
    here = load(source, machine)
    if isinstance(here, NullKernel):
        raise MeasurementError(
            f"verify {here.name}", f"programs for {machine.name} are never run", got=repr(here),
            because=f"the device {machine.runs_on!r} computes nothing",
        )  # fmt: skip
    return partial(_verify_here, here, args)


def _oracles(
    schedule: Schedule, seed: int, values: Mapping[Var, Any], number: int
) -> Iterator[Oracle]:
    """Yield the oracles of a size: all kinds of inputs for the first size, else two kinds."""
    kinds = KINDS if number == 0 else (KINDS[1 + number % (len(KINDS) - 1)],)
    try:
        yield from oracles_of(schedule, seed, values, kinds)
    except ProgramError as error:
        # An empty tensor has no valid index: the expression cannot be evaluated at this size.
        if error.kind != "out_of_bounds" or 0 not in values.values():
            raise


class _Findings:
    """The checks that have passed so far."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.worst = 0.0
        self.shape: tuple[int, ...] | None = None
        self.oracles: dict[str, None] = {}
        self.kinds: dict[str, None] = {}
        self.indices: tuple[str, ...] = ()
        self.compared: dict[Tensor, bool] = {}
        """Whether a wrong element would have been noticed, for each output that has elements."""
        self.steps: float = 0
        """Steps interpreted so far for the current size; infinite if its program is too long."""

    def begin(self, oracle: str, steps: int) -> None:
        """Begin the checks for another size, for which the program needs `steps` steps."""
        self.steps = 0 if steps <= MAX_INTERPRETED_STEPS else math.inf
        self.oracles = {oracle: None} if oracle else {}

    def may_interpret(self, programs: Sequence[PrimFunc], values: Mapping[Var, Any]) -> bool:
        """Return whether another run fits the limit of steps, and count its steps if so."""
        if self.steps >= MAX_INTERPRETED_STEPS:
            return False
        steps = sum(count_steps(specialize_func(func, values)) for func in programs)
        if self.steps and self.steps + steps > MAX_INTERPRETED_STEPS:
            return False
        self.steps += steps
        return True

    def add(self, oracle: Oracle, worst: float, name: str = "numpy") -> None:
        """Record a run whose result was right."""
        self.worst = max(self.worst, worst)
        self.oracles[name] = None
        self.kinds[oracle.kind] = None
        self.indices = self.indices or oracle.indices
        for tensor, expected in oracle.expected.items():
            if expected.size:
                is_compared = bool(has_bounds(expected, oracle.bounds[tensor], tensor.dtype).any())
                self.compared[tensor] = self.compared.get(tensor, False) or is_compared
        if self.shape is None:
            self.shape = next(iter(oracle.expected.values())).shape

    def verdict(self, func: PrimFunc) -> Verified:
        """Return the result, or raise an error if nothing could be checked."""
        if self.shape is None:
            raise MeasurementError(
                f"verify {func.name}",
                "none of the sizes tried satisfies the conditions of the expression",
                expected="; ".join(problem for _, problem in func.checks),
                hint="call the kernel on arrays of your own and compare with te.evaluate",
            )  # fmt: skip
        for tensor, was_compared in self.compared.items():
            if not was_compared:
                raise MeasurementError(
                    f"verify {tensor.name}",
                    "no inputs were found for which wrong results would be noticed",
                    because="the error bound is infinite, or results exceed their dtype's range",
                    hint="call the kernel on arrays of your own and compare with te.evaluate",
                )  # fmt: skip
        return Verified(
            tuple(self.oracles), self.shape, self.seed, self.worst,
            tuple(self.kinds), self.indices,
        )  # fmt: skip


def sizes_to_try(
    schedule: Schedule, func: PrimFunc, conditions: Sequence[Expr] = ()
) -> Iterator[dict[Var, Any]]:
    """Yield values of the symbols: awkward, small, round and zero; without symbols, one empty dict.

    If conditions are given, some of the values fulfil them.
    """
    facts = facts_of(func, conditions)
    symbols = dict.fromkeys((*symbols_of(schedule.outputs), *func.variables))
    if not symbols:
        yield {}
        return
    tried: list[dict[Var, Any]] = [
        {
            symbol: True if symbol.dtype == "bool" else first + n * step
            for n, symbol in enumerate(symbols)
        }
        for first, step in ((13, 4), (1, 0), (16, 8), (0, 0))
    ]
    if facts:
        tried += [
            {**values, **{s: fact.nearest(values[s]) for s, fact in facts.items()}}
            for values in tried[:2]
        ]
    for values in tried:
        with contextlib.suppress(CallError):  # of a negative extent
            specialize(schedule.outputs, values)
            if all(condition_value(condition, values) for condition, _ in func.checks):
                yield values


def verify_kernel(
    kernel: RemoteKernel,
    args: Sequence[Argument],
    oracle: Oracle,
    *,
    timeout_s: float = 60.0,
) -> tuple[float, float]:
    """Run a kernel in its worker and compare.

    Returns
    -------
    tuple of float
        The largest difference as a fraction of the bound, and about how long the run took [s].
    """
    given = _arguments(args, oracle)
    names = [param.name for param in kernel.params]
    outcome = kernel.run(dict(zip(names, given, strict=True)), timeout_s=timeout_s)
    outcome.unwrap(f"verify {kernel.name}")
    got = [outcome.arrays.get(name, array) for name, array in zip(names, given, strict=True)]
    return _worst("numpy", args, got, oracle), outcome.seconds


def _verify_there(
    kernel: RemoteKernel, args: Sequence[Argument], oracle: Oracle, *, timeout_s: float
) -> float:
    return verify_kernel(kernel, args, oracle, timeout_s=timeout_s)[0]


def _verify_here(kernel: Built, args: Sequence[Argument], oracle: Oracle) -> float:
    arrays = _arguments(args, oracle)
    given = [a if isinstance(t, Tensor) else a.item() for t, a in zip(args, arrays, strict=True)]
    with np.errstate(all="ignore"):  # code from outside may compute with NumPy
        kernel(*given)
    return _worst("numpy", args, arrays, oracle)


def _nests(schedule: Schedule, args: Sequence[Argument]) -> tuple[PrimFunc, ...]:
    """Return the program before the passes."""
    return (lower(schedule, args, simple_mode=True),)


def _nests_and_result(
    schedule: Schedule,
    args: Sequence[Argument],
    target: str | Target = "cpu",
    conditions: Sequence[Expr] = (),
) -> tuple[PrimFunc, ...]:
    """Return two programs: before the passes, and after all passes of a target."""
    return (*_nests(schedule, args), lower(schedule, args, target=target, conditions=conditions))


def _interpret(programs: Sequence[PrimFunc], args: Sequence[Argument], oracle: Oracle) -> float:
    """Interpret programs; all but the first run their threads in a random order."""
    worst = 0.0
    for number, func in enumerate(programs):
        arrays = _arguments(args, oracle)
        order = oracle.seed + number if number else None
        interpret(func, arrays, max_steps=2 * MAX_SIMULATED_STEPS, order=order)
        worst = max(worst, _worst("interpreter", args, arrays, oracle))
    return worst


def _interpret_slowly(
    schedule: Schedule,
    args: Sequence[Argument],
    programs: Sequence[PrimFunc],
    size: tuple[int, Mapping[Var, Any]],
    found: _Findings,
) -> None:
    """Interpret threads written by hand, which may race, at the size with the fewest steps.

    Raises
    ------
    MeasurementError
        If it takes too many steps.
    """
    steps, values = size
    if steps > MAX_SIMULATED_STEPS:
        raise MeasurementError(
            f"verify {schedule.outputs[0].name}", "it has too many steps for the interpreter",
            got=f"about {steps:.2g} steps", expected=f"at most {MAX_SIMULATED_STEPS}",
            because="only the interpreter finds races of threads in statements written by hand",
            hint="write them for smaller sizes, and verify the same steps there",
        )  # fmt: skip
    oracle = oracle_of(schedule, found.seed, values)
    found.add(oracle, _interpret(programs, args, oracle), "interpreter")


def _interpret_smaller(
    schedule: Schedule,
    args: Sequence[Argument],
    programs_of: ProgramsOf,
    found: _Findings,
) -> None:
    """Interpret the schedule on a smaller shape, if a suitable one exists."""
    for small, chosen in shrunk_schedules(schedule, args, MAX_INTERPRETED_STEPS):
        name = f"interpreter on {small.outputs[0].static_shape}"
        programs = programs_of(small, chosen)
        found.steps = 0
        try:
            for oracle in oracles_of(small, found.seed, kinds=("extremes",)):
                if found.may_interpret(programs, {}):
                    found.add(oracle, _interpret(programs, chosen, oracle), name)
        except ProgramError:  # a condition may be false for the smaller shape
            if name in found.oracles:
                raise
            continue
        return


def _arguments(args: Sequence[Argument], oracle: Oracle) -> list[Array]:
    """Return inputs, poisoned outputs, and numbers as arrays without dimensions."""
    return [
        np.asarray(oracle.inputs[arg]).copy()
        if arg in oracle.inputs
        else poison_for(oracle.expected[arg], dtypes.to_numpy(arg.dtype))  # type: ignore[index]
        for arg in args
    ]


def _worst(name: str, args: Sequence[Argument], arrays: Sequence[Array], oracle: Oracle) -> float:
    """Return the largest difference of the outputs as a fraction of the bound."""
    worst = 0.0
    for tensor, got in zip(args, arrays, strict=True):
        if isinstance(tensor, Tensor) and tensor in oracle.expected:
            worst = max(worst, _compare(name, tensor, got, oracle))
    return worst


def _compare(name: str, tensor: Tensor, got: Array, oracle: Oracle) -> float:
    """Return the largest difference as a fraction of the bound; raise an error if it is above 1."""
    expected, bound = oracle.expected[tensor], oracle.bounds[tensor]
    found = differences(got, expected, bound)
    if found.first is None and np.isfinite(bound).all():
        return found.worst
    # An element without a bound may have any value except the poison it had before.
    untouched = unwritten(got, poison_for(expected, got.dtype))
    wrong = found.wrong | untouched
    if not wrong.any():
        return found.worst
    index = tuple(int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
    raise VerificationError(
        f"verify {tensor.name}",
        f"{int(wrong.sum())} of {wrong.size} elements differ from the oracle",
        oracle=name,
        shape=expected.shape,
        seed=oracle.seed,
        index=index,
        got=got[index].item(),
        expected=expected[index].item(),
        bound=float(bound[index]),
        because="it was never written: it has the value that it had before the run"
        if untouched[index]
        else None,
    )
