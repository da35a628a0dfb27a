"""Kernels that only move memory: speed limits for elementwise functions, reductions and caches.

Each kernel reads its inputs, from end to end or at several places at once, eight vectors in an
iteration. It does one addition for each vector read, and writes the arrays of its mix, with stores
through the caches or past them. A call may pass over its arrays several times, so that arrays which
fit in a cache stay there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import Options, compile_ir
from dlcompiler.target import resolve

UNROLLED = 8
MIXES = {"1:0": (1, 0), "1:1": (1, 1), "2:1": (2, 1)}
"""Reads to writes -> how many arrays are read, and how many are written."""


def stream(
    mix: str, elements: int, *, past_caches: bool = False, places: int = 1, passes: int = 1
) -> Function:
    """Return a kernel of some inputs and one output, float32.

    Parameters
    ----------
    mix : str
        A key of `MIXES`. Without writes, the output is one vector of sums.
    elements : int
        Number of elements of each array, a multiple of `granularity`.
    past_caches : bool
        Whether stores are non-temporal; the output must then be aligned to a vector.
    places : int
        Number of pieces of each array that are processed interleaved: 1, 2, 4 or 8.
    passes : int
        How often a call goes through the arrays.
    """
    target = resolve("cpu")
    reads, writes = MIXES[mix]
    kind = _Stream(target.lanes("float32"), reads, bool(writes), past_caches, places)
    text = "\n".join(kind.text(elements, passes)) + "\n"
    inputs = [Param(f"in{n}", (elements,), "float32") for n in range(reads)]
    out = Param("out", (elements if writes else kind.lanes,), "float32", is_output=True)
    return Function(compile_ir(text, Options.for_target(target)), "stream", (*inputs, out))


def granularity() -> int:
    """Return the number that must divide the number of elements."""
    return UNROLLED * resolve("cpu").lanes("float32")


@dataclass(frozen=True)
class _Stream:
    lanes: int
    reads: int
    writes: bool
    past_caches: bool
    places: int

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x float>"

    def text(self, elements: int, passes: int) -> Iterator[str]:
        """Yield the lines of the kernel, a loop of `UNROLLED` vectors of each array."""
        steps, neighbours = range(UNROLLED), UNROLLED // self.places
        sums = steps if not self.writes else ()
        inputs = ", ".join(f"ptr %in{n}" for n in range(self.reads))
        yield f"define void @stream({inputs}, ptr %out) {{"
        yield "entry:\n  br label %pass\npass:"
        yield "  %p = phi i64 [ 0, %entry ], [ %p.next, %passed ]"
        for u in sums:
            yield f"  %a{u} = phi {self.vector} [ zeroinitializer, %entry ], [ %t{u}, %passed ]"
        yield "  br label %loop\nloop:"
        yield "  %i = phi i64 [ 0, %pass ], [ %next, %loop ]"
        for u in sums:
            yield f"  %s{u} = phi {self.vector} [ %a{u}, %pass ], [ %t{u}, %loop ]"
        for u in steps:
            place, n = divmod(u, neighbours)
            yield f"  %at{u} = add i64 %i, {place * elements // self.places + n * self.lanes}"
            for n in range(self.reads):
                yield f"  %p{n}.{u} = getelementptr float, ptr %in{n}, i64 %at{u}"
                yield f"  %x{n}.{u} = load {self.vector}, ptr %p{n}.{u}, align 4"
        for u in steps:
            yield from self._write(u) if self.writes else self._keep(u)
        yield f"  %next = add i64 %i, {neighbours * self.lanes}"
        yield f"  %more = icmp ult i64 %next, {elements // self.places}"
        yield "  br i1 %more, label %loop, label %passed\npassed:"
        yield "  %p.next = add i64 %p, 1"
        yield f"  %again = icmp ult i64 %p.next, {passes}"
        yield "  br i1 %again, label %pass, label %exit\nexit:"
        yield from self._sums() if not self.writes else ()
        yield "  fence seq_cst\n  ret void\n}" if self.past_caches else "  ret void\n}"
        yield "!0 = !{i32 1}"

    def _keep(self, u: int) -> Iterator[str]:
        yield f"  %t{u} = fadd {self.vector} %s{u}, %x0.{u}"

    def _write(self, u: int) -> Iterator[str]:
        value = f"%x0.{u}"
        for n in range(1, self.reads):
            yield f"  %y{n}.{u} = fadd {self.vector} {value}, %x{n}.{u}"
            value = f"%y{n}.{u}"
        align, note = (4 * self.lanes, ", !nontemporal !0") if self.past_caches else (4, "")
        yield f"  %q{u} = getelementptr float, ptr %out, i64 %at{u}"
        yield f"  store {self.vector} {value}, ptr %q{u}, align {align}{note}"

    def _sums(self) -> Iterator[str]:
        before = "%t0"
        for u in range(1, UNROLLED):
            yield f"  %r{u} = fadd {self.vector} {before}, %t{u}"
            before = f"%r{u}"
        yield f"  store {self.vector} {before}, ptr %out, align 4"
