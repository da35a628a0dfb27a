"""The pass that fuses calls into kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from dlcompiler.errors import GraphError
from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import (
    PRIMITIVE,
    Call,
    Expr,
    Function,
    Module,
    Node,
    Op,
    Var,
    children,
    named,
    with_children,
)
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.passes.fusion.dataflow import STOP, Flow, flows_of
from dlcompiler.graph.passes.fusion.forced import force
from dlcompiler.graph.passes.fusion.groups import MAX_DEPTH, Group, Partition
from dlcompiler.graph.passes.fusion.kernels import kernel_name
from dlcompiler.graph.passes.fusion.limits import Limits, limits_of
from dlcompiler.graph.passes.fusion.options import CLASSIC, FusionOptions
from dlcompiler.graph.passes.fusion.reasons import decisions_of
from dlcompiler.graph.passes.fusion.recompute import recompute
from dlcompiler.graph.passes.fusion.rows import fuse_rows
from dlcompiler.graph.passes.fusion.siblings import fuse_siblings
from dlcompiler.graph.passes.fusion.wished import Wished, check_honoured, wished


def fuse_ops(
    module: Module, *, max_depth: int = MAX_DEPTH, options: FusionOptions = CLASSIC
) -> Module:
    """Put calls that can be one kernel into functions of their own.

    *Before*::

        %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1]);
        %1 = nn.relu(%0);
        nn.max_pool2d(%1, pool_size=[2, 2])

    *After*::

        %0 = fn (%p0, Primitive=1) {
          nn.max_pool2d(%p0, pool_size=[2, 2])
        };
        %2 = fn (%p0_1, %p1, Primitive=1) {
          %1 = nn.conv2d(%p0_1, %p1, padding=[1, 1, 1, 1]);
          nn.relu(%1)
        };
        %3 = %2(%x, %w);
        %0(%3)

    Parameters
    ----------
    module : Module
        A module without unknown types.
    max_depth : int
        Most nodes in a group; 1 leaves each call alone.
    options : FusionOptions
        What is fused beyond the published rule; by default nothing.

    Returns
    -------
    Module
        Its log has a decision for each edge between two calls.

    Raises
    ------
    GraphError
        If a wish cannot be honoured, or an option is wrong.

    Notes
    -----
    **Source:** T. Chen and others, OSDI 2018, section 3, as in Relay's ``FuseOps``: pattern
    classes, post-dominators, and three phases, of which the first finishes the groups of anchors.
    """
    depth: object = max_depth
    if not isinstance(depth, int) or depth < 1:
        raise GraphError("fuse_ops", "max_depth is no positive integer", got=repr(depth))
    if not isinstance(options, FusionOptions):
        raise GraphError("fuse_ops", "not options of fusion", got=repr(options),
                         expected="FusionOptions(rows=True)")  # fmt: skip
    typed = infer_types(module)
    wishes = wished(typed)
    types = types_of(typed)
    known = {decision.id: decision for decision in typed.log}  # by an earlier run: not repeated
    log: list[Decision] = []
    functions = {}
    for name, function in typed.functions.items():
        if function.is_kernel:
            functions[name] = function
            continue
        partition = _partition(function, types, wishes, max_depth)
        if options.rows:
            fuse_rows(partition, types, options.max_row_bytes)
        decided = decisions_of(partition, types)
        made = _Rebuilder(partition, types).rebuilt(function)
        limits = limits_of(function, wishes, options, max_depth)
        functions[name], more = _beyond(made, limits)
        log += [each for each in _latest([*decided, *more]) if known.get(each.id) != each]
    after = replace(typed, functions=functions, log=(*typed.log, *log))
    check_honoured(wishes, after)
    if not log and all(functions[name] is module.functions[name] for name in functions):
        return module
    return after if options.is_classic else named(after)


def _beyond(function: Function, limits: Limits) -> tuple[Function, list[Decision]]:
    """Join kernels that the published rule has made, as the options say."""
    log: list[Decision] = []
    # Siblings first: what all of them read is then computed once in their kernel.
    if limits.options.siblings:
        function, decided = fuse_siblings(function, limits)
        log += decided
    if limits.options.recompute:
        function, decided = recompute(function, limits)
        log += decided
    return function, log


def _latest(log: Sequence[Decision]) -> list[Decision]:
    """Return one decision about each edge: the last one."""
    return list({decision.subject: decision for decision in log}.values())


def groups_of(
    module: Module, function: Function, types: Types, max_depth: int = MAX_DEPTH
) -> Partition:
    """Return the groups of a function by the rules, and by the wishes of the module."""
    return _partition(function, types, wished(module), max_depth)


def _partition(
    function: Function, types: Types, wishes: Sequence[Wished], max_depth: int
) -> Partition:
    """Return the groups of a function by the rules and by wishes."""
    flows = flows_of(function, types)
    apart = [pair for w in wishes if w.wish.kind == "keep apart" for pair in w.apart]
    forced = [pair for w in wishes if w.wish.kind == "fuse" for pair in w.chain()]
    here = [pair for pair in forced if all(call in flows for call in pair)]
    partition = Partition([*flows.values()], max_depth, frozenset(apart), frozenset(here))
    for a, b in here:
        force(partition, a, b)
    partition.run()
    return partition


class _Rebuilder:
    """Puts each group of a function into a function of its own."""

    def __init__(self, partition: Partition, types: Types) -> None:
        self.partition = partition
        self.types = types
        self.inside: dict[Node, Node] = {}
        """Nodes as they are in the function of their group."""
        self.outside: dict[Node, Node] = {}
        """Values as the other groups see them."""
        self.params: dict[Group, dict[Node, Var]] = defaultdict(dict)
        """For each group the values from outside, with the parameters that stand for them."""
        self.calls: dict[Group, list[Call]] = defaultdict(list)

    def rebuilt(self, function: Function) -> Function:
        """Return a function whose groups are functions."""
        for flow in self.partition.flows:
            self._add(flow)
        body: Expr = self.outside[function.body]  # type: ignore[assignment]  # no operator
        if body is function.body:
            return function
        return replace(function, body=body)

    def _add(self, flow: Flow) -> None:
        node, group = flow.node, self.partition.of(flow)
        if isinstance(node, Function) and node.is_kernel:
            self.outside[node] = node
            return
        if isinstance(node, Call) and isinstance(node.op, Op):
            if node.op.name == STOP:
                self.outside[node] = self.outside[node.args[0]]
                return
            self.calls[group].append(node)
        is_alone = group.size == 1 and not self.calls[group]
        if not is_alone:
            self.inside[node] = with_children(
                node, [self._inside(child, group) for child in children(node)]
            )
        if group.root is not node:
            return
        if self.calls[group]:
            self.outside[node] = self._kernel(node, group)
        else:
            below = [c if isinstance(c, Op) else self.outside[c] for c in children(node)]
            self.outside[node] = with_children(node, below)

    def _inside(self, child: Node, group: Group) -> Node:
        """Return what stands for an operand inside a group."""
        if isinstance(child, Op):
            return child
        if self.partition.of(self.partition.at[child]) is group:
            return self.inside[child]
        params = self.params[group]
        if child not in params:
            params[child] = Var(f"p{len(params)}", self.types[child])
        return params[child]

    def _kernel(self, root: Node, group: Group) -> Call:
        """Return the call of the function that a group becomes."""
        calls, params = self.calls[group], self.params[group]
        attrs = {PRIMITIVE: 1}
        if all(REGISTRY[call.op.name].notes.get("is_reshape") for call in calls):  # type: ignore[union-attr]  # calls of operators
            attrs["reshape_only"] = 1
        body: Expr = self.inside[root]  # type: ignore[assignment]  # no operator
        made = Function(tuple(params.values()), body, self.types[root], attrs)
        return Call(made, tuple(self.outside[value] for value in params), name=kernel_name(calls))  # type: ignore[misc]  # no operators
