"""Oracles of a verification: inputs, and the right outputs by `te.evaluate`."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.dtypes import is_float
from dlcompiler.errors import ProgramError
from dlcompiler.ir import PrimFunc, Var
from dlcompiler.measurement.equality import has_bounds
from dlcompiler.measurement.indices import IndexRanges, index_ranges
from dlcompiler.measurement.inputs import KINDS, REACHING, Kind, drawn, drawn_indices
from dlcompiler.schedule import Schedule
from dlcompiler.simulate.steps import count_steps
from dlcompiler.te import ExternOp, Tensor, specialize
from dlcompiler.te.evaluation.evaluate import evaluate_within
from dlcompiler.te.roundings import rounding_decides
from dlcompiler.te.tensor import PlaceholderOp, post_order

Array = npt.NDArray[Any]

CHEAP_POINTS = 2**20
"""Elements that are computed, each term of a sum counted, up to which all kinds of inputs are
tried."""
CHEAP_STEPS = 20_000
"""The same of the statements of code from outside, which the interpreter evaluates."""
KEPT_BYTES = 2**28
"""Memory of the oracles kept for the next schedule of the same expression [byte]."""
KEPT = 64
_REACHES = (1.0, 0.46, 0.3, 0.15, 0.05)
"""Parts of the exponents of a dtype that are tried in turn: sums of products of numbers that reach
further would overflow."""
_REACHES_OF_LARGE = (0.4, 0.15)


@dataclass(frozen=True)
class Oracle:
    """Inputs, the right outputs, and the largest allowed difference from them."""

    inputs: Mapping[Any, Any]
    """Arrays of tensors, and numbers of symbols."""
    expected: Mapping[Tensor, Array]
    """The right outputs: floats in float64, others in their dtypes."""
    bounds: Mapping[Tensor, Array]
    kind: Kind = "random"
    """Kind of the inputs."""
    seed: int = 0
    """Kind of the inputs."""
    indices: tuple[str, ...] = ()
    """The values of inputs that are used as indices, as text."""

    @property
    def nbytes(self) -> int:
        """Size of its arrays [byte]."""
        inputs = [value for value in self.inputs.values() if isinstance(value, np.ndarray)]
        arrays = [*inputs, *self.expected.values(), *self.bounds.values()]
        return sum(array.nbytes for array in arrays)


class _Store:
    """A thread-safe cache of the last oracles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Any, ...], Oracle | None] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> tuple[bool, Oracle | None]:
        """Return whether a key is in the cache, and its oracle."""
        with self._lock:
            if key not in self._kept:
                return False, None
            self._kept.move_to_end(key)
            return True, self._kept[key]

    def put(self, key: tuple[Any, ...], oracle: Oracle | None) -> None:
        """Store an oracle; drop the least recently used ones if the cache is too large."""
        with self._lock:
            self._kept[key] = oracle
            self._kept.move_to_end(key)
            size = sum(kept.nbytes for kept in self._kept.values() if kept)
            while len(self._kept) > 1 and (size > KEPT_BYTES or len(self._kept) > KEPT):
                _, oldest = self._kept.popitem(last=False)
                size -= oldest.nbytes if oldest else 0


_store = _Store()


def oracle_of(schedule: Schedule, seed: int, values: Mapping[Var, Any] | None = None) -> Oracle:
    """Return random inputs, expected outputs and bounds for a schedule's expression.

    The last few are cached, since one expression is verified under many schedules. `values` are
    the values of its symbols.

    Raises
    ------
    ProgramError
        If the expression reads outside a tensor, or leaves elements unwritten.
    """
    found = _kept_oracle(schedule, seed, values or {}, "random")
    assert found is not None, "random inputs are never left out"
    return found


def oracles_of(
    schedule: Schedule,
    seed: int,
    values: Mapping[Var, Any] | None = None,
    kinds: Sequence[Kind] = KINDS,
) -> Iterator[Oracle]:
    """Yield `oracle_of`, and oracles for the other kinds of inputs that the expression accepts.

    If the expression is expensive, only ``extremes`` is added.
    """
    yield oracle_of(schedule, seed, values)
    for kind in kinds:
        if kind == "random" or (kind != "extremes" and not _is_cheap(schedule, values or {})):
            continue
        oracle = _kept_oracle(schedule, seed, values or {}, kind)
        if oracle is not None:
            yield oracle


def _kept_oracle(
    schedule: Schedule, seed: int, values: Mapping[Var, Any], kind: Kind
) -> Oracle | None:
    key = (schedule.outputs, seed, tuple(values.items()), kind)
    is_known, oracle = _store.get(key)
    if not is_known:
        oracle = _Maker(schedule, seed, values).make(kind)
        _store.put(key, oracle)
    return oracle


def _is_cheap(schedule: Schedule, values: Mapping[Var, Any]) -> bool:
    known = specialize(schedule.outputs, values) if values else {}
    outputs = [known.get(tensor, tensor) for tensor in schedule.outputs]
    steps = points = 0
    for op in post_order(outputs):
        if isinstance(op, ExternOp):
            steps += count_steps(PrimFunc(op.name, (), (), op.body))
        elements = math.prod(op.output(0).static_shape)
        points += elements * math.prod(axis.static_extent for axis in op.reduce_axis)
    return points <= CHEAP_POINTS and steps <= CHEAP_STEPS


