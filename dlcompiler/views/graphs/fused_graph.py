"""What fusion made of a function: its calls, the kernels they are in, and a verdict for each edge.

This is what the pictures, the tables and the widget of fusion show. It is made from two modules:
the one before `fuse_ops`, in which each call stands by itself, and the one after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from dlcompiler.errors import GraphError
from dlcompiler.graph import MemoryPlan, Module, plan_memory
from dlcompiler.graph.decisions import Decision, Wish
from dlcompiler.graph.ir import Call, Constant, Function, Node, post_order, rewrite
from dlcompiler.graph.ir.traverse import substitute
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.passes.fusion import moved_bytes
from dlcompiler.graph.passes.fusion.kernels import body_of
from dlcompiler.views.graphs.module_card import shortened
from dlcompiler.views.graphs.units import Unit, units_of
from dlcompiler.views.render.units import format_bytes

FUSION = "fuse_ops"
_LONGEST = 600
"""Most letters of a reason, which has the names of calls in it; [1]."""
_MOST_INPUTS = 8
"""Most parameters of a function that are all drawn; [1]."""


@dataclass(frozen=True, slots=True)
class CallNode:
    """A call of an operator, a parameter, or a branch."""

    name: str
    operator: str
    result: str
    """Type of its result; "" if that is not known."""
    pattern: str = ""
    """How its operator may be fused; "" for a parameter."""
    weights: int = 0
    """Constants and weights that it reads; [1]."""
    weight_bytes: int = 0
    """Size of these; [byte]."""
    is_input: bool = False
    is_result: bool = False
    kernel: int | None = None
    """Number of its kernel; None for what is in no kernel."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an edge is fused, by which rule, and what that saves or would save."""

    a: str
    """Name of the producer."""
    b: str
    """Name of the consumer."""
    is_fused: bool
    rule: str
    reason: str
    remedy: str
    bytes: int
    """Bytes that are not moved if it is fused; [byte]."""
    kernels: int
    """Kernels that are not started if it is fused; [1]."""
    buffer: str
    """Where the value of the producer is stored."""
    wish: str = ""
    """What the user asked for: ``fuse``, ``keep apart``, or ""."""

    @property
    def asked(self) -> str:
        """What the user asked for in words; "" for nothing."""
        return {"": "", "fuse": "fuse them", "keep apart": "keep them apart"}[self.wish]

    @property
    def effect(self) -> str:
        """What it saves, or would save.

        Examples
        --------
        >>> Verdict("a", "b", False, "reduction", "", "", 4096, 1, "").effect
        'would save 1 kernel and 4 KiB moved'
        """
        parts = []
        if self.kernels:
            parts.append(f"{self.kernels} kernel{'s' * (self.kernels != 1)}")
        if self.bytes:
            parts.append(f"{format_bytes(abs(self.bytes))} moved")
        if not parts:
            return ""
        saves, costs = ("saves", "costs") if self.is_fused else ("would save", "would cost")
        return f"{costs if self.bytes < 0 else saves} {' and '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that one node needs of another."""

    source: int
    """Number of the producer; [1]."""
    target: int
    verdict: Verdict | None = None
    """None: an edge from a parameter or a branch, about which nothing is decided."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Calls that are one kernel."""

    name: str
    nodes: tuple[int, ...]
    """Numbers of its calls; [1]."""
    result: str
    buffer: str
    """Where it stores its result."""


@dataclass(frozen=True, slots=True)
class FusedGraph:
    """A function after the passes."""

    function: str
    nodes: tuple[CallNode, ...]
    """Each behind those that it reads."""
    edges: tuple[Edge, ...]
    kernels: tuple[Kernel, ...]
    """Each behind those that it reads."""
    others: tuple[Verdict, ...] = ()
    """Verdicts about calls between which no value flows."""
    plan: MemoryPlan | None = None
    why_no_plan: str = ""
    moved: int | None = None
    """Bytes that all kernels read and write, by their shapes; None if a size is not known."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts, those of edges first."""
        return (*(e.verdict for e in self.edges if e.verdict is not None), *self.others)


def fused_graph(before: Module, after: Module, function: str = "main") -> FusedGraph:
    """Return what fusion made of a function.

    Parameters
    ----------
    before : Module
        The module before `fuse_ops`.
    after : Module
        The module after it. The same module: each call is a kernel of its own.
    function : str
        Name of the function.
    """
    chosen = before[function]
    units = units_of(before, chosen, all_inputs=_is_bound(chosen))
    number = {unit: n for n, unit in enumerate(units)}
    by_name = {unit.name: n for unit, n in number.items()}
    plan, why = _plan(after, function)
    buffers = _Buffers(plan)
    kernels: list[Kernel] = []
    kernel_of: dict[int, int] = {}
    for unit in units_of(after, after[function]):
        found = tuple(by_name[name] for name, _ in unit.parts if name in by_name)
        found = tuple(n for n in found if n not in kernel_of)
        if found and unit.is_computed:
            kernel_of.update(dict.fromkeys(found, len(kernels)))
            kernels.append(Kernel(unit.name, found, unit.result, buffers.of(unit)))
    nodes = tuple(_node(unit, kernel_of.get(n)) for unit, n in number.items())
    decided = {d.subject: d for d in after.log if d.made_by == FUSION and len(d.subject) == 2}
    edges, seen = [], set()
    for unit in units:
        for source in unit.reads:
            pair = (source.name, unit.name)
            verdict = None
            if pair in decided:
                seen.add(pair)
                kernel = kernel_of.get(number[source])
                stored = "" if kernel is None else kernels[kernel].buffer
                verdict = _verdict(decided[pair], stored, after.wishes)
            edges.append(Edge(number[source], number[unit], verdict))
    rest = [_verdict(d, "", after.wishes) for pair, d in decided.items() if pair not in seen]
    return FusedGraph(
        function,
        nodes,
        tuple(edges),
        tuple(kernels),
        tuple(rest),
        plan,
        why,
        _moved(after, kernels),
    )


