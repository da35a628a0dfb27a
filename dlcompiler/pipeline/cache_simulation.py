"""Simulate the caches of a target for a program, at the speed of machine code.

The program is turned into one that only makes its accesses (`dlcompiler.simulate.cache`); LLVM
compiles it for this machine together with the model of the caches.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dlcompiler.codegen import emit
from dlcompiler.errors import CallError, TargetError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline.lower import Argument, lower
from dlcompiler.runtime.llvm import compile_ir
from dlcompiler.runtime.options import Options
from dlcompiler.schedule import Schedule
from dlcompiler.simulate.cache import model as caches
from dlcompiler.simulate.cache.inputs import Inputs, inputs_of
from dlcompiler.simulate.cache.result import CacheSimulation, non_empty
from dlcompiler.simulate.cache.sampling import Sample, count_accesses, sampled
from dlcompiler.simulate.cache.tracing import KERNEL, Traced, check_traceable, traced
from dlcompiler.target import Target, resolve
from dlcompiler.target.detect import host_target

MOST_ACCESSES = 50_000_000
"""Accesses that are simulated by default, in 0.2 to 1.5 s; of longer programs, the first
iterations; [1]."""


class Cancelled(CallError):  # noqa: N818 - a decision, not a mistake
    """The simulation was cancelled before it ended."""


class Cancellation:
    """Lets another thread end a simulation early."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: list[caches.Words] = []
        self.is_set = False

    def set(self) -> None:
        """End the simulations that use this object, also those that begin later."""
        with self._lock:
            self.is_set = True
            for state in self._states:
                caches.cancel(state)

    def watch(self, state: caches.Words) -> None:
        """End the simulation with this state when `set` is called, or now if it was."""
        with self._lock:
            self._states.append(state)
            if self.is_set:
                caches.cancel(state)


def simulate_cache(
    schedule: Schedule,
    args: Sequence[Argument],
    target: str | Target = "cpu",
    *,
    name: str = "main",
    most_accesses: int = MOST_ACCESSES,
    inputs: Mapping[str, object] | None = None,
) -> CacheSimulation:
    """Simulate the caches of a target for a schedule: hits and misses by loop, tensor and level.

    Parameters
    ----------
    schedule : Schedule
        The schedule, at the state to simulate.
    args : sequence of Tensor
        The parameters of the function: inputs first, outputs last.
    target : str or Target
        The machine whose ``caches`` are simulated; the simulation itself runs here.
    name : str
        Name of the function.
    most_accesses : int
        Largest number of simulated accesses; of a longer program, only the first iterations of its
        outer loops are simulated, and the result says which (``sampled``). [1]
    inputs : mapping of str to array, optional
        Arrays for inputs on which indices or conditions depend, by the names of the inputs.

    Returns
    -------
    CacheSimulation
        Accesses, hits and misses [1], and traffic to memory [byte]. Equal in each run.

    Raises
    ------
    CallError
        If the accesses depend on data that is not given, or on code from outside, an index that
        depends on given data is outside its tensor, loops are bound to threads, or sizes are
        symbolic.
    ScheduleError
        If the state cannot be lowered.
    TargetError
        If the target has no caches, or one that is not a whole number of sets, or is a GPU.

    Notes
    -----
    - **Program.** The loops as scheduled, before vectorizing and unrolling. Each load and each
      store of an element is an access, in the order of the text; a compiler keeps some in
      registers, which would be hits. Parallel loops run one iteration after the other on one core,
      which has each shared cache for itself. Prefetches are left out. A vector statement, such as
      one that the program itself contains, accesses each of its lanes, in order.
    - **Caches.** Set-associative, the least recently used line leaves, a store fetches its line;
      all levels are empty at the start. There is no prefetcher and no TLB, so that counters of a
      processor differ.
    - **Addresses.** The parameters, then the temporaries, one after the other from 1 MiB on: those
      of 4 KiB or more at a multiple of 4 KiB, smaller ones at the next cache line.

    **Source:** the rules of cachegrind, *Valgrind User Manual*, section 5; misses are equal to
    its counts (``tests/simulate/cache``).

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((64, 64), name="A")
    >>> B = te.compute((64, 64), lambda i, j: A[j, i], name="B")
    >>> found = simulate_cache(create_schedule(B.op), [A, B], "x86-64-avx2")
    >>> found
    CacheSimulation(main on x86-64-avx2: 8,192 accesses, misses: L1d 512, L2 512, L3 512)
    >>> [(each.level.name, each.hits, each.misses) for each in found.counts(tensor="A")]
    [('L1d', 3840, 256), ('L2', 0, 256), ('L3', 0, 256)]
    >>> found.memory_bytes()
    49152
    """
    machine = resolve(target)
    func = lower(schedule, args, name=name, target=machine, simple_mode=True)
    return simulate_program(func, machine, most_accesses, inputs=inputs)


