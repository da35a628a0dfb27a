"""A model as a list of steps: which kernel runs next, and where its operands lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from dlcompiler.errors import GraphError
from dlcompiler.graph.execution.definition import kernel_function, known_shape
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import (
    MAIN,
    Call,
    Constant,
    Function,
    Module,
    Node,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    nbytes,
    op,
    post_order,
    structural_key,
    tensor_types,
)
from dlcompiler.graph.memory import MemoryPlan, plan_memory
from dlcompiler.graph.memory.devices import Devices, copied_between, devices_of
from dlcompiler.graph.memory.plan import plan_on_devices
from dlcompiler.graph.memory.values import (
    Kernel,
    Program,
    Tree,
    Value,
    joined,
    outer_children,
    program_of,
)
from dlcompiler.graph.operators.base import Array
from dlcompiler.runtime.arguments import Param

COPY = -1
"""Number of the kernel of a step that copies a value between devices."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies while a model runs."""

    kind: Literal["input", "output", "weight", "arena"]
    number: int
    """Which array it is; in the arena, the distance from its begin [byte]."""
    bytes: int
    """Size; [byte]."""
    device: str = ""
    """In whose memory; "" if the model runs on one device."""

    def overlaps(self, other: Place) -> bool:
        """Tell whether two tensors share memory of the arena."""
        if self.kind != "arena" or other.kind != "arena":
            return False
        return self.number < other.number + other.bytes and other.number < self.number + self.bytes


Places: TypeAlias = "Place | tuple[Places, ...]"


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel of a model, before it is built."""

    function: Function
    is_in_place: bool
    """Whether it stores an output in the place of an input."""
    constants: frozenset[int] = frozenset()
    """Parameters that are constants of the model, of those that are one tensor."""
    device: str = ""
    """Which device runs it; "" if the model runs on one."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a kernel."""

    name: str
    """Name of the call in the graph."""
    kernel: int
    """Number of the kernel; `COPY` for a copy between devices; [1]."""
    places: tuple[Place, ...]
    """Where its operands lie: inputs first, then outputs."""
    values: tuple[str, ...]
    """Names of the values that it stores: those of the calls that made them. A copy between devices
    has none: its places are what it reads and what it writes."""
    device: str = ""
    """Which device runs it; "" if the model runs on one."""

    @property
    def outputs(self) -> int:
        """Number of outputs; [1]."""
        return len(self.values)


@dataclass(slots=True)
class Steps:
    """A model whose kernels, operands and memory are known."""

    params: tuple[Param, ...]
    """Arrays of a call: inputs, then outputs."""
    result: Type
    """Type of the result; its tensors are the outputs from left to right."""
    plans: Mapping[str, MemoryPlan]
    """Where values between kernels lie, for each device; "" is the only one."""
    kernels: list[KernelCall] = field(default_factory=list)
    """Different kernels; equal ones are there once."""
    weights: list[Array] = field(default_factory=list)
    """Constants of the model."""
    steps: list[Step] = field(default_factory=list)
    """In the order in which they run."""

    @property
    def plan(self) -> MemoryPlan:
        """Where values between kernels lie, on the first device."""
        return next(iter(self.plans.values()))

    @property
    def inputs(self) -> tuple[Param, ...]:
        """The arrays that a call reads."""
        return tuple(param for param in self.params if not param.is_output)

    @property
    def outputs(self) -> tuple[Param, ...]:
        """The arrays that a call writes."""
        return tuple(param for param in self.params if param.is_output)


