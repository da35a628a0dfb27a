"""The values that kernels store: how long each lives, and which kernels write in place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dlcompiler.errors import GraphError
from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Function,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    nbytes,
    post_order,
    short_name,
    tensor_types,
)
from dlcompiler.graph.operators import REGISTRY, Pattern

ALIGNMENT = 64
"""Distance of the begins of blocks in the arena: a cache line, and the longest vector; [byte]."""


@dataclass(eq=False, slots=True)
class Value:
    """A tensor that a kernel stores."""

    name: str
    """Name of the kernel; with the number of the output if it has several."""
    type: TensorType
    made_at: int
    """Number of the kernel that stores it; [1]."""
    used_at: int
    """Number of the last kernel that reads it; a result of the function lives beyond the last."""

    @property
    def bytes(self) -> int:
        """Its size; [byte]."""
        return nbytes(self.type)


Tree: TypeAlias = "Value | tuple[Tree, ...] | None"
"""What a node stands for: a value, tuples of them, or None for a parameter or a constant."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A call that computes values, in the order of the program."""

    call: Call
    name: str
    number: int
    inputs: tuple[tuple[int, Value], ...]
    """Places among the arguments, and the values that are read; parameters are left out."""
    outputs: tuple[Value, ...]


@dataclass(slots=True)
class Program:
    """The kernels of a function in order, and the values between them."""

    kernels: list[Kernel] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    aliases: list[tuple[str, Value]] = field(default_factory=list)
    """Kernels that only reshape a value: they compute nothing."""
    trees: dict[Node, Tree] = field(default_factory=dict)
    """What each node outside of kernels stands for."""

    @property
    def naive_bytes(self) -> int:
        """Bytes if no memory is reused; [byte]."""
        return sum(aligned(value.bytes) for value in self.values)


