"""The operator bitserial_dense: rows of numbers of 1 to 4 bits by weights of 1 to 4 bits.

The data are uint8, of which the lowest ``data_bits`` bits count; they are packed into words in each
call. Weights are codes of ``weight_bits`` bits, packed ahead (`Operator.prepack`). A bit of a
weight stands for 0 or 1 (``unipolar``), or for -1 or 1 (``bipolar``): see
`dlcompiler.ops.bitserial`. Results are int32. Sums of products are counts of bits of
``data & weight``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference, by_device, given_weight
from dlcompiler.ops.bitserial.encoding import (
    DTYPE,
    RESULT,
    Encoding,
    bit_of,
    checked,
    drawn,
    ones,
    packed_shape,
    packed_weight,
)
from dlcompiler.ops.bitserial.stages import filled, sums_of, value_of
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.rounding import Array
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

NAME = "bitserial_dense"
MAX_EXTENT = 1 << 20


def workload(
    *,
    m: int,
    n: int,
    k: int,
    data_bits: int = 1,
    weight_bits: int = 1,
    weights: str = "unipolar",
    word: str = "",
    block: int = 0,
) -> Workload:
    """Return the workload of `bitserial_dense`.

    Parameters
    ----------
    m, n, k : int
        The data are ``(m, k)`` of uint8, of which the lowest bits count; the weights are ``(n, k)``
        codes of uint8, packed before the calls; the result is ``(m, n)`` of int32, and wraps.
    data_bits, weight_bits : int
        Bits of a number, 1 to 4; [1].
    weights : {"unipolar", "bipolar"}
        What a bit of a weight stands for: 0 or 1, or -1 or 1.
    word : {"", "uint64", "uint32"}
        Dtype of packed bits; by default the one that leaves fewer bits unused.
    block : int
        Outputs that are computed together: 8, 16 or 32; 0: by the number of bits.
    """
    for name, extent in (("m", m), ("n", n), ("k", k)):
        if type(extent) is not int or not 0 <= extent <= MAX_EXTENT:
            raise TuningError(NAME, f"{name} is not an extent", got=repr(extent),
                              expected=f"an int from 0 to {MAX_EXTENT}")  # fmt: skip
    found = checked(NAME, terms=k, outputs=n, data_bits=data_bits, weight_bits=weight_bits,
                    weights=weights, word=word, block=block)  # fmt: skip
    return Workload.of(NAME, m=m, n=n, k=k, **found)


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, the packed ``weight``, and ``result``; see `stages`."""
    m, n, k = (int(workload[name]) for name in "mnk")
    encoding = Encoding.of(workload)
    data = te.placeholder((m, k), DTYPE, "data")
    shape = packed_shape(encoding, (n, k))
    weight = te.placeholder(shape, encoding.word, "weight")
    planes = _planes(filled(data, encoding.width, NAME), encoding)
    blocks, words, _, block = shape
    step = over(words, "w")

    def count(j: Any, i: Any, p: Any, q: Any, v: Any) -> Any:
        return te.sum(ones(planes, (i, step, p), weight[j, step, q, v]), axis=step)

    pairs = encoding.data_bits, encoding.weight_bits
    counts = tensor((blocks, m, *pairs, block), count, f"{NAME}.counts")
    sums = sums_of(counts, encoding, (blocks, m, block), NAME)
    totals = _totals(planes, encoding) if encoding.is_bipolar else None

    def element(i: Any, j: Any) -> Any:
        total = sums[j // block, i, j % block]
        return value_of(encoding, total, None if totals is None else totals[i])

    return data, weight, tensor((m, n), element, "result", f"{NAME}:MN")


def _planes(data: Tensor, encoding: Encoding) -> Tensor:
    m, terms = data.static_shape
    width = encoding.width
    t = over(width, "t")

    def element(i: Any, w: Any, p: Any) -> Any:
        return te.sum(bit_of(data[i, w * width + t], p, t, encoding.word), axis=t)

    return tensor((m, terms // width, encoding.data_bits), element, f"{NAME}.planes")


def _totals(planes: Tensor, encoding: Encoding) -> Tensor:
    m, words, bits = planes.static_shape
    step, plane = over(words, "w"), over(bits, "p")

    def element(i: Any) -> Any:
        bit = ones(planes, (i, step, plane)).astype(RESULT) << plane.astype(RESULT)
        return te.sum(bit, axis=[step, plane])

    return tensor((m,), element, f"{NAME}.totals")


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the inputs with the codes of weights ``(n, k)`` packed."""
    codes = given_weight(workload, arrays, (int(workload["n"]), int(workload["k"])))
    return {**arrays, "weight": packed_weight(Encoding.of(workload), codes)}


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs and the exact result."""
    encoding, generator = Encoding.of(workload), np.random.default_rng(seed)
    m, n, k = (int(workload[name]) for name in "mnk")
    data = drawn((m, k), encoding.data_bits, generator)
    weight = drawn((n, k), encoding.weight_bits, generator)
    plain = {"data": data, "weight": weight}
    made = (data.astype(np.int64) @ encoding.values(weight).T).astype(RESULT)
    bound = {"result": np.zeros(made.shape)}
    return Reference(prepack(workload, plain), {"result": made}, bound, plain)


BITSERIAL_DENSE = Operator(
    NAME, workload, define, reference,
    by_device({"cpu": "dlcompiler.ops.bitserial.schedule:CPU"}), prepack,
)  # fmt: skip
