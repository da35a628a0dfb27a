"""Interpretation of thread blocks: all threads run to the next barrier, one after the other.

A statement that contains a barrier becomes a generator, which yields when its thread waits. A loop
of threads resumes each thread in turn until it yields; then the loop yields to the loop of threads
around it. The outermost loop of threads is the block. The state of a thread, its variables and
private buffers, is saved while other threads run.

The threads between two barriers form one run of a concurrent loop, which ends at the barrier. So
only accesses that no barrier separates can race. It is an error if threads wait at different
barriers, or if some have ended while others wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from dlcompiler.ir import (
    Allocate,
    Barrier,
    For,
    If,
    Let,
    Seq,
    Stmt,
    Var,
    is_thread,
    walk_statements,
)
from dlcompiler.simulate.memory import Cell, LoopRun, Memory, Site, Task

if TYPE_CHECKING:
    from dlcompiler.simulate.interpreter import Loops, Run, _Program

Wait: TypeAlias = Callable[[], Iterator[Site]]
"""Runs a statement of one thread, and yields at each barrier."""


def has_barrier(stmt: Stmt) -> bool:
    """Tell whether there is a barrier inside a statement."""
    return any(isinstance(node, Barrier) for node in walk_statements(stmt))


def block(program: _Program, loop: For, loops: Loops) -> Run:
    """Return a function that runs the outermost loop of a block's threads."""
    threads = _threads(program, loop, loops)
    observer = program.state.observer

    def run() -> None:
        for site in threads():  # all threads have reached the barrier
            if observer is not None:
                observer.synchronise(site)
        if observer is not None:
            observer.synchronise(None)

    return run


def _waiting(program: _Program, stmt: Stmt, loops: Loops) -> Wait:
    """Return a generator function that runs a statement and yields at its barriers."""
    if not has_barrier(stmt):
        return _through(program.statement(stmt, loops))
    match stmt:
        case Barrier():
            return _at_barrier(program.scope(stmt, loops).site)
        case Seq(statements):
            return _in_turn([_waiting(program, item, loops) for item in statements])
        case For() if is_thread(stmt.kind):
            return _threads(program, stmt, loops)
        case For():
            return _serial(program, stmt, loops)
        case If():
            return _branch(program, stmt, loops)
        case Allocate():
            memory = program.memory(stmt.buffer)
            return _after(memory.forget, _waiting(program, stmt.body, loops))
        case Let():
            value = program.thunk(stmt.value, program.scope(stmt, loops))
            cell = program.cell(stmt.var)
            body = _waiting(program, stmt.body, loops)
            return _after(lambda: cell.__setitem__(0, value()), body)
    raise AssertionError(stmt)


def _through(run: Run) -> Wait:
    def wait() -> Iterator[Site]:
        run()
        yield from ()

    return wait


def _at_barrier(site: Site) -> Wait:
    def wait() -> Iterator[Site]:
        yield site

    return wait


def _in_turn(parts: list[Wait]) -> Wait:
    def wait() -> Iterator[Site]:
        for part in parts:
            yield from part()

    return wait


def _after(first: Run, body: Wait) -> Wait:
    def wait() -> Iterator[Site]:
        first()
        yield from body()

    return wait


def _branch(program: _Program, branch: If, loops: Loops) -> Wait:
    condition = program.thunk(branch.condition, program.scope(branch, loops))
    then = _waiting(program, branch.then, loops)
    otherwise = _waiting(program, branch.otherwise or Seq(()), loops)

    def wait() -> Iterator[Site]:
        yield from (then if condition() else otherwise)()

    return wait


def _serial(program: _Program, loop: For, loops: Loops) -> Wait:
    scope = program.scope(loop, loops)
    extent = program.thunk(loop.extent, scope)
    cell = program.cell(loop.var)
    body = _waiting(program, loop.body, (*loops, (loop.var, cell)))

    def wait() -> Iterator[Site]:
        count = extent()
        program.charge(count, scope.site)
        for cell[0] in range(count):
            yield from body()

    return wait


def _threads(program: _Program, loop: For, loops: Loops) -> Wait:
    """Return a generator function that runs a loop of threads; it yields when all wait."""
    scope = program.scope(loop, loops)
    extent = program.thunk(loop.extent, scope)
    before = len(program.made)
    cell = program.cell(loop.var)
    body = _waiting(program, loop.body, (*loops, (loop.var, cell)))
    own_cells = [made for made in program.made[before:] if not isinstance(made, Memory)]
    own_memories = [made for made in program.made[before:] if isinstance(made, Memory)]
    state = program.state

    def wait() -> Iterator[Site]:
        count = extent()
        program.charge(count, scope.site)
        threads = [_Thread(number, body(), own_cells, own_memories) for number in range(count)]
        while True:
            parent = state.task
            run = LoopRun(loop, parent)
            places: list[Site | None] = [None] * count
            for number in state.turns(count):
                thread = threads[number]
                thread.resume(cell)
                state.task = Task(run, number)
                places[number] = next(thread.steps, None)
                state.task.is_open = False
                thread.leave()
            run.is_open = False
            state.task = parent
            if all(place is None for place in places):
                return
            _require_same(scope.site, loop.var, places)
            yield places[0]  # type: ignore[misc]

    return wait


class _Thread:
    """One thread: its progress, and its variables and private memory."""

    def __init__(
        self, number: int, steps: Iterator[Site], cells: list[Cell], memories: list[Memory]
    ) -> None:
        self.number = number
        self.steps = steps
        self._cells = cells
        self._memories = memories
        self._values: list[Any] | None = None
        self._contents: list[tuple[Any, list[Any], list[Any]]] = []

    def resume(self, cell: Cell) -> None:
        """Restore the state of the thread, and set its number in `cell`."""
        if self._values is not None:
            for own, value in zip(self._cells, self._values, strict=True):
                own[0] = value
            for memory, content in zip(self._memories, self._contents, strict=True):
                memory.data[:], memory.writers[:], memory.readers[:] = content
        cell[0] = self.number

    def leave(self) -> None:
        """Save the state of the thread."""
        self._values = [own[0] for own in self._cells]
        self._contents = [
            (memory.data.copy(), list(memory.writers), list(memory.readers))
            for memory in self._memories
        ]


def _require_same(site: Site, var: Var, places: list[Site | None]) -> None:
    """Raise an error unless all threads wait at the same barrier, or all have ended."""
    for number, place in enumerate(places):
        if place is not places[0]:
            one, other = (_where(item) for item in (places[0], place))
            site.fail(
                "divergent_barrier",
                f"threads {var.name}=0 and {var.name}={number} wait at different places",
                because=f"{var.name}=0 {one}, {var.name}={number} {other}",
                hint="a barrier must be reached by all threads of a block, or by none",
            )


def _where(place: Site | None) -> str:
    return "has ended" if place is None else "waits at a barrier"
