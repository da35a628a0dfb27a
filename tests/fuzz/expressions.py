"""Random tensor expressions of awkward sizes, on which random schedules are tried."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlcompiler import dtypes
from dlcompiler.ir import Var
from dlcompiler.ir.specialize import extent_value
from dlcompiler.te import PlaceholderOp, ScanOp, Tensor, post_order, symbols_of
from tests.fuzz import (
    chains,
    guards,
    mixed,
    recurrences,
    reducers,
    scalars,
    several,
    symbolic,
    templates,
    windows,
)
from tests.fuzz.choices import Choices
from tests.fuzz.inputs import array_of, index_spans
from tests.fuzz.templates import Sizes

TEMPLATES: dict[str, Callable[[Sizes], Tensor | tuple[Tensor, ...]]] = {
    **templates.TEMPLATES,
    **several.TEMPLATES,
    **symbolic.TEMPLATES,
    **scalars.TEMPLATES,
    **chains.TEMPLATES,
    **recurrences.TEMPLATES,
    **windows.TEMPLATES,
    **guards.TEMPLATES,
    **reducers.TEMPLATES,
    **mixed.TEMPLATES,
}
WEIGHTS = {
    "chain": 12,
    "groups": 2,
    "masked_reduction": 2,
    "bent_window": 2,
    **dict.fromkeys((*guards.TEMPLATES, *reducers.TEMPLATES, *mixed.TEMPLATES), 1.5),
    **dict.fromkeys(symbolic.TEMPLATES, 0.6),
}
SYMBOL_SIZES = (0, 1, 2, 3, 5, 7, 8, 13)
SIZES_TRIED = 2

Values = Mapping[Var, int]


@dataclass(frozen=True)
class Expression:
    """A random expression, and the choices that lead to it."""

    template: str
    outputs: tuple[Tensor, ...]
    choices: tuple[int, ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        ops = post_order(self.outputs)
        return tuple(op.output(0) for op in ops if isinstance(op, PlaceholderOp))

    @property
    def args(self) -> list[Tensor]:
        return [*self.inputs, *(t for t in self.outputs if t not in self.inputs)]

    @property
    def is_exact(self) -> bool:
        return self.template not in templates.INEXACT

    def sizes(self, seed: int) -> list[Values]:
        """Return values for the symbols of the shapes; a single empty choice without symbols."""
        symbols = symbols_of(self.outputs)
        rng = random.Random(f"sizes {seed}")
        count = SIZES_TRIED if symbols else 1
        return [{symbol: rng.choice(SYMBOL_SIZES) for symbol in symbols} for _ in range(count)]

    def arrays(self, seed: int, values: Values | None = None) -> dict[Tensor, np.ndarray]:
        """Return arrays for the inputs: see `tests.fuzz.inputs`."""
        rng = np.random.default_rng(seed)
        special = self.is_exact and bool(rng.random() < 0.3)
        spans = index_spans(self.template, self.outputs, rng)
        arrays = {}
        for tensor in self.inputs:
            shape = shape_of(tensor, values or {})
            span = spans.get(tensor)
            if span is None:
                arrays[tensor] = array_of(self.template, tensor, shape, rng, special)
            else:
                ends = int(span.low), int(span.high)
                kind = numpy_dtype(tensor.dtype)
                arrays[tensor] = rng.integers(*ends, shape, dtype=kind, endpoint=True)
        return arrays

    def __str__(self) -> str:
        lines = []
        for op in post_order(self.outputs):
            tensors = ", ".join(map(repr, op.outputs))
            if isinstance(op, PlaceholderOp):
                lines.append(f"{tensors} input")
                continue
            if isinstance(op, ScanOp):
                lines.append(op.text())
                continue
            axes = ", ".join(f"{a.name}:{a.extent}" for a in op.axis)
            bodies = ", ".join(map(str, op.bodies))
            starts = [f"{a.name}: {a.extent} from {a.start}" for a in op.reduce_axis]
            lines.append(f"{tensors} [{axes}] = {bodies} {' '.join(starts)}".rstrip())
        return "\n".join(lines)


def shape_of(tensor: Tensor, values: Values) -> tuple[int, ...]:
    """Return the shape of a tensor when its symbols have values."""
    return tuple(extent_value(extent, values) for extent in tensor.shape)


def numpy_dtype(dtype: str) -> np.dtype:
    """Return the NumPy type of a placeholder's arrays."""
    return dtypes.to_numpy(dtype)


def random_expression(
    rng: random.Random, template: str | None = None, choices: Sequence[int] = ()
) -> Expression:
    """Return an expression of a template (a random one by default).

    `choices` are made first, in place of random ones: those of another expression, some smaller.
    """
    names = sorted(TEMPLATES)
    drawn = rng.choices(names, [WEIGHTS.get(name, 1) for name in names])[0]
    name = template or drawn
    source = Choices(rng, choices)
    outputs = TEMPLATES[name](Sizes(source))
    return Expression(name, all_of(outputs), tuple(source.made))


def all_of(outputs: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return tensors with the others that are computed together with them: all are stored."""
    given = outputs if isinstance(outputs, tuple) else (outputs,)
    return tuple(dict.fromkeys(t for tensor in given for t in tensor.op.outputs))
