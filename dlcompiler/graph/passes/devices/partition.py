"""Give calls to a device: its patterns and operators, merged into regions, become functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dlcompiler.errors import GraphError
from dlcompiler.graph.decisions import Decision, Effect
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import (
    PRIMITIVE,
    AttrValue,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    Let,
    Module,
    Node,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
    with_children,
)
from dlcompiler.graph.ir.scopes import Scopes
from dlcompiler.graph.passes.devices.composite import COMPOSITE, merge_composite
from dlcompiler.graph.passes.devices.patterns import Pattern
from dlcompiler.graph.passes.devices.regions import regions_of
from dlcompiler.graph.passes.tools import operator_of

NAME = "partition_for_device"
COMPILER = "Compiler"
"""Attribute of a function that a device computes: the name of the device's compiler."""


def _nothing(call: Call, types: Types) -> str:
    del types
    return f"the device has no {operator_of(call)}"


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """What a device can compute."""

    name: str
    """The name of its compiler, such as ``"vta"``."""
    patterns: Sequence[tuple[str, Pattern]] = ()
    """Names and patterns of what it computes as one."""
    why_not: Callable[[Call, Types], str] = _nothing
    """Returns why it cannot compute a call that no pattern matches; "" if it can."""
    least_calls: int = 1
    """Fewest calls that are worth a region; [1]."""


def partition_for_device(module: Module, device: DeviceRules) -> Module:
    """Move what a device can compute into functions with the attribute ``Compiler``.

    *Before*::

        %0 = exp(%x);
        %1 = add(%0, %y);
        sqrt(%1)

    *After*::

        %0 = @vta_0(%x, %y);
        sqrt(%0)

    if the device can compute ``exp`` and ``add``.

    Parameters
    ----------
    module : Module
        The module.
    device : DeviceRules
        What the device can compute.

    Returns
    -------
    Module
        Each region is a function of the module. Its log says of each call where it runs, and why.

    Notes
    -----
    Calls are merged along edges, but not so that a region would wait for its own result. Constants
    that only a region uses are inside its function. In functions with lets, each call is a region
    of its own.
    """
    typed = infer_types(merge_composite(module, device.patterns))
    types = types_of(typed)
    made: dict[str, Function] = {}
    log: list[Decision] = []
    functions: dict[str, Function] = {}
    for name, function in typed.functions.items():
        if function.is_kernel or COMPILER in function.attrs:
            functions[name] = function
            continue
        partition = _Partition(function, types, device, {*typed.functions, *made})
        functions[name] = partition.rewritten()
        made |= partition.functions
        log += partition.log
    if not made:
        known = set(module.log)
        return replace(module, log=(*module.log, *(d for d in log if d not in known)))
    return replace(typed, functions={**functions, **made}, log=(*typed.log, *log))


