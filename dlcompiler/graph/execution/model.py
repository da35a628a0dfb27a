"""Models that run: one loaded module, called with arrays."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import CallError, GraphError
from dlcompiler.graph.execution.entry import KernelFacts, entry_of, loaded_entry
from dlcompiler.graph.execution.kernels import ModelKernel, built_kernel, pack_weights
from dlcompiler.graph.execution.steps import Place, Step, Steps, steps_of
from dlcompiler.graph.ir import MAIN, Module, TupleType, Type
from dlcompiler.graph.memory import MemoryPlan
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.pipeline import optimize
from dlcompiler.measurement.aligned import aligned_copy
from dlcompiler.pipeline.executables import Kernel
from dlcompiler.runtime.arguments import Param, as_checked_array
from dlcompiler.runtime.options import Options
from dlcompiler.target import Target, resolve

Outputs: TypeAlias = "Array | tuple[Outputs, ...]"


@dataclass(frozen=True, slots=True)
class KernelTime:
    """How long a kernel of a model took."""

    name: str
    """Name of the call in the graph."""
    kernel: str
    """Name of its code."""
    seconds: float
    """Shortest of the measured calls; [s]."""


class CompiledModel:
    """A model on a CPU: its kernels, an arena with planned offsets, and one entry.

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

    Notes
    -----
    Several threads may call it at the same time: each call has an arena of its own.
    """

    def __init__(
        self, module: Module, steps: Steps, kernels: Sequence[ModelKernel], target: Target
    ) -> None:
        self.module = module
        """The module that consists of kernels."""
        self.target = target
        """What it was built for."""
        self.kernels = tuple(kernels)
        """Its different kernels."""
        self._steps = steps
        pack_weights(steps, self.kernels)
        self._weights = [aligned_copy(array) for array in steps.weights]
        facts = []
        for kernel in self.kernels:
            first = len(self._weights)
            self._weights += [aligned_copy(array) for array in kernel.weights]
            inside = tuple(range(first, len(self._weights)))
            called = _code(kernel)
            facts.append(KernelFacts(called.messages, called.uses_threads, inside))
        self._facts = tuple(facts)
        steps.weights[:] = self._weights
        self._function = loaded_entry(
            entry_of(steps, facts), steps.params,
            [_code(kernel).module.address(_code(kernel).symbol) for kernel in self.kernels],
            [array.ctypes.data for array in self._weights], Options.for_target(target), "the model",
        )  # fmt: skip

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

    def __call__(self, *args: Any, **named: Any) -> Outputs:
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
        inputs = self._inputs(args, named)
        outputs = self._new_outputs()
        self._function(*inputs, *outputs)
        return self._nested(outputs)

    def run(self, *arrays: Any) -> None:
        """Compute the result into given arrays: inputs, then outputs, as in `params`.

        Raises
        ------
        CallError, ProgramError, OutOfMemory
            As of a call.
        """
        self._function(*arrays)

    def values(self, *args: Any, **named: Any) -> dict[str, Array]:
        """Return what each kernel stores, by its name, in the order of the steps; it is slow.

        Parameters
        ----------
        *args, **named
            As of a call.
        """
        found: dict[str, Array] = {}
        for step, arrays in self._stepped(self._inputs(args, named)):
            stored = arrays[len(arrays) - step.outputs :]
            for n, array in enumerate(stored):
                own = step.name if len(stored) == 1 else f"{step.name}.{n}"
                name, again = own, 2
                while name in found:
                    name, again = f"{own} {again}", again + 1
                found[name] = array.copy()
        return found

    def profile(self, *args: Any, repeats: int = 10, **named: Any) -> list[KernelTime]:
        """Measure each kernel, one after another.

        Parameters
        ----------
        *args, **named
            As of a call.
        repeats : int
            Number of runs of the whole model; [1].

        Returns
        -------
        list of KernelTime
            In the order of the steps; measured on this machine, one call at a time: a call from
            Python, of 1 µs or so, is included.
        """
        inputs = self._inputs(args, named)
        best = [float("inf")] * len(self.steps)
        for _ in range(repeats):
            start = time.perf_counter()
            for n, _ in enumerate(self._stepped(inputs)):
                best[n] = min(best[n], time.perf_counter() - start)
                start = time.perf_counter()
        names = [self.kernels[step.kernel].name for step in self.steps]
        return [
            KernelTime(step.name, name, seconds)
            for step, name, seconds in zip(self.steps, names, best, strict=True)
        ]

    # -- one step after another, from Python ------------------------------------------------------

    def _stepped(self, inputs: Sequence[Array]) -> Any:
        """Run the steps one by one, and yield each with its arrays."""
        outputs = self._new_outputs()
        arena = np.empty(self.plan.bytes, np.uint8)
        given = {"input": inputs, "output": outputs, "weight": self._weights, "arena": [arena]}
        calls = []
        for step in self.steps:
            kernel, facts = _code(self.kernels[step.kernel]), self._facts[step.kernel]
            inside = [self._weights[number] for number in facts.weights]
            arrays = [_view(place, given) for place in step.places]
            arrays[len(arrays) - step.outputs : len(arrays) - step.outputs] = inside
            calls.append((step, kernel, [_shaped(a, p) for a, p in zip(arrays, kernel.params, strict=True)]))
        for step, kernel, arrays in calls:
            kernel._run([array.ctypes.data for array in arrays])
            yield step, arrays

    # -- arguments --------------------------------------------------------------------------------

    def _inputs(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Array]:
        params = self._steps.inputs
        names = [param.name for param in params]
        known = dict(zip(names, args, strict=False))
        if len(args) > len(names) or named.keys() - set(names) or known.keys() & named.keys():
            raise CallError(
                "call the model", "the arguments are not those of the model",
                got=f"{len(args)} by position" + "".join(f", {name}" for name in named),
                expected=", ".join(map(str, params)) or "none",
            )  # fmt: skip
        known.update(named)
        if missing := [name for name in names if name not in known]:
            raise CallError(
                "call the model", "an argument is missing", got=missing[0],
                expected=", ".join(map(str, params)),
            )  # fmt: skip
        return [
            as_checked_array(f"call the model: {p.name}", p, _as_array(known[p.name], p))
            for p in params
        ]

    def _new_outputs(self) -> list[Array]:
        return [np.empty(p.static_shape, dtypes.to_numpy(p.dtype)) for p in self._steps.outputs]

    def _nested(self, outputs: Sequence[Array]) -> Outputs:
        rest = iter(outputs)

        def nested(kind: Type) -> Outputs:
            if isinstance(kind, TupleType):
                return tuple(nested(part) for part in kind.fields)
            return next(rest)

        return nested(self._steps.result)

    def __repr__(self) -> str:
        plan = self.plan
        return (
            f"CompiledModel({len(self.steps)} kernels for {self.target.name}, "
            f"arena {plan.bytes:,} bytes (bound {plan.bound:,}))"
        )


def build(
    module: Module, target: str | Target = "cpu", *, opt_level: int = 3, function: str = MAIN
) -> CompiledModel:
    """Build a model: optimise it, compile its kernels, and load it.

    Parameters
    ----------
    module : Module
        A model whose types are known.
    target : str or Target
        A CPU.
    opt_level : int
        Of `optimize`; kernels that were fused before stay as they are.
    function : str
        Which function of the module.

    Returns
    -------
    CompiledModel

    Raises
    ------
    GraphError
        If the model has branches or calls, or an extent is known only in a run.
    TargetError
        If the target cannot run it.

    Examples
    --------
    >>> import numpy
    >>> from dlcompiler import graph
    >>> from dlcompiler.graph import op
    >>> x = graph.var("x", (2, 3))
    >>> model = build(graph.Module.from_expr(op.nn.relu(x)))
    >>> model(numpy.array([[-1, 0, 1], [2, -2, 3]], "float32"))
    array([[0., 0., 1.],
           [2., 0., 3.]], dtype=float32)
    """
    machine = resolve(target)
    made = optimize(module, opt_level)
    steps = steps_of(made, function)
    kernels = [built_kernel(call, machine) for call in steps.kernels]
    return CompiledModel(made, steps, kernels, machine)


def _code(kernel: ModelKernel) -> Kernel:
    if not isinstance(kernel.built, Kernel):
        raise GraphError("build a model", "no machine code", got=type(kernel.built).__name__)
    return kernel.built


def _as_array(value: Any, param: Param) -> Any:
    if isinstance(value, list | tuple | int | float):
        return np.asarray(value, dtypes.to_numpy(param.dtype))
    return value


def _view(place: Place, given: Mapping[str, Sequence[Array]]) -> Array:
    """Return the bytes of a place."""
    if place.kind == "arena":
        return given["arena"][0][place.number : place.number + place.bytes]
    array = given[place.kind][place.number]
    return array.reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)


def _shaped(raw: Array, param: Param) -> Array:
    if raw.dtype != np.uint8 or param.dtype == "uint8":
        return raw.reshape(param.static_shape)
    return raw.view(dtypes.to_numpy(param.dtype)).reshape(param.static_shape)
