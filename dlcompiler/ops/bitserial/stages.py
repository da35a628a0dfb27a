"""The stages between the operands of a bit-serial product and its result.

============  ==================================================================================
``.filled``   the data with zeros up to whole words; only where words would be partly filled
``.planes``   bits of the data in words: the packing, part of each call
``.counts``   for each pair of planes, ``sum of popcount(data & weight)``
``.sums``     ``sum of counts << (p + q)``, in int32
``.totals``   sums of the data, where weights are bipolar
result        the sums; of bipolar weights ``2*sums - (2**b - 1)*totals``
============  ==================================================================================
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from dlcompiler import te
from dlcompiler.ops.bitserial.encoding import DTYPE, RESULT, Encoding
from dlcompiler.ops.helpers import tensor
from dlcompiler.te import Tensor


def filled(data: Tensor, width: int, name: str) -> Tensor:
    """Extend the last dimension by zeros to whole words; unchanged if it has whole words."""
    *lead, terms = data.static_shape
    if terms % width == 0:
        return data

    def element(*i: Any) -> Any:
        return te.if_then_else(i[-1] < terms, data[i], te.const(0, DTYPE))

    return tensor((*lead, -(-terms // width) * width), element, f"{name}.filled")


def sums_of(counts: Tensor, encoding: Encoding, shape: tuple[int, ...], name: str) -> Tensor:
    """Define the sums of products from the counts ``(…, data bit, weight bit, output)``."""

    def element(*i: Any) -> Any:
        *place, v = i
        parts = [
            counts[(*place, p, q, v)] << te.const(p + q, encoding.word)
            for p in range(encoding.data_bits)
            for q in range(encoding.weight_bits)
        ]
        return reduce(add, parts).astype(RESULT)

    return tensor(shape, element, f"{name}.sums")


def value_of(encoding: Encoding, total: Any, of_data: Any) -> Any:
    """Return an element of the result.

    Parameters
    ----------
    encoding : Encoding
        Of the weights.
    total : Expr
        The sum of products with codes.
    of_data : Expr or None
        The sum of the data; None for unipolar weights.
    """
    if of_data is None:
        return total
    return te.const(2, RESULT) * total - te.const(encoding.largest_weight, RESULT) * of_data
