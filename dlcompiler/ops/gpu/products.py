"""The GPU schedule of matmul, dense and batch_matmul."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.gemm.product import Product
from dlcompiler.ops.gpu import definition
from dlcompiler.ops.gpu.common_sums import multiply_together
from dlcompiler.ops.gpu.default import default_of
from dlcompiler.ops.gpu.space import Shape, space_of
from dlcompiler.ops.gpu.tensor_cores import multiply_by_warps
from dlcompiler.ops.gpu.threads import share_elements
from dlcompiler.ops.gpu.tiles import Loops, Operand, multiply_in_tiles
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, PlaceholderOp, Tensor

_THREADS = 128
_FORMS = {
    "tiles": multiply_in_tiles, "warps": multiply_by_warps, "threads": multiply_together,
}  # fmt: skip


def shape_of(workload: Workload) -> Shape:
    """Return the sizes of a workload's product."""
    product = Product.of(workload)
    depth = definition.padded_depth(product.k, product.dtype)
    along_k = product.layout[0] == "N", product.layout[1] == "T" and not product.packed
    rows = product.shapes["A"][-1], product.shapes["B"][-1]
    return Shape(
        product.m, product.n, depth, math.prod(product.batch), product.dtype, product.sums_dtype,
        rows, along_k,
    )  # fmt: skip


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`: see `dlcompiler.ops.gpu.space`."""
    return space_of(workload, shape_of(workload), target)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a model of the GPU prefers: see `dlcompiler.ops.gpu.default`."""
    return default_of(workload, shape_of(workload), target)


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a product on a GPU.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The result: the sums, or what an elementwise expression makes of them.
    cfg : Config
        A config of `space`.
    target : Target
        A GPU.
    """
    (result,) = outs
    sums = anchor_of(s, result)
    *stack, i, j = result.op.axis
    loops = Loops(tuple(stack), i, j, result.static_shape[-1])
    multiply(s, result, lambda: loops, sums, cfg)


def anchor_of(s: Schedule, result: Tensor) -> Tensor:
    """Inline all stages between a result and the sums it is made of; return the sums."""
    wanted = [result]
    while True:
        found = [
            t for tensor in wanted for t in tensor.op.input_tensors if isinstance(t.op, ComputeOp)
        ]
        sums = next((t for t in found if t.op.reduce_axis), None)
        for tensor in found:
            if tensor is not sums:
                s[tensor].compute_inline()
        if sums is not None:
            break
        wanted = found
    for factor in sums.op.input_tensors:
        _inline_producers(s, Operand.of(factor).stage)
    return sums


def _inline_producers(s: Schedule, tensor: Tensor) -> None:
    for read in tensor.op.input_tensors:
        if not isinstance(read.op, PlaceholderOp):
            _inline_producers(s, read)
            s[read].compute_inline()


def multiply(
    s: Schedule, result: Tensor, loops: Callable[[], Loops], sums: Tensor, cfg: Config
) -> None:
    """Compute a product inside the loops of its result, in the form that a config says.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    result : Tensor
        What reads the sums.
    loops : callable
        Makes its loops, where the product is computed in them.
    sums : Tensor
        The product.
    cfg : Config
        A config of `space`.
    """
    operands = [Operand.of(factor) for factor in sums.op.input_tensors]
    if 0 in (*result.static_shape, *operands[0].stage.static_shape):
        _compute_empty(s, result, sums, operands)
    elif cfg["form"] == "threads":
        multiply_together(s, result, loops(), sums, operands, cfg)
    elif cfg["split"] == 1:
        _FORMS[cfg["form"]](s, result, loops(), sums, operands, cfg)
    else:
        _multiply_parts(s, result, sums, operands, cfg)


def multiply_before(s: Schedule, result: Tensor, sums: Tensor, cfg: Config) -> None:
    """Compute all sums, or parts of them, in a kernel before the one of the result.

    The parameters are those of `multiply`. Tiles of the sums then need not be tiles of the result.
    """
    operands = [Operand.of(factor) for factor in sums.op.input_tensors]
    if cfg["form"] != "threads" and cfg["split"] > 1:
        _multiply_parts(s, result, sums, operands, cfg)
        return
    _multiply_in_memory(s, result, sums, operands, cfg)
    share_elements(s[result], result.op.axis, _THREADS)


def _multiply_parts(
    s: Schedule, result: Tensor, sums: Tensor, operands: Sequence[Operand], cfg: Config
) -> None:
    """Compute parts of the sums in blocks of their own, and add them in a second kernel."""
    part, _ = s[sums].split(s[sums].op.reduce_axis[0], nparts=cfg["split"])
    parts = s.rfactor(sums, part, factor_axis=0)
    _multiply_in_memory(s, result, parts, operands, cfg)
    _, thread = share_elements(s[result], result.op.axis, _THREADS)
    s[sums].set_scope("local")
    s[sums].compute_at(s[result], thread)


def _multiply_in_memory(
    s: Schedule, result: Tensor, sums: Tensor, operands: Sequence[Operand], cfg: Config
) -> None:
    """Compute sums, which a kernel before that of the result leaves in memory."""
    # Attached in a loop of one iteration, only what the result needs of them is computed.
    s[sums].compute_at(s[result], s[result].fuse())
    own = s.cache_write(sums, "local")
    *stack, i, j = s[sums].op.axis
    inner = Loops(tuple(stack), i, j, int(sums.shape[-1]) - definition.EXTRA)
    _FORMS[cfg["form"]](s, sums, inner, own, operands, cfg)


def _compute_empty(s: Schedule, result: Tensor, sums: Tensor, operands: Sequence[Operand]) -> None:
    """Compute a product of no terms or of no elements."""
    for operand in operands:
        for stage in (operand.stage, operand.wide):
            if stage is not None:
                s[stage].compute_inline()
    _, thread = share_elements(s[result], result.op.axis, _THREADS)
    s[sums].set_scope("local")
    s[sums].compute_at(s[result], thread)


GPU = DeviceSchedule(space, default_config, schedule, define=definition.define)
