"""Find what one thread of a launch executes: instructions by kind, and accesses to memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dlcompiler import dtypes
from dlcompiler.errors import UserError
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    ExternCall,
    For,
    If,
    IfThenElse,
    IntrinsicCall,
    Let,
    Load,
    Logical,
    Origin,
    Prefetch,
    Ramp,
    Select,
    Seq,
    Stmt,
    Store,
    ThreadTag,
    Var,
    extent_expr,
    index_const,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.ir.lanes import at_lane
from dlcompiler.ir.rewrite import children
from dlcompiler.simulate.gpu.forms import Fixed, Form, Predicate, constant_form, variables_of
from dlcompiler.simulate.gpu.populations import Access, Place, Space
from dlcompiler.simulate.gpu.reading import Reader, Scope, negated
from dlcompiler.simulate.gpu.unrolling import is_left, is_unrolled

LONGEST_VECTOR_BYTES = 16
"""Most bytes that a thread accesses at once; [byte]."""
_VECTOR_LANES = (2, 4)
_WORDS_BYTES = (4, 8, 16)
"""Sizes of what is copied at once whatever its dtype [byte]."""


class OneThread(Protocol):
    """What one thread of a launch does; see `dlcompiler.passes.merge_thread_loops`."""

    @property
    def axes(self) -> Mapping[ThreadTag, Var]:
        """The variable of each axis."""

    @property
    def extents(self) -> Mapping[str, Expr]:
        """The extent of each axis."""

    @property
    def shared(self) -> tuple[Buffer, ...]:
        """Memory of the block."""

    @property
    def body(self) -> Stmt:
        """The statements."""


@dataclass(frozen=True, slots=True)
class Site:
    """An access in the text of a program. Copies that unrolling made of it are the same site."""

    buffer: Buffer
    is_write: bool
    origin: Origin
    """The stage and the axes that its statement comes from."""
    number: int
    """Which of the accesses of its statement to this buffer, in this direction, from 0."""


@dataclass(slots=True)
class Found:
    """What one thread executes."""

    accesses: list[tuple[Site, Place, Access]] = field(default_factory=list)
    """Accesses to global and shared memory."""
    instructions: dict[Place, Counter[str]] = field(default_factory=dict)
    """Number of instructions of each kind in each place."""
    unrolled: set[Var] = field(default_factory=set)
    """The variables of loops that compilers unroll."""


def found_in(thread: OneThread, reader: Reader, place: Place, scope: Scope) -> Found:
    """Return what one thread of a launch executes.

    Parameters
    ----------
    thread
        What the thread does.
    reader
        Reads indices and conditions.
    place
        The blocks, and the loops of the host, around the thread.
    scope
        What the variables of the launch stand for: the axes, symbols, loops of the host.

    Raises
    ------
    UserError
        The number of iterations of a loop is not known.
    """
    walk = _Walk(thread, reader)
    walk.statement(thread.body, place, scope)
    return walk.found


def inside_loop(
    reader: Reader, var: Var, extent: Expr, place: Place, scope: Scope
) -> tuple[Place, Scope]:
    """Return the place inside a loop, and its scope.

    A loop whose extent varies counts as the longest one; a condition leaves the rest out.

    Raises
    ------
    UserError
        The number of iterations is not known.
    """
    count = reader.form(extent, scope)
    most = reader.interval(count)[1]
    if most == math.inf:
        raise UserError(
            "count what a GPU does", f"the number of iterations of {var.name} is not known",
            got=str(extent), hint="give the values of symbols, and the arrays that data comes from",
        )  # fmt: skip
    new, form = reader.variable(var.name, most)
    inside = Place({**place.extents, new: max(int(most), 0)}, place.guards, place.choices)
    if count.terms:
        inside = under(inside, reader.at_least(count.plus(form, -1), 1))
    return inside, {**scope, var: form}


class _Walk:
    def __init__(self, thread: OneThread, reader: Reader) -> None:
        self.reader = reader
        self.shared = set(thread.shared)
        self.own: set[Buffer] = set()
        """Memory of the thread."""
        self.vectors: dict[Var, Callable[[Expr], Expr]] = {}
        self.found = Found()
        self._statement: Stmt | None = None
        self._seen: dict[int, list[tuple[object, ...]]] = {}
        """The choices that led to each expression of the statement, by its `id`."""
        self._numbers: Counter[tuple[Buffer, bool]] = Counter()
        self._values: tuple[Expr, ...] = ()
        self._is_left = False

    def executed(self, kind: str, place: Place, times: int = 1) -> None:
        """Add instructions of a kind."""
        self.found.instructions.setdefault(place, Counter())[kind] += times

    # -- statements -------------------------------------------------------------------------------

    def statement(self, stmt: Stmt, place: Place, scope: Scope) -> None:  # noqa: C901 - by node
        """Add what a statement executes."""
        match stmt:
            case Seq(statements):
                for each in statements:
                    self.statement(each, place, scope)
            case For():
                self._loop(stmt, place, scope)
            case If(condition, then, otherwise):
                self._start(stmt, condition)
                self.value(condition, place, scope)
                self.executed("branch", place)
                holds = self.reader.predicate(condition, scope)
                self.statement(then, under(place, holds), scope)
                if otherwise is not None:
                    self.statement(otherwise, under(place, negated(holds)), scope)
            case Allocate(buffer, body):
                self.own.add(buffer)
                self.statement(body, place, scope)
            case Let():
                self._let(stmt, place, scope)
            case Store():
                self._store(stmt, place, scope)
            case Assert(condition):
                self._start(stmt, condition)
                self.value(condition, place, scope)
                self.executed("branch", place)
            case Barrier():
                self.executed("barrier", place)
            case IntrinsicCall(body=body):
                self.statement(body, place, scope)
            case Prefetch():
                pass  # a hint
            case ExternCall(name):
                raise UserError("count what a GPU does", "a call of outside code", got=name)

    def _start(self, stmt: Stmt, *values: Expr) -> None:
        """Begin a statement: a part that it uses twice is computed once."""
        self._statement = stmt
        self._seen = {}
        self._numbers = Counter()
        self._values = values

    def _loop(self, loop: For, place: Place, scope: Scope) -> None:
        self._start(loop, loop.extent)
        self.value(loop.extent, place, scope)
        inside, scope = inside_loop(self.reader, loop.var, loop.extent, place, scope)
        if loop.kind != "unrolled":
            self.executed("branch", inside)
        around, self._is_left = self._is_left, is_left(loop, self._is_left)
        if not self._is_left and is_unrolled(loop, is_constant=isinstance(loop.extent, Const)):
            self.found.unrolled.update(variables_of(scope[loop.var]))
        self.statement(loop.body, inside, scope)
        self._is_left = around

    def _let(self, stmt: Let, place: Place, scope: Scope) -> None:
        var, value = stmt.var, stmt.value
        self._start(stmt, value)
        self.value(value, place, scope)
        inner = dict(scope)
        inner.pop(var, None)
        if dtypes.lanes(var.dtype) > 1:
            self.vectors[var] = lambda lane: at_lane(value, lane, self.vectors)
        elif dtypes.is_bool(var.dtype):
            inner[var] = self.reader.predicate(value, scope)
        elif not dtypes.is_float(var.dtype):
            inner[var] = self.reader.form(value, scope)
        self.statement(stmt.body, place, inner)

    def _store(self, stmt: Store, place: Place, scope: Scope) -> None:
        self._start(stmt, stmt.value)
        self.value(stmt.value, place, scope)
        for index in stmt.indices:
            self._index(index, place, scope)
        lanes = lanes_of(stmt.indices)
        if stmt.predicate is not None:
            self.value(stmt.predicate, place, scope)
        self._access(stmt, stmt.buffer, stmt.indices, stmt.predicate, lanes, place, scope)

    # -- values -----------------------------------------------------------------------------------

    def value(self, expr: Expr, place: Place, scope: Scope) -> None:  # noqa: C901 - by node
        """Add what the computation of a value executes."""
        if isinstance(expr, Const | Var) or self._is_done(expr, place):
            return
        lanes = dtypes.lanes(expr.dtype)
        match expr:
            case Load(buffer, indices, predicate):
                for index in indices:
                    self._index(index, place, scope)
                if predicate is not None:
                    self.value(predicate, place, scope)
                self._access(expr, buffer, indices, predicate, lanes, place, scope)
            case IfThenElse(condition, a, b) if dtypes.lanes(condition.dtype) == 1:
                self.value(condition, place, scope)
                self.executed("branch", place)
                holds = self.reader.predicate(condition, scope)
                self.value(a, chosen(place, holds, (id(expr), True)), scope)
                self.value(b, chosen(place, negated(holds), (id(expr), False)), scope)
            case Logical(op, a, b) if lanes == 1:
                self.value(a, place, scope)
                first = self.reader.predicate(a, scope)
                second = first if op == "and" else negated(first)
                self.value(b, chosen(place, second, (id(expr), True)), scope)
            case Binary() if dtypes.is_float(expr.dtype):
                self._float_operation(expr, place, scope)
            case _:
                kind = _kind_of(expr)
                if kind:
                    self.executed(kind, place, lanes)
                for child in children(expr):
                    if isinstance(child, Expr):
                        self.value(child, place, scope)

    def _is_done(self, expr: Expr, place: Place) -> bool:
        """Tell whether an expression was computed here, or for all threads that get here."""
        before = self._seen.setdefault(id(expr), [])
        if any(choices == place.choices[: len(choices)] for choices in before):
            return True
        before.append(place.choices)
        return False

    def _float_operation(self, expr: Binary, place: Place, scope: Scope) -> None:
        """Add an operation on floats; a product and the sum that it is in are one instruction."""
        dtype, lanes = dtypes.element(expr.dtype), dtypes.lanes(expr.dtype)
        operands = [expr.a, expr.b]
        kind = {"add": "add", "sub": "add", "mul": "mul", "div": "div"}.get(expr.op, "other")
        if kind == "add":
            place_of = next((n for n, each in enumerate(operands) if _is_product(each)), None)
            if place_of is not None:
                kind = "fma"
                operands += _operands(operands.pop(place_of))
        self.executed(f"{dtype} {kind}", place, lanes)
        for operand in operands:
            self.value(operand, place, scope)

    def _index(self, index: Expr, place: Place, scope: Scope) -> None:
        """Add what an index loads and computes of data. Other arithmetic of it is not counted."""
        if not _is_plain(index):
            self.value(index, place, scope)

    # -- memory -----------------------------------------------------------------------------------

    def _access(
        self, node: Load | Store, buffer: Buffer, indices: tuple[Expr, ...],
        predicate: Expr | None, lanes: int, place: Place, scope: Scope,
    ) -> None:  # fmt: skip
        """Add an access; a vector in memory is accessed at once, other lanes one by one."""
        is_write = isinstance(node, Store)
        verb = "store" if is_write else "load"
        number = self._numbers[buffer, is_write]
        self._numbers[buffer, is_write] += 1
        origin = node.origin if isinstance(node, Store) else getattr(self._statement, "origin", ())
        site = Site(buffer, is_write, origin, number)
        space = "shared" if buffer in self.shared else "local" if buffer in self.own else "global"
        bytes_ = dtypes.bytes_of(buffer.dtype)
        at_once = self._at_once(buffer, indices, predicate, lanes, is_write=is_write, scope=scope)
        for lane in range(0, lanes, at_once):
            inside = place
            if predicate is not None:
                holds = self.reader.predicate(
                    at_lane(predicate, index_const(lane), self.vectors), scope
                )
                inside = under(place, holds)
            self.executed(f"{verb} {space}", inside)
            if space == "local":
                continue
            forms = [self.reader.form_at(i, lane, scope, self.vectors) for i in indices]
            address = self._offset(buffer, forms, scope).times(bytes_)
            kind: Space = "shared" if space == "shared" else "global"
            self.found.accesses.append((site, inside, Access(kind, address, bytes_ * at_once)))

    def _offset(self, buffer: Buffer, indices: Sequence[Form], scope: Scope) -> Form:
        """Return the distance of an element from the first one; [elements]."""
        total = constant_form(0)
        for form, stride in zip(indices, buffer.strides, strict=True):
            if isinstance(stride, int):
                total = total.plus(form, stride)
            else:
                step = self.reader.form(extent_expr(stride), scope)
                total = total.plus(self.reader.product(form, step))
        return total

    def _at_once(
        self, buffer: Buffer, indices: tuple[Expr, ...], predicate: Expr | None, lanes: int, *,
        is_write: bool, scope: Scope,
    ) -> int:  # fmt: skip
        """Return how many lanes one instruction accesses, as in the generated code.

        All of them if they are neighbours, begin at a multiple of their number, and fill a vector
        of the language, or words that are copied as they are.
        """
        size, stored = lanes * dtypes.bytes_of(buffer.dtype), self._statement
        if (
            lanes == 1
            or predicate is not None
            or not self._is_aligned(buffer, indices, lanes, scope)
        ):
            return 1
        if isinstance(stored, Store) and _copies_words(stored) and size in _WORDS_BYTES:
            ends = [(stored.buffer, stored.indices)]
            if isinstance(stored.value, Load):
                ends.append((stored.value.buffer, stored.value.indices))
            if all(self._is_aligned(*end, lanes, scope) for end in ends):
                return lanes
        if lanes not in _VECTOR_LANES or dtypes.is_bool(buffer.dtype):
            return 1
        if size > LONGEST_VECTOR_BYTES or (not is_write and any(map(_has_choice, self._values))):
            return 1
        if isinstance(stored, Store) and not is_write and lanes_of(stored.indices) != lanes:
            return 1
        return lanes

    def _is_aligned(
        self, buffer: Buffer, indices: tuple[Expr, ...], lanes: int, scope: Scope
    ) -> bool:
        """Tell whether lanes are neighbours in memory, from a multiple of their number on."""
        is_linear = all(map(_is_linear, indices))
        places = []
        for lane in range(2 if is_linear else lanes):
            forms = [self.reader.form_at(index, lane, scope, {}) for index in indices]
            places.append(self._offset(buffer, forms, scope))
        start = places[0]
        for number, place in enumerate(places):
            distance = place.plus(start, -1)
            if distance.terms or distance.constant != number:
                return False
        factors = start.constant, *start.terms.values()
        return not any(factor % lanes for factor in factors)


def _is_linear(index: Expr) -> bool:
    """Tell whether each lane of an index is as far from the next one, or depends on data."""
    is_ramp = isinstance(index, Ramp) and dtypes.is_index(index.dtype)
    return is_ramp or dtypes.lanes(index.dtype) == 1


def _copies_words(store: Store) -> bool:
    """Tell whether a store copies elements as they are in memory, or stores zeros."""
    match store.value:
        case Load(buffer, indices, None):
            is_same = buffer.dtype == store.buffer.dtype
            is_same &= lanes_of(indices) == lanes_of(store.indices)
            return is_same and store.predicate is None
        case Broadcast(Const(0)):
            return store.predicate is None
    return False


def under(place: Place, guard: Predicate) -> Place:
    """Return a place under one more condition."""
    if isinstance(guard, Fixed) and guard.value:
        return place
    return Place(place.extents, (*place.guards, guard), place.choices)


def chosen(place: Place, guard: Predicate, choice: object) -> Place:
    """Return a place inside an expression where only some threads compute."""
    inside = under(place, guard)
    return Place(inside.extents, inside.guards, (*place.choices, choice))


def _operands(expr: Expr) -> list[Expr]:
    return [child for child in children(expr) if isinstance(child, Expr)]


def _is_product(expr: Expr) -> bool:
    return isinstance(expr, Binary) and expr.op == "mul"


def _is_plain(index: Expr) -> bool:
    """Tell whether an index is arithmetic of indices only: it loads and converts nothing."""
    match index:
        case Const() | Var():
            return True
        case Binary(_, a, b) | Ramp(a, b):
            return _is_plain(a) and _is_plain(b)
        case Broadcast(value):
            return _is_plain(value)
    return False


def _has_choice(expr: Expr) -> bool:
    """Tell whether only some parts of an expression are computed."""
    if isinstance(expr, IfThenElse | Logical):
        return True
    return any(_has_choice(part) for part in children(expr) if isinstance(part, Expr))


def _kind_of(expr: Expr) -> str:
    """Return the kind of instruction of an expression; '' for none that is counted."""
    dtype = dtypes.element(expr.dtype)
    match expr:
        case Binary() if not dtypes.is_index(dtype) and not dtypes.is_bool(dtype):
            return "integer"
        case Compare(_, a) if dtypes.is_float(a.dtype):
            return f"{dtypes.element(a.dtype)} other"
        case Compare(_, a) if dtypes.is_int(dtypes.element(a.dtype)):
            return "integer"
        case Select() if dtypes.is_float(dtype):
            return f"{dtype} other"
        case Select() if dtypes.is_int(dtype):
            return "integer"
        case Cast(value) if not dtypes.is_index(dtype) and value.dtype != expr.dtype:
            return "convert"
        case Call(name, args):
            return _kind_of_call(name, args)
    return ""


def _kind_of_call(name: str, args: Sequence[Expr]) -> str:
    if name in ("likely", "assume_bounds"):
        return ""
    if name.startswith("kind."):  # an instruction: see `codegen.gpu.lane_accesses`
        return name.removeprefix("kind.")
    known = FUNCTIONS.get(name)
    if known is None or not known.is_exact:
        return "special"
    source = dtypes.element(args[0].dtype)
    return f"{source} other" if dtypes.is_float(source) else "integer"
