"""What several passes need: look at calls, make calls in their place, and note decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dlcompiler.graph.decisions import Decision, Effect, Verdict
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Module,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    named,
    post_order,
    rewrite_from,
)
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.functions import call as make_call


def operator_of(node: Node) -> str:
    """Return the name of the operator that a node calls; "" for another node."""
    return node.op.name if isinstance(node, Call) and isinstance(node.op, Op) else ""


def attrs_of(call: Call) -> dict[str, Any]:
    """Return all attributes of a call of an operator, in their normal form."""
    return REGISTRY[operator_of(call)].complete(call)


def call_like(old: Call, name: str, *args: Any, suffix: str = "", **attrs: Any) -> Call:
    """Make a call in the place of another: with its origin, and a name that follows from its name.

    Parameters
    ----------
    old : Call
        The call that it is made from.
    name : str
        Name of the operator.
    *args
        Arguments.
    suffix : str
        Appended to the name; "" for the call that gives the value of the old one.
    **attrs
        Attributes.
    """
    own = f"{old.name}.{suffix}" if suffix and old.name else old.name
    return make_call(REGISTRY[name], args, attrs, own, old.span)


class KnownTypes:
    """The types of nodes, also of those that a pass makes."""

    def __init__(self, types: Mapping[Node, Type]) -> None:
        self._types = types.to_dict() if isinstance(types, Types) else dict(types)
        self._leaves: dict[Node, tuple[bool, bool]] = {}
        """Whether there are constants below a node, and variables."""

    def __getitem__(self, node: Node) -> Type:
        known = self._types.get(node)
        if known is not None:
            return known
        for each in post_order(node, lambda n: () if n in self._types else children(n)):
            if each not in self._types and not isinstance(each, Op):
                self._types[each] = self._made(each)
        return self._types[node]

    def __setitem__(self, node: Node, kind: Type) -> None:
        self._types[node] = kind

    def tensor(self, node: Node) -> TensorType:
        """Return the type of a node that is a tensor."""
        kind = self[node]
        assert isinstance(kind, TensorType), kind
        return kind

    def is_constant(self, node: Node) -> bool:
        """Tell whether a value is known before the model runs; no constant below it: it is not."""
        for each in post_order(node, lambda n: () if n in self._leaves else children(n)):
            if each not in self._leaves:
                below = [self._leaves[child] for child in children(each)]
                self._leaves[each] = (
                    isinstance(each, Constant) or any(constants for constants, _ in below),
                    isinstance(each, Var) or any(variables for _, variables in below),
                )
        return self._leaves[node] == (True, False)

    def _made(self, node: Node) -> Type:
        """Return the type of a node whose operands have theirs."""
        match node:
            case Constant():
                return node.type
            case Tuple(fields):
                return TupleType(tuple(self._types[field] for field in fields))
            case TupleGetItem(value, index):
                kind = self._types[value]
                assert isinstance(kind, TupleType), kind
                return kind.fields[index]
            case Call(Op(name), args):
                return REGISTRY[name].result_type(node, [self._types[arg] for arg in args])
        raise AssertionError(node)


def shape_of(node: Node, types: KnownTypes) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None if an extent is not known or the tensor is empty."""
    kind = types[node]
    if not isinstance(kind, TensorType) or not all(isinstance(n, int) for n in kind.shape):
        return None
    shape = tuple(n for n in kind.shape if isinstance(n, int))
    return shape if 0 not in shape else None


def rewrite_calls(module: Module, rule: Callable[[Call, Call, KnownTypes], Expr | None]) -> Module:
    """Replace calls of operators in all functions but kernels.

    Parameters
    ----------
    module : Module
        A module whose types can be inferred.
    rule : callable
        Gets a call as it was, the same call with new arguments, and the types of all nodes; it
        returns what takes its place, or None. A field of a tuple that a rule makes is taken out.
    """
    typed = infer_types(module)
    types = KnownTypes(types_of(typed))

    def by_node(old: Node, new: Node) -> Node:
        if isinstance(old, Op):
            return new
        if isinstance(new, TupleGetItem) and isinstance(new.value, Tuple):
            new = new.value.fields[new.index]
        types[new] = types[old]
        if isinstance(old, Call) and isinstance(new, Call) and isinstance(new.op, Op):
            found = rule(old, new, types)
            new = new if found is None else found
            types[new] = types[old]
        return new

    functions = {
        name: f if f.is_kernel else rewrite_from(f, by_node) for name, f in typed.functions.items()
    }
    if all(functions[name] is typed.functions[name] for name in functions):
        return module
    # A call may be rewritten twice: what is made beside it then gets the same name.
    return named(replace(typed, functions=functions))


def placed(module: Module) -> frozenset[Node]:
    """Return the values that another device computes: it wants them as they are written."""
    devices: dict[Node, str] = {}
    default: set[str] = set()
    found: set[Node] = set()
    for node in module.nodes():
        if not isinstance(node, Call):
            continue
        if operator_of(node) == "on_device":
            found.add(node.args[0])
        elif operator_of(node) == "device_copy":
            attrs = attrs_of(node)
            devices[node] = attrs["target"]
            if node.args[0] not in devices:
                default.add(attrs["source"])
        else:
            known = [devices[arg] for arg in node.args if arg in devices]
            if known and known[0] not in default:
                devices[node] = known[0]
                found.add(node)
    return frozenset(found)


def with_log(module: Module, decisions: Sequence[Decision]) -> Module:
    """Return a module with more decisions in its log."""
    return replace(module, log=(*module.log, *decisions)) if decisions else module


def decided(
    made_by: str, call: Call, verdict: Verdict, rule: str, reason: str, *,
    kernels: int = 0, saved: int = 0, remedy: str = "",
) -> Decision:  # fmt: skip
    """Return a decision about one call."""
    subject = (call.name or operator_of(call),)
    return Decision(made_by, subject, verdict, rule, reason, remedy, effect=Effect(saved, kernels))


SMALLEST_NORMAL = {"float16": 2.0**-14, "bfloat16": 2.0**-126}
"""The smallest positive number with full precision."""


def scalar_of(node: Node) -> float | None:
    """Return the number that all elements of a constant are; None for another node."""
    if not isinstance(node, Constant) or node.value.size == 0:
        return None
    first = node.value.reshape(-1)[0]
    return first.item() if (node.value == first).all() else None
