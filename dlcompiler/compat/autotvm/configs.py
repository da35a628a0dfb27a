"""AutoTVM's spaces and configs, which classic templates use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler.autotune.records.autotvm_log import KINDS, TAGS
from dlcompiler.errors import TuningError
from dlcompiler.space import (
    AnnotateEntity,
    Choices,
    Config,
    Declaring,
    OtherOptionEntity,
    ReorderEntity,
    Space,
    SplitEntity,
    VirtualAxis,
    Workload,
    divisors,
)
from dlcompiler.space.entities import Entity, entity
from dlcompiler.space.knob import Kind, Value


@dataclass(frozen=True)
class Subspace:
    """The choices of one knob."""

    entities: list[Entity]
    """The entities to choose from."""
    text: str
    """How it was declared."""

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, index: int) -> Entity:
        return self.entities[index]

    def __repr__(self) -> str:
        return f"{self.text} len={len(self)}"


class ConfigSpace(Declaring):
    """The space of a task; a template declares it when the task is created."""

    is_fallback = False
    """Whether the values are a fallback, not tuned ones."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []
        """Reasons that the template gave for refusing the first values."""
        self._texts: dict[str, str] = {}
        self._extents: dict[str, int] = {}
        self._set: dict[str, Entity] = {}
        self._counted: tuple[tuple[int, int], Space] | None = None

    @property
    def flop(self) -> float:
        """Number of operations given to ``add_flop``."""
        return self.flops

    @property
    def space_map(self) -> dict[str, Subspace]:
        """The choices of each knob, by its name."""
        return {
            name: Subspace([entity(k.kind, v) for v in k.values], self._texts[name])
            for name, k in self._knobs.items()
        }

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
        """Declare how a loop is split; see `Choices.define_split`."""
        extent = self.axis(axis).length
        self._extents[name] = extent or 0
        self._texts[name] = f"Split(policy={policy}, product={extent}, num_outputs={num_outputs})"
        return super().define_split(
            name, axis, policy, num_outputs=num_outputs, filter=filter, **options
        )

    def define_reorder(
        self, name: str, axes: Sequence[Any], policy: str, **options: Any
    ) -> tuple[VirtualAxis, ...]:
        """Declare an order of loops; see `Choices.define_reorder`."""
        self._texts[name] = f"Reorder(policy={policy})"
        return super().define_reorder(name, axes, policy, **options)

    def define_annotate(
        self, name: str, axes: Sequence[Any], policy: str, *, num_anchor: int | None = None
    ) -> tuple[VirtualAxis, ...]:
        """Declare annotations of loops; see `Choices.define_annotate`."""
        self._texts[name] = f"Annotate(policy={policy})"
        return super().define_annotate(name, axes, policy, num_anchor=num_anchor)

    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        """Declare a knob with given values."""
        self._texts[name] = f"OtherOption({list(candidate)})"
        super().define_knob(name, candidate)

    def raise_error(self, message: str) -> None:
        """Record an error of the first values; other values may be legal."""
        self.errors.append(message)

    def valid(self) -> bool:
        """Return whether no error was recorded for the values."""
        return not self.errors

    def get(self, index: int) -> ConfigEntity:
        """Return a config by its index; the first knob varies fastest."""
        space = self._known
        if not self.is_index_valid(index):
            raise TuningError(
                f"get config {index}", "the space has no such config", got=index,
                expected=f"one of {len(self)} indices below {space.size}",
                hint="is_index_valid checks an index, get_next_index finds the next valid one",
            )  # fmt: skip
        return ConfigEntity.of(space, space.at(index))

    # -- indices: those that rules forbid count, but are never used --------------------------

    @property
    def _known(self) -> Space:
        """The space of the knobs declared so far."""
        declared = len(self._knobs), len(self._rules)
        if self._counted is None or self._counted[0] != declared:
            self._counted = declared, self.space(Workload.of("config_space"))
        return self._counted[1]

    @property
    def range_length(self) -> int:
        """Number of indices, including those of forbidden configs."""
        return self._known.size

    @property
    def dims(self) -> list[int]:
        """Number of choices of each knob."""
        return [len(knob.values) for knob in self._knobs.values()]

    def is_index_valid(self, index: int) -> bool:
        """Tell whether an index is in range and its config is allowed."""
        return 0 <= index < self.range_length and bool(self._known.allows([index])[0])

    def get_next_index(
        self, index: int, n: int = 1, start: int | None = None, end: int | None = None
    ) -> int | None:
        """Return the `n`-th allowed index after `index`; for a negative `n`, before it.

        Parameters
        ----------
        index : int
            The index to start from.
        n : int
            Number of allowed indices to advance.
        start, end : int, optional
            Range of the indices; all by default.

        Returns
        -------
        int or None
            None if there are fewer.
        """
        low, high = start or 0, self.range_length if end is None else end
        step, left = (1 if n > 0 else -1), abs(n)
        while left:
            index += step
            if not low <= index < high:
                return None
            left -= self.is_index_valid(index)
        return index if low <= index < high else None

    def sample_ints(self, m: int) -> list[int]:
        """Return `m` different allowed indices, drawn by NumPy's global generator."""
        seed = int(np.random.randint(2**31))
        return list(self._known.sample(m, seed=seed))

    def get_rand_index(self) -> int:
        """Return an allowed index."""
        return self.sample_ints(1)[0]

    def __getitem__(self, name: str) -> Any:
        return self._set[name] if name in self._set else super().__getitem__(name)

    def __setitem__(self, name: str, value: Entity) -> None:
        self._set[name] = value

    def __len__(self) -> int:
        return self._known.count.value

    def __repr__(self) -> str:
        lines = [f"ConfigSpace (len={len(self)}, space_map="]
        lines += [f"  {n:2} {name}: {sub}" for n, (name, sub) in enumerate(self.space_map.items())]
        return "\n".join([*lines, ")"])


