"""Models that run: one loaded module, called with arrays."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.display import render
from dlcompiler.errors import CallError, DLCompilerError, GraphError
from dlcompiler.graph.execution.kernels import ModelKernel
from dlcompiler.graph.execution.profiles import KernelTime, Profile, StepWork, works_of
from dlcompiler.graph.execution.saving import save_model
from dlcompiler.graph.execution.stepping import KernelCode, Run, StepCode, SteppedRun
from dlcompiler.graph.execution.steps import Step, Steps
from dlcompiler.graph.ir import Module, TupleType, Type
from dlcompiler.graph.ir.arrays import array_of
from dlcompiler.graph.memory import MemoryPlan
from dlcompiler.graph.operators.base import Array
from dlcompiler.measurement.ceilings import Ceilings
from dlcompiler.measurement.known_ceilings import ceilings_here
from dlcompiler.pipeline.executables import Kernel
from dlcompiler.runtime.arguments import Param, as_checked_array
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.threads import num_threads
from dlcompiler.runtime.timing import measured_here
from dlcompiler.target import Target, resolve

Outputs: TypeAlias = "Array | tuple[Outputs, ...]"


class RunnableModel:
    """A model that runs: what it takes, what it returns, and its kernels one after another.

    Parameters
    ----------
    steps : Steps
        The calls of its kernels.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._results = [(p.static_shape, dtypes.to_numpy(p.dtype)) for p in steps.outputs]

    @property
    def plan(self) -> MemoryPlan:
        """Where values between kernels lie in the arena."""
        return self._steps.plan

    @property
    def steps(self) -> tuple[Step, ...]:
        """The calls of kernels, in the order in which they run."""
        return tuple(self._steps.steps)

    @property
    def params(self) -> tuple[Param, ...]:
        """The arrays of `run`: inputs, then outputs."""
        return self._steps.params

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """Names of the different kernels, by their numbers in `steps`."""
        raise NotImplementedError

    @property
    def weight_bytes(self) -> int:
        """Size of the constants that its steps read, packed; [byte]."""
        return sum(array.nbytes for array in self._steps.weights)

    def __call__(self, /, *args: Any, **named: Any) -> Outputs:
        """Compute the result of the model.

        Parameters
        ----------
        *args, **named
            Arrays, by position or by the names of the parameters; a parameter that is a tuple is
            one array for each field, ``x.0`` and so on.

        Returns
        -------
        array or tuple
            New arrays, of the types of the result.

        Raises
        ------
        CallError
            If an argument is missing, or does not fit its type.
        ProgramError
            If a kernel found an error in the values, such as an index outside its tensor.
        OutOfMemory
            If there is no memory for the arena.
        """
        return _nested(self._steps.result, iter(self._computed(args, named)))

    def _computed(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Array]:
        """Return the outputs of a call."""
        inputs, outputs = self.checked_inputs(args, named), self._new_outputs()
        self.run(*inputs, *outputs)
        return outputs

    def run(self, *arrays: Any) -> None:
        """Compute the result into given arrays: inputs, then outputs, as in `params`.

        Raises
        ------
        CallError, ProgramError, OutOfMemory
            As of a call.
        """
        raise NotImplementedError

    def values(self, /, *args: Any, **named: Any) -> dict[str, Array]:
        """Return what each kernel stores, by the name of the call that made it; it is slow.

        Parameters
        ----------
        *args, **named
            As of a call.

        Returns
        -------
        dict
            In the order of the steps; a name that was used before gets a number.
        """
        found: dict[str, Array] = {}
        for step, stored in self.stepped(*args, **named).steps():
            for name, array in zip(step.values, stored, strict=True):
                found[_unused(name, found)] = array.copy()
        return found

    @property
    def works(self) -> Sequence[StepWork | None]:
        """What each step computes; None where that is not known."""
        return [None] * len(self.steps)

    def timed(self, seconds: Sequence[float]) -> Profile:
        """Return the profile with these times of the steps, measured on this machine; [s]."""
        here = measured_here()
        return Profile(
            KernelTime(step.name, self.kernel_names[step.kernel], time, here, work)
            for step, time, work in zip(self.steps, seconds, self.works, strict=True)
        )

    def profile(
        self, /, *args: Any, repeats: int = 10, roofline: bool = False, **named: Any
    ) -> Profile:
        """Measure each kernel, one after another.

        Parameters
        ----------
        *args, **named
            As of a call.
        repeats : int
            Number of runs of the whole model; [1].
        roofline : bool
            Whether to return the least time of each kernel, too. The ceilings of this machine are
            measured for it in a process of their own, once in 30 days: some seconds.

        Returns
        -------
        Profile
            A `KernelTime` for each step, in their order; measured on this machine. Each includes a
            call from Python, 0.5 µs or so, which a call of the model does not have.

        Raises
        ------
        CallError
            If the arguments do not fit, or there is no run.
        MeasurementError
            If the ceilings cannot be measured.
        """
        check_repeats(repeats)
        run = self.stepped(*args, **named)
        best = [math.inf] * len(self.steps)
        for _ in range(repeats):
            start = time.perf_counter()
            for n, _ in enumerate(run.steps()):
                best[n] = min(best[n], time.perf_counter() - start)
                start = time.perf_counter()
        found = self.timed(best)
        return self.under_roofline(found, ceilings_here(num_threads())) if roofline else found

    def under_roofline(self, times: Profile, ceilings: Ceilings) -> Profile:
        """Return the times of this model's kernels with their least times on this machine.

        Parameters
        ----------
        times : Profile
            Of this model.
        ceilings : Ceilings
            Of this machine, for the number of threads with which it was measured.
        """
        size = self.weight_bytes + self.plan.bytes
        return times.under_roofline(ceilings, resolve("cpu").caches, size)

    def stepped(self, /, *args: Any, **named: Any) -> Run:
        """Return a run that stops after each kernel.

        Parameters
        ----------
        *args, **named
            As of a call.
        """
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return render("model", self)

    # -- arguments --------------------------------------------------------------------------------

    def checked_inputs(
        self, args: Sequence[Any], named: Mapping[str, Any] | None = None
    ) -> list[Array]:
        """Return the arguments of a call as arrays that fit the parameters.

        Parameters
        ----------
        args : sequence
            Arrays by position.
        named : mapping, optional
            Arrays by the names of the parameters.

        Raises
        ------
        CallError
            If one is missing, or does not fit its type.
        """
        named = named or {}
        params = self._steps.inputs
        rest = [param.name for param in params[len(args) :]]
        if len(args) > len(params) or named.keys() - set(rest):
            raise CallError(
                "call the model", "the arguments are not those of the model",
                got=f"{len(args)} by position" + "".join(f", {name}" for name in named),
                expected=", ".join(map(str, params)) or "none",
            )  # fmt: skip
        if missing := [name for name in rest if name not in named]:
            raise CallError(
                "call the model", "an argument is missing", got=missing[0],
                expected=", ".join(map(str, params)),
            )  # fmt: skip
        if len(set(rest)) < len(rest):
            raise CallError(
                "call the model", "several parameters have one name", got=", ".join(rest),
                hint="pass the arrays by position",
            )  # fmt: skip
        given = [*args, *(named[name] for name in rest)]
        return [
            as_checked_array(f"call the model: {p.name}", p, _as_array(value, p))
            for p, value in zip(params, given, strict=True)
        ]

    def _new_outputs(self) -> list[Array]:
        return [np.empty(shape, dtype) for shape, dtype in self._results]


