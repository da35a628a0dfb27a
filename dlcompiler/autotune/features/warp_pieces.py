"""What the warps of a launch do at one store, counted for many configs at once.

A *piece* is a store of a symbolic nest (`symbolic_nests`) with the loops and conditions around it.
Its counts depend on few numbers: those in its addresses, modulo the size of a line, and in the
conditions that do not always hold. Loops that change neither are factors of the counts. Configs
for which these numbers are equal are counted once, by `dlcompiler.simulate.gpu`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np

from dlcompiler import dtypes
from dlcompiler.autotune.features.intervals import NotAffineError, Range, point, range_of
from dlcompiler.autotune.features.numbers import (
    Num,
    add,
    at_most,
    equal,
    floordiv,
    least,
    mod,
    multiply,
    product,
    subtract,
)
from dlcompiler.autotune.features.piece_chains import (
    Chain,
    Step,
    at_zero,
    condition_variables,
    first_only,
    offset,
    without_own_indices,
)
from dlcompiler.autotune.features.row_groups import Integers, groups_of, unique_rows
from dlcompiler.autotune.features.symbolic_nests import NotCoveredError
from dlcompiler.ir import (
    Allocate,
    Binary,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
    Var,
    free_vars,
    rewrite,
    structural_key,
    walk,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.merge_thread_loops import ThreadProgram
from dlcompiler.simulate.gpu.forms import constant_form
from dlcompiler.simulate.gpu.populations import Access, Place, Populations, Warps, astuple
from dlcompiler.simulate.gpu.program import Found, Site, found_in, inside_loop
from dlcompiler.simulate.gpu.reading import Reader, Scope
from dlcompiler.simulate.gpu.transactions import PERIOD

Formulas: TypeAlias = Mapping[Var, Num]
Counts: TypeAlias = dict["Site | str", Integers]
"""By access or kind of instruction: numbers in the order of a tally's fields, ``(configs, 6)``."""

_LEFT_OUT = 0
"""All iterations of a loop have the same counts."""
_BY_STRIDE = 1
"""A loop only adds a multiple of its strides to the addresses."""
_AS_WRITTEN = 2
"""A loop stays in the program that is counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Counts of a piece for the numbers met before."""

    places: dict[bytes, int] = field(default_factory=dict)
    """Row for the values of its symbols."""
    rows: dict[int | str, list[tuple[int, ...]]] = field(default_factory=dict)
    """Counts by the number of the access or the kind of instruction."""


Memo: TypeAlias = dict[tuple[object, ...], Known]
"""Key of a piece -> its counts: skeletons of one space have many pieces in common."""


