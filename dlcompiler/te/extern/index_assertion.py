"""The assertion that an index is inside, with what it reports where it is not."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.arith import Analyzer
from dlcompiler.arith.overflow import limits_of_data
from dlcompiler.errors import MAX_VALUES
from dlcompiler.ir import Assert, Const, Expr, Extent, compare, extent_expr, logical


def index_assertion(
    access: str,
    name: str,
    dimension: int,
    bounds: tuple[Expr, Extent],
    place: Sequence[tuple[str, Expr]],
) -> Assert:
    """Return the assertion that one index of an access is inside.

    Parameters
    ----------
    access
        The access as text: ``T[I[i], j]``.
    name
        Of the tensor or buffer.
    dimension
        Of the index.
    bounds
        The index, and the extent that it must stay below.
    place
        Names and values that say where it happens; those that fit are reported.

    Examples
    --------
    >>> from dlcompiler.ir import Var
    >>> i, n = Var("i"), Var("n")
    >>> print(index_assertion("A[i + 1]", "A", 0, (i + 1, n), [("i", i)]).text)
    A[i + 1] is outside A: index i + 1 in dimension 0 of extent n, at i=i
    """
    index, extent = bounds[0], extent_expr(bounds[1])
    is_inside = (compare("ge", index, 0), compare("lt", index, extent))
    holds = logical("and", *limits_of_data(index, Analyzer({}).interval), *is_inside)
    values = [index] if isinstance(extent, Const) else [index, extent]
    size = extent if isinstance(extent, Const) else "{1}"
    first, shown = len(values), place[: MAX_VALUES - len(values)]
    at = ", ".join(f"{axis}={{{number}}}" for number, (axis, _) in enumerate(shown, first))
    values += [value for _, value in shown]
    message = f"{access} is outside {name}: index {{0}} in dimension {dimension} of extent {size}"
    return Assert(holds, f"{message}, at {at}" if at else message, tuple(values))
