"""Candidates for a suggestion: the calls to try in place of a refused one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dlcompiler.ir import Axis, Extent
from dlcompiler.schedule.legality.obligations import extents_of
from dlcompiler.schedule.moves.enumeration import factors_of
from dlcompiler.schedule.state import StageState, State

if TYPE_CHECKING:
    from dlcompiler.schedule.history import Node
    from dlcompiler.schedule.schedule import Attempt

LANES = 16
"""Size of a loop that is split off for vectors or copies: one AVX-512 vector of float32; [1]."""


@dataclass(frozen=True, slots=True)
class Call:
    """A primitive with its arguments, as `Schedule.attempt` takes them."""

    name: str
    stage: str
    args: Mapping[str, Any]

    def but(self, **args: Any) -> Call:
        """Return the call with some arguments replaced."""
        return Call(self.name, self.stage, {**self.args, **args})


Later: TypeAlias = "Callable[[Attempt], Call]"
"""A call that needs the result of the call before it, such as a loop that a split made."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Calls to try one after another; the candidate is legal if all of them are."""

    calls: tuple[Call | Later, ...]
    start: Node | None = None
    """The state of the history to begin at; None for the state of the refused call."""


@dataclass(frozen=True)
class Refusal:
    """A refused call, and the node of the history at which it was made."""

    node: Node
    call: Call

    @property
    def state(self) -> State:
        """The state in which the call was made."""
        return self.node.state

    @property
    def stage(self) -> StageState:
        """The stage of the call."""
        return self.state.stage(self.call.stage)

    @property
    def axis(self) -> Any:
        """The argument `axis` of the call; it need not be a loop."""
        return self.call.args.get("axis")

    @property
    def leaves(self) -> tuple[Axis, ...]:
        """The loops of the stage, outermost first."""
        return self.stage.leaves

    @property
    def data_loops(self) -> list[Axis]:
        """The data loops of the stage that have no annotation, outermost first."""
        return [x for x in self.leaves if x.kind == "data" and self.stage.kind(x) == "serial"]

    def extent(self, axis: Axis) -> Extent:
        """Return the extent of a loop; for an attached stage, of the part that its reader needs."""
        if self.stage.is_placeholder or self.stage.is_inlined:  # these have no bounds
            return axis.extent
        return extents_of(self.state, self.stage).get(axis, axis.extent)

    def others(self, axis: Any) -> list[Axis]:
        """Return the loops of the stage except `axis`, those nearest to it in the nest first."""
        others = [leaf for leaf in self.leaves if leaf is not axis]
        if not isinstance(axis, Axis) or not self.stage.has_leaf(axis):
            return others
        place = self.stage.position(axis)
        return sorted(others, key=lambda leaf: abs(self.stage.position(leaf) - place))

    def factors(self, axis: Any, wanted: Any) -> list[int]:
        """Return the factors to offer for a loop, those nearest to the wanted one first.

        If `wanted` is not a number, `LANES` takes its place. The factors 1 and the extent are left
        out, since such a split changes nothing.
        """
        if not isinstance(axis, Axis):
            return []
        is_number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
        aim = wanted if is_number else LANES
        return sorted(factors_of(self.extent(axis)), key=lambda n: (abs(n - aim), n))

    def one(self, name: str, stage: str, **args: Any) -> Candidate:
        """Return a candidate that consists of a single call."""
        return Candidate((Call(name, stage, args),))

    def but(self, **args: Any) -> Candidate:
        """Return the refused call with some arguments replaced, as a candidate."""
        return Candidate((self.call.but(**args),))


Source: TypeAlias = Callable[[Refusal], Iterator[Candidate]]
"""Yields candidates for a refused call, the nearest to it first. It tries none of them."""


def source_by_primitive(functions: Mapping[str, Source]) -> Source:
    """Return a source that calls the function for the refused primitive, if there is one."""

    def source(refused: Refusal) -> Iterator[Candidate]:
        function = functions.get(refused.call.name)
        return iter(()) if function is None else function(refused)

    return source
