"""Define sums of products whose indices an equation names: einsum."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.te import Tensor

_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Equation:
    """The names of the dimensions of operands and result."""

    operands: tuple[tuple[str, ...], ...]
    """For each operand the name of each dimension."""
    result: tuple[str, ...]

    @property
    def summed(self) -> tuple[str, ...]:
        """Names of the dimensions that are summed over, in order of appearance."""
        names = dict.fromkeys(name for operand in self.operands for name in operand)
        return tuple(name for name in names if name not in self.result)


def equation_of(text: str, ranks: Sequence[int]) -> Equation:
    """Read an equation for operands of these numbers of dimensions.

    Parameters
    ----------
    text : str
        Letters for the dimensions of each operand, and of the result: ``"bij,bjk->bik"``. ``...``
        stands for the other dimensions, which are broadcast. Without ``->`` the result has the
        letters that occur once, in alphabetical order, behind the dimensions of ``...``.
    ranks : sequence of int
        Number of dimensions of each operand.

    Raises
    ------
    ExpressionError
        If it is not an equation for such operands.

    Examples
    --------
    >>> equation_of("ij,jk", (2, 2)).result
    ('i', 'k')
    >>> equation_of("...i->...", (3,)).operands
    (('.1', '.0', 'i'),)
    """
    plain = text.replace(" ", "")
    left, arrow, right = plain.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks) or not all(map(_TERM.fullmatch, (*terms, right))):
        raise _wrong(text, f"{len(ranks)} operands")
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, width in zip(terms, widths, strict=True):
        if width < 0 or (width and "..." not in term):
            raise _wrong(text, f"operands with {', '.join(map(str, ranks))} dimensions")
    operands = tuple(_names(term, width) for term, width in zip(terms, widths, strict=True))
    most = max((w for t, w in zip(terms, widths, strict=True) if "..." in t), default=0)
    letters = [name for operand in operands for name in operand if "." not in name]
    if not arrow:
        once = sorted(name for name in set(letters) if letters.count(name) == 1)
        result = (*_names("...", most), *once)
    else:
        result = _names(right, most if "..." in right else 0)
    unknown = [name for name in result if "." not in name and name not in letters]
    if unknown or len(set(result)) < len(result):
        raise _wrong(text, "a result with letters of the operands, each once")
    return Equation(operands, result)


def _names(term: str, width: int) -> tuple[str, ...]:
    """Return the name of each dimension; those of ``...`` are numbered from the last."""
    before, dots, after = term.partition("...")
    others = [f".{n}" for n in reversed(range(width))] if dots else []
    return (*before, *others, *after)


def _wrong(text: str, expected: str) -> ExpressionError:
    return ExpressionError(
        "einsum", "not an equation for the operands", got=repr(text), expected=expected
    )


def einsum(equation: Equation, operands: Sequence[Tensor], dtype: str) -> Tensor:
    """Define the sum of the products of elements, over the indices that the result lacks.

    Parameters
    ----------
    equation : Equation
        The names of the dimensions.
    operands : sequence of Tensor
        The factors. A dimension of ``...`` with the extent 1 is repeated.
    dtype : str
        Dtype of the result, to which the factors are converted.
    """
    extents: dict[str, int] = {}
    for names, operand in zip(equation.operands, operands, strict=True):
        for name, extent in zip(names, operand.static_shape, strict=True):
            extents[name] = extent if extents.get(name, 1) == 1 else extents[name]
    axes = {name: over(extents[name], f"k{n}") for n, name in enumerate(equation.summed)}

    def element(*i: Any) -> Any:
        at = dict(zip(equation.result, i, strict=True)) | axes
        product: Any = None
        for names, operand in zip(equation.operands, operands, strict=True):
            places = tuple(
                0 if extent == 1 and extents[name] != 1 else at[name]
                for name, extent in zip(names, operand.static_shape, strict=True)
            )
            factor = operand[places]
            factor = factor if factor.dtype == dtype else factor.astype(dtype)
            product = factor if product is None else product * factor
        return te.sum(product, axis=list(axes.values())) if axes else product

    shape = [extents[name] for name in equation.result]
    return tensor(shape, element, "T_einsum", "einsum")