def steps_of(
    module: Module, function: str = MAIN, alignment: Mapping[str, int] | None = None
) -> Steps:
    """Return the steps of a function.

    Parameters
    ----------
    module : Module
        After `fuse_ops`; without fusion each operator is a kernel.
    function : str
        Which function.
    alignment : mapping, optional
        For a model on devices: where values may begin in the memory of each, the default device
        first; [byte]. None: kernels may write in place, and all run on one device.

    Raises
    ------
    GraphError
        If the function has branches, or an extent is known only in a run.

    Notes
    -----
    What a kernel stores for the caller lies in the array of the caller, not in the arena. A
    concatenation whose parts already lie in its result is no step.
    """
    typed = infer_types(module)
    types = types_of(typed)
    chosen = typed[function]
    program = program_of(chosen, types)
    result = types[chosen.body]
    inputs = [p for param in chosen.params for p in _params(types[param], param.name)]
    outputs = [_param(kind, f"out{n}", True) for n, kind in enumerate(tensor_types(result))]
    if alignment is None:
        devices = Devices("", {}, {})
        plans = {"": plan_memory(typed, function)}
    else:
        devices = devices_of(program, next(iter(alignment)), set(alignment))
        plans = plan_on_devices(program, devices.values, alignment)
    made = Steps((*inputs, *outputs), result, plans)
    _Placer(made, chosen, program, types, devices).run()
    return made


def _params(kind: Type, name: str) -> Iterator[Param]:
    if isinstance(kind, TupleType):
        for n, part in enumerate(kind.fields):
            yield from _params(part, f"{name}.{n}")
        return
    if not isinstance(kind, TensorType):
        raise GraphError("build a model", "a parameter is a function", got=name)
    yield _param(kind, name, False)


def _param(kind: TensorType, name: str, is_output: bool) -> Param:
    return Param(name, known_shape(kind, name), kind.dtype, is_output)