@dataclass
class _Partition:
    """The regions of a function."""

    function: Function
    types: Types
    device: DeviceRules
    taken: set[str]
    """Names of functions."""
    functions: dict[str, Function] = field(default_factory=dict)
    log: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = [n for n in post_order(self.function, _below) if not isinstance(n, Op)]
        self.operands: dict[Node, list[Node]] = {
            n: [c for c in _below(n) if not isinstance(c, Op)] for n in self.order
        }
        self.places: dict[Node, int] = {node: i for i, node in enumerate(self.order)}
        self.users: dict[Node, list[Node]] = {node: [] for node in self.order}
        for node in self.order:
            for below in self.operands[node]:
                self.users[below].append(node)

    def rewritten(self) -> Function:
        """Return the function with its regions moved out."""
        on_device = self._on_device()
        scopes: Mapping[Node, object] = Scopes(self.function).of
        if any(isinstance(node, Let) for node in self.order):
            scopes = {node: node for node in self.order}
        found = regions_of(self.order, self.operands, on_device, scopes)
        regions = [r.members for r in found if self._calls(r.members) >= self.device.least_calls]
        made: dict[Node, Node] = {}
        inside = {node: members for members in regions for node in members}
        done: set[int] = set()

        def below(node: Node) -> Sequence[Node]:
            members = inside.get(node)
            return _below(node) if members is None else self._inputs(members)

        for node in post_order(self.function, below):
            members = inside.get(node)
            if members is None:
                new = [made[child] for child in below(node)]
                made[node] = with_children(node, new) if new else node
            elif id(members) not in done:
                done.add(id(members))
                self._move(members, made)
        result = made[self.function]
        assert isinstance(result, Function)
        return result

    def _on_device(self) -> set[Node]:
        """Return the nodes that the device computes, and log where each call runs."""
        found: set[Node] = set()
        for node in self.order:
            if not isinstance(node, Call):
                continue
            composite = _composite_name(node)
            if composite is None and not operator_of(node):
                continue
            why = "" if composite else self.device.why_not(node, self.types)
            if not isinstance(why, str):
                raise GraphError(NAME, "why_not did not return a text", got=repr(why))
            rule = "host" if why else composite or "supported"
            where = f"stays on the host: {why}" if why else f"runs on {self.device.name}"
            subject = (node.name or operator_of(node),)
            self.log.append(Decision(NAME, subject, "placed", rule, f"{subject[0]} {where}"))
            if not why:
                found.add(node)
        return found | self._glue(found)

    def _glue(self, found: set[Node]) -> set[Node]:
        """Return tuples that only calls of the device use, and the fields of its results."""
        return {
            node
            for node in self.order
            if (isinstance(node, Tuple) and node.fields and self.users[node]
                and set(self.users[node]) <= found)
            or (isinstance(node, TupleGetItem) and node.value in found)
        }  # fmt: skip

    def _calls(self, members: Sequence[Node]) -> int:
        return sum(isinstance(node, Call) for node in members)

    def _inputs(self, members: Sequence[Node]) -> list[Node]:
        """Return the values that a region gets from outside, each once; no constants."""
        known = set(members)
        used = (c for node in members for c in self.operands[node] if c not in known)
        return [value for value in dict.fromkeys(used) if not _is_own(value)]

    def _outputs(self, members: Sequence[Node]) -> list[Node]:
        """Return the values of a region that others use."""
        known = set(members)
        return [
            node for node in members
            if any(user not in known for user in self.users[node])
        ]  # fmt: skip

    def _move(self, members: Sequence[Node], made: dict[Node, Node]) -> None:
        """Make the function of a region, and its call."""
        members = sorted(members, key=self.places.__getitem__)
        inputs, outputs = self._inputs(members), self._outputs(members)
        params: dict[Node, Var] = {v: Var(f"p{i}", self.types[v]) for i, v in enumerate(inputs)}
        inside: dict[Node, Node] = dict(params)
        for node in members:
            inside[node] = with_children(node, [inside.get(c, c) for c in children(node)])
        results: list[Expr] = [inside[node] for node in outputs]  # type: ignore[misc]
        body = results[0] if len(results) == 1 else Tuple(tuple(results))
        name = self._name()
        attrs: dict[str, AttrValue] = {
            PRIMITIVE: 1,
            COMPILER: self.device.name,
            "global_symbol": name,
        }
        self.functions[name] = Function(tuple(params.values()), body, None, attrs)
        args: list[Expr] = [made[value] for value in inputs]  # type: ignore[misc]
        call = Call(GlobalVar(name), tuple(args), name=name)
        for i, node in enumerate(outputs):
            made[node] = call if len(outputs) == 1 else TupleGetItem(call, i)
        size = self._calls(members)
        names = tuple(n.name or operator_of(n) for n in members if isinstance(n, Call))
        self.log.append(Decision(
            NAME, (name, *names), "placed", "region", f"{size} calls are one function, {name}",
            effect=Effect(kernels=size - 1),
        ))  # fmt: skip

    def _name(self) -> str:
        number = len(self.functions)
        while (name := f"{self.device.name}_{number}") in self.taken:
            number += 1
        self.taken.add(name)
        return name


def _below(node: Node) -> Sequence[Node]:
    """Return the children of a node; functions that are one step stay whole."""
    is_whole = isinstance(node, Function) and (node.is_kernel or COMPOSITE in node.attrs)
    return () if is_whole else children(node)


def _is_own(value: Node) -> bool:
    """Tell whether a value is written where it is used: constants, and functions of patterns."""
    is_composite = isinstance(value, Function) and COMPOSITE in value.attrs
    return isinstance(value, Constant) or is_composite


def _composite_name(call: Call) -> str | None:
    """Return the name of the pattern that a call stands for; None if for none."""
    if not isinstance(call.op, Function):
        return None
    name = call.op.attrs.get(COMPOSITE)
    return name if isinstance(name, str) else None
