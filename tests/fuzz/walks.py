"""Random walks over the legal moves of a schedule."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import Move, Schedule, open_obligations
from dlcompiler.schedule.moves.enumeration import moves_of

WEIGHTS = {
    "split": 6, "tile": 2, "fuse": 3, "reorder": 3, "vectorize": 2, "unroll": 2, "parallel": 2,
    "compute_at": 5, "compute_inline": 1.5, "compute_root": 0.3, "cache_write": 1,
    "cache_read": 1, "rfactor": 1.5, "create_group": 0.3, "compute_group_at": 2,
    "set_scope": 0.5, "storage_align": 0.5, "align_extent": 0.5, "pragma": 0.3,
    "double_buffer": 0.2, "rolling_buffer": 0.5, "transform_layout": 0.5, "prefetch": 0.5,
}  # fmt: skip
SIZES = (1, 2, 3, 4, 5, 8, 40)
TRIES = 4
"""Illegal candidates of one primitive that are tried before another step is taken."""


@dataclass
class Walk:
    """A random walk over legal moves."""

    rng: random.Random
    schedule: Schedule
    refused: list[str] = field(default_factory=list)
    """Texts of the refusals that only a chosen parameter brought about."""

    def run(self, steps: int) -> None:
        for _ in range(steps):
            choice = self.rng.random()
            if choice < 0.04 and len(self.schedule.trace):
                self.schedule.undo()
            elif choice < 0.12:
                self.permute()
            elif choice < 0.22:
                self.nest()
            elif choice < 0.30:
                self.rng.choice((self.round_up, self.roll, self.fill_ahead))()
            else:
                self.move()
        self.settle()

    def move(self) -> None:
        """Apply a random legal move, with random parameters."""
        computed = [s for s in self.schedule.stages if not s.state.is_placeholder]
        inputs = [s for s in self.schedule.stages if s.state.is_placeholder]
        stage = self.rng.choice(inputs if inputs and self.rng.random() < 0.05 else computed).name
        candidates = candidates_of(self.schedule, stage)
        if not candidates:
            return
        names = sorted({name for name, _ in candidates})
        name = self.rng.choices(names, [WEIGHTS.get(name, 1) for name in names])[0]
        chosen = [args for primitive, args in candidates if primitive == name]
        for args in self.rng.sample(chosen, min(TRIES, len(chosen))):
            move = self.asked(stage, name, args)
            if move.verdict:
                self.apply(name, stage, {**move.args, **self.parameters(move)})
                return

    def nest(self) -> None:
        """Split loops of a stage, and compute what it reads inside: bounds are hard there."""
        producer = self.rng.choice([s for s in self.schedule.stages if not s.state.is_placeholder])
        readers = {args["parent"] for args in self.attachments(producer.name)}
        if not readers:
            return
        reader = self.rng.choice(sorted(readers))
        for _ in range(self.rng.randint(1, 2)):
            leaves = self.schedule.state.stage(reader).leaves
            if leaves:
                factor = self.rng.choice(SIZES[1:])
                self.apply("split", reader, {"axis": self.rng.choice(leaves), "factor": factor})
        places = [args for args in self.attachments(producer.name) if args["parent"] == reader]
        if places:
            self.apply("compute_at", producer.name, dict(self.rng.choice(places[:-1] or places)))

    def inner(self) -> tuple[str, Mapping[str, Any]] | None:
        """Return a stage that is no output, and a place where it could be computed."""
        inner = [
            s for s in self.schedule.stages if not (s.state.is_placeholder or s.state.is_output)
        ]
        stage = self.rng.choice(inner or [None])
        places = [] if stage is None else self.attachments(stage.name)
        return (stage.name, self.rng.choice(places)) if stage and places else None

    def in_any_order(self, stage: str, steps: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        for name, args in self.rng.sample(steps, len(steps)):
            self.apply(name, stage, dict(args))

    def round_up(self) -> None:
        """Unroll loops of an attached stage, and let it compute more than is needed."""
        if (found := self.inner()) is None:
            return
        name, place = found
        stage = self.schedule.state.stage(name)
        unrolled = [("unroll", {"axis": leaf}) for leaf in stage.leaves if leaf.kind == "data"]
        factors = [(axis, self.rng.choice((2, 4, 8, 64))) for axis in stage.op.axis]
        rounded = [("align_extent", {"axis": axis, "factor": n}) for axis, n in factors]
        self.in_any_order(name, [("compute_at", place), *unrolled, *rounded])

    def roll(self) -> None:
        """Apply a rolling buffer to a stage whose region may be rounded up."""
        if (found := self.inner()) is None:
            return
        name, place = found
        steps: list[tuple[str, Mapping[str, Any]]] = [("compute_at", place), ("rolling_buffer", {})]
        axes = self.schedule.state.stage(name).op.axis
        if axes and self.rng.random() < 0.5:
            factor = self.rng.choice((2, 4, 64))
            steps.append(("align_extent", {"axis": self.rng.choice(axes), "factor": factor}))
        self.in_any_order(name, steps)
        readers = [s for s in self.schedule.stages if s.name == place["parent"]]
        for reader in readers if self.rng.random() < 0.5 else ():
            for axis in reader.state.op.axis[:1]:
                self.apply("align_extent", reader.name, {"axis": axis, "factor": 8})

    def fill_ahead(self) -> None:
        """Compute a stage for the next iteration of a loop that it is attached at."""
        if (found := self.inner()) is not None:
            name, place = found
            self.in_any_order(name, [("compute_at", place), ("double_buffer", {})])

    def attachments(self, stage: str) -> list[Mapping[str, Any]]:
        """Return the places where a stage could be computed, legal or not."""
        found = candidates_of(self.schedule, stage)
        return [args for name, args in found if name == "compute_at"]

    def asked(self, stage: str, name: str, args: Mapping[str, Any]) -> Move:
        """Return one move with its verdict."""
        (move,) = moves_of(self.schedule, stage, lambda n, a: n == name and same_arguments(a, args))
        return move

    def parameters(self, move: Move) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        for domain in move.domains:
            is_free = all(isinstance(value, int) for value in domain.suggested)
            if domain.suggested and (not is_free or self.rng.random() < 0.5):
                chosen[domain.parameter] = self.rng.choice(domain.suggested)
            else:
                chosen[domain.parameter] = self.rng.choice(SIZES)
        if move.primitive == "split" and self.rng.random() < 0.3:
            chosen = {"nparts": chosen["factor"]}
        return chosen

    def permute(self) -> None:
        """Reorder some of the loops of a stage."""
        stages = [s for s in self.schedule.stages if len(s.leaf_iter_vars) > 1]
        if not stages:
            return
        stage = self.rng.choice(stages)
        axes = list(stage.leaf_iter_vars)
        self.rng.shuffle(axes)
        self.apply("reorder", stage.name, {"axes": tuple(axes[: self.rng.randint(2, len(axes))])})

    def apply(self, primitive: str, stage: str, args: dict[str, Any]) -> None:
        try:
            self.schedule.apply(primitive, stage, args)
        except ScheduleError as error:
            self.refused.append(str(error))

    def settle(self) -> None:
        """Attach again, or move to the root, the stages with pending obligations."""
        for attempt in itertools.count():
            open_ones = open_obligations(self.schedule.state)
            if not open_ones:
                return
            if attempt >= TRIES * 3:  # fulfilling one obligation may create another
                self.schedule.undo()
                continue
            owed = self.rng.choice(open_ones)
            moves = [
                move
                for move in moves_of(
                    self.schedule, owed.stage, lambda name, _: name.startswith("compute")
                )
                if move.verdict
            ]
            for move in self.rng.sample(moves, len(moves)):
                self.apply(move.primitive, move.stage, dict(move.args))
                if owed not in self.schedule.obligations:
                    break
            else:  # what is attached inside it must move first
                self.schedule.undo()


def candidates_of(schedule: Schedule, stage: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the moves on a stage, legal or not, without checking any."""
    found: list[tuple[str, Mapping[str, Any]]] = []

    def note(name: str, args: Mapping[str, Any]) -> bool:
        found.append((name, args))
        return False

    assert not list(moves_of(schedule, stage, note))
    return found


def same_arguments(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Tell whether two moves take the same arguments; ``==`` of axes would build expressions."""
    return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return a is b or (type(a) is type(b) and isinstance(a, str | int) and a == b)
