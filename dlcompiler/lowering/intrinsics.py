"""Build calls of intrinsics: their regions, and loops over these that define the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Expr,
    For,
    IntrinsicCall,
    IntrinsicMode,
    Load,
    Origin,
    Reduce,
    Region,
    Stmt,
    Store,
    TensorLoad,
    Var,
    along,
    combine,
    index_const,
    place_in,
    rewrite,
    seq,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.te import TensorIntrin


def intrinsic_statement(
    intrin: TensorIntrin,
    mode: IntrinsicMode,
    regions: Sequence[Region],
    dims: Sequence[tuple[int, ...]],
    origin: Origin,
) -> Stmt:
    """Return the statement of an intrinsic in a mode: a call, or its replacement.

    Parameters
    ----------
    intrin
        The intrinsic.
    mode
        Which of its implementations is used, such as ``update``.
    regions
        The region that it writes, then the regions of its inputs.
    dims
        For each region, the dimension of its buffer that each declared dimension runs along.
    origin
        Where it comes from.

    Returns
    -------
    Stmt
        The call. If the intrinsic has no implementation of mode ``reset``, plain assignments
        replace it; if it has none of mode ``body``, a reset and an update do.
    """
    if mode == "body" and "body" not in intrin.parts:
        modes: tuple[IntrinsicMode, ...] = ("reset", "update")
        return seq(intrinsic_statement(intrin, part, regions, dims, origin) for part in modes)
    write, *reads = (Region(r.buffer, r.indices, r.extents, "r") for r in regions)
    write = Region(write.buffer, write.indices, write.extents, "rw" if mode == "update" else "w")
    touched = (write,) if mode == "reset" else (write, *reads)
    declared = _Declared(intrin, (write, *reads), dims, origin).loops(mode)
    if mode not in intrin.parts:
        return declared
    return IntrinsicCall(
        intrin.lowered, mode, touched, tuple(dims[: len(touched)]), declared, origin
    )


def check_strides(
    where: str, intrin: TensorIntrin, regions: Sequence[Region], dims: Sequence[tuple[int, ...]]
) -> None:
    """Refuse buffers whose strides differ from those that an intrinsic requires.

    The schedule sets the strides of internal buffers, but an argument is always compact.
    """
    for tensor, region, own in zip((intrin.output, *intrin.inputs), regions, dims, strict=True):
        there = along(region.buffer.strides, own)
        for n, wanted in enumerate(intrin.strides.get(tensor, ())):
            if wanted is not None and tensor.shape[n] != 1 and there[n] != wanted:
                raise ScheduleError(
                    where, f"the elements of {region.buffer.name} lie too far apart for "
                    f"{intrin.name}",
                    got=f"a stride of {there[n]} along dimension {own[n]}",
                    expected=str(wanted),
                    hint=f"leave {region.buffer.name} out of the arguments",
                )  # fmt: skip


class _Declared:
    """The declaration of an intrinsic, with its tensors replaced by the regions of a call."""

    def __init__(
        self,
        intrin: TensorIntrin,
        regions: Sequence[Region],
        dims: Sequence[tuple[int, ...]],
        origin: Origin,
    ) -> None:
        op = intrin.op
        self.op = op
        self.origin = origin
        self.variables = {axis.var: Var(axis.name) for axis in (*op.axis, *op.reduce_axis)}
        self.inputs: Mapping[object, tuple[Region, tuple[int, ...]]] = dict(
            zip(intrin.inputs, zip(regions[1:], dims[1:], strict=True), strict=True)
        )
        self.buffer = regions[0].buffer
        place = [self.variables[axis.var] for axis in op.axis]
        self.target = place_in(regions[0], dims[0], place)

    def loops(self, mode: IntrinsicMode) -> Stmt:
        head = self.op.body
        if not isinstance(head, Reduce):
            return self.store(self.value(head), with_reduced=False)
        (identity,) = head.start
        reset = self.store(identity, with_reduced=False)
        if mode == "reset":
            return reset
        values = [self.value(value) for value in head.values]
        (new,) = combine(head.reducer, [Load(self.buffer, self.target)], values)
        update = self.store(new, with_reduced=True)
        return update if mode == "update" else seq((reset, update))

    def store(self, value: Expr, *, with_reduced: bool) -> Stmt:
        body: Stmt = Store(self.buffer, self.target, value, self.origin)
        for axis in reversed((*self.op.axis, *(self.op.reduce_axis if with_reduced else ()))):
            extent = index_const(axis.static_extent)
            body = For(self.variables[axis.var], extent, "serial", body)
        return body

    def value(self, expr: Expr) -> Expr:
        """Return a declared expression in terms of loop variables and the regions' buffers."""

        def rule(node: Node) -> Node:
            if isinstance(node, Var):
                return self.variables.get(node, node)
            if isinstance(node, TensorLoad):
                region, dims = self.inputs[node.tensor]
                return Load(region.buffer, place_in(region, dims, node.indices))
            return node

        return rewrite(expr, rule)
