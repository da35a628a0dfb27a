"""What is drawn of a function: its kernels and calls, what each reads, and from which it reads.

Tuples, their fields and the variables of lets are no units: an edge leads through them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    Module,
    Tuple,
    TupleGetItem,
    Type,
    Var,
    types_of,
)
from dlcompiler.graph.ir import Node, Op, operands, post_order, tensor_types


@dataclass(eq=False)
class Unit:
    """A kernel, a call, a branch, a function as a value, or a parameter."""

    name: str
    """Name of the call, of the kernel or of the parameter."""
    parts: list[tuple[str, str]] = field(default_factory=list)
    """Name and operator of each call in it; empty for a parameter."""
    result: str = ""
    """Type of its result; "" if that is not known."""
    reads: list[Unit] = field(default_factory=list, repr=False)
    """Units whose results it needs, each once."""
    constants: int = 0
    """Number of constants and weights that it reads; [1]."""
    constant_bytes: int = 0
    """Size of these; [byte]."""
    is_input: bool = False
    is_result: bool = False
    is_fold: bool = False
    """It stands for several units that are left out."""
    is_computed: bool = True
    """It is a call; not a parameter, a branch, or a function as a value."""


def units_of(module: Module, function: Function, *, all_inputs: bool = False) -> list[Unit]:
    """Return the units of a function, each behind those that it reads.

    Parameters
    ----------
    module : Module
        The module.
    function : Function
        One of its functions.
    all_inputs : bool
        Whether each parameter is an input; else some may be weights, by where they are read.
    """
    found = _Reader(module, function, all_inputs).units
    # A branch may read what is computed before it, and is found before it.
    return _in_order(found)


def _in_order(units: list[Unit]) -> list[Unit]:
    """Return units behind those that they read, else in the order in which they are.

    Functions that call each other read each other; the second of these edges is dropped.
    """
    order: dict[Unit, None] = {}
    for first in units:
        stack, on_path = [first], {first}
        while stack:
            unit = stack[-1]
            following = next((each for each in unit.reads if each not in order), None)
            if unit in order or following is None:
                order[unit] = None
                on_path.discard(stack.pop())
            elif following in on_path:
                unit.reads.remove(following)
            else:
                stack.append(following)
                on_path.add(following)
    return list(order)


def _types(module: Module) -> Mapping[Node, Type]:
    try:
        return types_of(module)
    except GraphError:  # A module that is wrong shows itself, too.
        return {}


def type_text(kind: Type | None) -> str:
    """Return a type in a few words: ``float32[1, 64]``.

    >>> from dlcompiler.graph import TensorType
    >>> type_text(TensorType((1, 64)))
    'float32[1, 64]'
    """
    tensors = tensor_types(kind) if kind is not None else ()
    if not tensors:
        return "" if kind is None else "function"
    first = f"{tensors[0].dtype}[{', '.join(map(str, tensors[0].shape))}]"
    return first if len(tensors) == 1 else f"{first} and {len(tensors) - 1} more"


def size_of(kind: Type | None) -> int:
    """Return the bytes of a value; dimensions that are not known count as 1; [byte]."""
    return sum(
        math.prod(e for e in tensor.shape if isinstance(e, int)) * dtypes.bytes_of(tensor.dtype)
        for tensor in (tensor_types(kind) if kind is not None else ())
    )


class _Reader:
    """Finds the units of a function, in the order of computation."""

    def __init__(self, module: Module, function: Function, all_inputs: bool) -> None:
        self.types = _types(module)
        self.units: list[Unit] = []
        self.made: dict[Node, Unit] = {}
        self.values: dict[Var, Node] = {}
        """Variables of lets, and what they stand for."""
        self.inputs = set(function.params) if all_inputs else _inputs(function)
        outer = list(post_order(function.body, _below))
        for node in outer:
            if isinstance(node, Let):
                self.values[node.var] = node.value
        for param in function.params:
            if param in self.inputs:
                self._add(param, Unit(param.name, is_input=True, is_computed=False))
        needs = [found for node in outer if (found := self._visit(node)) is not None]
        for unit, args in needs:
            self._connect(unit, args)
        for unit in self._found(function.body):
            unit.is_result = True

    def _visit(self, node: Node) -> tuple[Unit, tuple[Node, ...]] | None:
        """Make the unit of a node, if it has one; return it with what it reads."""
        match node:
            case Call(Function() as kernel):
                calls = [c for c in post_order(kernel) if _is_operation(c)]
                unit = Unit(node.name or "function", [_named(call) for call in calls])
                inside = () if kernel.is_kernel else _inside(kernel)
                return self._add(node, unit), (*node.args, *inside)
            case Call(Op() | GlobalVar(), args):
                name, operator = _named(node)
                return self._add(node, Unit(name, [(name, operator)])), args
            case Call(callee, args):
                return self._add(node, Unit("call", [("call", "")])), (callee, *args)
            case If():
                unit = Unit("if", [("if", "one of two branches")], is_computed=False)
                return self._add(node, unit), _inside(node)
            case Function():
                unit = Unit("function", [("function", "a value")], is_computed=False)
                return self._add(node, unit), _inside(node)
        return None

    def _add(self, node: Node, unit: Unit) -> Unit:
        unit.result = type_text(self.types.get(node))
        self.units.append(unit)
        self.made[node] = unit
        return unit

    def _connect(self, unit: Unit, args: tuple[Node, ...]) -> None:
        """Note what a unit reads."""
        for leaf in dict.fromkeys(args):
            if isinstance(leaf, Constant) or (isinstance(leaf, Var) and self._is_weight(leaf)):
                unit.constants += 1
                unit.constant_bytes += size_of(
                    leaf.type if isinstance(leaf, Constant) else self.types.get(leaf)
                )
            for found in self._found(leaf):
                if found is not unit and found not in unit.reads:
                    unit.reads.append(found)

    def _is_weight(self, var: Var) -> bool:
        return var not in self.values and var not in self.made

    def _found(self, node: Node) -> list[Unit]:
        """Return the units that a value comes from: of a tuple, those of its fields."""
        found: dict[Unit, None] = {}
        stack, seen = [node], {id(node)}
        while stack:
            current = stack.pop()
            if current in self.made:
                found[self.made[current]] = None
                continue
            below: tuple[Node, ...] = ()
            match current:
                case Tuple(fields):
                    below = fields
                case TupleGetItem(value):
                    below = (value,)
                case Let(_, _, body):
                    below = (body,)
                case Var() if current in self.values:
                    below = (self.values[current],)
            stack += [each for each in reversed(below) if id(each) not in seen]
            seen.update(map(id, below))
        return list(found)


def _inside(node: Node) -> tuple[Node, ...]:
    """Return what branches or a function may read: everything inside."""
    return tuple(each for each in post_order(node) if each is not node)


def _below(node: Node) -> tuple[Node, ...]:
    """Return what is computed before a node, in the same scope; the body of a let, too."""
    if isinstance(node, Let):
        return (node.value, node.body)
    if isinstance(node, Call) and isinstance(node.op, Function | Op | GlobalVar):
        return node.args
    return operands(node)


def _inputs(function: Function) -> set[Var]:
    """Return the parameters that are drawn: the first, and each that is a first operand."""
    first = {n.args[0] for n in post_order(function.body) if isinstance(n, Call) and n.args}
    return {param for place, param in enumerate(function.params) if place == 0 or param in first}


def _is_operation(node: Node) -> bool:
    return isinstance(node, Call) and isinstance(node.op, Op)


def _named(call: Node) -> tuple[str, str]:
    """Return the name and the operator of a call."""
    if not isinstance(call, Call) or not isinstance(call.op, Op | GlobalVar):
        return "call", ""
    operator = call.op.name if isinstance(call.op, Op) else f"@{call.op.name}"
    return call.name or operator, operator
