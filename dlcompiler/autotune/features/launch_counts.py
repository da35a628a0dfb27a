"""Counters of all configs of a skeleton: its launches, their pieces, and the limits of a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.autotune.features.evaluation import Digits, Program
from dlcompiler.autotune.features.intervals import point, range_of
from dlcompiler.autotune.features.legality import is_legal
from dlcompiler.autotune.features.numbers import Num, add, at_most, multiply, product
from dlcompiler.autotune.features.piece_chains import Chain, leaves_of
from dlcompiler.autotune.features.row_groups import Integers
from dlcompiler.autotune.features.statements import statements
from dlcompiler.autotune.features.symbolic_nests import NotCoveredError, Symbols, symbolic_nests
from dlcompiler.autotune.features.tracing import Skeleton
from dlcompiler.autotune.features.warp_pieces import Context, Memo, Piece
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    PrimFunc,
    Store,
    Var,
    extent_expr,
    rewrite,
    walk,
    walk_statements,
)
from dlcompiler.ir.program import Launch
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes import simplify
from dlcompiler.passes.merge_thread_loops import ThreadProgram, merge_thread_loops
from dlcompiler.passes.split_host_device import split_host_device
from dlcompiler.schedule.inference.inlining import loads_of
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.inference.thread_loops import is_shared
from dlcompiler.schedule.state import AttachedAt, State
from dlcompiler.simulate.gpu.counters import KernelCounters
from dlcompiler.simulate.gpu.populations import FIELDS, Tally, astuple
from dlcompiler.simulate.gpu.program import Site
from dlcompiler.target import Target

Truth: TypeAlias = npt.NDArray[np.bool_]
Table: TypeAlias = dict[str, Integers]
"""Name of a counter -> its value for each config; see `table_of`."""

_BY_SPACE = {"global": FIELDS[:4], "shared": (*FIELDS[:2], *FIELDS[4:])}


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """The counters of configs of a skeleton."""

    table: Table
    is_covered: Truth
    """For which configs the table is right; the others are lowered one by one."""
    is_refused: Truth
    """Which of the covered configs exceed a limit of the target."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kernel:
    number: int
    pieces: tuple[Piece, ...]
    blocks: Num
    """Blocks of the launch; [1]."""
    threads: Num
    """Threads of a block; [1]."""
    barriers: tuple[tuple[Num, ...], ...]
    """For each barrier, the extents of the loops around it."""


