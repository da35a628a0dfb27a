"""Kernels after fusion: who reads whose results, what each moves and computes, and joining them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from dlcompiler.graph.ir import (
    PRIMITIVE,
    Call,
    Expr,
    Function,
    Module,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    calls,
    children,
    nbytes,
    post_order,
    rewrite,
    short_name,
    substitute,
    tensor_types,
)
from dlcompiler.graph.operators import REGISTRY, Pattern

MOST_NAMES = 3
"""Most calls that are named in the name of a kernel; [1]."""
DEAR = 20
"""Simple operations in the time of exp, a division or a square root; [1]."""
SIMPLE = frozenset({
    "abs", "add", "broadcast_to", "cast", "clip", "copy", "equal", "expand_dims", "full",
    "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_not", "logical_or",
    "maximum", "minimum", "multiply", "negative", "nn.batch_flatten", "nn.bias_add",
    "nn.leaky_relu", "nn.relu", "nn.relu6", "not_equal", "ones", "reshape", "split", "square",
    "squeeze", "strided_slice", "subtract", "transpose", "where", "zeros",
})  # fmt: skip
"""Operators with about one operation for each element; others count as `DEAR`.

**Source:** the list of expensive operations in XLA's ``InstructionFusion`` names the others: exp,
log, tanh, power, square roots, divisions of floats.
"""
EXACT = frozenset({
    "abs", "broadcast_to", "clip", "concatenate", "copy", "equal", "expand_dims", "full", "greater",
    "greater_equal", "less", "less_equal", "logical_and", "logical_not", "logical_or", "maximum",
    "minimum", "negative", "nn.batch_flatten", "nn.relu", "nn.relu6", "not_equal", "ones",
    "reshape", "squeeze", "strided_slice", "transpose", "where", "zeros",
})  # fmt: skip
"""Operators that never round: however they are compiled, copies give the same bits."""


@dataclass(frozen=True)
class KernelGraph:
    """The kernels of a function that is plain data flow."""

    function: Function
    kernels: tuple[Call, ...]
    """In the order in which they are computed."""
    users: Mapping[Node, Sequence[Node]]
    """The nodes that use a value directly; the function itself uses its result."""
    above: Mapping[Node, int]
    """The kernels that a value depends on: bit n is set for kernel n."""
    below: Mapping[Node, int]
    """The kernels that depend on a value."""
    number: Mapping[Node, int]
    """The place of each kernel in `kernels`; [1]."""

    def meet(self, kernels: Iterable[Call]) -> bool:
        """Tell whether a kernel depends on two of them, or is one and depends on another one."""
        seen = 0
        for call in dict.fromkeys(kernels):
            reach = self.below[call] | 1 << self.number[call]
            if seen & reach:
                return True
            seen |= reach
        return False


def kernel_graph(function: Function) -> KernelGraph | None:
    """Return the kernels of a function; None if it has branches, lets, or calls of functions."""
    users: dict[Node, list[Node]] = defaultdict(list)
    above: dict[Node, int] = {}
    number: dict[Node, int] = {}
    kernels: list[Call] = []
    nodes: list[Node] = []
    for node in post_order(function.body, outside):
        operands = outside(node)
        is_plain = is_kernel_call(node) or isinstance(node, Tuple | TupleGetItem) or not operands
        if not is_plain or isinstance(node, Function):
            return None
        for child in operands:
            users[child].append(node)
        nodes.append(node)
        above[node] = 0
        for child in operands:
            above[node] |= above[child]
            if child in number:
                above[node] |= 1 << number[child]
        if is_kernel_call(node):
            number[node] = len(kernels)
            kernels.append(node)
    below = dict.fromkeys(nodes, 0)
    for node in reversed(nodes):
        own = 1 << number[node] if node in number else 0
        for child in outside(node):
            below[child] |= below[node] | own
    users[function.body].append(function)
    return KernelGraph(function, tuple(kernels), users, above, below, number)


def outside(node: Node) -> tuple[Node, ...]:
    """Return the children of a node; of the call of a kernel, its arguments."""
    if is_kernel_call(node):
        return node.args
    return children(node)


def is_kernel_call(node: Node) -> TypeGuard[Call]:
    """Tell whether a node calls a kernel."""
    return isinstance(node, Call) and isinstance(node.op, Function) and node.op.is_kernel


def body_of(call: Call) -> Function:
    """Return the function of a kernel."""
    assert isinstance(call.op, Function), call
    return call.op


# -- what a kernel moves and computes -------------------------------------------------------------


def moved_bytes(module: Module) -> int:
    """Return the bytes that the kernels of a module read and write; [byte].

    Parameters
    ----------
    module : Module
        A module that `fuse_ops` made.

    Notes
    -----
    A prediction: each kernel reads each of its arguments once, and writes its results once. What it
    keeps in registers and caches is not counted, and kernels that only reshape move nothing.
    Arguments that are constants, the weights, count as well.
    """
    found = 0
    for function in module.functions.values():
        for node in post_order(function):
            if is_kernel_call(node) and not body_of(node).attrs.get("reshape_only"):
                kernel = body_of(node)
                kinds = [p.type for p in kernel.params] + [kernel.result]
                found += sum(nbytes(t) for kind in kinds if kind for t in tensor_types(kind))
    return found


def size_of(call: Call, place: int | None = None) -> int:
    """Return the bytes of the result of a kernel, or of an argument; [byte]."""
    kernel = body_of(call)
    kind = kernel.result if place is None else kernel.params[place].type
    assert kind is not None
    return sum(map(nbytes, tensor_types(kind)))


def is_static(call: Call) -> bool:
    """Tell whether all sizes of a kernel are known."""
    kernel = body_of(call)
    kinds = [*(p.type for p in kernel.params), kernel.result]
    return all(kind and all(t.is_static for t in tensor_types(kind)) for kind in kinds)


def is_one_loop(call: Call) -> bool:
    """Tell whether a kernel has one result, each element of which depends on one of each input."""
    kernel = body_of(call)
    return (
        isinstance(kernel.result, TensorType)
        and not kernel.attrs.get("reshape_only")
        and max(patterns_of(call)) <= Pattern.INJECTIVE
        and is_static(call)
    )


def is_exact(call: Call) -> bool:
    """Tell whether no operator of a kernel rounds."""
    return all(isinstance(c.op, Op) and c.op.name in EXACT for c in calls(body_of(call).body))


def work_of(call: Call) -> int:
    """Return about how many operations an elementwise kernel computes; [1]."""
    kind = body_of(call).result
    assert isinstance(kind, TensorType)
    elements = math.prod(extent for extent in kind.shape if isinstance(extent, int))
    operators = [each.op.name for each in calls(body_of(call).body) if isinstance(each.op, Op)]
    return sum(elements if name in SIMPLE else elements * DEAR for name in operators)


def patterns_of(call: Call) -> set[Pattern]:
    """Return the patterns of the operators of a kernel."""
    return {REGISTRY[each.op.name].pattern for each in calls(body_of(call).body)}  # type: ignore[union-attr]  # calls of operators


# -- joining kernels ------------------------------------------------------------------------------


def with_producer(consumer: Call, producer: Call, place: int, suffix: str) -> Call:
    """Return a kernel that computes one of its arguments itself.

    Parameters
    ----------
    consumer, producer : Call
        The kernels.
    place : int
        The argument of the consumer that the producer computes.
    suffix : str
        Appended to the names of the producer's calls; "" to keep them.
    """
    args = [arg for n, arg in enumerate(consumer.args) if n != place]
    args += [arg for arg in producer.args if arg not in args]
    params = _params(args, (consumer, producer))
    own = dict(zip(body_of(producer).params, (params[arg] for arg in producer.args), strict=True))
    made = _renamed(substitute(body_of(producer).body, own), suffix)
    values: dict[Var, Expr] = {
        param: made if n == place else params[arg]
        for n, (param, arg) in enumerate(zip(body_of(consumer).params, consumer.args, strict=True))
    }
    body = substitute(body_of(consumer).body, values)
    return _call(tuple(params.values()), body, body_of(consumer).result, tuple(args))


def side_by_side(kernels: Sequence[Call]) -> Call:
    """Return a kernel with the results of several."""
    args = list(dict.fromkeys(arg for call in kernels for arg in call.args))
    params = _params(args, kernels)
    bodies: list[Expr] = []
    for call in kernels:
        own = dict(zip(body_of(call).params, (params[arg] for arg in call.args), strict=True))
        bodies.append(substitute(body_of(call).body, own))
    results = [body_of(call).result for call in kernels]
    kind = TupleType(tuple(result for result in results if result is not None))
    return _call(tuple(params.values()), Tuple(tuple(bodies)), kind, tuple(args))


def _params(args: Sequence[Expr], kernels: Sequence[Call]) -> dict[Expr, Var]:
    """Return a new parameter for each argument."""
    kinds = {
        arg: param.type
        for call in kernels
        for param, arg in zip(body_of(call).params, call.args, strict=True)
    }
    return {arg: Var(f"p{n}", kinds[arg]) for n, arg in enumerate(args)}


def _call(params: tuple[Var, ...], body: Expr, result: object, args: tuple[Expr, ...]) -> Call:
    function = Function(params, body, result, {PRIMITIVE: 1})  # type: ignore[arg-type]  # a type
    return Call(function, args, name=kernel_name(calls(body)))


def _renamed(body: Expr, suffix: str) -> Expr:
    """Return a copy whose calls have longer names."""

    def rule(node: Node) -> Node:
        if suffix and isinstance(node, Call) and isinstance(node.op, Op):
            return replace(node, name=f"{node.name}.{suffix}")
        return node

    return rewrite(body, rule)


def readers_of(param: Node, body: Node) -> Iterator[Node]:
    """Yield the calls of a kernel that read a parameter, also through tuples.

    A tuple that is the result of the kernel is yielded, too.
    """
    reach: set[Node] = {param}
    for node in post_order(body):
        if any(child in reach for child in children(node)):
            if isinstance(node, Tuple) and node is not body:
                reach.add(node)
            else:
                yield node


def kernel_name(calls: Sequence[Call]) -> str:
    """Return the name of a kernel: the names of its calls.

    >>> x = Var("x")
    >>> kernel_name([Call(Op("nn.relu"), (x,), name=f"relu_{i}") for i in range(9)])
    'relu_0+relu_1+relu_2+6 more'
    """
    names = [call.name or short_name(call.op) for call in calls]
    shown = names if len(names) <= MOST_NAMES + 1 else names[:MOST_NAMES]
    rest = len(names) - len(shown)
    return "+".join([*shown, *([f"{rest} more"] if rest else [])])
