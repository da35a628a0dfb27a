"""Check that a GPU can carry out the tensor intrinsics of a program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dlcompiler.errors import TargetError
from dlcompiler.ir import (
    Assert,
    Buffer,
    For,
    IntrinsicCall,
    Load,
    PrimFunc,
    Stmt,
    Store,
    is_thread,
    walk,
    walk_statements,
)
from dlcompiler.ir.rewrite import children
from dlcompiler.passes.base import constant_extent
from dlcompiler.passes.fragment_nests import fragment_nest
from dlcompiler.passes.fragments import HINT, Tiles, check_fragments, fragments_in, is_of_warp
from dlcompiler.target import Target
from dlcompiler.target.gpus import INSTRUCTIONS


def check_intrinsics(func: PrimFunc, target: Target) -> None:
    """Refuse intrinsics that a processor has no instruction for, and misplaced ones of a warp.

    For a target whose processor is not known, such as ``opencl``, an intrinsic is the loops of its
    declaration.

    Parameters
    ----------
    func
        A program as code would be generated from it.
    target
        A target of kind ``"gpu"``.

    Raises
    ------
    TargetError
        The message names the intrinsic.
    """
    where = f"build {func.name} for {target.name}"
    calls = [node for node in walk_statements(func.body) if isinstance(node, IntrinsicCall)]
    for call in calls:
        if target.cpu and call.part in INSTRUCTIONS and call.part not in target.emits:
            major, minor = INSTRUCTIONS[str(call.part)]
            raise TargetError(
                where, f"the processor has no instruction for {call.intrinsic.name}",
                got=target.cpu, expected=f"sm_{major}{minor} or later",
                hint="leave the step tensorize out, or choose another target",
            )  # fmt: skip
        if target.cpu and call.part in INSTRUCTIONS and not call.intrinsic.is_shipped:
            raise TargetError(
                where, f"{call.intrinsic.name} is declared with the emitter {call.part}",
                expected="statements, or an intrinsic of this package: te.tensor_intrin(name)",
                because="the simulator computes the declaration, and would not find that the "
                "instruction computes something else",
            )  # fmt: skip
    if any(map(is_of_warp, calls)):
        known = fragments_in(func.body)
        for call in filter(is_of_warp, calls):
            check_fragments(where, call, known)
        _check_use(where, func.body, known)
        _check_places(where, func.body, known)


def _check_use(where: str, stmt: Stmt, known: Mapping[Buffer, Tiles]) -> None:
    """Refuse accesses to single elements of a fragment, but those of loops over a whole tile."""
    if is_of_warp(stmt) or fragment_nest(stmt, known) is not None:
        return
    for part in children(stmt):
        if isinstance(part, Stmt):
            _check_use(where, part, known)
    found: list[Load | Store] = [stmt] if isinstance(stmt, Store) else []
    found += (
        node
        for part in children(stmt)
        if not isinstance(part, Stmt)
        for node in walk(part)
        if isinstance(node, Load)
    )
    for access in found:
        if access.buffer in known:
            raise TargetError(
                where, f"an element of {access.buffer.name} is accessed, which a warp holds as a "
                "fragment", got=str(access).strip(),
                because="each thread of the warp has a part of its elements", hint=HINT,
            )  # fmt: skip


def _check_places(
    where: str, stmt: Stmt, known: Mapping[Buffer, Tiles], x: For | None = None
) -> None:
    """Refuse calls of a warp's intrinsic where a part of the warp would not come."""
    if isinstance(stmt, For) and stmt.kind == "threadIdx.x":
        x = stmt
    if x is not None and fragment_nest(stmt, known) is not None:
        raise TargetError(
            where, f"loops over a tile of a fragment are inside the threads of {x.var.name}",
            because="each thread of the warp has a part of the tile's elements",
            hint="leave the loops of their stage off threadIdx.x",
        )  # fmt: skip
    if isinstance(stmt, For) and is_thread(stmt.kind) and any(map(is_of_warp, walk(stmt))):
        _check_nest(where, stmt)
    if is_of_warp(stmt) and x is not None:
        assert isinstance(stmt, IntrinsicCall)
        raise TargetError(
            where, f"{stmt.intrinsic.name} is inside the threads of {x.var.name}",
            because=f"{stmt.intrinsic.threads} threads along x carry it out together",
            hint="leave the loops of its stage, and those around it, off threadIdx.x",
        )  # fmt: skip
    for part in children(stmt):
        if isinstance(part, Stmt):
            _check_places(where, part, known, x)


def _check_nest(where: str, nest: For) -> None:
    name, threads = next(
        (call.intrinsic.name, call.intrinsic.threads)
        for call in filter(is_of_warp, walk(nest))
        if isinstance(call, IntrinsicCall)
    )
    refuse = partial(TargetError, where)
    for node in walk(nest):
        if isinstance(node, Assert):
            raise refuse(
                f"a check stands beside {name}", got=node.text,
                because="a thread whose check fails would not take part in it",
                hint="prove the check unnecessary: bound the index, or pad the array",
            )  # fmt: skip
        if isinstance(node, For) and node.kind == "threadIdx.x":
            count = constant_extent(node)
            if count is None or count > threads:
                raise refuse(
                    f"{name} is of one warp, and a block has more threads along x",
                    got=f"{node.var.name}: {node.extent}", expected=f"at most {threads}",
                    hint="bind the loops of further warps to threadIdx.y",
                )  # fmt: skip
