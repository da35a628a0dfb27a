"""Take a program of threads apart: a kernel for each nest, and what the host does around them.

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

A nest without threads is a kernel of one thread; `analysis.device_limits` refuses one that was
never bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dlcompiler.ir import (
    Allocate,
    Buffer,
    Const,
    Expr,
    For,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    binary,
    free_vars,
    is_thread,
    structural_equal,
    walk,
)
from dlcompiler.passes.base import statements


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel, and how many blocks and threads run it."""

    kernel: PrimFunc
    threads: Mapping[str, Expr]
    """Of each axis, ``blockIdx.x`` to ``threadIdx.z``, how many; an axis left out has one."""

    def count(self, tag: str) -> int | None:
        """Return how many blocks or threads there are along an axis; None where a symbol says."""
        extent = self.threads.get(tag)
        if extent is None:
            return 1
        return int(extent.value) if isinstance(extent, Const) else None

    @property
    def size(self) -> str:
        """Blocks and threads, as text."""
        parts = [f"{tag} {extent}" for tag, extent in self.threads.items()]
        return ", ".join(parts) or "one thread"


@dataclass(frozen=True, eq=False)
class DeviceProgram:
    """A program as host and device share it."""

    func: PrimFunc
    """The whole."""
    temporaries: tuple[Buffer, ...]
    """Memory of the device that one kernel writes and another reads."""
    launches: tuple[Launch, ...] = field(default=())
    """In the order in which they run."""

    def __str__(self) -> str:
        return "\n".join(f"# launch: {launch.size}\n{launch.kernel}" for launch in self.launches)


def split_host_device(func: PrimFunc) -> DeviceProgram:
    """Return the kernels of a program, and the memory between them.

    Parameters
    ----------
    func
        A function whose nests are bound to threads.
    """
    temporaries: list[Buffer] = []
    nests = list(_nests(func.body, temporaries))
    names = [f"{func.name}_kernel{n}" for n in range(len(nests))]
    launches = (_launch(func, name, nest) for name, nest in zip(names, nests, strict=True))
    return DeviceProgram(func, tuple(temporaries), tuple(launches))


def _nests(stmt: Stmt, temporaries: list[Buffer]) -> Iterator[Stmt]:
    """Yield the nests of a program, one after another; note the buffers around them."""
    match stmt:
        case Allocate(buffer, body):
            temporaries.append(buffer)
            yield from _nests(body, temporaries)
        case Seq(items):
            for item in items:
                yield from _nests(item, temporaries)
        case _:
            yield stmt


def _launch(func: PrimFunc, name: str, nest: Stmt) -> Launch:
    nodes = list(walk(nest))
    inside = {stmt.buffer for stmt in statements(nest) if isinstance(stmt, Allocate)}
    written = {node.buffer for node in nodes if isinstance(node, Store)} - inside
    used = {node.buffer for node in nodes if isinstance(node, Load | Store)} - inside
    buffers = dict.fromkeys((*func.buffers, *sorted(used, key=lambda buffer: buffer.name)))
    mine = sorted((b for b in buffers if b in used), key=lambda buffer: buffer in written)
    bound = {loop.var for loop in nodes if isinstance(loop, For)}
    numbers = [var for var in func.variables if var in free_vars(nest) - bound]
    kernel = PrimFunc(
        name,
        (*mine, *numbers),
        tuple(buffer for buffer in mine if buffer in written),
        nest,
        func.axes,
        tuple(symbol for symbol in func.symbols if symbol in numbers),
    )
    return Launch(kernel, _threads(nest))


def _threads(nest: Stmt) -> dict[str, Expr]:
    """Return the threads of each axis: of loops beside each other, the longest says."""
    found: dict[str, Expr] = {}
    for stmt in statements(nest):
        if isinstance(stmt, For) and is_thread(stmt.kind) and stmt.kind != "vthread":
            found[stmt.kind] = _longer(found.get(stmt.kind, stmt.extent), stmt.extent)
    return dict(sorted(found.items()))


def _longer(a: Expr, b: Expr) -> Expr:
    """Return the larger of two extents, also where a symbol decides."""
    if structural_equal(a, b):
        return a
    if isinstance(a, Const) and isinstance(b, Const):
        return a if a.value >= b.value else b
    return binary("max", a, b)
