"""What forbids that kernels are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler.graph.ir import Call, Function, Node, calls, post_order
from dlcompiler.graph.passes.fusion.dataflow import STOP
from dlcompiler.graph.passes.fusion.kernels import body_of
from dlcompiler.graph.passes.fusion.options import FusionOptions
from dlcompiler.graph.passes.fusion.wished import Wished
from dlcompiler.graph.passes.tools import operator_of


@dataclass(frozen=True)
class Limits:
    """Sizes, wishes, and annotations that stop fusion."""

    options: FusionOptions
    max_depth: int
    """Most calls of a kernel; [1]."""
    apart: frozenset[tuple[str, str]]
    """Names of calls that must be in different kernels."""
    stopped: frozenset[str]
    """Names of calls past whose result nothing is fused."""

    @property
    def words(self) -> dict[str, str]:
        """What the placeholders of the rules stand for."""
        return {"limit": str(self.max_depth), "live": str(self.options.max_live)}

    def forbids(self, producer: Call, consumer: Call) -> str | None:
        """Return the key of the rule that keeps a producer and its consumer apart, if one does."""
        if self.is_apart(producer, consumer):
            return "kept apart"
        names = {each.name for each in calls(body_of(producer).body)}
        return "stop_fusion" if names & self.stopped else None

    def is_apart(self, first: Call, second: Call) -> bool:
        """Tell whether two kernels have calls that must be in different ones."""
        if not self.apart:
            return False
        a, b = ({each.name for each in calls(body_of(c).body)} for c in (first, second))
        return any((x in a and y in b) or (y in a and x in b) for x, y in self.apart)


def limits_of(
    function: Function, wishes: Sequence[Wished], options: FusionOptions, max_depth: int
) -> Limits:
    """Return the limits for the kernels of a function that is not fused yet."""
    apart = (pair for w in wishes if w.wish.kind == "keep apart" for pair in w.apart)
    names = frozenset((_name(a), _name(b)) for a, b in apart)
    stops = (n for n in post_order(function.body) if operator_of(n) == STOP)
    stopped = frozenset(_name(arg) for n in stops if isinstance(n, Call) for arg in n.args)
    return Limits(options, max_depth, names, stopped)


def _name(node: Node) -> str:
    return node.name if isinstance(node, Call) else ""
