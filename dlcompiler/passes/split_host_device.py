"""Split a program into kernels, one for each nest, and the host code around them.

*Before*::

    def main(A: float32[64], C: float32[64]):
        allocate B: float32[64]
        for i in blockIdx.x(64):
            B[i] = A[i]*2.0
        for i.outer in blockIdx.x(2):
            for i.inner in threadIdx.x(32):
                C[i.outer*32 + i.inner] = B[i.outer*32 + i.inner] + 1.0

*After*, the host allocates ``B``, and launches ``main_kernel0`` of 64 blocks and then
``main_kernel1`` of 2 blocks of 32 threads::

    def main_kernel1(B: float32[64], C: float32[64]):
        for i.outer in blockIdx.x(2):
            for i.inner in threadIdx.x(32):
                C[i.outer*32 + i.inner] = B[i.outer*32 + i.inner] + 1.0

A loop around the threads of a nest runs on the host: each iteration launches the kernel with the
loop variable as an argument.

A nest without threads is a kernel of one thread; `analysis.device_limits` refuses one that was
never bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler.errors import TargetError
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Const,
    Expr,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    free_vars,
    index_const,
    is_thread,
    structural_equal,
    substitute,
    walk,
    walk_statements,
)
from dlcompiler.ir.program import Launch, Program
from dlcompiler.passes.base import statements


def split_host_device(func: PrimFunc) -> Program:
    """Return the kernels of a program, and the memory between them.

    Parameters
    ----------
    func
        A function whose nests are bound to threads.
    """
    temporaries: list[Buffer] = []
    nests = list(_nests(func.body, temporaries))
    names = [f"{func.name}_kernel{n}" for n in range(len(nests))]
    launches = (launch_of(func, name, *nest) for name, nest in zip(names, nests, strict=True))
    return Program(func, tuple(launches), tuple(temporaries))


def _nests(
    stmt: Stmt, temporaries: list[Buffer], loops: tuple[For, ...] = ()
) -> Iterator[tuple[tuple[For, ...], Stmt]]:
    """Yield the nests of a program in order, with the host's loops around each.

    Buffers allocated around nests are appended to `temporaries`.
    """
    match stmt:
        case Allocate(buffer, body) if buffer.scope == "global" or _outlives_blocks(stmt, loops):
            temporaries.append(buffer)
            yield from _nests(body, temporaries, loops)
        case Seq(items):
            for item in items:
                yield from _nests(item, temporaries, loops)
        case For() if not is_thread(stmt.kind) and _threads(stmt):
            yield from _nests(stmt.body, temporaries, (*loops, stmt))
        case If(condition, then, None) if loops:
            for around, nest in _nests(then, temporaries, loops):
                yield around, If(condition, nest)
        case _:
            yield loops, stmt


def _outlives_blocks(stmt: Allocate, loops: tuple[For, ...]) -> bool:
    """Tell whether memory outside all launches is used by several blocks."""
    kinds = (node.kind for node in walk_statements(stmt.body) if isinstance(node, For))
    return not loops and any(kind.startswith("blockIdx") for kind in kinds)


def launch_of(func: PrimFunc, name: str, loops: tuple[For, ...], nest: Stmt) -> Launch:
    """Return a nest as a kernel, which takes the buffers and numbers that it uses.

    Parameters
    ----------
    func
        The program.
    name
        Name of the kernel.
    loops
        Loops of the host around the launch.
    nest
        What the kernel computes.

    Raises
    ------
    TargetError
        It calls code from outside.
    """
    for call in (stmt for stmt in statements(nest) if isinstance(stmt, ExternCall)):
        raise TargetError(
            f"split {func.name} into kernels",
            f"{call.name} is code from outside",
            because="a device cannot call functions of this process",
            hint="build for the CPU",
        )
    counts = {loop.var: Var(loop.var.name, is_symbol=True) for loop in loops}
    original, nest = nest, substitute(nest, counts)
    nodes = list(walk(nest))
    inside = {stmt.buffer for stmt in statements(nest) if isinstance(stmt, Allocate)}
    written = {node.buffer for node in nodes if isinstance(node, Store)} - inside
    used = {node.buffer for node in nodes if isinstance(node, Load | Store)} - inside
    buffers = dict.fromkeys((*func.buffers, *sorted(used, key=lambda buffer: buffer.name)))
    mine = sorted((b for b in buffers if b in used), key=lambda buffer: buffer in written)
    bound = {loop.var for loop in nodes if isinstance(loop, For)}
    sizes = [extent for buffer in mine for extent in (*buffer.shape[1:], *buffer.strides)]
    sizes += [extent for buffer in inside for extent in (*buffer.shape, *buffer.strides)]
    in_sizes = (free_vars(size) for size in sizes if isinstance(size, Expr))
    free = free_vars(nest).union(*in_sizes) - bound  # addresses depend on the sizes
    numbers = [var for var in (*func.variables, *counts.values()) if var in free]
    kernel = PrimFunc(
        name,
        (*mine, *numbers),
        tuple(buffer for buffer in mine if buffer in written),
        nest,
        func.axes,
        tuple(symbol for symbol in (*func.symbols, *counts.values()) if symbol in free),
    )
    return Launch(kernel, _threads(nest), loops, original)


def _threads(nest: Stmt) -> dict[str, Expr]:
    """Return the extent of each thread axis: the longest of the loops bound to it.

    If threads along x carry out an intrinsic together, there are as many, also without a loop.
    """
    found: dict[str, Expr] = {}
    for stmt in statements(nest):
        if isinstance(stmt, For) and is_thread(stmt.kind) and stmt.kind != "vthread":
            found[stmt.kind] = _longer(found.get(stmt.kind, stmt.extent), stmt.extent)
        if isinstance(stmt, IntrinsicCall) and stmt.intrinsic.threads > 1:
            lanes = index_const(stmt.intrinsic.threads)
            found["threadIdx.x"] = _longer(found.get("threadIdx.x", lanes), lanes)
    return dict(sorted(found.items()))


def _longer(a: Expr, b: Expr) -> Expr:
    """Return the larger of two extents; the result is an expression if one is symbolic."""
    if structural_equal(a, b, rename=False):
        return a
    if isinstance(a, Const) and isinstance(b, Const):
        return a if a.value >= b.value else b
    return binary("max", a, b)