class SkeletonCounts:
    """Counts what the configs of a skeleton do on a GPU.

    Parameters
    ----------
    skeleton
        The schedule of the configs.
    target
        A GPU.
    memo
        What was counted for other skeletons.

    Raises
    ------
    NotCoveredError
        Formulas of knobs do not express what the configs do.
    """

    def __init__(self, skeleton: Skeleton, target: Target, memo: Memo) -> None:
        if skeleton.state is None:
            raise NotCoveredError("a schedule that the template refuses")
        _refuse_shared_memory(placed(skeleton.state))
        symbols = Symbols()
        func = simplify(symbolic_nests(skeleton.state, skeleton.symbols, symbols))
        self._values = symbols.formulas
        self._warp = target.limits.get("warp_size", 32)
        self._context = Context(self._values, self._warp, memo)
        self._kernels: list[_Kernel] = []
        self._covered: list[Num] = list(symbols.required)
        self._allowed: list[Num] = [is_legal(statements(skeleton.state, skeleton.symbols))]
        self._certain: list[Num] = []
        for number, (launch, virtual) in enumerate(_launches(func)):
            self._kernels.append(self._kernel(number, launch, virtual, target))
        numbers = [n for kernel in self._kernels for n in _numbers(kernel)]
        self._program = Program(
            [
                *self._values.values(),
                product(self._covered),
                product(self._allowed),
                product(self._certain),
                *numbers,
            ]
        )

    def __call__(self, digits: Digits) -> Counted:
        """Return the counters of configs, given by the positions of their knobs' values."""
        size = len(digits)
        answers = [
            np.broadcast_to(np.asarray(a, np.float64), (size,)).astype(np.int64)
            for a in self._program.evaluate(digits)
        ]
        symbols = dict(zip(self._values, answers, strict=False))
        covered, allowed, certain, *rest = answers[len(symbols) :]
        is_allowed = allowed != 0
        is_covered = (covered != 0) & (~is_allowed | (certain != 0))
        members = np.flatnonzero(is_covered & is_allowed)
        table: Table = {}
        if len(members):
            symbols = {var: values[members] for var, values in symbols.items()}
            numbers = iter([values[members] for values in rest])
            for kernel in self._kernels:
                self._add(table, kernel, symbols, numbers)
        whole = {name: np.full(size, -1, np.int64) for name in table}
        for name, values in table.items():
            whole[name][members] = values
        return Counted(whole, is_covered, is_covered & ~is_allowed)

    # -- formulas ---------------------------------------------------------------------------------

    def _number(self, expr: Expr | int) -> Num:
        values = {var: point(value) for var, value in self._values.items()}
        return range_of(extent_expr(expr), values).first

    def _kernel(
        self, number: int, launch: Launch, virtual: Mapping[Var, For], target: Target
    ) -> _Kernel:
        thread = merge_thread_loops(launch)
        extents = {tag: self._number(extent) for tag, extent in thread.extents.items()}
        threads = product([n for tag, n in extents.items() if tag.startswith("threadIdx")])
        pieces, barriers = [], []
        for chain, stmt in leaves_of(thread, virtual):
            if isinstance(stmt, Store):
                pieces.append(Piece(thread, chain, stmt, self._context))
            else:
                barriers.append(self._barrier(chain))
            self._limit_virtual(chain, virtual, target)
        self._limit(thread, extents, threads, target)
        self._limit_own_memory(launch, virtual, target)
        blocks = product([n for tag, n in extents.items() if tag.startswith("blockIdx")])
        return _Kernel(number, tuple(pieces), blocks, threads, tuple(barriers))

    def _barrier(self, chain: Chain) -> tuple[Num, ...]:
        if chain.guards:
            raise NotCoveredError("a barrier under a condition")
        return tuple(self._number(step.extent) for step in chain.steps if step.repeats)

    def _limit(
        self, thread: ThreadProgram, extents: Mapping[str, Num], threads: Num, target: Target
    ) -> None:
        """Add the limits of `dlcompiler.analysis.device_limits` on threads and shared memory."""
        for tag, extent in extents.items():
            level, _, axis = tag.partition("Idx.")
            self._allowed.append(at_most(extent, target.limit(f"max_{level}s_{axis}")))
        self._allowed.append(at_most(threads, target.limit("max_threads_per_block")))
        shared: Num = 0
        for buffer in thread.shared:
            shared = add(shared, self._bytes(buffer))
        self._allowed.append(at_most(shared, target.limit("max_shared_bytes")))

    def _limit_virtual(self, chain: Chain, virtual: Mapping[Var, For], target: Target) -> None:
        counts = [self._number(step.extent) for step in chain.steps if step.var in virtual]
        self._allowed.append(at_most(product(counts), target.limit("max_vthreads")))

    def _limit_own_memory(self, launch: Launch, virtual: Mapping[Var, For], target: Target) -> None:
        """Leave configs to lowering of which a thread may need too much memory."""
        copies = product([self._number(loop.extent) for loop in virtual.values()])
        total: Num = 0
        for node in walk(launch.kernel.body):
            if isinstance(node, Allocate) and node.buffer.scope == "local":
                total = add(total, multiply(self._bytes(node.buffer), copies))
        self._certain.append(at_most(total, target.limit("max_local_bytes")))

    def _bytes(self, buffer: Buffer) -> Num:
        size = product([self._number(extent) for extent in buffer.shape])
        return multiply(size, dtypes.bytes_of(buffer.dtype))

    # -- counts -----------------------------------------------------------------------------------

    def _add(
        self, table: Table, kernel: _Kernel, symbols: Mapping[Var, Integers],
        numbers: Iterator[Integers],
    ) -> None:  # fmt: skip
        """Add the counters of a kernel to a table; `numbers` are those of `_numbers`."""
        blocks, threads = next(numbers), next(numbers)
        warps = -(-threads // self._warp)
        head = f"kernel{kernel.number}"
        table.update({f"{head}.{k}": v for k, v in (
            ("blocks", blocks), ("threads", threads), ("warps", warps))})  # fmt: skip
        waits = np.zeros_like(blocks)
        for extents in kernel.barriers:
            times = np.ones_like(blocks)
            for _ in extents:
                times = times * next(numbers)
            waits += times
        if kernel.barriers:
            waits = np.where(threads > 1, waits * blocks, 0)  # one thread waits for nobody
            _plus(table, f"{head}.barrier.requests", waits * warps)
            _plus(table, f"{head}.barrier.lanes", waits * threads)
        for piece in kernel.pieces:
            own = [next(numbers) for _ in piece.formulas]
            for key, rows in piece.counts(symbols, own).items():
                if isinstance(key, Site):
                    space = "shared" if rows[:, 4:].any() else "global"
                    _add_access(table, key, space, rows.T)
                else:
                    _plus(table, f"{head}.{key}.requests", rows[:, 0])
                    _plus(table, f"{head}.{key}.lanes", rows[:, 1])
        _without_sharing(table, head, threads == 1)


def _without_sharing(table: Table, head: str, is_single: Truth) -> None:
    """Turn shared memory into memory of the thread, and leave out barriers, where there is one."""
    if not is_single.any():
        return
    for verb in ("load", "store"):
        for field in FIELDS[:2]:
            shared = table.get(f"{head}.{verb} shared.{field}")
            if shared is not None:
                _plus(table, f"{head}.{verb} local.{field}", np.where(is_single, shared, 0))
    gone = (".wavefronts", ".ideal_wavefronts")
    parts = {name.rpartition(".")[0] for name in table if name.endswith(gone)}
    parts |= {f"{head}.barrier", f"{head}.load shared", f"{head}.store shared"}
    for name in table:
        if name.rpartition(".")[0] in parts:
            table[name] = np.where(is_single, -1, table[name])


def table_of(counters: Sequence[KernelCounters]) -> dict[str, int]:
    """Return the counters of a program by name; where data decides, the greatest.

    ========================================  ==================================================
    ``kernel0.blocks``, ``.threads``,         of the launch
    ``.warps``
    ``C.store C.requests``, ``.lanes``, …     of the access of a stage to an array, the fields of a
                                              `Tally`; a ``#2`` counts accesses to the same array
    ``kernel0.float32 fma.requests``          instructions by kind, except branches: their number
                                              depends on how conditions are written
    ========================================  ==================================================
    """
    table: Table = {}
    for number, kernel in enumerate(counters):
        head = f"kernel{number}"
        for key in ("blocks", "threads", "warps"):
            table[f"{head}.{key}"] = np.array([getattr(kernel, key)])
        for access in kernel.accesses:
            _add_access(table, access.site, access.space, _column(access.most))
        for kind, (_, most) in kernel.instructions.items():
            if kind != "branch":
                _plus(table, f"{head}.{kind}.requests", _column(most)[0])
                _plus(table, f"{head}.{kind}.lanes", _column(most)[1])
    return {name: int(values[0]) for name, values in table.items()}


def _column(tally: Tally) -> Integers:
    return np.array(astuple(tally), np.int64)[:, None]


def _add_access(table: Table, site: Site, space: str, rows: Integers) -> None:
    stage = str(site.origin[0]) if site.origin else ""
    verb = "store" if site.is_write else "load"
    again = f" #{site.number + 1}" if site.number else ""
    name = f"{stage}.{verb} {site.buffer.name}{again}"
    for field, values in zip(FIELDS, rows, strict=True):
        if field in _BY_SPACE[space]:
            _plus(table, f"{name}.{field}", values)


def _plus(table: Table, name: str, values: Integers) -> None:
    table[name] = table[name] + values if name in table else values


def _numbers(kernel: _Kernel) -> Iterator[Num]:
    """Yield the formulas that the counts of a kernel need."""
    yield from (kernel.blocks, kernel.threads)
    for extents in kernel.barriers:
        yield from extents
    for piece in kernel.pieces:
        yield from piece.formulas


# -- the program ----------------------------------------------------------------------------------


def _launches(func: PrimFunc) -> Iterator[tuple[Launch, dict[Var, For]]]:
    """Yield the launches of symbolic nests, each with the loops over virtual threads around it.

    In the kernels, these loops are left out.

    Raises
    ------
    NotCoveredError
        Lowering may change the program further than counting can follow.
    """

    def without_virtual(node: Node) -> Node:
        return node.body if isinstance(node, For) and node.kind == "vthread" else node

    virtual = [n for n in walk_statements(func.body) if isinstance(n, For) and n.kind == "vthread"]
    stores = {
        loop: {id(n) for n in walk_statements(loop) if isinstance(n, Store)} for loop in virtual
    }
    program = split_host_device(func.with_body(rewrite(func.body, without_virtual)))
    if len(program.temporaries) > 1:
        raise NotCoveredError("several arrays between kernels, which may share memory")
    for launch in program.launches:
        if launch.loops:
            raise NotCoveredError("a loop of the host around a launch")
        loops = [node for node in walk_statements(launch.kernel.body) if isinstance(node, For)]
        tags = [loop.kind for loop in loops if loop.kind in launch.threads]
        if len(tags) != len(set(tags)):
            raise NotCoveredError("several loops of one thread axis")
        here = {id(node) for node in walk_statements(launch.kernel.body) if isinstance(node, Store)}
        around = {loop.var: loop for loop in virtual if stores[loop] & here}
        if any(here - stores[loop] for loop in around.values()):
            raise NotCoveredError("virtual threads that compute a part of a kernel")
        yield launch, around


def _refuse_shared_memory(state: State) -> None:
    """Refuse stages in shared memory that could be in the same memory one after the other.

    Raises
    ------
    NotCoveredError
        There are some.
    """
    shared = [s for s in state.stages if not s.is_placeholder and not s.is_inlined]
    shared = [stage for stage in shared if is_shared(state, stage)]
    places = (stage.attachment for stage in shared)
    if len({(at.stage, at.axis) if isinstance(at, AttachedAt) else None for at in places}) > 1:
        raise NotCoveredError("shared memory that is used at different times")
    tensors = {tensor for stage in shared for tensor in stage.tensors}
    known = state.cache.get("bodies", {})
    for stage in shared:
        if tensors & {load.tensor for load in loads_of(known.get(stage.name, ()))}:
            raise NotCoveredError("shared memory that is computed from other shared memory")
