"""Spaces that a template declares while it runs, as in AutoTVM: ``define_split`` and others.

A template is called in two ways. With `Declaring` it declares its knobs, and each has its
first value. With `Choosing` it declares the same knobs, and each has its value of a config.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler.errors import TuningError
from dlcompiler.space.choices import loop_annotations, loop_orders, split_sizes
from dlcompiler.space.config import Config
from dlcompiler.space.entities import Entity, SplitEntity, entity
from dlcompiler.space.knob import Kind, Knob, Value, as_value
from dlcompiler.space.rules import Filter, Values
from dlcompiler.space.space import Space
from dlcompiler.space.workload import Workload

Rule: TypeAlias = Callable[[Mapping[str, Entity]], bool]


@dataclass(frozen=True, eq=False)
class VirtualAxis:
    """A loop of a template: a loop of the computation, or a loop that a split will make."""

    length: int | None
    """Its extent; None: it depends on the config."""
    name: str = "axis"

    def __repr__(self) -> str:
        return f"vaxis({self.name})"


class Choices(ABC):
    """The argument of a template, through which it declares and reads its knobs."""

    def __init__(self) -> None:
        self.flops = 0.0
        """Operations of one call, if the template gave their number."""

    # -- declaring ---------------------------------------------------------------------------

    @staticmethod
    def axis(loop: Any) -> VirtualAxis:
        """Return a loop of the template, made from a loop of a schedule or from an extent.

        Raises
        ------
        TuningError
            If its extent is not a number.
        """
        if isinstance(loop, VirtualAxis):
            return loop
        extent = getattr(loop, "extent", loop)
        if isinstance(extent, bool) or not isinstance(extent, int):
            raise TuningError(
                "declare a knob", "the extent of a loop is not a number", got=repr(loop),
                expected="a loop of known extent, or an int",
            )  # fmt: skip
        return VirtualAxis(extent, str(getattr(loop, "name", "axis")))

    reduce_axis = axis

    def define_split(
        self,
        name: str,
        axis: Any,
        policy: str = "factors",
        *,
        num_outputs: int = 2,
        filter: Callable[[SplitEntity], bool] | None = None,
        **options: Any,
    ) -> tuple[VirtualAxis, ...]:
        """Declare a knob: how a loop is split into several.

        Parameters
        ----------
        name : str
            Of the knob.
        axis : Axis or int
            The loop, or its extent.
        policy : {"factors", "power2", "verbose", "candidate"}
            How the sizes are chosen; see `split_sizes`.
        num_outputs : int
            Loops that are made of it.
        filter : callable, optional
            Returns whether to keep a split: ``lambda x: x.size[-1] <= 16``.
        **options
            ``max_factor``, ``no_tail``, ``candidate``: see `split_sizes`.

        Returns
        -------
        tuple of VirtualAxis
            The loops, for other knobs.
        """

        def ways() -> Sequence[Value]:
            extent = self.axis(axis).length
            if extent is None:
                raise TuningError(
                    f"declare the knob {name}", "the loop is made by another knob's split",
                    hint="declare one split with more num_outputs",
                )  # fmt: skip
            sizes = split_sizes(extent, num_outputs, policy, **options)
            return [way for way in sizes if filter is None or filter(SplitEntity(way))]

        self._declare(name, "split", ways)
        return _made_loops(name, num_outputs)

    def define_reorder(
        self, name: str, axes: Sequence[Any], policy: str, **options: Any
    ) -> tuple[VirtualAxis, ...]:
        """Declare a knob: the order of loops.

        Parameters
        ----------
        name : str
            Of the knob.
        axes : sequence of Axis
            The loops.
        policy : str
            See `loop_orders`.
        **options
            ``interval``; ``candidate``, ``spatial`` and ``reduce``, of loops of `axes`.
        """

        def ways() -> Sequence[Value]:
            for key in ("candidate", "spatial", "reduce"):
                if key in options:
                    options[key] = [_places(loops, axes, name) for loops in options[key]]
            return loop_orders(len(axes), policy, **options)

        self._declare(name, "reorder", ways)
        return _made_loops(name, len(axes))

    def define_annotate(
        self, name: str, axes: Sequence[Any], policy: str, *, num_anchor: int | None = None
    ) -> tuple[VirtualAxis, ...]:
        """Declare a knob: which loops are unrolled or vectorized, or where stages are attached.

        Parameters
        ----------
        name : str
            Of the knob.
        axes : sequence of Axis
            The loops.
        policy : str
            See `loop_annotations`.
        num_anchor : int, optional
            Stages that ``locate_cache`` attaches.
        """
        self._declare(
            name, "annotate", lambda: loop_annotations(len(axes), policy, num_anchor=num_anchor)
        )
        return _made_loops(name, len(axes))

    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        """Declare a knob with given values; ``cfg[name].val`` is the one chosen."""
        self._declare(name, "option", lambda: [as_value(value) for value in candidate])

    def multi_filter(self, filter: Rule | Filter, rule: str = "") -> None:
        """Declare a rule on several knobs.

        Parameters
        ----------
        filter : callable or Filter
            Gets the entities by the names of the knobs: ``lambda e: e["tile_x"].size[-1] <= 64``;
            or what a function of `dlcompiler.space.limits` returned.
        rule : str, optional
            The rule in words.
        """
        if isinstance(filter, Filter):
            self._restrict(filter.allows, rule or filter.rule)
        else:
            self._restrict(filter, rule)

    def add_flop(self, flop: float) -> None:
        """Add to the number of operations of one call, for operations that cannot be counted."""
        self.flops += float(flop)

    # -- reading -----------------------------------------------------------------------------

    @abstractmethod
    def __getitem__(self, name: str) -> Any:
        """Return the entity for the value of a knob."""

    @abstractmethod
    def __iter__(self) -> Iterator[str]:
        """Yield the names of the knobs."""

    @abstractmethod
    def raise_error(self, message: str) -> None:
        """Refuse the config."""

    @abstractmethod
    def _declare(self, name: str, kind: Kind, values: Callable[[], Sequence[Value]]) -> None:
        """Add a knob."""

    @abstractmethod
    def _restrict(self, rule: Rule, text: str) -> None:
        """Add a rule on several knobs."""


class Declaring(Choices):
    """Collects the knobs of a template, each set to its first value."""

    def __init__(self) -> None:
        super().__init__()
        self._knobs: dict[str, Knob] = {}
        self._rules: list[tuple[str, Rule]] = []

    def __getitem__(self, name: str) -> Any:
        if name not in self._knobs:
            raise _unknown(name, self._knobs)
        knob = self._knobs[name]
        return entity(knob.kind, knob.values[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self._knobs)

    def raise_error(self, message: str) -> None:
        """Do nothing: the first values of all knobs need not satisfy the rules."""

    def space(self, workload: Workload) -> Space:
        """Return the space of a workload, with the knobs and rules that were declared."""
        kinds: dict[str, Kind] = {knob.name: knob.kind for knob in self._knobs.values()}
        filters = [Filter(text, _on_entities(rule, kinds)) for text, rule in self._rules]
        return Space(workload, list(self._knobs.values()), filters)

    def _declare(self, name: str, kind: Kind, values: Callable[[], Sequence[Value]]) -> None:
        knob = Knob(name, tuple(dict.fromkeys(values())), kind=kind)
        if self._knobs.get(name, knob) != knob:
            raise TuningError(
                f"declare the knob {name}", "it was declared before, with other values",
                got=_shortened(knob), expected=_shortened(self._knobs[name]),
            )  # fmt: skip
        self._knobs[name] = knob

    def _restrict(self, rule: Rule, text: str) -> None:
        self._rules.append((text or f"rule {len(self._rules) + 1} of the template", rule))


class Choosing(Choices):
    """Sets the knobs of a template to the values of a config.

    Parameters
    ----------
    config : Config
        A config of the template's space.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        """The config."""
        self._kinds: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Any:
        return entity(self._kinds.get(name, "option"), self.config[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.config)

    def raise_error(self, message: str) -> None:
        """Refuse the config.

        Raises
        ------
        TuningError
            Always.
        """
        raise TuningError("apply a config", message, got=str(self.config))

    def _declare(self, name: str, kind: Kind, values: Callable[[], Sequence[Value]]) -> None:
        if name not in self.config.values:
            raise _unknown(name, self.config.values)
        self._kinds[name] = kind

    def _restrict(self, rule: Rule, text: str) -> None:
        """Do nothing: the configs of the space satisfy the rule already."""


def _on_entities(rule: Rule, kinds: Mapping[str, Kind]) -> Callable[[Values], bool]:
    return lambda values: bool(rule(_Entities(values, kinds)))


class _Entities(Mapping[str, Entity]):
    """Mapping from knobs to the entities of their values, made at each access."""

    def __init__(self, values: Values, kinds: Mapping[str, Kind]) -> None:
        self._values, self._kinds = values, kinds

    def __getitem__(self, name: str) -> Entity:
        return entity(self._kinds[name], self._values[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


def _made_loops(name: str, count: int) -> tuple[VirtualAxis, ...]:
    """Return the loops that a knob's split makes; their extents depend on its value."""
    return tuple(VirtualAxis(None, f"{name}.{n}") for n in range(count))


def _places(loops: Sequence[Any], axes: Sequence[Any], name: str) -> tuple[int, ...]:
    """Return the position of each of `loops` in `axes`."""
    places = [next((n for n, axis in enumerate(axes) if axis is loop), None) for loop in loops]
    if None in places:
        raise TuningError(
            f"declare the knob {name}", "a loop is not among those it orders",
            got=repr(loops[places.index(None)]), expected=", ".join(map(repr, axes)),
        )  # fmt: skip
    return tuple(place for place in places if place is not None)


def _unknown(name: str, known: Mapping[str, Any]) -> TuningError:
    return TuningError(
        f"read the knob {name!r}", "the template has not declared it",
        expected=", ".join(known) or "none so far",
    )  # fmt: skip


def _shortened(knob: Knob) -> str:
    return f"{len(knob.values)} values from {knob.values[0]!r}"
