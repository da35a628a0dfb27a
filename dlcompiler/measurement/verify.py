"""Verify a schedule: run its kernel in a worker, and compare with oracles."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.display import render
from dlcompiler.errors import CallError, MeasurementError, ProgramError, VerificationError
from dlcompiler.ir import Expr, For, PrimFunc, Var, condition_value, is_thread, walk
from dlcompiler.ir import specialize as specialize_func
from dlcompiler.measurement.remote import RemoteKernel
from dlcompiler.measurement.shrunk import shrunk_schedules
from dlcompiler.passes.specialize_conditions import facts_of
from dlcompiler.pipeline import Kernel, emit_source, lower
from dlcompiler.pipeline.build import build_kernel
from dlcompiler.pipeline.lower import Argument
from dlcompiler.runtime.externs import calls_outside
from dlcompiler.runtime.workers import Worker
from dlcompiler.schedule import Schedule, StageState
from dlcompiler.simulate import interpret
from dlcompiler.simulate.steps import count_steps
from dlcompiler.target import Target, resolve
from dlcompiler.te import ExternOp, Tensor, evaluate, specialize, symbols_of, tolerance
from dlcompiler.te.tensor import PlaceholderOp

Array = npt.NDArray[Any]
MAX_INTERPRETED_STEPS = 200_000
"""Programs of more steps are left to the NumPy oracle; the interpreter needs about a second."""
KEPT_ORACLES = 4


@dataclass(frozen=True)
class Verified:
    """The result was right, by the oracles named."""

    oracles: tuple[str, ...]
    """What it was compared with: ``numpy``, ``interpreter``, or the latter on a smaller shape."""
    shape: tuple[int, ...]
    """Shape of the (first) output."""
    seed: int
    """Seed of the inputs."""
    worst: float
    """Largest difference from the oracle, as a fraction of what rounding allows."""

    def __repr__(self) -> str:
        oracles = "+".join(self.oracles)
        return (
            f"Verified(oracle={oracles!r}, shape={self.shape}, worst={self.worst:.2g} of the bound)"
        )

    def _repr_html_(self) -> str:
        return render("verified", self)


@dataclass(frozen=True)
class Oracle:
    """Inputs, what must come out, and how far a right result may be from it."""

    inputs: Mapping[Any, Any]
    """Arrays of tensors, and numbers of symbols."""
    expected: Mapping[Tensor, Array]
    bounds: Mapping[Tensor, Array]


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

    The kernel runs in a worker process on random inputs, its outputs poisoned. The oracle is
    `te.evaluate` (NumPy, accumulating in float64); programs of few steps also run in the
    interpreter, which finds reads out of bounds, uninitialised elements and races. For longer ones
    the steps of the schedule are replayed on a smaller shape, where the expression has one. A
    schedule for the threads of a device runs in the interpreter alone, and one that calls code
    from outside in this process.

    Parameters
    ----------
    schedule : Schedule
        The schedule, at the state to check.
    args : sequence of Tensor
        Parameters of the kernel: inputs first, outputs last.
    target : str or Target
        What to build for; it must run here.
    seed : int
        Seed of the inputs.
    timeout_s : float
        Limit of the kernel's run [s].
    worker : Worker, optional
        Where to run; by default, in the worker of this process.
    conditions : sequence of Expr
        As of `build`: sizes are tried that fulfil all of them, and sizes that do not.

    Returns
    -------
    Verified

    Raises
    ------
    VerificationError
        With oracle, shape, seed, first wrong index, got, expected and the bound.
    MeasurementError
        If the kernel crashes or hangs.
    """
    if any(map(_has_threads, schedule.state.stages)):
        return _verify_on_threads(schedule, args, seed, conditions)
    check: Callable[[Oracle], float]
    source, func = emit_source(schedule, args, target, conditions=conditions)
    # The interpreter looks at the nests; here passes add decisions of their own.
    is_decided = bool(conditions) or any(stage.rolled_by for stage in schedule.state.stages)
    if calls_outside(source.text):  # what it calls is in this process alone
        machine = resolve(target)
        here = build_kernel(schedule, args, machine, func.name, conditions=conditions)
        check = partial(_verify_here, here, args, seed=seed)
    else:
        kernel = RemoteKernel.of_source(source, func, resolve(target), worker=worker)
        check = partial(_verify_there, kernel, args, seed=seed, timeout_s=timeout_s)
    worst, shape = 0.0, None
    for values in sizes_to_try(schedule, func, conditions):
        oracle = oracle_of(schedule, seed, values)
        worst = max(worst, check(oracle))
        shape = shape or oracle.expected[schedule.outputs[0]].shape
        oracles = ["numpy"]
        if count_steps(specialize_func(func, values)) <= MAX_INTERPRETED_STEPS:
            worst = max(worst, _interpret(schedule, args, oracle, seed))
            if is_decided:
                worst = max(worst, _run(func, args, oracle, seed))
            oracles.append("interpreter")
        elif not values:
            run = _interpret_lowered if is_decided else _interpret
            fraction, small = _interpret_smaller(schedule, args, seed, run)
            worst = max(worst, fraction)
            oracles.extend(f"interpreter on {size}" for size in small)
    if shape is None:
        raise MeasurementError(
            f"verify {func.name}", "none of the sizes tried satisfies what the expression asks for",
            expected="; ".join(problem for _, problem in func.checks),
            hint="call the kernel on arrays of your own and compare with te.evaluate",
        )  # fmt: skip
    return Verified(tuple(oracles), shape, seed, worst)


