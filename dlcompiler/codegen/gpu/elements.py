"""Give each thread of a warp the elements of a tile of sums that it holds: see `fragment_nests`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from dlcompiler.ir import Buffer, For, IntrinsicCall, Stmt, Var, rewrite, seq, walk
from dlcompiler.ir.rewrite import Node, children, map_children
from dlcompiler.passes.branch_on_padding import branches
from dlcompiler.passes.fragment_nests import fragment_nest, of_lane
from dlcompiler.passes.fragments import Tiles, fragments_in
from dlcompiler.passes.merge_thread_loops import ThreadProgram, of_first_thread
from dlcompiler.passes.vectorize_loops import vectorized

_PAIR = 2


def with_elements(
    thread: ThreadProgram, emits: Collection[str]
) -> tuple[ThreadProgram, Mapping[Buffer, Buffer]]:
    """Return a thread that computes with the elements of fragments in its registers.

    Parameters
    ----------
    thread
        What one thread of a launch does.
    emits
        The tensor intrinsics that are instructions, by the names of their emitters.

    Returns
    -------
    The thread, and for each array of registers that it reads the fragment that it is a part of.
    """
    known = fragments_in(thread.body) if "mma" in emits else {}
    lane = thread.axes.get("threadIdx.x")
    if not known or lane is None:
        return thread, {}
    arrays = {
        fragment: Buffer(fragment.name, (tiles.registers(fragment),), fragment.dtype, "local")
        for fragment, tiles in known.items()
        if tiles.fragment.matrix == "c"
    }
    origins = dict(thread.origins)

    def rule(node: Node) -> Node:
        made = _of_lane(node, lane, known, arrays) if isinstance(node, Stmt) else None
        if made is None:
            return node
        of = thread.origins.get(id(node), node)
        assert isinstance(of, Stmt)
        origins.update((id(inner), of) for inner in walk(made) if isinstance(inner, Stmt))
        return made

    body = rewrite(thread.body, rule)
    if body is thread.body:
        return thread, {}
    registers = {array: fragment for fragment, array in arrays.items()}
    return replace(thread, body=body, origins=origins), registers


def _of_lane(
    stmt: Stmt, lane: Var, known: Mapping[Buffer, Tiles], arrays: Mapping[Buffer, Buffer]
) -> Stmt | None:
    """Return what each thread does, if the first one runs nothing but loops over tiles."""
    inner = of_first_thread(stmt, lane)
    if inner is None or not _is_nests(inner, known):
        return None

    def changed(node: Node) -> Node:
        if not isinstance(node, Stmt):
            return node
        nest = fragment_nest(node, known)
        if nest is None:
            return map_children(node, changed)
        pairs = [branches(loop) for loop in of_lane(node, nest, lane, arrays)]
        return seq(vectorized(loop, _PAIR) for loop in pairs if isinstance(loop, For))

    made = changed(inner)
    assert isinstance(made, Stmt)
    return made


def _is_nests(stmt: Stmt, known: Mapping[Buffer, Tiles]) -> bool:
    """Tell whether a statement consists of loops over tiles, under loops and conditions.

    An intrinsic that stores a tile is an instruction already.
    """
    if isinstance(stmt, IntrinsicCall):
        return False
    if fragment_nest(stmt, known) is not None:
        return True
    parts = [part for part in children(stmt) if isinstance(part, Stmt)]
    return bool(parts) and all(_is_nests(part, known) for part in parts)