class FallbackConfigEntity(ConfigSpace):
    """The config for workloads without a known one: first values, or the template's fallback."""

    is_fallback = True

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Set a split to the largest factors within limits, from inside to outside.

        Parameters
        ----------
        name : str
            Of a knob that ``define_split`` has declared.
        constraints : sequence of int
            The largest size of each loop; -1: no limit.
        """
        rest, sizes = self._extents[name], list[int]()
        wanted = len(self[name].size)
        if len(constraints) != wanted or any(limit < 1 and limit != -1 for limit in constraints):
            raise TuningError(
                f"fall back to a split for {name!r}", "there must be one limit for each loop",
                got=repr(list(constraints)), expected=f"{wanted} numbers, each positive or -1",
            )  # fmt: skip
        for limit in reversed(constraints):
            factors = [f for f in divisors(max(rest, 1)) if limit == -1 or f <= limit]
            sizes.insert(0, factors[-1])
            rest //= sizes[0]
        self[name] = SplitEntity(tuple(sizes))

    def __repr__(self) -> str:
        return f"{[(name, self[name]) for name in self]},None,None"


class ConfigEntity(Choices):
    """A config: one entity for each knob, by name."""

    is_fallback = False
    """Whether the values are a fallback, not tuned ones."""

    def __init__(self, index: int, entities: Mapping[str, Entity], config: Config | None) -> None:
        super().__init__()
        self.index = index
        """Index in the space that it was made from."""
        self.code_hash = None
        """None: it is not known here."""
        self.config = config
        """The corresponding config of `dlcompiler.space`; None if it was read from a log."""
        self._entities = dict(entities)

    @classmethod
    def of(cls, space: Space, config: Config, index: int | None = None) -> ConfigEntity:
        """Convert a config of `dlcompiler.space` to AutoTVM's."""
        entities = {knob.name: entity(knob.kind, config[knob.name]) for knob in space.knobs}
        return cls(space.index_of(config) if index is None else index, entities, config)

    @classmethod
    def of_values(cls, index: int, values: Sequence[tuple[str, str, Value]]) -> ConfigEntity:
        """Return the config of a log line, given by names, tags and values."""
        entities = {name: entity(KINDS[tag], value) for name, tag, value in values}
        return cls(index, entities, None)

    @staticmethod
    def from_json_dict(json_dict: Mapping[str, Any]) -> ConfigEntity:
        """Read a config that `to_json_dict` wrote.

        Raises
        ------
        TuningError
            If a field is missing, or an entity is of an unknown kind.
        """
        try:
            values = [(str(name), str(tag), value) for name, tag, value in json_dict["entity"]]
            return ConfigEntity.of_values(int(json_dict["index"]), values)
        except (KeyError, TypeError, ValueError) as error:
            raise TuningError(
                "read a config", "the data was not written by to_json_dict", got=repr(json_dict),
                because=f"{type(error).__name__}: {error}",
            ) from error  # fmt: skip

    @property
    def flop(self) -> float:
        """Number of operations given to ``add_flop``."""
        return self.flops

    def __getitem__(self, name: str) -> Any:
        if name not in self._entities:
            raise TuningError(
                f"read the knob {name!r} of a config", "there is no such knob",
                expected=", ".join(self._entities),
            )  # fmt: skip
        return self._entities[name]

    def __setitem__(self, name: str, value: Entity) -> None:
        self._entities[name] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._entities)

    def __len__(self) -> int:
        return len(self._entities)

    def raise_error(self, message: str) -> None:
        """Refuse the config.

        Raises
        ------
        TuningError
            Always.
        """
        raise TuningError("apply a config", message, got=repr(self))

    def valid(self) -> bool:
        """Return True: a template raises an error for illegal values."""
        return True

    def get_other_option(self) -> dict[str, Any]:
        """Return the values of the knobs that ``define_knob`` has declared."""
        found = self._entities.items()
        return {name: item.val for name, item in found if isinstance(item, OtherOptionEntity)}

    def values(self) -> tuple[tuple[str, str, Value], ...]:
        """Return names, tags and values, in the form of a log line."""
        return tuple((name, *_tagged(item)) for name, item in self._entities.items())

    def to_json_dict(self) -> dict[str, Any]:
        """Return the config in the form of a log."""
        values = [list(item) for item in self.values()]
        return {"index": self.index, "code_hash": None, "entity": values}

    def __repr__(self) -> str:
        return f"{list(self._entities.items())},{self.code_hash},{self.index}"

    def _declare(self, name: str, kind: Kind, values: Callable[[], Sequence[Value]]) -> None:
        if name not in self._entities:
            raise TuningError(
                f"apply a config to the knob {name!r}", "the config does not have it",
                got=repr(self), because=f"it is of another version of the template ({TAGS[kind]})",
            )  # fmt: skip

    def _restrict(self, rule: Any, text: str) -> None:
        """Do nothing: the space already excludes what the rule forbids."""


def _tagged(item: Entity) -> tuple[str, Any]:
    match item:
        case SplitEntity(size):
            return "sp", size
        case ReorderEntity(perm):
            return "re", perm
        case AnnotateEntity(anns):
            return "an", anns
        case OtherOptionEntity(val):
            return "ot", val