def _has_threads(stage: StageState) -> bool:
    """Tell whether threads of a device run loops of a stage, or of its statements."""
    own = walk(stage.op.body) if isinstance(stage.op, ExternOp) else ()
    kinds = (node.kind for node in own if isinstance(node, For))
    return any(map(is_thread, (*stage.kinds.values(), *kinds)))


def _verify_on_threads(
    schedule: Schedule, args: Sequence[Argument], seed: int, conditions: Sequence[Expr]
) -> Verified:
    """Check in the interpreter a schedule that no machine here can run."""
    func = lower(schedule, args, simple_mode=True)
    worst, shape, oracles = 0.0, None, []
    for values in sizes_to_try(schedule, func, conditions):
        if count_steps(specialize_func(func, values)) <= MAX_INTERPRETED_STEPS:
            oracle = oracle_of(schedule, seed, values)
            worst = max(worst, _interpret_threads(schedule, args, oracle, seed, conditions))
            shape = oracle.expected[schedule.outputs[0]].shape
            oracles = ["interpreter"]
        elif not values:
            worst, small = _interpret_smaller(schedule, args, seed, _interpret_threads)
            oracles = [f"interpreter on {size}" for size in small]
            shape = schedule.outputs[0].static_shape
    if shape is None or not oracles:
        raise MeasurementError(
            f"verify {func.name}", "it has too many steps for the interpreter",
            because="its loops are bound to the threads of a device, which is not here",
            hint="verify the same steps on a smaller shape: s.trace.replay(…)",
        )  # fmt: skip
    return Verified(tuple(oracles), shape, seed, worst)


