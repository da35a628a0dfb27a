"""Find the memory that a warp holds as fragments, and how its tiles lie in registers.

A fragment is a buffer in local memory that only intrinsics of a whole warp touch: products on
tensor cores, and copies from and to memory. To the simulator, it is memory of the first thread of
the warp, which does the work of all. In CUDA C, each thread has some registers of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dlcompiler.arith import Analyzer
from dlcompiler.errors import TargetError
from dlcompiler.ir import Buffer, Expr, IntrinsicCall, Region, Stmt
from dlcompiler.ir.printer import format_buffer
from dlcompiler.passes.base import statements
from dlcompiler.target.fragments import OPERANDS, Fragment

HINT = "tensorize the stages that load it, compute with it and store it with one family of mma"


@dataclass(frozen=True, slots=True)
class Tiles:
    """How a buffer is divided into the tiles of a fragment."""

    fragment: Fragment
    dims: tuple[int, int]
    """The dimensions of the buffer along which rows and columns run."""

    def size(self, dim: int) -> int:
        """Return the extent of a tile along a dimension of the buffer."""
        return self.fragment.shape[self.dims.index(dim)] if dim in self.dims else 1

    def counts(self, buffer: Buffer) -> tuple[int, ...]:
        """Return the number of tiles along each dimension of the buffer."""
        return tuple(n // self.size(dim) for dim, n in enumerate(buffer.static_shape))

    def registers(self, buffer: Buffer) -> int:
        """Return the number of registers that each thread needs for a buffer; [1]."""
        return math.prod(self.counts(buffer)) * self.fragment.registers


def is_of_warp(stmt: object) -> bool:
    """Tell whether a statement is the call of an intrinsic that several threads carry out."""
    return isinstance(stmt, IntrinsicCall) and stmt.intrinsic.threads > 1


def operands_of(call: IntrinsicCall) -> Iterator[tuple[Region, tuple[int, ...], Tiles | None]]:
    """Yield each operand of a warp's intrinsic: its region, its dimensions, and its tiles.

    The dimensions are those along which rows and columns run. An operand in memory has no tiles.
    """
    for (region, dims), operand in zip(call.operands, OPERANDS[str(call.part)], strict=False):
        if operand is None:
            yield region, dims, None
            continue
        rows, columns = reversed(dims) if operand.is_transposed else dims
        fragment = Fragment(operand.matrix, region.buffer.dtype)
        yield region, (rows, columns), Tiles(fragment, (rows, columns))


def fragments_in(stmt: Stmt) -> Mapping[Buffer, Tiles]:
    """Return the buffers that warps hold as fragments, as their first use has them."""
    found: dict[Buffer, Tiles] = {}
    for call in statements(stmt):
        if isinstance(call, IntrinsicCall) and is_of_warp(call):
            for region, _, tiles in operands_of(call):
                if tiles is not None:
                    found.setdefault(region.buffer, tiles)
    return found


def check_fragments(where: str, call: IntrinsicCall, known: Mapping[Buffer, Tiles]) -> None:
    """Refuse a call whose operands are not the tiles that the other calls have.

    Parameters
    ----------
    where
        The operation, for errors.
    call
        A warp's intrinsic.
    known
        What `fragments_in` returns for the kernel.

    Raises
    ------
    TargetError
        The message names the buffer.
    """
    name = call.intrinsic.name
    for region, _, tiles in operands_of(call):
        buffer = region.buffer
        if known.get(buffer) != tiles:
            raise TargetError(
                where, f"{name} uses {buffer.name} in another way than its other intrinsics",
                because="which thread holds an element of a fragment depends on the intrinsic",
                hint=HINT,
            )  # fmt: skip
        if tiles is not None:
            _check_tiles(where, name, region, tiles)


def _check_tiles(where: str, name: str, region: Region, tiles: Tiles) -> None:
    buffer = region.buffer
    if buffer.scope != "local":
        raise TargetError(
            where, f"{name} needs {buffer.name} in registers", got=f"{buffer.scope} memory",
            expected='"local"', because="the threads of a warp hold its tiles together",
            hint='add a stage: s.cache_read(…, "local", …) or s.cache_write(…, "local")',
        )  # fmt: skip
    shape = "x".join(map(str, tiles.fragment.shape))
    if not buffer.is_static or any(n % tiles.size(d) for d, n in enumerate(buffer.static_shape)):
        raise TargetError(
            where, f"{buffer.name} is not a number of whole tiles of {name}",
            got=format_buffer(buffer), expected=f"tiles of {shape}",
        )  # fmt: skip
    for dim, index in enumerate(region.indices):
        if not _is_multiple(index, tiles.size(dim)):
            raise TargetError(
                where, f"{name} would begin inside a tile of {buffer.name}",
                got=f"{index} in dimension {dim}", expected=f"a multiple of {tiles.size(dim)}",
            )  # fmt: skip


def _is_multiple(index: Expr, size: int) -> bool:
    form = Analyzer({}).affine(index)
    return not any(f % size for f in (form.constant, *(t.factor for t in form.terms.values())))