def _nested(kind: Type, outputs: Iterator[Array]) -> Outputs:
    """Return arrays in the structure of a type."""
    # No closure: one that calls itself is a cycle, which keeps the arrays of a call alive for long.
    if isinstance(kind, TupleType):
        return tuple(_nested(part, outputs) for part in kind.fields)
    return next(outputs)


class LoadedModel(RunnableModel):
    """A model whose kernels are loaded into this process, and one entry that calls them.

    Parameters
    ----------
    steps : Steps
        Its steps; they and their weights stay as they are from now on.
    codes : sequence of KernelCode
        The kernels of the steps.
    function : Function
        The entry.

    Notes
    -----
    Several threads may call it at the same time: each call has an arena of its own.
    """

    def __init__(self, steps: Steps, codes: Sequence[KernelCode], function: Function) -> None:
        super().__init__(steps)
        self.codes = tuple(codes)
        """Machine code of its different kernels."""
        self.function = function
        """The entry: it takes inputs, then outputs."""

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """Names of the different kernels, by their numbers in `steps`."""
        return tuple(code.function.name for code in self.codes)

    def run(self, *arrays: Any) -> None:
        """Compute the result into given arrays: inputs, then outputs, as in `params`.

        Raises
        ------
        CallError, ProgramError, OutOfMemory
            As of a call.
        """
        self.function(*arrays)

    def _computed(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Array]:
        """Return the outputs of a call; the entry alone checks arrays."""
        if not named and all(type(arg) is np.ndarray for arg in args):
            outputs = self._new_outputs()
            with contextlib.suppress(CallError):  # the checks below say which input it is
                self.function(*args, *outputs)
                return outputs
        return super()._computed(args, named)

    def stepped(self, /, *args: Any, **named: Any) -> SteppedRun:
        """Return a run that stops after each kernel.

        Parameters
        ----------
        *args, **named
            As of a call.
        """
        codes = [
            StepCode(step, code.function, code.weights)
            for step in self.steps
            for code in (self.codes[step.kernel],)
        ]
        inputs, outputs = self.checked_inputs(args, named), self._new_outputs()
        return SteppedRun(codes, inputs, outputs, self._steps.weights, self.plan.bytes)

    def save(self, path: str | Path) -> Path:
        """Write it to a file that `load_model` reads, in any process on a machine of this kind.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        UserError
            It cannot be written, or calls functions that the loading process must register.
        """
        return save_model(self._steps, self.codes, Path(path))

    def __repr__(self) -> str:
        plan = self.plan
        return (
            f"{type(self).__name__}({len(self.steps)} kernels, "
            f"arena {plan.bytes:,} bytes (bound {plan.bound:,}))"
        )