class _Placer:
    """Finds the places of all operands of a function, and makes its steps."""

    def __init__(
        self, made: Steps, function: Function, program: Program, types: Types, devices: Devices
    ) -> None:
        self.made = made
        self.types = types
        self.function = function
        self.program = program
        self.devices = devices
        self.arena = {
            (p.first, p.name): Place("arena", p.offset, p.bytes, device)
            for device, plan in made.plans.items()
            for p in plan.placements
        }
        self.stored: dict[Value, Place] = {}
        """Values that a kernel stores for the caller."""
        self.places: dict[Node, Places] = {}
        self.kernels: dict[object, int] = {}

    def run(self) -> None:
        body = self.function.body
        numbers = iter(range(len(self.made.inputs)))
        for param in self.function.params:
            self.places[param] = self._inputs(self.types[param], numbers)
        leaves = self._leaves(body)
        for n, (leaf, kind) in enumerate(zip(leaves, tensor_types(self.made.result), strict=True)):
            if isinstance(leaf, Value) and leaf not in self.stored:
                self.stored[leaf] = Place("output", n, nbytes(kind), self.devices.default)
        for node in post_order(body, outer_children):
            if node not in self.places:
                self.places[node] = self._places(node)
        for kernel in self.program.kernels:
            self._step(kernel)
        for n, place in enumerate(_flat(self.places[body])):
            kind = tensor_types(self.made.result)[n]
            result = Place("output", n, place.bytes, self.devices.default)
            if place != result:
                self._copy(place, result, kind)

    def _inputs(self, kind: Type, numbers: Iterator[int]) -> Places:
        if isinstance(kind, TupleType):
            return tuple(self._inputs(part, numbers) for part in kind.fields)
        assert isinstance(kind, TensorType)
        return Place("input", next(numbers), nbytes(kind), self.devices.default)

    def _leaves(self, node: Node) -> list[Value | None]:
        """Return the values of a result from left to right; None for what no kernel stores."""

        def flat(tree: Tree, kind: Type) -> list[Value | None]:
            if not isinstance(kind, TupleType):
                return [tree if isinstance(tree, Value) else None]
            parts = tree if isinstance(tree, tuple) else (None,) * len(kind.fields)
            return [v for t, k in zip(parts, kind.fields, strict=True) for v in flat(t, k)]

        return flat(self.program.trees[node], self.types[node])

    def _places(self, node: Node) -> Places:
        match node:
            case Constant(value):
                self.made.weights.append(value)
                return Place("weight", len(self.made.weights) - 1, value.nbytes)
            case Tuple(fields):
                return tuple(self.places[each] for each in fields)
            case TupleGetItem(whole, index):
                parts = self.places[whole]
                assert isinstance(parts, tuple)
                return parts[index]
        return self._of_tree(self.program.trees[node])

    def _of_tree(self, tree: Tree) -> Places:
        if isinstance(tree, tuple):
            return tuple(self._of_tree(part) for part in tree)
        assert isinstance(tree, Value)
        if tree in self.stored:
            return self.stored[tree]
        return self.arena[tree.made_at, tree.name]

    def _step(self, kernel: Kernel) -> None:
        call = kernel.call
        inputs = [place for arg in call.args for place in _flat(self.places[arg])]
        stored = [place for value in kernel.outputs for place in _flat(self._of_tree(value))]
        values = _value_names(kernel, len(stored))
        if copied_between(call) and self.devices.default:
            for source, to in zip(inputs, stored, strict=True):
                # A weight is on each device that needs it.
                begin = replace(source, device=to.device) if source.kind == "weight" else source
                self.made.steps.append(Step(kernel.name, COPY, (begin, to), (), to.device))
        elif not self._is_joined(kernel):
            device = self.devices.kernels.get(kernel.number, self.devices.default)
            function = kernel_function(call, self.types)
            self._add(kernel.name, function, inputs, stored, values, device)

    def _is_joined(self, kernel: Kernel) -> bool:
        """Tell whether a concatenation has nothing to do: its parts lie in its result already."""
        parts = joined(kernel, self.types)
        if parts is None:
            return False
        (whole,) = _flat(self._of_tree(kernel.outputs[0]))
        return (
            not self.devices.default
            and all(
                self._of_tree(value)
                == replace(whole, number=whole.number + offset, bytes=value.bytes)
                for value, offset in parts
            )
            and (whole.kind == "arena")
        )

    def _copy(self, source: Place, to: Place, kind: TensorType) -> None:
        param = Var("p0", kind)
        copy = Function((param,), Call(op("copy"), (param,)), kind)
        self._add("copy", copy, [source], [to], ["copy"], self.devices.default)

    def _add(
        self, name: str, function: Function, inputs: list[Place], outputs: list[Place],
        values: Sequence[str], device: str,
    ) -> None:  # fmt: skip
        inputs = [replace(at, device=device) if at.kind == "weight" else at for at in inputs]
        is_in_place = any(a.overlaps(b) for a in inputs for b in outputs)
        kinds = tuple(param.type for param in function.params)
        constants: frozenset[int] = frozenset()
        if len(inputs) == len(function.params):
            constants = frozenset(n for n, at in enumerate(inputs) if at.kind == "weight")
        key = (structural_key(function), kinds, is_in_place, constants, device)
        if key not in self.kernels:
            self.kernels[key] = len(self.made.kernels)
            self.made.kernels.append(KernelCall(function, is_in_place, constants, device))
        step = Step(name, self.kernels[key], (*inputs, *outputs), tuple(values), device)
        self.made.steps.append(step)


def _value_names(kernel: Kernel, count: int) -> list[str]:
    """Return a name for each value that a kernel stores: that of the call that made it."""
    made = kernel.call.op.body if isinstance(kernel.call.op, Function) else kernel.call
    nodes = list(made.fields) if isinstance(made, Tuple) else [made]
    names = [_made_by(node) or kernel.name for node in nodes]
    if len(names) == count:
        return names
    return [f"{names[0]}.{n}" for n in range(count)]


def _made_by(node: Node) -> str:
    """Return the name of the call that made a value; "" if it has none."""
    while isinstance(node, TupleGetItem):
        node = node.value
    return node.name if isinstance(node, Call) else ""


def _flat(places: Places) -> list[Place]:
    if isinstance(places, Place):
        return [places]
    return [place for part in places for place in _flat(part)]