class _Maker:
    """Makes the oracles of an expression for given values of its symbols."""

    def __init__(self, schedule: Schedule, seed: int, values: Mapping[Var, Any]) -> None:
        self.schedule = schedule
        self.seed = seed
        self.values = values
        self.outputs = schedule.outputs
        self.is_cheap = _is_cheap(schedule, values)
        root = schedule.history.history.root.state
        inputs = [stage.tensor for stage in root.stages if isinstance(stage.op, PlaceholderOp)]
        known = specialize(schedule.outputs, values) if values else {}
        self.static = {t: known.get(t, t) for t in (*inputs, *schedule.outputs)}
        self.inputs = inputs
        self.keeps_floats = rounding_decides(self.static_outputs)
        """Whether floats are random in all kinds: others might be decided by rounding."""

    @property
    def static_outputs(self) -> list[Tensor]:
        """The outputs, of known shapes."""
        return [self.static[tensor] for tensor in self.outputs]

    def make(self, kind: Kind) -> Oracle | None:
        """Return the oracle of a kind of inputs; None if the expression does not accept them."""
        if kind == "random":
            return self.oracle(kind, 1.0)
        has_floats = any(is_float(tensor.dtype) for tensor in self.inputs)
        if has_floats and self.keeps_floats:
            return (
                self.attempt(kind, 1.0) if not all(is_float(t.dtype) for t in self.inputs) else None
            )
        random = oracle_of(self.schedule, self.seed, self.values)
        reaches: tuple[float, ...] = (1.0,)
        if has_floats and kind in REACHING:
            reaches = _REACHES if self.is_cheap else _REACHES_OF_LARGE
        for reach in reaches:
            oracle = self.attempt(kind, reach)
            if oracle is None or kind not in REACHING or _tells(oracle, random):
                return oracle
        return None

    def attempt(self, kind: Kind, reach: float) -> Oracle | None:
        """Return an oracle, or None if the expression cannot be evaluated on such inputs."""
        try:
            return self.oracle(kind, reach)
        except Exception:  # code from outside may raise anything on values it was not made for
            return None

    def oracle(self, kind: Kind, reach: float) -> Oracle:
        """Return an oracle; guarded indices are restricted to valid values only if necessary."""
        ranges = index_ranges(self.static_outputs, guarded=False)
        try:
            return self.with_ranges(kind, reach, ranges)
        except ProgramError as error:
            stricter = index_ranges(self.static_outputs, guarded=True)
            if error.kind != "out_of_bounds" or (ranges == stricter and not ranges.unknown):
                raise
            return self.with_ranges(kind, reach, stricter)

    def with_ranges(self, kind: Kind, reach: float, ranges: IndexRanges) -> Oracle:
        """Return an oracle in which inputs that are used as indices are within `ranges`."""
        arrays = {}
        for number, tensor in enumerate(self.inputs):
            static, seed = self.static[tensor], self.seed + number
            span = ranges.spans.get(static)
            own = "random" if self.keeps_floats and is_float(tensor.dtype) else kind
            arrays[tensor] = (
                drawn(own, static, seed, reach)
                if span is None
                else drawn_indices(static, span, seed)
            )
            arrays[tensor].setflags(write=False)
        given = {self.static[tensor]: array for tensor, array in arrays.items()}
        expected, bounds = evaluate_within(self.static_outputs, given)
        return Oracle(
            {**arrays, **self.values},
            dict(zip(self.outputs, expected, strict=True)),
            dict(zip(self.outputs, bounds, strict=True)),
            kind,
            self.seed,
            tuple(_index_texts(ranges)),
        )


def _index_texts(ranges: IndexRanges) -> Iterator[str]:
    for tensor, span in ranges.spans.items():
        yield f"{tensor.name} from {span.low} to {span.high}"
    for tensor in ranges.unknown:
        yield f"{tensor.name} at random, since its valid values are not known"


def _tells(oracle: Oracle, random: Oracle) -> bool:
    """Tell whether the bounds are tight for half of each output's elements, to detect errors.

    Tight means a quarter of the largest result, or about as tight as for random inputs.
    """
    for tensor, expected in oracle.expected.items():
        if not is_float(tensor.dtype) or not expected.size:
            continue
        bound = oracle.bounds[tensor]
        usual = random.bounds[tensor] / _largest(random.expected[tensor])
        near = max(0.25, 2 * _median(usual[np.isfinite(usual)]))
        is_near = bound <= near * _largest(expected)
        if np.mean(is_near & has_bounds(expected, bound, tensor.dtype)) < 0.5:
            return False
    return True


def _largest(values: Array) -> float:
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    return largest or np.finfo(np.float64).tiny


def _median(values: Array) -> float:
    return float(np.median(values)) if values.size else 0.0