class CompiledModel(LoadedModel):
    """A model on a CPU, with what it was made of.

    Parameters
    ----------
    module : Module
        The module that consists of kernels, with the decisions of the passes.
    steps : Steps
        Its steps.
    kernels : sequence of ModelKernel
        The kernels of the steps.
    target : Target
        A CPU.
    function : Function
        The entry.
    """

    def __init__(
        self, module: Module, steps: Steps, kernels: Sequence[ModelKernel], target: Target,
        function: Function,
    ) -> None:  # fmt: skip
        super().__init__(steps, [code_of(kernel) for kernel in kernels], function)
        self.module = module
        """The module that consists of kernels."""
        self.target = target
        """What it was built for."""
        self.kernels = tuple(kernels)
        """Its different kernels."""

    @cached_property
    def works(self) -> Sequence[StepWork]:
        """What each step computes."""
        return works_of(self.kernels, self.steps)

    def __repr__(self) -> str:
        plan = self.plan
        return (
            f"{type(self).__name__}({len(self.steps)} kernels for {self.target.name}, "
            f"arena {plan.bytes:,} bytes (bound {plan.bound:,}))"
        )


def check_repeats(repeats: int) -> None:
    """Refuse a number of runs that is none."""
    if type(repeats) is not int or repeats < 1:
        raise CallError(
            "profile the model", "wrong number of runs", got=repr(repeats)[:200],
            expected="repeats, a whole number from 1", because="each time is the shortest of them",
        )  # fmt: skip


def code_of(kernel: ModelKernel) -> KernelCode:
    """Return the machine code of a kernel."""
    if not isinstance(kernel.built, Kernel):
        raise GraphError("build a model", "no machine code", got=type(kernel.built).__name__)
    return KernelCode(kernel.built, kernel.weights)


def _as_array(value: Any, param: Param) -> Any:
    """Return lists and numbers as an array; those of Python get the dtype that is wanted."""
    if isinstance(value, np.generic):
        return np.asarray(value)
    if not isinstance(value, list | tuple | int | float):
        return value
    try:
        return array_of(value, param.dtype)
    except DLCompilerError as error:
        raise CallError(
            f"call the model: {param.name}", f"does not fit: {error.problem}",
            got=error.got or repr(value)[:200], expected=str(param), because=error.because,
        ) from None  # fmt: skip


def _unused(name: str, known: Mapping[str, Any]) -> str:
    """Return a name that is not there yet: calls of different kernels may have the same name."""
    numbers = (f"{name} {n}" for n in itertools.count(2))
    return next(each for each in itertools.chain((name,), numbers) if each not in known)
