"""The interpreter of the loop IR, which defines the meaning of programs.

It runs a function on NumPy arrays with the semantics of `dlcompiler.ir`, element by element, and
stops at the first forbidden access. It is slow (about a microsecond a step). It uses neither the
simplifier nor any analysis of the compiler, so that it can find their mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dlcompiler.errors import CallError, InternalError, filled
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Buffer,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Prefetch,
    PrimFunc,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    is_concurrent,
    is_in_block,
    specialize,
    walk,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.numeric import check_array, quiet, storage, with_normal_bools
from dlcompiler.ir.specialize import condition_value
from dlcompiler.runtime.arguments import as_checked_number
from dlcompiler.simulate.access import Access, scalar_offset, vector_offsets
from dlcompiler.simulate.blocks import block, has_barrier
from dlcompiler.simulate.calls import extern_call
from dlcompiler.simulate.expressions import Scope, compile_exprs
from dlcompiler.simulate.memory import (
    Cell,
    LoopRun,
    Memory,
    Observer,
    Site,
    State,
    Task,
    Thunk,
    span,
)

Run = Callable[[], None]
Loops = tuple[tuple[Var, Cell], ...]


@dataclass(frozen=True)
class Report:
    """Counts of an interpreted program."""

    steps: int
    """Loop iterations plus elements stored; [1]."""
    loads: int
    """Elements loaded; a load node that a statement uses twice counts once; [1]."""
    stores: int
    """Elements stored; [1]."""
    unwritten: int
    """Elements of the outputs that were not written, and keep their previous values; [1]."""
    first_unwritten: tuple[str, tuple[int, ...]] | None = field(default=None, repr=False)
    """Name of the output and index of the first such element."""


def interpret(
    func: PrimFunc,
    arguments: Sequence[Any],
    *,
    max_steps: int = 20_000_000,
    order: int | None = None,
    observer: Observer | None = None,
) -> Report:
    """Run `func` on arrays, which are written in place, and numbers.

    Parameters
    ----------
    func : PrimFunc
        A function at any stage after lowering.
    arguments : sequence of ndarray and numbers
        One for each parameter, in their order. Outputs are treated as uninitialised.
    max_steps : int
        Limit of the steps; [1].
    order : int, optional
        Seed of a random order for the iterations of concurrent loops, and for the threads between
        barriers; by default they run in increasing order.
    observer : Observer, optional
        Receives each access and each barrier.

    Returns
    -------
    Report

    Raises
    ------
    CallError
        If the arrays do not fit the parameters, or sizes violate a condition of the program.
    ProgramError
        At the first of these: an access out of bounds in any dimension; a read of an unwritten
        element; a race between iterations of a parallel or vectorized loop, threads between two
        barriers, or lanes of a vector store; threads that wait at different barriers; an assertion
        that fails; more than `max_steps` steps.

    Notes
    -----
    Multiplication and addition round separately, not as one FMA. A vectorized loop is checked for
    races while it is a loop. After it has become vector operations, a statement loads all lanes
    before it stores any.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler.ir import Buffer, For, Load, PrimFunc, Store, Var, index_const
    >>> A, B, i = Buffer("A", (4,), "float32"), Buffer("B", (4,), "float32"), Var("i")
    >>> double = For(i, index_const(4), "parallel", Store(B, (i,), Load(A, (i,)) * 2))
    >>> a, b = np.arange(4, dtype="float32"), np.empty(4, "float32")
    >>> interpret(PrimFunc("double", (A, B), (B,), double), [a, b])
    Report(steps=8, loads=4, stores=4, unwritten=0)
    >>> b
    array([0., 2., 4., 6.], dtype=float32)
    """
    func, arrays = _without_numbers(func, arguments)
    _check_arrays(func, arrays)
    written = {
        node.buffer
        for node in walk(func.body)
        if isinstance(node, Store) or (isinstance(node, Region) and node.is_written)
    }
    state = State(max_steps, order, observer)
    memories = {
        buffer: _parameter(buffer, array, state.task, buffer in written, buffer in func.outputs)
        for buffer, array in zip(func.buffers, arrays, strict=True)
    }
    with quiet():
        run = _Program(func, state, memories).statement(func.body, ())
        try:
            run()
            _charge(state, 0, Site(func.name, func.body, ()))
        finally:
            for buffer, array in zip(func.buffers, arrays, strict=True):
                if buffer in written:
                    array[...] = with_normal_bools(_elements(memories[buffer]))
    outputs = [memories[buffer] for buffer in func.outputs]
    unwritten = sum(memory.unwritten() for memory in outputs)
    first = next((memory.first_unwritten() for memory in outputs if memory.unwritten()), None)
    return Report(state.steps, state.loads, state.stores, unwritten, first)


def _without_numbers(
    func: PrimFunc, arguments: Sequence[Any]
) -> tuple[PrimFunc, list[np.ndarray[Any, Any]]]:
    """Return the function specialised to the given shapes and numbers, and the arrays."""
    where = f"interpret {func.name}"
    if len(arguments) != len(func.params):
        expected = f"{len(func.params)}: {', '.join(param.name for param in func.params)}"
        raise CallError(where, "wrong number of arguments", got=len(arguments), expected=expected)
    pairs = list(zip(func.params, arguments, strict=True))
    arrays = [value for param, value in pairs if isinstance(param, Buffer)]
    values: dict[Var, Any] = {
        param: as_checked_number(f"{where}: {param.name}", param.dtype, value)
        for param, value in pairs
        if isinstance(param, Var)
    }
    for buffer, array in zip(func.buffers, arrays, strict=True):
        for extent, size in zip(buffer.shape, np.shape(array), strict=False):
            if isinstance(extent, Var):
                values.setdefault(extent, size)
    if missing := [var.name for var in func.variables if var not in values]:
        raise CallError(where, f"symbol {missing[0]} cannot be inferred from the arrays")
    for condition, problem in func.checks:
        if not condition_value(condition, values):
            used = ", ".join(f"{var.name} = {value}" for var, value in values.items())
            raise CallError(where, problem, got=used, expected=str(condition))
    return specialize(func, values), arrays


def _check_arrays(func: PrimFunc, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    where = f"interpret {func.name}"
    for buffer, array in zip(func.buffers, arrays, strict=True):
        check_array(array, buffer.name, buffer.static_shape, buffer.dtype, where)
    for output, array in zip(func.buffers, arrays, strict=True):
        if output not in func.outputs:
            continue
        if not array.flags.writeable:
            raise CallError(where, f"{output.name} is written, but its array is read-only")
        for buffer, other in zip(func.buffers, arrays, strict=True):
            if buffer is not output and np.shares_memory(array, other):
                raise CallError(
                    where, f"{output.name} is written, but shares memory with {buffer.name}",
                    hint=f"pass a copy: {buffer.name}.copy()",
                )  # fmt: skip


def _parameter(
    buffer: Buffer, array: np.ndarray[Any, Any], task: Task, is_written: bool, is_output: bool
) -> Memory:
    """Return the memory of a parameter; inputs count as already written before the loops."""
    data: np.ndarray[Any, Any] = np.zeros(span(buffer), storage(buffer.dtype))
    memory = Memory(buffer, data, is_shadowed=is_written or is_output)
    _elements(memory)[...] = with_normal_bools(array)
    if not is_output and memory.is_shadowed:
        memory.writers[:] = [task] * len(data)
    return memory


def _elements(memory: Memory) -> np.ndarray[Any, Any]:
    """Return a view of a memory in the shape of its buffer."""
    strides = [stride * memory.data.itemsize for stride in memory.buffer.static_strides]
    return as_strided(memory.data, memory.buffer.static_shape, strides)


def _charge(state: State, iterations: int, site: Site) -> None:
    """Count the iterations of a loop before it runs, so that the limit stops it early."""
    state.iterations += iterations
    if state.steps > state.max_steps:
        site.fail(
            "step_budget",
            f"the program takes more than {state.max_steps} steps",
            hint="interpret it on a smaller shape, or raise max_steps",
        )


class _Program:
    """Compiler from one function to Python closures."""

    def __init__(self, func: PrimFunc, state: State, memories: dict[Buffer, Memory]) -> None:
        self.func = func
        self.state = state
        self.memories = memories
        self.cells: dict[Var, Cell] = {}
        self.made: list[Cell | Memory] = []
        """All cells and memories in the order of their creation."""

    def cell(self, var: Var) -> Cell:
        """Create the cell that holds the value of a variable."""
        cell: Cell = [0]
        self.cells[var] = cell
        self.made.append(cell)
        return cell

    def memory(self, buffer: Buffer) -> Memory:
        """Create the memory of a buffer that the program allocates."""
        memory = self.memories[buffer] = Memory.allocate(buffer)
        self.made.append(memory)
        return memory

    def scope(self, statement: Stmt, loops: Loops) -> Scope:
        site = Site(self.func.name, statement, loops)
        return Scope(self.state, self.cells, self.memories, site)

    def statement(self, stmt: Stmt, loops: Loops) -> Run:  # noqa: C901 - one case per node
        """Return a function that runs a statement; `loops` are those around it."""
        match stmt:
            case For() if is_in_block(stmt.kind) and has_barrier(stmt):
                return block(self, stmt, loops)
            case For():
                return self.loop(stmt, loops)
            case Store():
                return self.store(stmt, loops)
            case If():
                return self.branch(stmt, loops)
            case Seq(statements):
                return _sequence([self.statement(item, loops) for item in statements])
            case Allocate():
                return self.allocate(stmt, loops)
            case Let():
                return self.let(stmt, loops)
            case Prefetch() | Barrier():  # the only thread of a block waits for nobody
                return _nothing
            case Assert():
                return self.check(stmt, loops)
            case ExternCall():
                return extern_call(stmt, self.scope(stmt, loops))
            case IntrinsicCall():  # what it declares touches exactly its regions
                return self.statement(stmt.body, loops)
        raise InternalError(f"interpret {self.func.name}", f"no meaning for {type(stmt).__name__}")

    def charge(self, iterations: int, site: Site) -> None:
        """Count the iterations of a loop before it runs, against the limit on steps."""
        _charge(self.state, max(iterations, 0), site)

    def loop(self, loop: For, loops: Loops) -> Run:
        scope = self.scope(loop, loops)
        state, site = self.state, scope.site
        extent = self.thunk(loop.extent, scope)
        cell = self.cell(loop.var)
        body = self.statement(loop.body, (*loops, (loop.var, cell)))

        def run() -> None:
            count = extent()
            _charge(state, max(count, 0), site)
            for cell[0] in range(count):  # the cell holds the loop variable
                body()

        def run_concurrently() -> None:
            count = extent()
            _charge(state, max(count, 0), site)
            parent = state.task
            run = LoopRun(loop, parent)
            for cell[0] in state.turns(count):
                state.task = Task(run, cell[0])
                body()
                state.task.is_open = False
            run.is_open = False
            state.task = parent
            if state.observer and is_in_block(loop.kind) and not parent.is_in_block:
                state.observer.synchronise(None)

        return run_concurrently if is_concurrent(loop.kind) else run

    def store(self, store: Store, loops: Loops) -> Run:
        scope = self.scope(store, loops)
        mask = () if store.predicate is None else (store.predicate,)
        value, *rest = compile_exprs((store.value, *mask, *store.indices), scope)
        access = scope.access(store.buffer, rest[len(mask) :], is_write=True)
        if mask:
            return _masked_store(access, _fresh(value, scope), rest[0])
        run = _vector_store if lanes_of(store.indices) > 1 else _scalar_store
        return run(access, _fresh(value, scope))

    def branch(self, branch: If, loops: Loops) -> Run:
        condition = self.thunk(branch.condition, self.scope(branch, loops))
        then = self.statement(branch.then, loops)
        otherwise = self.statement(branch.otherwise or Seq(()), loops)

        def run() -> None:
            if condition():
                then()
            else:
                otherwise()

        return run

    def allocate(self, allocate: Allocate, loops: Loops) -> Run:
        memory = self.memory(allocate.buffer)
        body = self.statement(allocate.body, loops)

        def run() -> None:
            memory.forget()
            body()

        return run

    def let(self, let: Let, loops: Loops) -> Run:
        value = self.thunk(let.value, self.scope(let, loops))
        cell = self.cell(let.var)
        body = self.statement(let.body, loops)

        def run() -> None:
            cell[0] = value()
            body()

        return run

    def check(self, check: Assert, loops: Loops) -> Run:
        scope = self.scope(check, loops)
        condition = self.thunk(check.condition, scope)
        values = [self.thunk(value, scope) for value in check.values]

        def run() -> None:
            if not condition():
                scope.site.fail("assertion", filled(check.template, [value() for value in values]))

        return run

    def thunk(self, expr: Any, scope: Scope) -> Thunk:
        return _fresh(compile_exprs((expr,), scope)[0], scope)


def _fresh(thunk: Thunk, scope: Scope) -> Thunk:
    """Wrap a function so that it first clears the cached values of shared nodes."""
    if not scope.has_shared:
        return thunk
    cache = scope.cache

    def get() -> Any:
        cache.clear()
        return thunk()

    return get


def _nothing() -> None:
    """Do nothing: a prefetch hint has no effect in the interpreter."""


def _sequence(runs: list[Run]) -> Run:
    def run() -> None:
        for step in runs:
            step()

    return run


def _scalar_store(access: Access, value: Thunk) -> Run:
    state, offset, note_write = access.state, scalar_offset(access), access.note_write
    data, writers = access.memory.data, access.memory.writers

    def run() -> None:
        result = value()
        at = offset()
        if writers[at] is not state.task:
            note_write(at)
        data[at] = result
        state.stores += 1

    return run


def _masked_store(access: Access, value: Thunk, predicate: Thunk) -> Run:
    """Return a function that stores the lanes where `predicate` holds."""
    state, data = access.state, access.memory.data

    def run() -> None:
        result, mask = value(), predicate()
        if not isinstance(mask, np.ndarray):
            mask, result = np.asarray([mask]), np.asarray([result])
        state.active = mask
        offsets = vector_offsets(access)
        state.active = None
        access.note_writes(offsets.tolist())
        data[offsets] = result[mask]
        state.stores += len(offsets)

    return run


def _vector_store(access: Access, value: Thunk) -> Run:
    state, data = access.state, access.memory.data

    def run() -> None:
        result = value()
        offsets = vector_offsets(access)
        access.note_writes(offsets.tolist())
        data[offsets] = result
        state.stores += len(offsets)

    return run
