"""Chains of random stages: random shapes, types, indices, operators and reductions.

Every float stays a whole number that its type holds exactly, so that any order of summation gives
the same result. `Term.bound` carries the largest absolute value along; what could grow beyond is
clamped first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.te import Tensor
from tests.fuzz.templates import Sizes

DTYPES = (
    "float32", "float32", "float64", "float16", "int32", "int8", "uint8", "int16", "int64",
    "uint16", "uint32", "uint64", "bfloat16",
)  # fmt: skip
EXACT_BELOW = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**23, "float64": 2**50}
MAX_ELEMENTS = 400
MAX_WORK = 2500


@dataclass(frozen=True)
class Term:
    """An expression, and the largest absolute value it has."""

    expr: Any
    bound: int
    dtype: str

    @property
    def is_float(self) -> bool:
        return dtypes.is_float(self.dtype)


@dataclass(frozen=True)
class Known:
    """A tensor that later stages may read."""

    tensor: Tensor
    bound: int


@dataclass(frozen=True)
class Loop:
    """An axis of the stage being made."""

    var: Any
    extent: int


def chain(z: Sizes) -> tuple[Tensor, ...]:
    """Return the last of some random stages, and now and then another one."""
    maker = Maker(z)
    for n in range(1 + z.rng.randrange(3)):
        maker.add_input(n)
    count = 1 + z.rng.randrange(4)
    for n in range(count):
        maker.add_stage(n)
    last = maker.known[-1].tensor
    if count > 1 and z.rng.chance(0.15):
        return last, maker.known[-2].tensor
    return (last,)


class Maker:
    def __init__(self, z: Sizes) -> None:
        self.z = z
        self.rng = z.rng
        self.pool = [z.one(), z.one(), z.small()]
        if self.rng.chance(0.04):
            self.pool[0] = 0
        self.known: list[Known] = []

    # -- tensors -----------------------------------------------------------------------------------

    def add_input(self, n: int) -> None:
        dtype = self.rng.choice(DTYPES)
        tensor = te.placeholder(self.shape(1), dtype, name=f"I{n}")
        self.known.append(Known(tensor, 8 if dtype.startswith("u") else 4))

    def add_stage(self, n: int) -> None:
        shape, dtype = self.shape(0), self.rng.choice(DTYPES)
        reduced: tuple[int, ...] = ()
        if self.rng.chance(0.4):
            most = max(MAX_WORK // max(math.prod(shape), 1), 1)
            extents = [min(self.z.small(), most) for _ in range(1 + self.rng.randrange(2))]
            reduced = tuple(extents) if math.prod(extents) <= most else (extents[0],)
        axes = [
            te.reduce_axis((first := self.rng.choice((0, 0, 0, 2)), first + extent), name=f"r{k}")
            for k, extent in enumerate(reduced)
        ]
        bounds = []

        def body(indices: Sequence[Any]) -> Any:
            loops = [Loop(var, extent) for var, extent in zip(indices, shape, strict=True)]
            # A reduction axis may start elsewhere: what is read is counted from its start.
            loops += [Loop(axis - axis.start if axis.start else axis, axis.extent) for axis in axes]
            term = self.value(loops, dtype)
            if axes:
                term = self.reduced(term, axes, loops)
            bounds.append(term.bound)
            return term.expr

        tensor = te.compute(shape, _with_arity(len(shape), body), name=f"S{n}")
        self.known.append(Known(tensor, bounds[-1]))

    def shape(self, least: int) -> tuple[int, ...]:
        ndim = max(least, self.rng.choice((2, 1, 2, 3, 0)))
        shape = tuple(self.rng.choice((*self.pool, self.z.small())) for _ in range(ndim))
        while math.prod(shape) > MAX_ELEMENTS:
            largest = shape.index(max(shape))
            shape = tuple(n // 2 if k == largest else n for k, n in enumerate(shape))
        return shape

    # -- values ------------------------------------------------------------------------------------

    def value(self, loops: Sequence[Loop], dtype: str) -> Term:
        """Return a random expression of a type."""
        term = self.converted(self.read(loops), dtype)
        for _ in range(self.rng.randrange(3)):
            operator = self.rng.choice(FLOAT_OPERATORS if term.is_float else INTEGER_OPERATORS)
            term = self.fitted(operator(self, term, self.operand(loops, dtype)))
        return term

    def operand(self, loops: Sequence[Loop], dtype: str) -> Term:
        if self.rng.chance(0.2):
            number = self.rng.choice((2, 1, 3, 5))
            return Term(te.const(number, dtype), number, dtype)
        if loops and self.rng.chance(0.1):
            loop = self.rng.choice(loops)
            position = Term(loop.var.astype("int32"), max(loop.extent, 1), "int32")
            return self.converted(position, dtype)
        return self.converted(self.read(loops), dtype)

    def read(self, loops: Sequence[Loop]) -> Term:
        """Return an element of a tensor, by random indices within its shape."""
        # The latest stages are the likeliest, so that chains come about.
        source = self.known[-1 - min(self.rng.randrange(6) // 2, len(self.known) - 1)]
        indices = [self.index(extent, loops) for extent in source.tensor.shape]
        if any(index is None for index in indices):
            return Term(te.const(1, "int32"), 1, "int32")
        dtype = source.tensor.dtype
        if indices and loops and self.rng.chance(0.2):
            return self.padded(source, indices, loops)
        return Term(source.tensor[tuple(indices)], source.bound, dtype)

    def padded(self, source: Known, indices: list[Any], loops: Sequence[Loop]) -> Term:
        """Return an element, or a number where the index would be outside."""
        tensor, loop = source.tensor, self.rng.choice(loops)
        dimension, shift = self.rng.randrange(len(indices)), self.rng.randrange(3)
        index = loop.var - shift
        inside = te.all(index >= 0, index < tensor.shape[dimension])
        indices[dimension] = index
        other = te.const(self.rng.choice((0, 1)), tensor.dtype)
        value = te.if_then_else(inside, tensor[tuple(indices)], other)
        return Term(value, max(source.bound, 1), tensor.dtype)

    def index(self, extent: int, loops: Sequence[Loop]) -> Any:
        """Return an index that is below `extent`; None when there is none."""
        if extent == 0:
            empty = [loop.var for loop in loops if loop.extent == 0]
            return empty[0] if empty else None
        options = [option for kind in INDICES for option in kind(extent, loops, self)]
        return self.rng.choice(options)()

    # -- staying exact -----------------------------------------------------------------------------

    def converted(self, term: Term, dtype: str) -> Term:
        if term.dtype == dtype:
            return term
        if dtypes.is_float(dtype):
            if not term.is_float and term.bound >= EXACT_BELOW[dtype]:
                term = Term(te.floormod(term.expr, te.const(13, term.dtype)), 12, term.dtype)
            term = self.clamped(term, EXACT_BELOW[dtype])
            return Term(term.expr.astype(dtype), term.bound, dtype)
        bound = term.bound
        if bound > _largest(dtype) or dtype.startswith("u"):
            bound = _largest(dtype)
        return Term(term.expr.astype(dtype), bound, dtype)

    def fitted(self, term: Term) -> Term:
        """Keep a float small enough to be exact; an integer may wrap."""
        if not term.is_float:
            return Term(term.expr, min(term.bound, _largest(term.dtype)), term.dtype)
        return self.clamped(term, EXACT_BELOW[term.dtype])

    def clamped(self, term: Term, limit: int) -> Term:
        if not term.is_float or term.bound < limit:
            return term
        low, high = te.const(-3, term.dtype), te.const(3, term.dtype)
        return Term(te.maximum(te.minimum(term.expr, high), low), 3, term.dtype)

    def reduced(self, term: Term, axes: Sequence[Any], loops: Sequence[Loop]) -> Term:
        """Reduce a value over axes: of all points or some, from the identity or a number."""
        count = max(math.prod(axis.extent for axis in axes), 1)
        options: dict[str, Any] = {}
        if self.rng.chance(0.15):
            options["where"] = self.rng.choice(loops).var >= 1
        start = 0
        if self.rng.chance(0.15):
            start = self.rng.choice((1, 2))
            options["init"] = te.const(start, term.dtype)
        reduce = self.rng.choice((te.sum, te.sum, te.max, te.min, te.prod))
        if reduce is te.prod and term.is_float and 3**count * 2 >= EXACT_BELOW[term.dtype]:
            reduce = te.sum
        if reduce is te.sum:
            if term.is_float:
                term = self.clamped(term, EXACT_BELOW[term.dtype] // (2 * count))
            bound = term.bound * count + start
        elif reduce is te.prod:
            term = self.clamped(term, 3)
            bound = max(term.bound, 1) ** min(count, 64) * max(start, 1)
        else:
            # Over no points they are infinite, and stay so until they are clamped.
            bound = max(term.bound, start) if term.is_float else _largest(term.dtype)
        total = Term(reduce(term.expr, axis=list(axes), **options), bound, term.dtype)
        return total if term.is_float else Term(total.expr, _largest(term.dtype), term.dtype)


def _largest(dtype: str) -> int:
    return 2 ** dtypes.bits(dtype) - (1 if dtype.startswith("u") else 0)


def _with_arity(ndim: int, body: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
    return (
        lambda: body(()),
        lambda i: body((i,)),
        lambda i, j: body((i, j)),
        lambda i, j, k: body((i, j, k)),
    )[ndim]


# -- operators -------------------------------------------------------------------------------------


def _add(maker: Maker, a: Term, b: Term) -> Term:
    # The sum must be exact, not only what is made of it.
    a, b = (_half(maker, term) for term in (a, b))
    return Term(a.expr + b.expr, a.bound + b.bound, a.dtype)


def _sub(maker: Maker, a: Term, b: Term) -> Term:
    a, b = (_half(maker, term) for term in (a, b))
    return Term(a.expr - b.expr, a.bound + b.bound, a.dtype)


def _half(maker: Maker, term: Term) -> Term:
    return maker.clamped(term, EXACT_BELOW[term.dtype] // 2) if term.is_float else term


def _mul(maker: Maker, a: Term, b: Term) -> Term:
    if a.is_float:
        limit = math.isqrt(EXACT_BELOW[a.dtype])
        a, b = maker.clamped(a, limit), maker.clamped(b, limit)
    return Term(a.expr * b.expr, a.bound * b.bound, a.dtype)


def _maximum(maker: Maker, a: Term, b: Term) -> Term:
    return Term(te.maximum(a.expr, b.expr), max(a.bound, b.bound), a.dtype)


def _minimum(maker: Maker, a: Term, b: Term) -> Term:
    return Term(te.minimum(a.expr, b.expr), max(a.bound, b.bound), a.dtype)


def _select(maker: Maker, a: Term, b: Term) -> Term:
    chosen = te.select(a.expr < b.expr, a.expr, b.expr)
    return Term(chosen, max(a.bound, b.bound), a.dtype)


def _choose(maker: Maker, a: Term, b: Term) -> Term:
    condition = te.any(a.expr > 1, b.expr <= 0) if maker.rng.chance(0.5) else a.expr >= b.expr
    return Term(te.if_then_else(condition, b.expr, a.expr), max(a.bound, b.bound), a.dtype)


def _floordiv(maker: Maker, a: Term, b: Term) -> Term:
    divide = maker.rng.choice((te.floordiv, te.truncdiv))
    return Term(divide(a.expr, _not_zero(maker, b)), _largest(a.dtype), a.dtype)


def _floormod(maker: Maker, a: Term, b: Term) -> Term:
    divide = maker.rng.choice((te.floormod, te.truncmod))
    return Term(divide(a.expr, _not_zero(maker, b)), _largest(a.dtype), a.dtype)


def _undone(maker: Maker, a: Term, b: Term) -> Term:
    """Return an expression that could be simplified only if no operation wrapped."""
    large = 2 ** (dtypes.bits(a.dtype) - 2) - 1
    number = te.const(maker.rng.choice((2, 3, large)), a.dtype)
    value = maker.rng.choice(
        (
            lambda: te.floordiv(a.expr * number, number),
            lambda: te.select(a.expr + number > a.expr, a.expr, b.expr),
            lambda: te.floormod(te.floormod(a.expr * number, 100) * 2, number),
        )
    )()
    return Term(value, _largest(a.dtype), a.dtype)


def _cancelled(maker: Maker, a: Term, b: Term) -> Term:
    """Return an expression that equals `b` unless an operation gives infinity."""
    zero = te.const(0, a.dtype)
    value = a.expr * zero if maker.rng.chance(0.5) else a.expr - a.expr
    return Term(value + b.expr, b.bound, a.dtype)


def _not_zero(maker: Maker, term: Term) -> Any:
    if maker.rng.chance(0.5):
        return te.select(term.expr == 0, te.const(1, term.dtype), term.expr)
    return te.const(maker.rng.choice((2, 3, 7)), term.dtype)


FLOAT_OPERATORS = (_add, _sub, _mul, _maximum, _minimum, _select, _choose, _cancelled)
INTEGER_OPERATORS = (*FLOAT_OPERATORS, _floordiv, _floormod, _undone)


# -- indices ---------------------------------------------------------------------------------------


def _plain(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    return [lambda v=loop.var: v for loop in loops if loop.extent <= extent for _ in range(6)]


def _shifted(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    return [
        lambda v=loop.var, slack=extent - loop.extent: v + (1 + maker.rng.randrange(slack))
        for loop in loops
        if loop.extent < extent
    ]


def _backwards(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    return [lambda v=loop.var: extent - 1 - v for loop in loops if loop.extent <= extent]


def _strided(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    return [
        lambda v=loop.var, step=step: v * step
        for loop in loops
        for step in (2, 3)
        if (loop.extent - 1) * step < extent
    ]


def _window(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    return [
        lambda v=a.var, w=b.var: v + w
        for n, a in enumerate(loops)
        for b in loops[n + 1 :]
        if a.extent + b.extent - 1 <= extent
        for _ in range(2)
    ]


def _divided(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    return [
        lambda v=loop.var, c=c: v // c
        for loop in loops
        for c in (2, 3)
        if (loop.extent - 1) // c < extent
    ]


def _wrapped(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    def make() -> Any:
        index = maker.rng.choice(loops).var * maker.rng.choice((1, 2, 3))
        if maker.rng.chance(0.5):
            index = index + maker.rng.choice(loops).var
        return (index + maker.rng.randrange(3)) % extent

    return [make] if loops else []


def _clipped(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    return [lambda v=loop.var: te.minimum(v, extent - 1) for loop in loops]


def _fixed(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    return [lambda: maker.rng.randrange(extent)]


def _gathered(extent: int, loops: Sequence[Loop], maker: Maker) -> list[Callable[[], Any]]:
    """Read the index from an integer tensor."""
    sources = [
        (known.tensor, loop.var)
        for known in maker.known
        for loop in loops
        if known.tensor.dtype == "int32"
        and len(known.tensor.shape) == 1
        and loop.extent <= known.tensor.shape[0]
    ]
    return [
        lambda t=tensor, v=var: te.floormod(t[v], te.const(extent, "int32"))
        for tensor, var in sources
    ]


INDICES = (
    _plain, _shifted, _backwards, _strided, _window, _divided, _wrapped, _clipped, _fixed,
    _gathered,
)  # fmt: skip
TEMPLATES = {"chain": chain}
