"""Loops over a tile of sums that a warp holds: each thread runs the iterations of its elements.

*Before*, where the first thread of the warp computes what all hold, and *after*, in code::

    for i in range(16):                 for half in unrolled(2):
        for j in range(8):                  for v in vectorized(2):
            C[i, j] = S[i, j]*2.0               C[lane//4 + 8*half, …] = r[half*2 + v]*2.0

S is a fragment (`passes.fragments`); ``r`` are the registers of a thread. The loops are those of
any expression of the sums: an epilogue needs no intrinsic. They must run through a tile from its
first element on, outside the loop over ``threadIdx.x``, and store elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.ir import (
    Allocate,
    Barrier,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    binary,
    index_const,
    rewrite,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node, map_children
from dlcompiler.passes.base import constant_extent
from dlcompiler.passes.fragments import Tiles


@dataclass(frozen=True, slots=True, eq=False)
class FragmentNest:
    """A nest of loops over the elements of a tile."""

    rows: Var
    """The variable that runs through the rows of the tile."""
    columns: Var
    """The variable that runs through its columns."""
    tiles: Tiles
    """How the buffer is divided into tiles."""


def fragment_nest(stmt: Stmt, known: Mapping[Buffer, Tiles]) -> FragmentNest | None:
    """Return the loops over a tile that a statement is; None if it is something else.

    Parameters
    ----------
    stmt
        A statement outside the loop over ``threadIdx.x``.
    known
        What `passes.fragments.fragments_in` returns for the kernel.
    """
    if not isinstance(stmt, For):
        return None
    nodes = list(walk(stmt))
    others = (Allocate, Barrier, IntrinsicCall)
    loops = {node.var: node for node in nodes if isinstance(node, For)}
    loads = [node for node in nodes if isinstance(node, Load) and node.buffer in known]
    if len(loops) != 2 or not loads or any(isinstance(node, others) for node in nodes):
        return None
    if any(isinstance(node, Store) and node.buffer in known for node in nodes):
        return None
    if any(loop.kind != "serial" for loop in loops.values()):
        return None
    nests = [_nest_of(load, known[load.buffer], loops) for load in loads]
    first = nests[0]
    if first is None or any(
        nest is None or (nest.rows, nest.columns) != (first.rows, first.columns) for nest in nests
    ):
        return None
    return first


def _nest_of(load: Load, tiles: Tiles, loops: Mapping[Var, For]) -> FragmentNest | None:
    """Return the loops that run through the tile of a load."""
    if tiles.fragment.matrix != "c":
        return None
    found = []
    for dim, size in zip(tiles.dims, tiles.fragment.shape, strict=True):
        var = _offset_in_tile(Analyzer({}).affine(load.indices[dim]), size, loops)
        extent = None if var is None else constant_extent(loops[var])
        if var is None or extent is None or extent > size:
            return None
        found.append(var)
    others = [index for dim, index in enumerate(load.indices) if dim not in tiles.dims]
    if found[0] is found[1] or any(var in loops for i in others for var in walk(i)):
        return None
    return FragmentNest(found[0], found[1], tiles)


def _offset_in_tile(index: Affine, size: int, loops: Mapping[Var, For]) -> Var | None:
    """Return the loop that runs from the begin of a tile; None if the index is of another form."""
    inner = [term for term in index.terms.values() if term.atom in loops]
    others = [term.factor for term in index.terms.values() if term.atom not in loops]
    if len(inner) != 1 or inner[0].factor != 1 or any(f % size for f in (*others, index.constant)):
        return None
    atom = inner[0].atom
    return atom if isinstance(atom, Var) else None


def of_lane(
    stmt: Stmt, nest: FragmentNest, lane: Expr, registers: Mapping[Buffer, Buffer]
) -> list[Stmt]:
    """Return what a thread does of a nest, as loops over two neighbouring elements each.

    Parameters
    ----------
    stmt
        The nest.
    nest
        Its loops.
    lane
        The number of the thread in its warp.
    registers
        A fragment -> the array of a thread's registers.
    """
    assert isinstance(stmt, For)
    four, fragment = index_const(4), nest.tiles.fragment
    group, within = binary("floordiv", lane, four), binary("floormod", lane, four)
    found: list[Stmt] = []
    for element in range(0, fragment.elements, 2):
        row, _ = fragment.offset(element)
        pair = Var(f"{nest.columns.name}.pair")
        places: dict[Var, Expr] = {
            nest.rows: binary("add", group, index_const(row)),
            nest.columns: binary("add", binary("mul", within, index_const(2)), pair),
        }
        body = _inside(stmt, nest, places, _Registers(registers, nest.tiles, element, pair))
        found.append(For(pair, index_const(2), "vectorized", body, stmt.origin))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Registers:
    """The registers that stand for loads of a fragment."""

    arrays: Mapping[Buffer, Buffer]
    tiles: Tiles
    element: int
    pair: Var

    def read(self, node: Node) -> Node:
        """Return the load of a register in place of the load of an element."""
        if not isinstance(node, Load) or node.buffer not in self.arrays:
            return node
        tile: Expr = index_const(0)
        for dim, count in enumerate(self.tiles.counts(node.buffer)):
            size = self.tiles.size(dim)
            index = Analyzer({}).affine(node.indices[dim])
            number, _ = index.split_by(size)
            tile = binary("add", binary("mul", tile, index_const(count)), number.to_expr())
        first = binary("mul", tile, index_const(self.tiles.fragment.registers))
        own = binary("add", index_const(self.element), self.pair)
        return Load(self.arrays[node.buffer], (binary("add", first, own),))


def _inside(
    stmt: Stmt, nest: FragmentNest, places: Mapping[Var, Expr], registers: _Registers
) -> Stmt:
    """Return the body of the loops for one element."""
    match stmt:
        case For(var, extent, _, body):
            inner = _inside(body, nest, places, registers)
            size = nest.tiles.fragment.shape[var is nest.columns]
            if constant_extent(stmt) == size:
                return inner
            return If(Compare("lt", places[var], extent), inner)
        case Store():
            return substitute(rewrite(stmt, registers.read), places)
        case If() | Let():
            below = map_children(
                stmt,
                lambda node: (
                    _inside(node, nest, places, registers) if isinstance(node, Stmt) else
                    substitute(node, places)
                ),
            )  # fmt: skip
            assert isinstance(below, Stmt)
            return below
    return map_children(
        stmt, lambda n: _inside(n, nest, places, registers) if isinstance(n, Stmt) else n
    )
