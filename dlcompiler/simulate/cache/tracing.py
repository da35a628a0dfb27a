"""Turn a program into one that makes only its accesses, in order, each by a call of the model.

*before*::

    for i in range(8):
        C[i] = A[i] + B[i]

*after*, with A at the address 0x100000::

    for i in range(8):
        cache_access(state, row of this load, 0x100000 + 4*i, 0)
        …
        cache_access(state, row of the store, 0x102000 + 4*i, 1)

Loops and conditions on indices stay; values are not computed. Where indices or conditions depend on
inputs, the trace reads these, if arrays are given. It cannot be made if they depend on other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dlcompiler import dtypes
from dlcompiler.errors import CallError
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Buffer,
    Expr,
    ExternCall,
    For,
    If,
    IfThenElse,
    IntrinsicCall,
    Let,
    Load,
    Logical,
    Not,
    Prefetch,
    PrimFunc,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    compare,
    const,
    index_const,
    is_thread,
    logical,
    seq,
    walk,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.lanes import at_lane
from dlcompiler.ir.rewrite import children
from dlcompiler.simulate.cache.inputs import NONE, Inputs
from dlcompiler.simulate.cache.model import (
    ADDRESS_BITS,
    BINS,
    HEADER,
    OUTSIDE,
    Model,
    Placement,
)
from dlcompiler.simulate.memory import span
from dlcompiler.target import CacheLevel

FIRST_ADDRESS = 1 << 20
PAGE_BYTES = 4096
LEAST_ALIGNMENT = 64
"""Buffers of the code generators begin at a multiple of this; [byte]."""
MOST_INLINED = 256
"""Accesses in a program's text up to which each gets a copy of the model's code: more would take
long to compile."""
KERNEL = "trace"
STATE = Buffer("state", (HEADER,), "int64")
"""The state of the caches: what is used here is at its beginning."""


@dataclass(frozen=True, eq=False)
class Site:
    """The loads, or the stores, of one tensor that one statement makes."""

    buffer: Buffer
    is_write: bool
    loops: tuple[For, ...]
    """The loops around the statement, outermost first."""
    statement: Stmt


@dataclass(frozen=True, eq=False)
class Traced:
    """A program that makes only accesses, with what its calls refer to."""

    func: PrimFunc
    """Its parameters are the state of the caches and the arrays that it reads."""
    model: Model
    sites: tuple[Site, ...]
    placements: dict[Buffer, Placement]


def buffers_of(func: PrimFunc) -> list[Buffer]:
    """Return the buffers of a program: the parameters, then those that it allocates, in order."""
    inside = (node.buffer for node in walk(func.body) if isinstance(node, Allocate))
    return list(dict.fromkeys((*func.buffers, *inside)))


def placements_of(
    buffers: Iterable[Buffer], line_bytes: int = LEAST_ALIGNMENT
) -> dict[Buffer, Placement]:
    """Return the addresses of buffers, one after the other.

    A buffer of a page or more begins with a page, as allocators place it; a smaller one with a
    line, as on a stack: small temporaries at the same place of a page would share few sets.

    Parameters
    ----------
    buffers
        The buffers, in the order of their addresses.
    line_bytes
        Size of the longest cache line, which two buffers must not share; [byte].

    Examples
    --------
    >>> A, B, C = (Buffer(name, (n,), "float32") for name, n in (("A", 8), ("B", 8), ("C", 4096)))
    >>> [place.base - FIRST_ADDRESS for place in placements_of([A, B, C]).values()]
    [0, 64, 4096]
    """
    found, address = dict[Buffer, Placement](), FIRST_ADDRESS
    for number, buffer in enumerate(buffers):
        size = span(buffer) * dtypes.bytes_of(buffer.dtype)
        unit = PAGE_BYTES if size >= PAGE_BYTES else max(line_bytes, LEAST_ALIGNMENT)
        address = -(-address // unit) * unit
        found[buffer] = Placement(address, size, number)
        address += size
    return found


def check_traceable(func: PrimFunc) -> None:
    """Refuse a program for which no trace can be made, whatever its inputs are.

    Raises
    ------
    CallError
        If sizes are symbolic, loops are bound to threads, or it calls code from outside.
    """
    where = f"simulate the caches of {func.name}"
    if func.variables or not all(buffer.is_static for buffer in buffers_of(func)):
        raise CallError(
            where, "its sizes are known only when the program runs",
            got=", ".join(var.name for var in func.variables) or None,
            hint="define the expression with numbers as extents",
        )  # fmt: skip
    for node in walk(func.body):
        if isinstance(node, For) and is_thread(node.kind):
            raise CallError(
                where, "its loops are bound to the threads of a device",
                got=f"{node.var.name}, bound to {node.kind}",
                because="the simulated caches are those of one core of a CPU",
            )  # fmt: skip
        if isinstance(node, ExternCall):
            raise CallError(
                where, "it calls code from outside", got=node.name,
                because="the order of its accesses is not known",
            )  # fmt: skip


def extent_refusal(name: str, loop: For) -> CallError:
    """Return the error for a loop whose number of iterations depends on data."""
    return CallError(
        f"simulate the caches of {name}", f"the extent of the loop {loop.var.name} depends on data",
        got=str(loop.extent), because="how many accesses the program makes is not known before",
    )  # fmt: skip


def traced(
    func: PrimFunc, levels: Sequence[CacheLevel], most_accesses: int, inputs: Inputs = NONE
) -> Traced:
    """Return the program that makes the accesses of a function.

    Parameters
    ----------
    func
        A program that `check_traceable` accepts.
    levels
        The caches, nearest first.
    most_accesses
        The function makes at most so many; [1].
    inputs
        Arrays that indices and conditions may depend on.

    Raises
    ------
    CallError
        If indices or conditions depend on other data.
    TargetError
        If a cache is not a whole number of sets.
    """
    longest = max(level.line for level in levels)
    placements = placements_of(buffers_of(func), longest)
    tracer = Tracer(func.name, placements, 1 + len(levels), inputs)
    body = tracer.stmt(func.body)
    bin_accesses = max(-(-most_accesses // BINS), 1)
    is_inlined = tracer.calls <= MOST_INLINED
    places, sites = tuple(placements.values()), tuple(tracer.sites)
    model = Model(tuple(levels), places, len(sites), bin_accesses, is_inlined)
    func = PrimFunc(KERNEL, (STATE, *inputs.flat.values()), (STATE,), body)
    return Traced(func, model, sites, placements)


@dataclass
class Tracer:
    """Writes the accesses of statements; `sites` are the access sites that it has met."""

    name: str
    placements: dict[Buffer, Placement]
    row: int
    """Words of a site's counters; [1]."""
    inputs: Inputs = NONE
    sites: list[Site] = field(default_factory=list)
    calls: int = 0
    """Accesses in the text; [1]."""
    _loops: tuple[For, ...] = ()
    _data: set[Var] = field(default_factory=set)
    """Variables whose values depend on data that is not given."""
    _given: set[Var] = field(default_factory=set)
    """Variables whose values depend on `inputs`."""
    _vectors: dict[Var, Callable[[Expr], Expr]] = field(default_factory=dict)
    """The values of variables that are vectors."""
    _rows: dict[tuple[int, Buffer, bool], int] = field(default_factory=dict)

    def stmt(self, stmt: Stmt) -> Stmt:
        """Return the accesses of a statement, as calls."""
        match stmt:
            case For():
                return self._loop(stmt)
            case Store(_, indices, value):
                reads = self.reads((value, *indices, *_masks(stmt)), stmt)
                return seq((*reads, self._call(stmt, stmt)))
            case If(condition, then, otherwise):
                reads = self.reads((condition,), stmt)
                self._refuse_data(condition, "a condition depends on data")
                other = None if otherwise is None else self.stmt(otherwise)
                return seq((*reads, If(self.inputs.read(condition), self.stmt(then), other)))
            case Seq(statements):
                return seq(self.stmt(each) for each in statements)
            case Let():
                return self._let(stmt)
            case Assert(condition, _, values):
                return seq(self.reads((condition, *values), stmt))
            case Allocate(_, body) | IntrinsicCall(body=body):
                return self.stmt(body)
            case Barrier() | Prefetch():
                return Seq(())  # neither counts as an access
        raise CallError(f"simulate the caches of {self.name}", "it has a statement without meaning",
                        got=type(stmt).__name__)  # fmt: skip

    def _loop(self, loop: For) -> Stmt:
        if self._depends(loop.extent) or self._is_given(loop.extent):
            raise extent_refusal(self.name, loop)
        outside, self._loops = self._loops, (*self._loops, loop)
        inside = self.stmt(loop.body)
        self._loops = outside
        return For(loop.var, loop.extent, "serial", inside)

    def _let(self, let: Let) -> Stmt:
        reads, value = self.reads((let.value,), let), let.value
        if self._depends(value):
            self._data.add(let.var)
        elif dtypes.lanes(let.var.dtype) > 1:
            self._vectors[let.var] = lambda lane: at_lane(value, lane, self._vectors)
        else:
            if self._is_given(value):
                self._given.add(let.var)
            return seq((*reads, Let(let.var, self.inputs.read(value), self.stmt(let.body))))
        return seq((*reads, self.stmt(let.body)))

    def reads(self, exprs: Sequence[Expr], statement: Stmt) -> list[Stmt]:
        """Return the loads of expressions, in the order in which they are evaluated.

        A node that is used twice is loaded once, except where a condition decides.
        """
        seen: set[int] = set()
        return [call for expr in exprs for call in self._reads(expr, statement, seen)]

    def _reads(self, root: Expr, statement: Stmt, seen: set[int]) -> Iterator[Stmt]:
        stack = [(root, False)]  # not recursive: a sum may have thousands of terms
        while stack:
            expr, is_entered = stack.pop()
            if is_entered and isinstance(expr, Load):
                yield self._call(expr, statement)
            if is_entered or id(expr) in seen:
                continue
            seen.add(id(expr))
            match expr:
                case IfThenElse(condition, a, b):
                    yield from self._reads(condition, statement, seen)
                    chosen = [seq(self._reads(each, statement, set(seen))) for each in (a, b)]
                    yield from self._branch(condition, *chosen)
                case Logical(op, a, b):
                    yield from self._reads(a, statement, seen)
                    rest = seq(self._reads(b, statement, set(seen)))
                    yield from self._branch(a if op == "and" else Not(a), rest, Seq(()))
                case _:
                    stack.append((expr, True))
                    stack += [(c, False) for c in reversed(children(expr)) if isinstance(c, Expr)]

    def _branch(self, condition: Expr, then: Stmt, otherwise: Stmt) -> Iterator[Stmt]:
        if _is_empty(then) and _is_empty(otherwise):
            return
        self._refuse_data(condition, "a condition depends on data")
        condition = self.inputs.read(condition)
        yield If(condition, then, None if _is_empty(otherwise) else otherwise)

    def _call(self, access: Load | Store, statement: Stmt) -> Stmt:
        """Return the call for an access; for a vector, a loop over its lanes."""
        buffer, masks = access.buffer, _masks(access)
        for index in access.indices:
            self._refuse_data(index, f"an index of {buffer.name} depends on data")
        for mask in masks:
            self._refuse_data(mask, f"the lanes of an access to {buffer.name} depend on data")
        lanes = lanes_of((*access.indices, *masks))
        lane: Expr = Var("lane", "index") if lanes > 1 else index_const(0)
        indices = [at_lane(index, lane, self._vectors) for index in access.indices]
        call = self._element(buffer, indices, statement, is_write=isinstance(access, Store))
        for mask in masks:
            call = If(self.inputs.read(at_lane(mask, lane, self._vectors)), call)
        if isinstance(lane, Var):
            return For(lane, index_const(lanes), "serial", call)
        return call

    def _element(
        self, buffer: Buffer, indices: Sequence[Expr], statement: Stmt, *, is_write: bool
    ) -> Stmt:
        """Return the call for an access to one element."""
        place = self.placements[buffer]
        address: Expr = index_const((place.number << ADDRESS_BITS) + place.base)
        is_inside: Expr | None = None
        for index, extent, stride in zip(
            indices, buffer.static_shape, buffer.static_strides, strict=True
        ):
            read = self.inputs.read(index)
            step = index_const(stride * dtypes.bytes_of(buffer.dtype))
            address = binary("add", address, binary("mul", read, step))
            if self._is_given(index):
                is_here = logical("and", compare("ge", read, 0), compare("lt", read, extent))
                is_inside = is_here if is_inside is None else logical("and", is_inside, is_here)
        self.calls += 1
        row = self._row_of(buffer, statement, is_write) * self.row
        whole = Region(STATE, (index_const(0),), (index_const(1),), "rw")
        arguments = (whole, index_const(row), address, index_const(int(is_write)))
        call = ExternCall("cache_access", "c", arguments)
        if is_inside is None:
            return call
        number = const(place.number + 1, STATE.dtype)
        return If(is_inside, call, Store(STATE, (index_const(OUTSIDE),), number))

    def _row_of(self, buffer: Buffer, statement: Stmt, is_write: bool) -> int:
        key = id(statement), buffer, is_write
        if key not in self._rows:
            self._rows[key] = len(self.sites)
            self.sites.append(Site(buffer, is_write, self._loops, statement))
        return self._rows[key]

    def _depends(self, expr: Expr) -> bool:
        """Tell whether an expression depends on data that is not given."""
        return any(
            (isinstance(node, Load) and node.buffer not in self.inputs.flat)
            or (isinstance(node, Var) and node in self._data)
            for node in walk(expr)
        )

    def _is_given(self, expr: Expr) -> bool:
        """Tell whether an expression depends on given inputs."""
        return any(
            isinstance(node, Load) or (isinstance(node, Var) and node in self._given)
            for node in walk(expr)
        )

    def _refuse_data(self, expr: Expr, problem: str) -> None:
        if self._depends(expr):
            raise CallError(
                f"simulate the caches of {self.name}", problem, got=str(expr),
                because="the trace is made from loops, indices and given inputs: what the program "
                "computes is not known",
                hint=self._hint(expr),
            )  # fmt: skip

    def _hint(self, expr: Expr) -> str | None:
        loads = dict.fromkeys(node.buffer for node in walk(expr) if isinstance(node, Load))
        missing = [each for each in loads if each not in self.inputs.flat]
        if not missing or not self.inputs.known.issuperset(missing):
            return None  # the program itself computes a part
        names = ", ".join(each.name for each in missing)
        return f"give arrays for {names}: inputs={{name: array}}"


def _masks(access: Load | Store) -> tuple[Expr, ...]:
    """Return the predicate of an access, if it has one."""
    return () if access.predicate is None else (access.predicate,)


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Seq) and not stmt.statements