def aligned(size: int) -> int:
    """Return a size rounded up to the alignment; [byte]."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def program_of(function: Function, types: Types) -> Program:
    """Return the kernels of a function and the values between them.

    Parameters
    ----------
    function : Function
        Its calls are kernels: functions that `fuse_ops` made, or operators.
    types : Types
        Types of its nodes.

    Raises
    ------
    GraphError
        If the function has branches, lets or calls of functions that are no kernels, or a size is
        not known.
    """
    program = Program()
    trees = program.trees
    for node in post_order(function.body, outer_children):
        trees[node] = _tree(node, trees, program, types)
    for value in _leaves(trees[function.body]):
        value.used_at = len(program.kernels)
    return program


def outer_children(node: Node) -> tuple[Node, ...]:
    """Return the children of a node; the inside of a kernel is left out."""
    if isinstance(node, Call):
        return node.args
    return () if isinstance(node, Function) else children(node)


def _tree(node: Node, trees: dict[Node, Tree], program: Program, types: Types) -> Tree:
    match node:
        case Var() | Constant():
            return None
        case Tuple(fields):
            return tuple(trees[each] for each in fields)
        case TupleGetItem(value, index):
            whole = trees[value]
            return whole[index] if isinstance(whole, tuple) else None
        case Call(Op()):
            return _kernel(node, trees, program, types)
        case Call(Function(is_kernel=True)):
            return _kernel(node, trees, program, types)
    name = "a call of a function that is no kernel" if isinstance(node, Call) else None
    raise GraphError(
        "plan memory", "takes functions of kernels only", got=name or type(node).__name__,
        because="when a branch or a function runs, and what it reads, is known only in a run",
    )  # fmt: skip


def _kernel(call: Call, trees: dict[Node, Tree], program: Program, types: Types) -> Tree:
    """Add a kernel, or the alias that a reshape is; return its outputs."""
    number = len(program.kernels)
    name = call.name or short_name(call.op)
    inputs = [(i, v) for i, arg in enumerate(call.args) for v in _leaves(trees[arg])]
    if isinstance(value := _reshaped(call, trees), Value):
        program.aliases.append((name, value))
        return value
    for _, value in inputs:
        value.used_at = number
    outputs, tree = _made(types[call], name, number)
    program.kernels.append(Kernel(call, name, number, tuple(inputs), outputs))
    program.values += outputs
    return tree


def _reshaped(call: Call, trees: Mapping[Node, Tree]) -> Tree:
    """Return what a kernel that only reshapes reads; None for a parameter, or another kernel."""
    if not (isinstance(call.op, Function) and call.op.attrs.get("reshape_only")):
        return None
    arguments = [trees[arg] for arg in call.args]
    known: dict[Node, Tree] = dict(zip(call.op.params, arguments, strict=True))
    for node in post_order(call.op.body):
        match node:
            case TupleGetItem(value, index):
                whole = known[value]
                known[node] = whole[index] if isinstance(whole, tuple) else None
            case Call(_, (data, *_)):
                known[node] = known.get(data)  # None for a constant inside the kernel
    return known.get(call.op.body)


def _made(kind: Type, name: str, number: int) -> tuple[tuple[Value, ...], Tree]:
    """Return the values of a type, flat and as they are nested."""
    tensors = tensor_types(kind)
    names = [name] if len(tensors) == 1 else [f"{name}.{i}" for i in range(len(tensors))]
    values = tuple(Value(n, t, number, number) for n, t in zip(names, tensors, strict=True))
    rest = iter(values)

    def nested(part: Type) -> Tree:
        if isinstance(part, TupleType):
            return tuple(nested(each) for each in part.fields)
        return next(rest)

    return values, nested(kind)


def _leaves(tree: Tree) -> Iterator[Value]:
    if isinstance(tree, Value):
        yield tree
    elif tree is not None:
        for part in tree:
            yield from _leaves(part)


# -- kernels that need no memory of their own -----------------------------------------------------


def overwritten(kernel: Kernel, types: Types) -> Value | None:
    """Return the input in whose place a kernel can store its output; None if there is none.

    The kernel must be the last reader, and read only the element that it stores: then each element
    was read before it is overwritten.
    """
    if len(kernel.outputs) != 1:
        return None
    (output,) = kernel.outputs
    for place, value in kernel.inputs:
        is_last = value.used_at == kernel.number and value.made_at < kernel.number
        count = sum(other is value for _, other in kernel.inputs)
        fits = value.bytes == output.bytes and value.type.shape == output.type.shape
        if is_last and count == 1 and fits and _is_elementwise(kernel.call, place, types):
            return value
    return None


def _is_elementwise(call: Call, place: int, types: Types) -> bool:
    """Tell whether a kernel reads of an argument only the element that it stores."""
    shape = types.tensor(call).shape
    if isinstance(call.op, Op):
        return _reads_one(call, types, shape)
    assert isinstance(call.op, Function)
    reach: set[Node] = {call.op.params[place]}
    for node in post_order(call.op.body):
        if not any(child in reach for child in children(node)):
            continue
        if not (isinstance(node, Call) and _reads_one(node, types, shape)):
            return False
        reach.add(node)
    return True


def _reads_one(call: Call, types: Types, shape: tuple[object, ...]) -> bool:
    """Tell whether a call is elementwise, with full operands of one shape."""
    if not isinstance(call.op, Op) or REGISTRY[call.op.name].pattern > Pattern.BROADCAST:
        return False
    kinds = [types[node] for node in (call, *call.args)]
    return all(isinstance(k, TensorType) and k.shape in (shape, ()) for k in kinds) and all(
        isinstance(types[arg], TensorType) for arg in call.args
    )


def joined(kernel: Kernel, types: Types) -> list[tuple[Value, int]] | None:
    """Return where the inputs of a concatenation lie in its result; None for another kernel.

    Returns
    -------
    list of (value, int), or None
        Each input with its distance from the begin of the result; [byte]. None, too, if an input
        is a parameter, stands twice, or is not contiguous in the result.
    """
    call = kernel.call.op.body if isinstance(kernel.call.op, Function) else kernel.call
    if not (isinstance(call, Call) and isinstance(call.op, Op) and call.op.name == "concatenate"):
        return None
    fields = call.args[0].fields if isinstance(call.args[0], Tuple) else ()
    values = [value for _, value in kernel.inputs]
    whole = types.tensor(call)
    axis = int(call.attrs.get("axis", 0)) % whole.rank  # type: ignore[arg-type]  # checked by its kind
    is_flat = math.prod(e for e in whole.shape[:axis] if isinstance(e, int)) == 1
    is_all = len(values) == len(fields) == len(set(values))
    function = kernel.call.op
    if not (is_flat and is_all and isinstance(function, Function) and fields == function.params):
        return None
    found, offset = [], 0
    for value in values:
        found.append((value, offset))
        offset += value.bytes
    return found