def _is_bound(function: Function) -> bool:
    """Tell whether the weights of a function are constants: its parameters are inputs then."""
    if len(function.params) > _MOST_INPUTS:
        return False
    return any(isinstance(node, Constant) for node in post_order(function.body))


def unfused(module: Module) -> Module:
    """Return a module whose kernels are dissolved: each call stands by itself.

    Parameters
    ----------
    module : Module
        Such as `optimize` returned. Its decisions stay.
    """

    def rule(node: Node) -> Node:
        if not _is_kernel(node):
            return node
        kernel = body_of(node)
        return substitute(kernel.body, dict(zip(kernel.params, node.args, strict=True)))

    functions = {name: rewrite(each, rule) for name, each in module.functions.items()}
    return replace(module, functions=functions)


def has_kernels(module: Module, function: str = "main") -> bool:
    """Tell whether calls of a function are fused already."""
    return any(_is_kernel(node) for node in post_order(module[function].body))


def _is_kernel(node: Node) -> TypeGuard[Call]:
    return isinstance(node, Call) and isinstance(node.op, Function) and node.op.is_kernel


def _node(unit: Unit, kernel: int | None) -> CallNode:
    operator = unit.parts[0][1] if unit.parts else ""
    known = REGISTRY[operator] if operator in REGISTRY else None  # noqa: SIM401 - not a dict
    return CallNode(
        unit.name, operator, unit.result, known.pattern.name.lower() if known else "",
        unit.constants, unit.constant_bytes, unit.is_input, unit.is_result, kernel,
    )  # fmt: skip


def _verdict(decision: Decision, stored: str, wishes: Sequence[Wish]) -> Verdict:
    a, b = decision.subject
    is_fused = decision.verdict == "fused"
    buffer = "not stored: it stays in its kernel" if is_fused else stored
    return Verdict(
        a, b, is_fused, decision.rule, shortened(decision.reason, _LONGEST),
        shortened(decision.remedy, _LONGEST), decision.effect.bytes,
        decision.effect.kernels, buffer, wish_about(a, b, wishes),
    )  # fmt: skip


def wish_about(a: str, b: str, wishes: Sequence[Wish]) -> str:
    """Return what the user asked for about two calls; "" for nothing.

    Parameters
    ----------
    a, b : str
        Names of the calls. A wish about ``bn`` holds for ``bn.scale``, which a pass made of it.
    wishes : sequence of Wish
        The wishes of a module.
    """
    for wish in reversed(wishes):
        first, second = wish.subject
        pairs = (
            [(first, second), (second, first)] if wish.kind == "keep apart" else [(first, second)]
        )
        if any(_is_part(a, x) and _is_part(b, y) for x, y in pairs):
            return wish.kind
    return ""


def _is_part(name: str, whole: str) -> bool:
    return name == whole or name.startswith(f"{whole}.")


def _plan(module: Module, function: str) -> tuple[MemoryPlan | None, str]:
    try:
        return plan_memory(module, function), ""
    except GraphError as error:
        return None, "; ".join(filter(None, (error.problem, error.because)))


def _moved(module: Module, kernels: Sequence[Kernel]) -> int | None:
    try:
        return moved_bytes(module) if kernels else 0
    except (GraphError, TypeError, ValueError):  # an extent is known only in a run
        return None


class _Buffers:
    """Where kernels store their results, by the plan of the arena."""

    def __init__(self, plan: MemoryPlan | None) -> None:
        self.plan = plan
        self.at: Mapping[str, tuple[int, int]] = {
            p.name: (p.offset, p.bytes) for p in (plan.placements if plan else ())
        }

    def of(self, unit: Unit) -> str:
        """Return the buffer of a kernel in words."""
        if unit.is_result:
            return "stored in the result, an array of the caller"
        if self.plan is None:
            return "stored"
        names = [n for n in self.at if n == unit.name or n.startswith(f"{unit.name}.")]
        if not names:
            return "stored in the place of what it reads"
        offset = min(self.at[n][0] for n in names)
        size = sum(self.at[n][1] for n in names)
        return f"arena, from byte {offset:,}, {size:,} bytes"
