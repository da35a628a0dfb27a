"""The operators dense_packed and batch_matmul_packed: products of matrices of int8 blocks.

Each is a convolution of images of one row with a 1 × 1 kernel: the rows of the matrix are the
columns of the image. The matrices of a batch are groups of channels.
"""

from __future__ import annotations

from dlcompiler.ops.base import Operator, by_device
from dlcompiler.ops.packed.blocks import STANDARD, Blocks, check_range, check_whole
from dlcompiler.ops.packed.extents import BATCH_MATMUL, DENSE
from dlcompiler.ops.packed.reference import reference
from dlcompiler.ops.packed.sums import define
from dlcompiler.ops.packed.tail import checked_tail
from dlcompiler.ops.packed.weights import prepack
from dlcompiler.space import Workload


def dense_workload(*, m: int, n: int, k: int, block: str = str(STANDARD), **tail: int) -> Workload:
    """Return the workload of a dense layer of int8 blocks: m rows, k inputs, n outputs.

    Parameters
    ----------
    m : int
        Rows, a multiple of the blocks' batch.
    n, k : int
        Outputs and inputs, multiples of those of blocks.
    block : str
        Batch, outputs and inputs of a block.
    **tail
        ``shift``, ``bias``, ``residual``, ``relu``: see `tail.Tail`.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    own = _checked(DENSE, m, n, k, block)
    return Workload.of(DENSE, **own, **checked_tail(DENSE, **tail))


def batch_matmul_workload(
    *, batch: int, m: int, n: int, k: int, block: str = str(STANDARD), **tail: int
) -> Workload:
    """Return the workload of products of batches of matrices, (m, k) by the transpose of (n, k).

    The data is ``(1, batch * k / ci, 1, m / b, b, ci)``, which is as ``(batch, k / ci, m / b, b,
    ci)`` lies in memory; weights and results are alike.

    Parameters
    ----------
    batch : int
        Number of products.
    m, n, k, block, **tail
        See `dense_workload`.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    check_range(BATCH_MATMUL, 1, batch=batch)
    own = {"batch": batch, **_checked(BATCH_MATMUL, m, n, k, block)}
    return Workload.of(BATCH_MATMUL, **own, **checked_tail(BATCH_MATMUL, **tail))


def _checked(op: str, m: int, n: int, k: int, block: str) -> dict[str, int | str]:
    blocks = Blocks.of(op, block)
    check_range(op, 1, m=m, n=n, k=k)
    check_whole(op, blocks.batch, m=m)
    check_whole(op, blocks.outputs, n=n)
    check_whole(op, blocks.inputs, k=k)
    return {"m": m, "n": n, "k": k, "block": str(blocks)}


DENSE_PACKED = Operator(
    DENSE, dense_workload, define, reference,
    by_device({"accelerator": "dlcompiler.ops.packed.schedule:SCHEDULE"}), prepack,
)  # fmt: skip
BATCH_MATMUL_PACKED = Operator(
    BATCH_MATMUL, batch_matmul_workload, define, reference,
    by_device({"accelerator": "dlcompiler.ops.packed.schedule:SCHEDULE"}), prepack,
)  # fmt: skip
