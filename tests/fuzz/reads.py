"""Random expressions and statements that access any index: none may leave its array.

Arrays lie between pages that nothing may touch, with their last or their first byte at the edge:
a read outside ends the process. `te.evaluate` says what must happen: where it finds an index out of
bounds, the call must raise; where it computes values, the call must compute the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.errors import ExpressionError, ProgramError, UserError
from dlcompiler.ir import Axis, Expr
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret
from dlcompiler.te import Tensor
from tests.fuzz.scatters import DATA, Outside, Scatter, random_scatter
from tests.fuzz.threads import ThreadWalk
from tests.fuzz.walks import Walk
from tests.guard_pages import guarded_array

INDEX_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
STATEMENTS = 0.15
"""Share of the cases that store at random indices."""
WAYS = ("llvm", "c", "interpreter", "threads")


@dataclass
class Reader:
    """The loops and tensors that the indices and conditions of a new expression may use."""

    rng: random.Random
    axes: list[Axis]
    symbol: Any
    tables: list[Tensor]
    """Tensors of integers, whose elements are indices."""

    def index(self, depth: int, extent: Any) -> Any:
        """Return an index expression that is often inside [0, extent), and often not quite."""
        rng = self.rng
        kind = rng.randrange(12) if depth else rng.randrange(3)
        below = lambda: self.index(depth - 1, extent)  # noqa: E731  a value for each use
        match kind:
            case 0 | 1:
                return self.axis()
            case 2:
                return self.axis() + rng.randint(-2, 3)
            case 3:
                return self.gather(depth)
            case 4:
                return te.maximum(te.minimum(below(), extent - 1), 0)
            case 5:
                return te.floormod(below(), extent if isinstance(extent, int) else 3)
            case 6:
                return te.floordiv(below(), rng.randint(1, 4))
            case 7:
                return below() + below() - rng.randint(0, 3)
            case 8:
                return below() * rng.randint(-1, 3)
            case 9:
                return te.select(self.condition(0, extent), below(), below())
            case 10 if self.symbol is not None:
                return self.symbol - 1 - below()
            case 11:
                return te.truncmod(below(), rng.randint(1, 5))
        return rng.randint(0, 3) + self.axis()

    def axis(self) -> Any:
        return self.rng.choice(self.axes).var

    def gather(self, depth: int) -> Any:
        table = self.rng.choice(self.tables)
        size = table.shape[0]
        place = self.axis() if self.rng.random() < 0.6 else self.index(depth - 1, size)
        return table[te.floormod(place, size) if self.rng.random() < 0.5 else place]

    def condition(self, depth: int, extent: Any) -> Any:
        """Return a random comparison, as used in guards."""
        rng = self.rng
        match rng.randrange(7) if depth else rng.randrange(3):
            case 0:
                return self.index(1, extent) < extent + rng.choice((0, 0, 0, 1, -1))
            case 1:
                return self.index(1, extent) >= rng.choice((0, 0, 0, 1, -1))
            case 2:
                return te.floormod(self.axis(), 2) == rng.randint(0, 1)
            case 3 | 4:
                return te.all(self.condition(depth - 1, extent), self.condition(depth - 1, extent))
            case 5:
                return te.any(self.condition(depth - 1, extent), self.condition(depth - 1, extent))
        return te.likely(self.condition(depth - 1, extent))

    def guard_of(self, index: Any, extent: Any) -> Any:
        """Return a guard that keeps an index in bounds, or nearly so."""
        slip = self.rng.choice((0,) * 8 + (1, -1))
        return te.all(index >= slip, index < extent + self.rng.choice((0,) * 8 + (1, -1)))


@dataclass
class Reading:
    """One case: tensors, the arrays for them, and the result."""

    args: list[Tensor]
    arrays: list[np.ndarray]
    out: Tensor
    symbol: Any = None
    number: int = 0
    scatter: Scatter | None = None
    """The statements, where it is no expression."""


def scattering(rng: random.Random) -> Reading:
    """Return a random case of statements, whose result an expression may read."""
    sizes = [rng.randint(1, 9) for _ in range(3)]
    kinds = (rng.choice(DATA), rng.choice(INDEX_DTYPES), rng.choice(INDEX_DTYPES))
    names = ("A", "I0", "I1")
    args = [
        te.placeholder((size,), kind, name=name)
        for size, kind, name in zip(sizes, kinds, names, strict=True)
    ]
    scatter = random_scatter(rng, sizes)
    out = scatter.tensor(args, rng.choice(("extern", "hybrid")))
    if rng.random() < 0.3:
        source = out
        out = te.compute(source.shape, lambda i: source[i] + source[i], name="D")
    arrays = [_array(rng, tensor, 0, [scatter.size]) for tensor in args]
    return Reading(args, arrays, out, scatter=scatter)


def reading(rng: random.Random) -> Reading:
    """Return a random case; ExpressionError where `te.compute` refuses what was drawn."""
    number = rng.randint(1, 9)
    symbol = te.var("n") if rng.random() < 0.3 else None
    first: Any = symbol if symbol is not None else number
    shape = (first,) if rng.random() < 0.6 else (first, rng.randint(1, 6))
    data = te.placeholder(shape, name="A", dtype=rng.choice(("float32", "int8", "float64")))
    count = rng.randint(1, 2)
    tables = [
        te.placeholder((rng.randint(1, 12),), name=f"I{n}", dtype=rng.choice(INDEX_DTYPES))
        for n in range(count)
    ]
    extents: list[Any] = [rng.randint(1, 20) for _ in range(rng.randint(1, 2))]
    if symbol is not None and rng.random() < 0.6:
        extents[0] = symbol
    window = te.reduce_axis((0, rng.randint(1, 4)), name="r") if rng.random() < 0.3 else None

    def element(*variables: Any) -> Any:
        axes = [*variables, *([window] if window is not None else [])]
        reader = Reader(rng, [_Named(axis) for axis in axes], symbol, tables)
        indices = [reader.index(rng.randint(0, 3), extent) for extent in shape]
        guards = [
            reader.guard_of(index, extent)
            for index, extent in zip(indices, shape, strict=True)
            if rng.random() < 0.5
        ]
        guards += [reader.condition(2, shape[0]) for _ in range(rng.choice((0, 0, 1)))]
        value = data[tuple(indices)]
        if window is None:
            return te.if_then_else(te.all(*guards), value, _zero(data)) if guards else value
        if guards and rng.random() < 0.5:
            return te.sum(value, axis=window, where=te.all(*guards))
        if guards:
            value = te.if_then_else(te.all(*guards), value, _zero(data))
        return te.max(value, axis=window)

    out = te.compute(tuple(extents), element, name="C")
    if rng.random() < 0.3:
        source = out
        out = te.compute(tuple(extents), lambda *v: source[v] + source[v], name="D")
    args = [data, *tables]
    arrays = [_array(rng, tensor, number, [number, *shape[1:]]) for tensor in args]
    used = [n for n, t in enumerate(args) if t in _inputs(out)]
    return Reading([args[n] for n in used], [arrays[n] for n in used], out, symbol, number)


class _Named:
    """Gives data axes and reduction axes a common interface, for use in expressions."""

    def __init__(self, axis: Any) -> None:
        self.var = axis.var if isinstance(axis, Axis) else axis


def _zero(data: Tensor) -> Expr:
    return te.const(0, data.dtype)


def _inputs(out: Tensor) -> set[Tensor]:
    found, stack = set(), [out]
    while stack:
        tensor = stack.pop()
        if tensor not in found:
            found.add(tensor)
            stack += tensor.op.input_tensors
    return found


def _array(rng: random.Random, tensor: Tensor, number: int, extents: list[int]) -> np.ndarray:
    shape = tuple(e if isinstance(e, int) else number for e in tensor.shape)
    seeded = np.random.default_rng(rng.randrange(2**32))
    array = guarded_array(shape, tensor.dtype, at_end=rng.random() < 0.5)
    if tensor.name == "A":
        array[...] = seeded.integers(-9, 9, shape).astype(tensor.dtype)
        return array
    info = np.iinfo(tensor.dtype)
    low, high = max(info.min, -1), min(info.max, max(extents))
    array[...] = seeded.integers(0, high, shape) if rng.random() < 0.7 else seeded.integers(
        low, high + 1, shape)  # fmt: skip
    if rng.random() < 0.15:
        array.flat[rng.randrange(array.size)] = rng.choice((info.min, info.max, info.max // 2))
    return array


def attempt(seed: int, way: str | None = None) -> str:
    """Try the case of a seed; return what became of it.

    Returns
    -------
    str
        ``refused`` where it could not be made or scheduled, ``raised``, or ``computed``.

    Raises
    ------
    AssertionError
        The outcome is another than `te.evaluate` says.
    """
    rng = random.Random(seed)
    try:
        case = (scattering if rng.random() < STATEMENTS else reading)(rng)
        schedule = create_schedule(case.out.op)
    except ExpressionError:
        return "refused"
    way = way or rng.choices(WAYS, (6, 1, 2, 2))[0]
    if case.scatter and way == "threads":  # statements run on the host
        way = "interpreter"
    (ThreadWalk if way == "threads" else Walk)(rng, schedule).run(rng.randint(0, 5))
    args = [*case.args, case.out]
    try:
        run = _runner(way, schedule, args)
    except UserError:
        return "refused"
    shape = tuple(e if isinstance(e, int) else case.number for e in case.out.shape)
    result = guarded_array(shape, case.out.dtype, at_end=rng.random() < 0.5)
    result[...] = 77
    expected = _expected(case)
    before = [array.copy() for array in case.arrays]
    try:
        run([*case.arrays, result])
    except UserError as error:
        if expected is None or _is_refused_size(error, case):
            if not _reports_what_is_outside(error):
                raise AssertionError("it reports no index that is outside") from error
            return "raised"
        raise AssertionError("raised without reason") from error
    assert all(map(np.array_equal, before, case.arrays)), "an input was written"
    if expected is None:
        alone = [s for s in schedule.state.stages if not s.is_placeholder]
        assert len(alone) > 1, "an index out of bounds was not reported"
        return "computed"
    assert np.array_equal(expected, result), f"got {result}, expected {expected}"
    return "computed"


def _expected(case: Reading) -> np.ndarray | None:
    """Return the result; None where an index is out of bounds."""
    if case.scatter:
        return _expected_of_statements(case, case.scatter)
    try:
        return te.evaluate(case.out, dict(zip(case.args, case.arrays, strict=True)))
    except ExpressionError:  # of known sizes, it is refused as an expression
        return None
    except ProgramError as error:
        if error.kind == "out_of_bounds":
            return None
        raise


def _expected_of_statements(case: Reading, scatter: Scatter) -> np.ndarray | None:
    """Return what Python finds, which `te.evaluate` must agree with."""
    given = dict(zip(case.args, case.arrays, strict=True))
    try:
        stored = scatter.run(*case.arrays)
    except Outside:
        try:
            te.evaluate(case.out, given)
        except ProgramError:
            return None
        raise AssertionError("te.evaluate does not report an index out of bounds") from None
    expected = stored + stored if case.out.name == "D" else stored
    assert np.array_equal(te.evaluate(case.out, given), expected), "te.evaluate differs"
    return expected


def _reports_what_is_outside(error: UserError) -> bool:
    """Tell whether the numbers that a failed check reports are an index and another extent."""
    found = re.search(r"index (\S+) in dimension \d+ of extent (\d+), at ", str(error))
    return found is None or (
        re.fullmatch(r"-?\d+", found[1]) is not None and not 0 <= int(found[1]) < int(found[2])
    )


def _is_refused_size(error: UserError, case: Reading) -> bool:
    """Tell whether a call with symbols was refused: its formulas may ask for more than is read."""
    return case.symbol is not None and not isinstance(error, ProgramError)


def _runner(way: str, schedule: Any, args: list[Tensor]) -> Callable[[list[np.ndarray]], object]:
    if way == "interpreter":
        func = lower(schedule, args)
        return lambda arrays: interpret(func, arrays)
    target = {"llvm": "cpu", "c": "c", "threads": "gpu"}[way]
    kernel = build(schedule, args, target=target)
    return lambda arrays: kernel(*arrays)
