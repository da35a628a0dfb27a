"""How numbers of few bits are encoded: as bit planes, whose bits are packed in words.

A number of ``b`` bits has ``b`` planes; plane ``n`` has its bit of value ``2**n``. The bits of one
plane of 32 or 64 neighbouring numbers form a word. The number 5, 0, 3 of three bits are, with the
first number in the last bit::

    plane 0   …101      plane 1   …100      plane 2   …001

A product of two numbers is ``sum over p, q of bit_p(a) * bit_q(w) * 2**(p + q)``, so that a sum of
products needs only ``popcount(plane_p(a) & plane_q(w)) << (p + q)`` of all words.

========== =================================================================================
encoding   values of weights of ``b`` bits
========== =================================================================================
unipolar   ``code``: a bit stands for 0 or 1; from 0 to ``2**b - 1``
bipolar    ``2*code - (2**b - 1)``: a bit stands for -1 or 1; the odd numbers from
           ``-(2**b - 1)`` to ``2**b - 1``
========== =================================================================================

Data are always unipolar, so that 0 is the padding of images. Bipolar weights cost no more products:
``sum a*(2*code - m) = 2*sum a*code - m*sum a``.

**Source:** M. Cowan and others, "Automating generation of low precision deep learning operators",
arXiv:1810.11066, section 3; T. Chen and others, OSDI 2018, section 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops.rounding import Array
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

MAX_BITS = 4
"""Most bits of a number; [1]."""
ENCODINGS = ("unipolar", "bipolar")
WORDS = ("uint64", "uint32")
DTYPE, RESULT = "uint8", "int32"
"""Dtype of numbers before they are packed, and of results, which wrap."""
BLOCKS = (8, 16, 32)
_NARROW_PAIRS = 8
"""Pairs of planes up to which 16 outputs are computed side by side: more need too many sums."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of the operands of a product."""

    data_bits: int
    weight_bits: int
    weights: str
    """One of `ENCODINGS`."""
    word: str
    """Dtype of the words."""
    block: int
    """Outputs whose packed weights lie side by side."""

    @staticmethod
    def of(workload: Workload) -> Encoding:
        """Return the encoding of a workload."""
        p: Any = workload.as_dict()
        return Encoding(p["data_bits"], p["weight_bits"], p["weights"], p["word"], p["block"])

    @property
    def width(self) -> int:
        """Bits in a word; [1]."""
        return dtypes.bits(self.word)

    @property
    def is_bipolar(self) -> bool:
        """Whether a bit of a weight stands for -1 or 1."""
        return self.weights == "bipolar"

    @property
    def largest_weight(self) -> int:
        """The largest code of a weight; [1]."""
        return (1 << self.weight_bits) - 1

    def words(self, terms: int) -> int:
        """Return the words that the bits of so many numbers take; [1]."""
        return -(-terms // self.width)

    def values(self, codes: Array) -> Array:
        """Return the int64 values of weights from their codes; higher bits of codes are ignored."""
        plain: Array = codes.astype(np.int64) & self.largest_weight
        return 2 * plain - self.largest_weight if self.is_bipolar else plain


def checked(
    where: str, *, terms: int, outputs: int, data_bits: int, weight_bits: int, weights: str,
    word: str, block: int,
) -> dict[str, int | str]:  # fmt: skip
    """Check the parameters of an encoding, and choose those that are not given.

    Parameters
    ----------
    where : str
        Name of the operator.
    terms : int
        Numbers along the packed dimension; [1].
    outputs : int
        Results for the same data; [1].
    data_bits, weight_bits : int
        From 1 to `MAX_BITS`; [1].
    weights : {"unipolar", "bipolar"}
        See the module.
    word : {"", "uint64", "uint32"}
        ``""``: the one that leaves fewer bits unused, and of two equal ones the longer.
    block : int
        0: 16 outputs, or 8 where there are fewer outputs or many pairs of planes.

    Raises
    ------
    TuningError
        If one is not valid.
    """
    for name, bits in (("data_bits", data_bits), ("weight_bits", weight_bits)):
        if type(bits) is not int or not 1 <= bits <= MAX_BITS:
            raise TuningError(where, f"{name} is not a number of bits", got=repr(bits),
                              expected=f"an int from 1 to {MAX_BITS}")  # fmt: skip
    choices: tuple[tuple[str, object, tuple[object, ...]], ...] = (
        ("weights", weights, ENCODINGS),
        ("word", word, ("", *WORDS)),
        ("block", block, (0, *BLOCKS)),
    )
    for name, value, allowed in choices:
        if value not in allowed:
            raise TuningError(where, f"{name} is not one of the choices", got=repr(value),
                              expected=", ".join(map(repr, allowed)))  # fmt: skip
    if not word:
        word = min(WORDS, key=lambda each: -(-terms // dtypes.bits(each)) * dtypes.bits(each))
    if not block:
        is_narrow = outputs <= BLOCKS[0] or data_bits * weight_bits > _NARROW_PAIRS
        block = BLOCKS[0] if is_narrow else BLOCKS[1]
    return {"data_bits": data_bits, "weight_bits": weight_bits, "weights": weights,
            "word": str(word), "block": block}  # fmt: skip


def drawn(shape: tuple[int, ...], bits: int, generator: np.random.Generator) -> Array:
    """Return random numbers of so many bits."""
    return generator.integers(0, 1 << bits, shape, dtype=np.uint8)


def packed(codes: Array, bits: int, word: str) -> Array:
    """Pack the last dimension of numbers into words.

    Parameters
    ----------
    codes : array
        Of shape ``(…, k)``. Bits beyond the lowest ones are ignored.
    bits : int
        Of each number; [1].
    word : str
        Dtype of the words.

    Returns
    -------
    array
        Of shape ``(…, ceil(k / width), bits)``; missing numbers are 0.

    Examples
    --------
    >>> packed(np.array([5, 0, 3], "uint8"), 3, "uint32")
    array([[5, 4, 1]], dtype=uint32)
    """
    width, kind = dtypes.bits(word), np.dtype(word)
    missing = -codes.shape[-1] % width
    whole = np.pad(codes.astype(np.uint8), [(0, 0)] * (codes.ndim - 1) + [(0, missing)])
    planes = [np.packbits(whole >> n & 1, axis=-1, bitorder="little") for n in range(bits)]
    words = [np.ascontiguousarray(plane).view(kind.newbyteorder("<")) for plane in planes]
    return np.stack(words, axis=-1).astype(kind)


def packed_weight(encoding: Encoding, codes: Array) -> Array:
    """Pack the codes of weights of shape ``(o, k, …)`` for the kernels.

    Returns
    -------
    array
        Of shape ``(ceil(o / block), words, …, weight_bits, block)``; missing outputs are 0.
    """
    block = encoding.block
    last = np.moveaxis(codes, 1, -1)
    whole = np.pad(last, [(0, -codes.shape[0] % block)] + [(0, 0)] * (codes.ndim - 1))
    words = packed(whole, encoding.weight_bits, encoding.word)
    blocks = words.reshape(len(words) // block, block, *words.shape[1:])
    taps = range(2, codes.ndim)
    # (blocks, block, …, words, bits) -> (blocks, words, …, bits, block)
    order = (0, codes.ndim, *taps, codes.ndim + 1, 1)
    return np.ascontiguousarray(blocks.transpose(order))


def packed_shape(encoding: Encoding, weight: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of `packed_weight` for codes of a shape."""
    outputs, terms, *taps = weight
    blocks = -(-outputs // encoding.block)
    return blocks, encoding.words(terms), *taps, encoding.weight_bits, encoding.block


def bit_of(number: Any, plane: Any, place: Any, word: str) -> Any:
    """Return a bit of a number at its place in a word.

    Parameters
    ----------
    number : Expr
        Of `DTYPE`.
    plane, place : Expr
        Which bit of the number, and of the word.
    word : str
        Dtype of the word.
    """
    wide = number.astype(word)
    return ((wide >> plane.astype(word)) & te.const(1, word)) << place.astype(word)


def ones(tensor: Tensor, place: tuple[Any, ...], other: Any = None) -> Any:
    """Return how many bits of a word are 1, or of a word and another one."""
    value = tensor[place]
    return te.popcount(value if other is None else value & other)