def sizes_to_try(
    schedule: Schedule, func: PrimFunc, conditions: Sequence[Expr] = ()
) -> Iterator[dict[Var, Any]]:
    """Yield values of the symbols: awkward, small, round, and none; just one without symbols.

    Where conditions are given, some of the values fulfil them.
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


_kept: dict[tuple[Any, ...], Oracle] = {}


def oracle_of(schedule: Schedule, seed: int, values: Mapping[Var, Any] | None = None) -> Oracle:
    """Return inputs, expected outputs and bounds for a schedule's expression.

    The last few are kept, since one expression is verified under many schedules. `values` are
    those of its symbols.
    """
    key = (schedule.outputs, seed, tuple((values or {}).items()))
    if key not in _kept:
        while len(_kept) >= KEPT_ORACLES:
            _kept.pop(next(iter(_kept)))
        _kept[key] = _new_oracle(schedule, seed, values or {})
    return _kept[key]


def _new_oracle(schedule: Schedule, seed: int, values: Mapping[Var, Any]) -> Oracle:
    root = schedule.history.history.root.state
    inputs = [stage.tensor for stage in root.stages if isinstance(stage.op, PlaceholderOp)]
    known = specialize(schedule.outputs, values) if values else {}
    static = {tensor: known.get(tensor, tensor) for tensor in (*inputs, *schedule.outputs)}
    arrays = {tensor: random_input(static[tensor], seed + n) for n, tensor in enumerate(inputs)}
    given = {static[tensor]: array for tensor, array in arrays.items()}
    expected, bounds = {}, {}
    for tensor in schedule.outputs:
        expected[tensor] = evaluate(static[tensor], given, accumulate="float64")
        bounds[tensor] = tolerance(static[tensor], given)
    return Oracle({**arrays, **values}, expected, bounds)


def random_input(tensor: Tensor, seed: int) -> Array:
    """Return reproducible values: floats in [-1, 1), all integers of 8 bits, of more up to 7 bits.

    Instructions on 8 bits may saturate where the numbers are large.
    """
    generator = np.random.default_rng(seed)
    dtype = dtypes.to_numpy(tensor.dtype)
    if dtypes.is_bool(tensor.dtype):
        return generator.integers(0, 2, tensor.static_shape).astype(dtype)
    if dtypes.is_float(tensor.dtype):
        return generator.uniform(-1, 1, tensor.static_shape).astype(dtype)
    high = 64
    if dtypes.bits(tensor.dtype) == 8:
        high = int(dtypes.max_value(tensor.dtype)) + 1
    low = 0 if dtypes.is_unsigned(tensor.dtype) else -high
    return generator.integers(low, high, tensor.static_shape).astype(dtype)


def poisoned(tensor: Tensor, shape: tuple[int, ...]) -> Array:
    """Return an output array whose elements are wrong until they are written."""
    dtype = dtypes.to_numpy(tensor.dtype)
    fill: float | int | bool = True
    if dtypes.is_float(tensor.dtype):
        fill = np.nan
    elif not dtypes.is_bool(tensor.dtype):
        fill = int(dtypes.max_value(tensor.dtype))
    return np.full(shape, fill, dtype)


def verify_kernel(
    kernel: RemoteKernel,
    args: Sequence[Argument],
    oracle: Oracle,
    *,
    seed: int = 0,
    timeout_s: float = 60.0,
) -> tuple[float, float]:
    """Run a kernel in its worker and compare.

    Returns
    -------
    tuple of float
        The largest difference as a fraction of the bound, and about how long the run took [s].
    """
    arrays = dict(
        zip((param.name for param in kernel.params), _arguments(args, oracle), strict=True)
    )
    outcome = kernel.run(arrays, timeout_s=timeout_s)
    outcome.unwrap(f"verify {kernel.name}")
    worst = 0.0
    for param, tensor in zip(kernel.params, args, strict=True):
        if isinstance(tensor, Tensor) and tensor in oracle.expected:
            got = outcome.arrays[param.name]
            worst = max(worst, _compare("numpy", tensor, got, oracle, seed))
    return worst, outcome.seconds


def _verify_there(
    kernel: RemoteKernel, args: Sequence[Argument], oracle: Oracle, *, seed: int, timeout_s: float
) -> float:
    return verify_kernel(kernel, args, oracle, seed=seed, timeout_s=timeout_s)[0]


def _verify_here(kernel: Kernel, args: Sequence[Argument], oracle: Oracle, *, seed: int) -> float:
    arrays = _arguments(args, oracle)
    kernel(*(a if isinstance(t, Tensor) else a.item() for t, a in zip(args, arrays, strict=True)))
    return _worst("numpy", args, arrays, oracle, seed)


def _interpret(schedule: Schedule, args: Sequence[Argument], oracle: Oracle, seed: int) -> float:
    return _run(lower(schedule, args, simple_mode=True), args, oracle, seed)


def _interpret_lowered(
    schedule: Schedule, args: Sequence[Argument], oracle: Oracle, seed: int
) -> float:
    """Interpret a program as scheduled, and as all passes leave it."""
    worst = _interpret(schedule, args, oracle, seed)
    return max(worst, _run(lower(schedule, args), args, oracle, seed))


def _run(
    func: PrimFunc,
    args: Sequence[Argument],
    oracle: Oracle,
    seed: int,
    *,
    order: int | None = None,
) -> float:
    arrays = _arguments(args, oracle)
    interpret(func, arrays, order=order)
    return _worst("interpreter", args, arrays, oracle, seed)


def _worst(
    name: str, args: Sequence[Argument], arrays: Sequence[Array], oracle: Oracle, seed: int
) -> float:
    """Return the largest difference of the outputs as a fraction of the bound."""
    worst = 0.0
    for tensor, got in zip(args, arrays, strict=True):
        if isinstance(tensor, Tensor) and tensor in oracle.expected:
            worst = max(worst, _compare(name, tensor, got, oracle, seed))
    return worst


def _interpret_threads(
    schedule: Schedule,
    args: Sequence[Argument],
    oracle: Oracle,
    seed: int,
    conditions: Sequence[Expr] = (),
) -> float:
    """Interpret a program of threads as scheduled, and as a GPU gets it, in another order."""
    worst = _interpret(schedule, args, oracle, seed)
    func = lower(schedule, args, kind="gpu", conditions=conditions)
    return max(worst, _run(func, args, oracle, seed, order=seed + 1))


def _interpret_smaller(
    schedule: Schedule,
    args: Sequence[Argument],
    seed: int,
    run: Callable[..., float],
) -> tuple[float, list[tuple[int, ...]]]:
    """Interpret the schedule on a smaller shape; returns the shape, or none if none suits."""
    for small, chosen in shrunk_schedules(schedule, args, MAX_INTERPRETED_STEPS):
        try:
            oracle = oracle_of(small, seed)
        except ProgramError:  # a condition in the expression does not suit the smaller shape
            continue
        return run(small, chosen, oracle, seed), [small.outputs[0].static_shape]
    return 0.0, []


def _arguments(args: Sequence[Argument], oracle: Oracle) -> list[Array]:
    """Return inputs, poisoned outputs, and numbers as arrays without dimensions."""
    return [
        np.asarray(oracle.inputs[arg]).copy()
        if arg in oracle.inputs
        else poisoned(arg, oracle.expected[arg].shape)  # type: ignore[arg-type, index]
        for arg in args
    ]


def _compare(name: str, tensor: Tensor, got: Array, oracle: Oracle, seed: int) -> float:
    """Return the largest difference as a fraction of the bound; raise where it is above 1."""
    expected = oracle.expected[tensor]
    bound = oracle.bounds[tensor]
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        same = (got == expected) | (np.isnan(got.astype(float)) & np.isnan(expected.astype(float)))
        same |= np.isposinf(bound)  # what may overflow has no bound
        wrong = ~same & ~(difference <= bound)
        fraction = np.where(same, 0.0, difference / np.maximum(bound, np.finfo(float).tiny))
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise VerificationError(
            f"verify {tensor.name}",
            f"{int(wrong.sum())} of {wrong.size} elements differ from the oracle",
            oracle=name,
            shape=expected.shape,
            seed=seed,
            index=index,
            got=got[index].item(),
            expected=expected[index].item(),
            bound=float(bound[index]),
        )
    return float(fraction.max(initial=0.0))
