"""Place the memory that a block shares: arrays of fixed sizes, and parts of one piece of memory.

The size of the piece is decided at each launch. It holds the arrays whose sizes depend on symbols;
where a language limits what a kernel may declare, it holds all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.codegen.c.buffers import static_elements
from dlcompiler.codegen.gpu.launches import host_variables
from dlcompiler.errors import TargetError
from dlcompiler.ir import Buffer, Expr, Extent, extent_expr, free_vars
from dlcompiler.ir.printer import format_buffer
from dlcompiler.ir.program import Launch
from dlcompiler.ir.stmt import extent_binary
from dlcompiler.passes.flatten_storage import elements_spanned
from dlcompiler.passes.merge_thread_loops import ThreadProgram

UNIT_BYTES = 16
"""Parts begin at multiples of this, the alignment of the largest vectors [byte]."""


@dataclass(frozen=True)
class SharedMemory:
    """Where the arrays are that the threads of a block share."""

    fixed: Mapping[Buffer, int]
    """The arrays that a kernel declares, each with its number of elements."""
    parts: Mapping[Buffer, Expr]
    """The arrays in the piece of memory that a launch adds, each with its beginning
    [`UNIT_BYTES`]."""
    added_units: Extent
    """Size of that piece of memory [`UNIT_BYTES`]."""

    @property
    def fixed_bytes(self) -> int:
        """Size of the arrays that the kernel declares [byte]."""
        return sum(count * dtypes.bytes_of(b.dtype) for b, count in self.fixed.items())

    @property
    def added_bytes(self) -> Extent:
        """Size of the memory that a launch adds [byte]."""
        return extent_binary("mul", self.added_units, UNIT_BYTES)


def shared_memory(
    launch: Launch, thread: ThreadProgram, most_fixed: int | None = None
) -> SharedMemory:
    """Place the memory that the threads of a block share.

    Parameters
    ----------
    launch, thread
        The launch, and what one of its threads does.
    most_fixed
        What a kernel may declare at most [byte]; None if nothing limits it.

    Raises
    ------
    TargetError
        The size of an array depends on something that the host does not know.
    """
    counts = {buffer: static_elements(buffer) for buffer in thread.shared}
    fixed = {buffer: count for buffer, count in counts.items() if count is not None}
    sizes = (count * dtypes.bytes_of(buffer.dtype) for buffer, count in fixed.items())
    if most_fixed is not None and sum(-(-n // UNIT_BYTES) * UNIT_BYTES for n in sizes) > most_fixed:
        fixed = {}  # each array may begin at a multiple of the unit
    parts: dict[Buffer, Expr] = {}
    end: Extent = 0
    for buffer in thread.shared:
        if buffer not in fixed:
            _check_known(launch, buffer)
            parts[buffer] = extent_expr(end)
            end = extent_binary("add", end, _units(buffer))
    return SharedMemory(fixed, parts, end)


def _units(buffer: Buffer) -> Extent:
    size = extent_binary("mul", elements_spanned(buffer), dtypes.bytes_of(buffer.dtype))
    return extent_binary("floordiv", extent_binary("add", size, UNIT_BYTES - 1), UNIT_BYTES)


def _check_known(launch: Launch, buffer: Buffer) -> None:
    """Refuse an array whose size depends on loops of the kernel, or on data."""
    of_host = host_variables(launch)
    known = {of_host.get(var, var) for var in launch.kernel.variables}
    elements = elements_spanned(buffer)
    if isinstance(elements, Expr) and not free_vars(elements) <= known:
        raise refused_size(buffer, "block")


def refused_size(buffer: Buffer, owner: str) -> TargetError:
    """Return the error of memory whose size is not known where it must be."""
    return TargetError(
        "generate code for a GPU",
        f"the size of {buffer.name} is not known, but a {owner} has memory of fixed sizes only",
        got=format_buffer(buffer),
        hint="split the loops that it is computed for by numbers, or compute it in a kernel "
        "of its own",
    )  # fmt: skip