def simulate_program(
    func: PrimFunc,
    target: Target,
    most_accesses: int = MOST_ACCESSES,
    cancellation: Cancellation | None = None,
    inputs: Mapping[str, object] | None = None,
) -> CacheSimulation:
    """Simulate the caches of a target for a program.

    Parameters
    ----------
    func
        What ``lower(s, args, simple_mode=True)`` returns, or a program in which passes have made
        vectors.
    target
        The machine whose caches are simulated.
    most_accesses
        Largest number of simulated accesses; [1].
    cancellation
        Ends the simulation early.
    inputs
        As of `simulate_cache`.

    Raises
    ------
    CallError, TargetError
        As of `simulate_cache`; `Cancelled` if it was ended early.
    """
    where = f"simulate the caches of {func.name}"
    if type(most_accesses) is not int or most_accesses < 1:
        raise CallError(where, "most_accesses is not a positive integer", got=repr(most_accesses))
    if not target.caches:
        raise TargetError(where, "the target has no caches", got=target.name)
    if target.thread_axes:
        raise TargetError(
            where, "the target is not a CPU", got=target.name,
            because="the simulated caches are those of one core, and its threads run at once",
        )  # fmt: skip
    check_traceable(func)
    given = inputs_of(func, inputs or {})
    cut, samples = sampled(func, most_accesses, given)
    accesses = count_accesses(cut, given)
    program = traced(cut, target.caches, accesses, given)
    state = program.model.fresh_state()
    if cancellation is not None:
        cancellation.watch(state)
    if accesses:  # else the code has no call of the model
        run_traced(program, state, given, program.model.code())
    if (number := caches.outside(state)) is not None:
        buffer = next(each for each, place in program.placements.items() if place.number == number)
        raise CallError(
            where, f"an index of {buffer.name} is outside",
            expected=f"indices inside the shape {list(buffer.static_shape)}",
            because="it depends on the given inputs",
        )  # fmt: skip
    if caches.is_cancelled(state):
        raise Cancelled(where, "it was cancelled")
    found = _result(program, state, cut, target, samples)
    whole = count_accesses(func, given) if samples else found.accesses
    return replace(found, inputs=tuple(given.arrays), whole_accesses=whole)


def run_traced(program: Traced, state: caches.Words, given: Inputs, access: str) -> None:
    """Run a traced program; `access` is the LLVM IR of the function that gets each access."""
    here = host_target()
    source = emit(program.func, here)
    module = compile_ir(caches.linked(source.text, access), Options.for_target(here))
    arrays = [state, *given.arrays.values()]
    entry = module.entry(KERNEL, [ctypes.c_void_p] * len(arrays))
    entry(*(array.ctypes.data for array in arrays))


def _result(
    program: Traced,
    state: caches.Words,
    func: PrimFunc,
    target: Target,
    samples: tuple[Sample, ...],
) -> CacheSimulation:
    model = program.model
    is_parameter = np.array([buffer in func.buffers for buffer in program.placements])
    written = model.written(state) + model.still_written(state) * is_parameter
    return CacheSimulation(
        func=func,
        target=target,
        sampled=samples,
        sites=program.sites,
        placements=program.placements,
        counters=non_empty(model.counters(state)),
        bin_accesses=model.bin_accesses,
        by_part=model.by_part(state),
        written=written,
    )
