"""Programs: kernels, the launches that run them, and the buffers between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dlcompiler.ir.expr import Const, Expr
from dlcompiler.ir.func import PrimFunc
from dlcompiler.ir.stmt import Buffer, For, Stmt


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel, and the numbers of blocks and threads that run it."""

    kernel: PrimFunc
    threads: Mapping[str, Expr]
    """For each thread axis, ``blockIdx.x`` to ``threadIdx.z``, its extent; an axis left out has
    extent 1."""
    loops: tuple[For, ...] = ()
    """Loops of the host around the launch, outermost first."""
    nest: Stmt | None = None
    """The part of `Program.func` that the kernel computes, statement by statement; None for a
    kernel that is the whole function."""

    def count(self, tag: str) -> int | None:
        """Return the extent of a thread axis; None if it depends on symbols."""
        extent = self.threads.get(tag)
        if extent is None:
            return 1
        return int(extent.value) if isinstance(extent, Const) else None

    @property
    def size(self) -> str:
        """The extents of the thread axes and the host's loops, as text."""
        parts = [f"{tag} {extent}" for tag, extent in self.threads.items()]
        again = "".join(f", for {loop.var.name} in range({loop.extent})" for loop in self.loops)
        return (", ".join(parts) or "one thread") + again


@dataclass(frozen=True, eq=False)
class Program:
    """A lowered program: kernels, the launches that run them, and memory between them.

    A function for a CPU is the simplest case: one kernel, which the host calls (`Program.of`).
    """

    func: PrimFunc
    """The whole program as one function."""
    launches: tuple[Launch, ...]
    """The launches, in the order in which they run."""
    temporaries: tuple[Buffer, ...] = field(default=())
    """Device memory that one kernel writes and another reads."""

    @classmethod
    def of(cls, func: PrimFunc) -> Program:
        """Return a program with one kernel, which the host runs without device threads."""
        return cls(func, (Launch(func, {}),))

    @property
    def kernels(self) -> tuple[PrimFunc, ...]:
        """The kernel of each launch."""
        return tuple(launch.kernel for launch in self.launches)

    def __str__(self) -> str:
        return "\n".join(f"# launch: {launch.size}\n{launch.kernel}" for launch in self.launches)