@dataclass(frozen=True, slots=True, eq=False)
class _Variant:
    """A piece without some of its loops and guards."""

    body: Stmt
    blocks: tuple[Step, ...]
    symbols: tuple[Var, ...]
    """The symbols that its counts depend on, in the order of the body."""
    known: Known


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The symbols, warp size and memo that the pieces of a skeleton have in common."""

    formulas: Formulas
    """Formulas of the symbols."""
    warp_size: int
    """Threads of a warp; [1]."""
    memo: Memo
    """Counts of pieces met before, also of other skeletons."""


@dataclass(frozen=True, slots=True, eq=False)
class _Linear:
    """A loop that changes each address of a piece by the same distance in each iteration."""

    strides: tuple[Num, ...]
    """For each address; [byte]."""
    holds: Num
    """1 where that is so, else 0."""
    size: Var
    """Symbol of its extent, or of a smaller one with the same remainders."""
    steps: tuple[Var, ...]
    """Symbols of its strides modulo the size of a line; [element]."""


@dataclass(frozen=True, slots=True, eq=False)
class _Address:
    """An access to global or shared memory."""

    buffer: Buffer
    """The array."""
    flat: Buffer
    """An array of one dimension in its place."""
    is_write: bool
    index: Expr
    """Distance from the begin of the array; [element]."""

    @property
    def itemsize(self) -> int:
        """Size of an element; [byte]."""
        return dtypes.bytes_of(self.buffer.dtype)


class Piece:
    """A store with the loops and conditions around it.

    Parameters
    ----------
    thread
        The program that it is a part of.
    chain
        What is around the store inside the threads.
    store
        The store.
    context
        What all pieces of a skeleton share.
    """

    def __init__(self, thread: ThreadProgram, chain: Chain, store: Store, context: Context) -> None:
        chain, store = first_only(chain, store)
        self._thread, self._chain, self._context = thread, chain, context
        self._formulas = context.formulas
        self._addresses: list[_Address] = []
        self._store = self._flat(without_own_indices(store, frozenset(chain.own)))
        blocks = [(t, v) for t, v in thread.axes.items() if t.startswith("blockIdx")]
        self._blocks = tuple(Step(var, thread.extents[tag], tag) for tag, var in blocks)
        self._steps = (*self._blocks, *chain.steps)
        self._variants: dict[tuple[int, ...], _Variant] = {}
        self._extents: list[Num] = [self._number(step.extent) for step in self._steps]
        self._holds: list[Num] = [self._always(n) for n in range(len(chain.guards))]
        self._linear = [self._linear_loop(step) for step in self._steps]
        self._sites = self._in_order()

    @property
    def formulas(self) -> list[Num]:
        """The formulas that `counts` needs, except those of symbols."""
        linear = [n for each in self._linear if each for n in (each.holds, *each.strides)]
        return [*self._extents, *self._holds, *linear]

    def _number(self, expr: Expr) -> Num:
        return range_of(expr, {v: point(n) for v, n in self._formulas.items()}).first

    @cached_property
    def _ranges(self) -> dict[Var, Range]:
        """The values of symbols, loops and threads."""
        result = {var: point(value) for var, value in self._formulas.items()}
        loops = [(step.var, step.extent) for step in self._steps]
        loops += [(var, self._thread.extents[tag]) for tag, var in self._thread.axes.items()]
        for var, extent in loops:
            result[var] = Range(0, subtract(self._number(extent), 1))
        return result

    def _always(self, number: int) -> Num:
        """Return 1 where a guard certainly holds if those before it hold, else 0."""
        *before, guard = self._chain.guards[: number + 1]
        if not isinstance(guard, Compare) or guard.op in ("eq", "ne"):
            return 0
        less, more = (guard.a, guard.b) if guard.op in ("lt", "le") else (guard.b, guard.a)
        ranges = dict(self._ranges)
        try:
            for known in before:
                less = self._clipped(less, known, ranges)
            a, b = range_of(less, ranges), range_of(more, ranges)
        except NotAffineError:
            return 0
        return at_most(add(a.last, int(guard.op in ("lt", "gt"))), b.first)

    def _clipped(self, expr: Expr, known: Expr, ranges: dict[Var, Range]) -> Expr:
        """Return an expression with a variable for the part that a condition limits."""
        if not isinstance(known, Compare) or known.op != "lt" or isinstance(known.a, Var):
            return expr
        limit, part_key = Var("limited"), structural_key(known.a)
        part, end = range_of(known.a, ranges), range_of(known.b, ranges)
        ranges[limit] = Range(part.first, least(part.last, subtract(end.last, 1)))

        def rule(node: Node) -> Node:
            is_part = isinstance(node, Binary) and structural_key(node) == part_key
            return limit if is_part else node

        return rewrite(expr, rule)

    # -- addresses --------------------------------------------------------------------------------

    def _flat(self, store: Store) -> Store:
        """Return a store whose accesses to global and shared memory have one index each."""
        own = set(self._chain.own)

        def rule(node: Node) -> Node:
            if not isinstance(node, Load | Store) or node.buffer in own:
                return node
            scope = node.buffer.scope
            flat = Buffer(f"flat{len(self._addresses)}", (1,), node.buffer.dtype, scope)
            index = offset(node)
            self._addresses.append(_Address(node.buffer, flat, isinstance(node, Store), index))
            return replace(node, buffer=flat, indices=(index,))

        return cast(Store, rewrite(store, rule))

    def _in_order(self) -> list[Site]:
        """Return the sites of the accesses in the order in which they are counted."""
        reader = Reader({})
        body: Stmt = self._store
        for buffer in self._chain.own:
            body = Allocate(buffer, body)
        part = replace(self._thread, body=body)
        arrays = {address.flat: address.buffer for address in self._addresses}
        seen: Counter[tuple[Buffer, bool]] = Counter()
        result = []
        for site, _, _ in found_in(part, reader, Place({}), {}).accesses:
            array = arrays[site.buffer]
            number = seen[array, site.is_write]
            seen[array, site.is_write] += 1
            result.append(Site(array, site.is_write, site.origin, number))
        return result

    def _linear_loop(self, step: Step) -> _Linear | None:
        """Return what a loop adds to the addresses; None if its iterations differ otherwise."""
        if step.var in condition_variables(self._store.value):
            return None
        strides, holds = [], []
        for address in self._addresses:
            try:
                stride, is_linear = self._stride(address.index, step.var)
            except NotAffineError:
                return None
            strides.append(multiply(stride, address.itemsize))
            holds.append(is_linear)
        steps = tuple(Var(f"step{n}", is_symbol=True) for n in range(len(strides)))
        size = Var("count", is_symbol=True)
        return _Linear(tuple(strides), product(holds), size, steps)

    def _stride(self, expr: Expr, var: Var) -> tuple[Num, Num]:
        """Return what each iteration of a loop adds to an index, and 1 where that is the same.

        Raises
        ------
        NotAffineError
            It depends on other loops.
        """
        if var not in free_vars(expr):
            return 0, 1
        match expr:
            case Var():
                return 1, 1
            case Binary("add" | "sub" as op, a, b):
                (first, same), (second, other) = self._stride(a, var), self._stride(b, var)
                both = add(first, second) if op == "add" else subtract(first, second)
                return both, multiply(same, other)
            case Binary("mul", a, b):
                inner, factor = (b, a) if var not in free_vars(a) else (a, b)
                stride, same = self._stride(inner, var)
                return multiply(stride, self._number(factor)), same
            case Binary("floordiv" | "floormod" as op, a, b):
                (stride, same), divisor = self._stride(a, var), self._number(b)
                same = multiply(same, equal(mod(stride, divisor), 0))
                return (floordiv(stride, divisor) if op == "floordiv" else 0), same
        raise NotAffineError

    # -- counts -----------------------------------------------------------------------------------

    def counts(self, values: Mapping[Var, Integers], numbers: Sequence[Integers]) -> Counts:
        """Return the counts of configs.

        Parameters
        ----------
        values
            The values of all symbols, ``(configs,)``.
        numbers
            The values of `formulas`, ``(configs,)`` each.
        """
        size = len(numbers[0])
        left = iter(numbers)
        extents = [next(left) for _ in self._steps]
        needed = [(next(left) == 0).astype(np.int64) for _ in self._holds]
        values, times = dict(values), np.ones(size, np.int64)
        modes = []
        for step, linear, extent in zip(self._steps, self._linear, extents, strict=True):
            mode, factor = self._mode(step, linear, extent, needed, values, left)
            modes.append(mode)
            if step.repeats:
                times *= factor
        result: Counts = {}
        for pattern, members in groups_of(np.array([*modes, *needed]).T):
            for key, rows in self._counted(pattern, values, members).items():
                whole = result.setdefault(key, np.zeros((size, 6), np.int64))
                whole[members] = rows * times[members, None]
        return result

    def _mode(
        self, step: Step, linear: _Linear | None, extent: Integers, needed: Sequence[Integers],
        values: dict[Var, Integers], numbers: Iterator[Integers],
    ) -> tuple[Integers, Integers]:  # fmt: skip
        """Return how a loop is counted, and by how much the counts are to be multiplied.

        The modes are `_LEFT_OUT`, `_BY_STRIDE` and `_AS_WRITTEN`. Adds the symbols of a linear loop
        to `values`.
        """
        mode, factor = np.full(len(extent), _AS_WRITTEN), np.ones_like(extent)
        is_single = extent == 1  # its variable is 0
        if linear is None:
            return np.where(is_single, _LEFT_OUT, mode), factor
        is_free = next(numbers) != 0
        for guard, need in zip(self._chain.guards, needed, strict=True):
            if step.var in free_vars(guard):
                is_free &= need == 0
        period = np.ones_like(extent)
        for address, var in zip(self._addresses, linear.steps, strict=True):
            rest = next(numbers) % PERIOD
            values[var] = rest // address.itemsize
            period = np.maximum(period, PERIOD // np.gcd(rest, PERIOD))
        is_whole = extent % period == 0
        values[linear.size] = np.where(is_whole, period, extent)
        mode[is_free] = np.where(period == 1, _LEFT_OUT, _BY_STRIDE)[is_free]
        factor[is_free] = np.where(is_whole, extent // period, 1)[is_free]
        mode[is_single], factor[is_single] = _LEFT_OUT, 1
        return mode, factor

    def _counted(
        self, pattern: tuple[int, ...], values: Mapping[Var, Integers], members: Integers
    ) -> Counts:
        """Return the counts of configs without the loops that are factors."""
        if pattern not in self._variants:
            self._variants[pattern] = self._variant(pattern)
        variant = self._variants[pattern]
        known = variant.known
        columns = [values[var][members] for var in variant.symbols]
        keys = np.stack(columns, axis=1) if columns else np.zeros((len(members), 1), np.int64)
        unique, inverse = unique_rows(keys)
        places = []
        for row in unique:
            key = row.tobytes()
            if key not in known.places:
                self._count(variant, dict(zip(variant.symbols, row.tolist(), strict=False)))
            places.append(known.places.setdefault(key, len(known.places)))
        chosen = np.array(places)
        return {
            self._sites[name] if isinstance(name, int) else name: np.array(
                [rows[place] for place in chosen], np.int64
            )[inverse]
            for name, rows in known.rows.items()
        }

    def _variant(self, pattern: tuple[int, ...]) -> _Variant:
        """Return the piece with its loops in the given modes, and the guards that are needed."""
        modes = dict(zip(self._steps, pattern, strict=False))
        needed = pattern[len(self._steps) :]
        gone = {step.var for step, mode in modes.items() if mode != _AS_WRITTEN}
        body: Stmt = self._store
        for guard, need in zip(self._chain.guards, needed, strict=True):
            body = If(guard, body) if need else body
        body = at_zero(body, gone)
        loops: list[Step] = []
        for step, linear in zip(self._steps, self._linear, strict=True):
            if modes[step] == _BY_STRIDE:
                assert linear is not None
                loops.append(Step(Var(step.var.name), linear.size, step.kind))
                body = self._with_strides(body, loops[-1].var, linear)
            elif modes[step] == _AS_WRITTEN:
                loops.append(step)
        blocks = tuple(step for step in loops if step.kind.startswith("blockIdx"))
        for step in reversed(loops[len(blocks) :]):
            body = For(step.var, step.extent, "serial", body)
        for buffer in self._chain.own:
            body = Allocate(buffer, body)
        symbols = self._symbols_in(body, blocks)
        # The loops of blocks and threads are only a part of this key.
        whole = body
        for step in blocks:
            whole = For(step.var, step.extent, "serial", whole)
        for tag, var in self._thread.axes.items():
            if tag.startswith("threadIdx"):
                whole = For(var, self._thread.extents[tag], tag, whole)
        key = (structural_key(whole, rename=True), self._context.warp_size)
        return _Variant(body, blocks, symbols, self._context.memo.setdefault(key, Known()))

    def _symbols_in(self, body: Stmt, blocks: Sequence[Step]) -> tuple[Var, ...]:
        """Return the symbols of a variant in the order in which they appear."""
        sizes = [e for tag, e in self._thread.extents.items() if tag.startswith("threadIdx")]
        sizes += [step.extent for step in blocks]
        nodes = itertools.chain(walk(body), *map(walk, sizes))
        return tuple(dict.fromkeys(n for n in nodes if isinstance(n, Var) and n.is_symbol))

    def _with_strides(self, body: Stmt, var: Var, linear: _Linear) -> Stmt:
        """Return a store to whose addresses a loop adds its strides."""
        flats = [address.flat for address in self._addresses]
        steps = dict(zip(flats, linear.steps, strict=True))

        def rule(node: Node) -> Node:
            if isinstance(node, Load | Store) and node.buffer in steps:
                more = Binary("mul", var, steps[node.buffer])
                return replace(node, indices=(Binary("add", node.indices[0], more),))
            return node

        return rewrite(body, rule)

    def _count(self, variant: _Variant, numbers: Mapping[Var, int]) -> None:
        """Count a variant for numbers, and append the counts to its rows."""
        reader = Reader({})
        scope: Scope = {var: constant_form(value) for var, value in numbers.items()}
        place = Place({})
        for step in variant.blocks:
            place, scope = inside_loop(reader, step.var, step.extent, place, scope)
        sizes = {}
        for tag, var in self._thread.axes.items():
            if tag.startswith("threadIdx"):
                low, high = reader.interval(reader.form(self._thread.extents[tag], scope))
                assert low == high
                lane, form = reader.variable(var.name, high)
                sizes[tag], scope = (lane, int(high)), {**scope, var: form}
        populations = Populations(
            Warps.of([sizes[tag] for tag in sorted(sizes)], self._context.warp_size)
        )
        flats = {address.flat for address in self._addresses if address.buffer.scope != "global"}
        shared = tuple(flat for flat in flats)
        part = replace(self._thread, body=variant.body, shared=shared)
        rows = _rows(found_in(part, reader, place, scope), populations)
        known = variant.known
        for key in {**known.rows, **rows}:
            column = known.rows.setdefault(key, [(0,) * 6] * len(known.places))
            column.append(rows.get(key, (0,) * 6))


def _rows(found: Found, populations: Populations) -> dict[int | str, tuple[int, ...]]:
    """Return the counts of what one thread executes.

    Raises
    ------
    NotCoveredError
        They depend on data.
    """
    rows: dict[int | str, tuple[int, ...]] = {}

    def plus(key: int | str, place: Place, times: int, access: Access | None) -> None:
        low, high = populations.count(place, access)
        if low != high:
            raise NotCoveredError("counts that depend on data")
        old = rows.get(key, (0,) * 6)
        rows[key] = tuple(a + times * b for a, b in zip(old, astuple(low), strict=True))

    for number, (_, place, access) in enumerate(found.accesses):
        plus(number, place, 1, access)
    for place, kinds in found.instructions.items():
        for kind, times in kinds.items():
            if kind != "branch":
                plus(kind, place, times, None)
    return rows
