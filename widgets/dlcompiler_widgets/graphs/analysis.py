"""Run the passes on a module, and keep what each of them saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph import Module
from dlcompiler.graph.decisions import Wish
from dlcompiler.graph.execution.preparation import prepared
from dlcompiler.graph.ir import MAIN
from dlcompiler.graph.passes import PassContext
from dlcompiler.graph.passes.base import GraphChange
from dlcompiler.graph.passes.bind import bind
from dlcompiler.graph.wishes import fuse, keep_apart
from dlcompiler.target import Target
from dlcompiler.views.graphs.fused_graph import FusedGraph, fused_graph, has_kernels, unfused
from dlcompiler.views.graphs.pass_steps import PassStep, pass_steps

Wishes = tuple[Wish, ...]
FUSED_BEFORE = (
    "the module was fused before it came here. Give the view the module before graph.optimize to "
    "decide otherwise"
)


@dataclass(frozen=True)
class Source:
    """A model, and how it is optimised and built."""

    module: Module
    """The module, with its weights bound."""
    target: Target
    context: PassContext
    inputs: Sequence[Any] | None = None
    """Arrays to measure with; None: random ones."""

    @property
    def is_fused(self) -> bool:
        """Whether kernels were made before: nothing can be decided then."""
        return has_kernels(self.module)


@dataclass(frozen=True)
class Analysed:
    """What the passes made of a model."""

    after: Module
    """The module that consists of kernels."""
    graph: FusedGraph
    changes: tuple[GraphChange, ...] = ()
    steps: tuple[PassStep, ...] = ()
    failure: GraphError | None = None
    """Why a pass refused the module; the graph is the one before this pass."""
    graphs: dict[int, FusedGraph] = field(default_factory=dict)
    """Graphs after passes, by the number of the pass; made when they are shown."""

    def graph_after(self, number: int | None) -> FusedGraph:
        """Return the graph after a pass; None: after all of them; 0: as it was given."""
        if number is None or not 0 <= number < len(self.changes):
            return self.graph
        if number not in self.graphs:
            module = self.changes[0].before if number == 0 else self.changes[number - 1].after
            self.graphs[number] = fused_graph(module, module)
        return self.graphs[number]


def source_of(
    module: Any, target: Target, params: Mapping[str, Any], context: PassContext, function: str
) -> Source:
    """Return a model that can be analysed.

    Raises
    ------
    GraphError
        If it is no module, has no function of this name, or the weights do not fit.
    """
    if not isinstance(module, Module):
        raise GraphError(
            "show a graph", "not a module", got=type(module).__name__,
            hint="graph.Module.from_expr(expression) makes a module of an expression",
        )  # fmt: skip
    if not module.functions:
        raise GraphError("show a graph", "the module has no functions")
    chosen = module.with_function(MAIN, module[function])
    return Source(bind(chosen, params), target, context)


def analysed(source: Source, wishes: Wishes) -> Analysed:
    """Run the passes.

    Parameters
    ----------
    source : Source
        The model.
    wishes : tuple of Wish
        Decisions of the user, in their order.

    Raises
    ------
    GraphError
        If the wishes cannot be honoured.
    """
    if source.is_fused:
        apart = unfused(source.module)
        return Analysed(source.module, fused_graph(apart, source.module))
    module = with_wishes(source.module, wishes)
    changes: list[GraphChange] = []
    try:
        after = prepared(module, {}, source.context, MAIN, [changes.append])
        failure = None
    except GraphError as error:
        if wishes:
            raise
        after, failure = (changes[-1].after if changes else module), error
    before = after
    if changes and changes[-1].name == "fuse_ops":
        before = changes[-1].before
    return Analysed(
        after, fused_graph(before, after), tuple(changes), tuple(pass_steps(changes)), failure
    )


def with_wishes(module: Module, wishes: Wishes) -> Module:
    """Return a module with the wishes of the user, and without others."""
    found = replace(module, wishes=())
    for wish in wishes:
        found = (fuse if wish.kind == "fuse" else keep_apart)(found, *wish.subject)
    return found
