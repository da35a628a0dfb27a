"""Entities: values of knobs that split, reorder and annotate loops.

An entity is applied to a schedule, of which this module uses only the methods ``split``,
``reorder``, ``unroll``, ``vectorize``, ``fuse`` and ``compute_at``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler.errors import TuningError


@dataclass(frozen=True, slots=True)
class SplitEntity:
    """A way to split a loop."""

    size: tuple[int, ...]
    """Sizes from outside to inside; the first follows from the others, and may be -1."""

    def apply(self, s: Any, op: Any, axis: Any) -> list[Any]:
        """Split a loop of a stage; returns the loops from outside to inside."""
        loops = []
        for n in range(1, len(self.size)):
            outer, axis = s[op].split(axis, math.prod(self.size[n:]))
            loops.append(outer)
        return [*loops, axis]

    def __repr__(self) -> str:
        return str(list(self.size))


@dataclass(frozen=True, slots=True)
class ReorderEntity:
    """An order of loops."""

    perm: tuple[int, ...]
    """Positions of the loops, from outside to inside."""

    def apply(self, s: Any, op: Any, axes: Sequence[Any]) -> list[Any]:
        """Reorder loops of a stage; returns them in their new order."""
        order = [axes[n] for n in self.perm if n < len(axes)]
        s[op].reorder(*order)
        return order

    def __repr__(self) -> str:
        return str(list(self.perm))


@dataclass(frozen=True, slots=True)
class AnnotateEntity:
    """Annotations of loops, or the positions at which stages are attached."""

    anns: tuple[Any, ...]
    """For each loop ``none``, ``unroll`` or ``vec``; or for each stage the position of the loop
    that it is attached at."""

    def apply(
        self,
        s: Any,
        op: Any,
        axes: Sequence[Any],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
        cfg: Any = None,
        source: Sequence[Sequence[Any]] | None = None,
    ) -> list[Any]:
        """Annotate loops of a stage, or attach other stages at them.

        Parameters
        ----------
        s, op : Schedule, Tensor
            The schedule, and the tensor of the stage.
        axes : sequence of Axis
            The loops of the stage.
        axis_lens : sequence of int, optional
            The extents of the loops, for `max_unroll` and `vec_size`.
        max_unroll : int, optional
            The largest extent of an unrolled loop; a larger one refuses the config.
        vec_size : sequence of int, optional
            The allowed extents of a vectorized loop; another extent refuses the config.
        cfg : object, optional
            An object whose method ``raise_error`` refuses the config.
        source : sequence of sequence of Tensor, optional
            Stages to attach at each of the positions.

        Returns
        -------
        list of Axis
            The loops.
        """
        if source is not None:
            for tensors, place in zip(source, self.anns, strict=False):
                for tensor in tensors:
                    s[tensor].compute_at(s[op], axes[place])
            return list(axes)
        for number, (ann, axis) in enumerate(zip(self.anns, axes, strict=False)):
            extent = axis_lens[number] if axis_lens else None
            if ann == "unroll":
                if max_unroll and extent is not None and extent > max_unroll:
                    _refuse(cfg, "Too large factor for unrolling", extent)
                s[op].unroll(axis)
            elif ann == "vec":
                if vec_size and extent is not None and extent not in vec_size:
                    _refuse(cfg, "Wrong size of lanes in vectorization", extent)
                s[op].vectorize(axis)
        return list(axes)

    def __repr__(self) -> str:
        return str(list(self.anns))


@dataclass(frozen=True, slots=True)
class OtherOptionEntity:
    """The value of a knob without a special kind."""

    val: Any
    """The value."""

    def __repr__(self) -> str:
        return str(self.val)


Entity: TypeAlias = SplitEntity | ReorderEntity | AnnotateEntity | OtherOptionEntity


def entity(kind: str, value: Any) -> Entity:
    """Return the value of a knob as the entity of its kind."""
    match kind:
        case "split":
            return SplitEntity(value)
        case "reorder":
            return ReorderEntity(value)
        case "annotate":
            return AnnotateEntity(value)
        case _:
            return OtherOptionEntity(value)


def _refuse(cfg: Any, message: str, extent: int) -> None:
    if cfg is None:
        raise TuningError("annotate a loop", message, got=str(extent))
    cfg.raise_error(f"{message}: {extent}")
