"""Bind loops to the threads of a GPU: elements of a result, and tiles that a block copies.

*Before*, then *after* ``share_elements(s[C], s[C].op.axis, 128, vector=4)``::

    for i in range(64):                 for i.j.outer in blockIdx.x(125):
        for j in range(1000):               for i.j.inner in threadIdx.x(128):
            C[i, j] = A[i, j]*2.0               for v in vectorized(4):
                                                    C[…] = A[…]*2.0

*Before*, then *after* ``copy_together(s[AA], {"threadIdx.y": 8, "threadIdx.x": 32}, vector=4)`` of
a stage that is attached in the loop of a block::

    for y in range(16):                 for o in range(…):
        for x in range(64):                 for y in threadIdx.y(8):
            AA[y, x] = A[…]                     for x in threadIdx.x(32):
                                                    for v in vectorized(4):
                                                        AA[…] = A[…]

Threads that are neighbours along x access neighbouring elements, so that the threads of a warp
touch as few sectors as possible. Consecutive steps of a thread are a whole block of elements apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ir import Axis
from dlcompiler.ops.stages import Loop, unroll
from dlcompiler.schedule import Schedule, Stage
from dlcompiler.space import Filter
from dlcompiler.target import Target
from dlcompiler.te import Tensor

Threads = Mapping[str, Any]
"""Axis of the threads of a block -> their number (an int, or a knob); x last [1]."""
THREAD_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Threads that may share a result [1]."""
ROW_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Results of a block, if the threads of a warp share one [1]."""
COLUMN_COUNTS = (8, 16, 32, 64, 128)
"""Results of a block, if these are neighbours in memory [1]."""
ROW_BLOCK = 128
"""Threads of a block of rows in a default config [1]."""
_WARP = 32
_THREADS = 256
_VECTOR_BYTES = 16


@dataclass(frozen=True, slots=True)
class Chip:
    """The numbers of a GPU that default configs are computed from."""

    processors: int
    """Multiprocessors [1]."""
    warp: int
    """Threads of a warp [1]."""
    most_threads: int
    """Most threads of a block [1]."""
    shared_bytes: int
    """Most shared memory of a block [byte]."""
    registers: int
    """Registers of a multiprocessor, of 32 bits each [1]."""
    threads_at_once: int
    """Most threads that a multiprocessor runs at once [1]."""
    vector_bytes: int
    """Most bytes that a thread loads at once [byte]."""

    @staticmethod
    def of(target: Target) -> Chip:
        """Return the numbers of a target; those that it does not give are usual ones.

        Examples
        --------
        >>> from dlcompiler.target import resolve
        >>> chip = Chip.of(resolve("rtx-3090"))
        >>> chip.processors, chip.threads_at_once, chip.most_threads
        (82, 1536, 1024)
        """
        scope = target.scope("shared")
        shared = scope.capacity if scope is not None and scope.capacity else 32 * 1024
        most = int(min(target.limit("max_threads_per_block"), 1024))
        return Chip(
            processors=target.cores,
            warp=int(target.limits.get("warp_size", _WARP)),
            most_threads=most,
            shared_bytes=shared,
            registers=int(target.limits.get("registers_per_processor", 65_536)),
            threads_at_once=int(target.limits.get("max_threads_per_processor", 2 * most)),
            vector_bytes=int(target.limits.get("max_vector_bytes", _VECTOR_BYTES)),
        )

    def lanes(self, dtype: str) -> int:
        """Return how many elements of a dtype a thread loads at once, at most 4.

        The vector types that all languages have end at four elements.
        """
        return max(min(self.vector_bytes // dtypes.bytes_of(dtype), 4), 1)


def block_filter(chip: Chip, *, is_by_warps: bool) -> Filter:
    """Return the rule for the knobs ``threads``, which share a result, and ``rows``, the results.

    Parameters
    ----------
    chip : Chip
        The GPU.
    is_by_warps : bool
        Whether the threads of a result are neighbours: several results then need a warp each.
    """
    return Filter(
        "a block has no more threads than the device allows, and a warp's if it can",
        lambda v: (
            v["threads"] * v["rows"] <= chip.most_threads
            and (v["threads"] <= chip.warp or v["rows"] == 1 or not is_by_warps)
        ),
    )


def bind(stage: Stage, loops: Mapping[str, Axis]) -> None:
    """Bind loops of a stage to thread axes.

    Parameters
    ----------
    stage : Stage
        Changed in place.
    loops : mapping of str to Axis
        Thread axis -> the loop: ``{"blockIdx.x": block, "threadIdx.x": thread}``.
    """
    for tag, axis in loops.items():
        stage.bind(axis, te.thread_axis(tag))


def fused(stage: Stage, axes: Sequence[Axis]) -> Axis:
    """Fuse neighbouring loops; none become a loop of one iteration."""
    return axes[0] if len(axes) == 1 else stage.fuse(*axes)


def share_elements(
    stage: Stage, axes: Sequence[Axis], threads: Any, *, vector: Any = 1, steps: Any = 1
) -> tuple[Axis, Axis]:
    """Share the elements of a stage among blocks and threads.

    Parameters
    ----------
    stage : Stage
        Changed in place.
    axes : sequence of Axis
        Neighbouring loops, which are fused; the innermost one goes along memory.
    threads : int
        Threads of a block.
    vector : int
        Neighbouring elements that a thread computes at once.
    steps : int
        Such groups of one thread; two of them are `threads` groups apart.

    Returns
    -------
    tuple of Axis
        The loops over blocks and over threads.
    """
    element, lane = stage.split(fused(stage, axes), vector)
    element, thread = stage.split(element, threads)
    block, step = stage.split(element, steps)
    stage.reorder(block, thread, step, lane)
    bind(stage, {"blockIdx.x": block, "threadIdx.x": thread})
    stage.vectorize(lane)
    return block, thread


def copy_together(
    stage: Stage, threads: Threads, *, vector: Any = 1, axes: Sequence[Axis] = ()
) -> Axis:
    """Let the threads of a block compute a stage together, such as a tile in shared memory.

    Parameters
    ----------
    stage : Stage
        Changed in place. It is attached in the loops of a block, and stored in shared memory.
    threads : mapping
        Axes of the block's threads, x last: ``{"threadIdx.y": 8, "threadIdx.x": 32}``. They have to
        be as many as in the stage that it is attached to.
    vector : int
        Neighbouring elements that a thread copies at once.
    axes : sequence of Axis
        Neighbouring loops whose elements are shared out, by default all.

    Returns
    -------
    Axis
        The loop over the elements of one thread.
    """
    loop, lane = stage.split(fused(stage, axes or tuple(stage.leaf_iter_vars)), vector)
    bound = {}
    for tag in reversed(list(threads)):
        loop, bound[tag] = stage.split(loop, threads[tag])
    bind(stage, bound)
    stage.vectorize(lane)
    return loop


@dataclass(frozen=True)
class Sharing:
    """How threads share the elements along a loop: in vectors, which neighbours access in turns.

    Element ``i`` of 4 lanes and 32 threads has the place ``(i // 128, i // 4 % 32, i % 4)``: the
    step of a thread, the thread, and the lane.
    """

    threads: Mapping[str, Any]
    """Axis of threads -> their number, the innermost axis first [1]."""
    vector: Any = 1
    """Lanes [1]."""

    def split(self, stage: Stage, axis: Axis) -> tuple[Axis, dict[str, Axis], Axis]:
        """Split a loop; return the steps, the loops of threads by their axes, and the lanes."""
        step, lane = stage.split(axis, self.vector)
        found = {}
        for tag, count in self.threads.items():
            step, found[tag] = stage.split(step, count)
        return step, found, lane

    def place(self, index: Any) -> list[Any]:
        """Return the place of an element in the layout of one dimension for each of the loops."""
        digits, width = [index % self.vector], self.vector
        for count in self.threads.values():
            digits.insert(0, index // width % count)
            width = width * count
        return [index // width, *digits]


def in_order(loops: Mapping[str, Axis]) -> list[Axis]:
    """Return loops of threads as they are nested: z outside y outside x."""
    return [loops[tag] for tag in sorted(loops, reverse=True)]


def unroll_in_registers(s: Schedule, host: Tensor, block: Axis, loops: Iterable[Loop]) -> None:
    """Unroll loops whose variables index memory of a thread; the last step of a schedule.

    Registers have no addresses. The compiler of the device copies the loops: the program stays
    short.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    host : Tensor
        The stage that is bound to blocks.
    block : Axis
        Its loop over blocks.
    loops : iterable of Loop
        Stages with their loops.
    """
    s[host].pragma(block, "unroll_explicit", 0)
    unroll(s, loops)
