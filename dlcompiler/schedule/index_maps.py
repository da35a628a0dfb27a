"""Index maps of layouts: parse them from text, apply them, and invert them."""

from __future__ import annotations

import ast
import inspect
import itertools
import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler.arith import Analyzer
from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import (
    Binary,
    Const,
    Expr,
    Extent,
    Var,
    as_expr,
    binary,
    cast,
    compare,
    extent_binary,
    extent_expr,
    index_const,
    substitute,
)
from dlcompiler.ir.names import unique_name
from dlcompiler.schedule.inference.relations import ranged
from dlcompiler.schedule.verdict import Illegal, Refused
from dlcompiler.te import AXIS_SEPARATOR
from dlcompiler.te.given_functions import GivenFunctionError, call_given, signature_of
from dlcompiler.te.notation.scan import INDEX_OPERATORS

MAX_TEXT = 2000
FORMS = "sums of axes, their quotients and remainders by numbers: i // 4, i % 4, i*8 + j"


@dataclass(frozen=True)
class IndexMap:
    """Map from an element to its place in a layout: ``lambda i, j: [j // 4, i, j % 4]``."""

    inputs: tuple[Var, ...]
    outputs: tuple[Expr, ...]
    separators: tuple[int, ...] = ()
    """For each `AXIS_SEPARATOR`: the number of outputs before it."""

    def __str__(self) -> str:
        names = ", ".join(var.name for var in self.inputs)
        parts = [str(output) for output in self.outputs]
        for place in reversed(self.separators):
            parts.insert(place, repr(AXIS_SEPARATOR))
        return f"lambda {names}: [{', '.join(parts)}]"

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the place in the layout at which the element ``indices`` is stored."""
        values = dict(zip(self.inputs, indices, strict=True))
        return tuple(substitute(output, values) for output in self.outputs)


@dataclass(frozen=True)
class Inverse:
    """The inverse of an index map: it gives the element that is stored at a place of a layout."""

    extents: tuple[Extent, ...]
    """The shape of the layout."""
    places: tuple[Var, ...]
    values: tuple[Expr, ...]
    """The indices of the element, in terms of `places`."""
    conditions: tuple[Expr, ...]
    """Conditions under which a place holds an element: a layout may be padded."""


def index_map_of(value: Any, names: Sequence[str]) -> IndexMap:
    """Return a map given as a function of the axes `names`, or as its text.

    Raises
    ------
    Refused
        If it takes another number of axes, or does more than index arithmetic.
    """
    if isinstance(value, IndexMap):
        return value
    if isinstance(value, str):
        return _read(value, len(names))
    if not callable(value):
        raise _malformed("not a function of the axes", repr(value))
    try:
        inputs = _inputs_of(value, names)
        result = call_given(value, inputs, "index map", f"a function of {', '.join(names)}")
        outputs = tuple(result) if isinstance(result, list | tuple) else (result,)
        exprs = [None if output is AXIS_SEPARATOR else _index(output) for output in outputs]
    except GivenFunctionError as error:
        raise Refused(
            Illegal(
                "structural",
                "the function of the axes fails",
                got=str(error.got),
                hint=f"it is called with {', '.join(names)}, and may return {FORMS}",
            )
        ) from error.__cause__
    except DLCompilerError as error:
        raise _malformed("the function does more than index arithmetic", str(error)) from None
    return _separated(inputs, exprs)


def _separated(inputs: tuple[Var, ...], items: Sequence[Expr | None]) -> IndexMap:
    """Return the map whose outputs are `items`; each None stands for a separator."""
    ends = [-1, *(n for n, item in enumerate(items) if item is None), len(items)]
    if len(ends) > 2 and any(b - a == 1 for a, b in itertools.pairwise(ends)):
        raise Refused(
            Illegal(
                "structural",
                "a separator has no axis on one of its sides",
                hint="it stands between axes: [i, te.AXIS_SEPARATOR, j]",
            )
        )
    separators = tuple(place - n for n, place in enumerate(ends[1:-1]))
    return IndexMap(inputs, tuple(item for item in items if item is not None), separators)


def _inputs_of(function: Callable[..., Any], names: Sequence[str]) -> tuple[Var, ...]:
    """Return a variable for each axis, named like the parameters of the function."""
    parameters = signature_of(function, "index map").parameters.values()
    own = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_POSITIONAL]
    is_open = len(own) < len(parameters) and len(own) <= len(names)
    if len(own) != len(names) and not is_open:
        raise _wrong_count(len(own), len(names))
    return tuple(Var(name) for name in (*own, *variable_names(names)[len(own) :]))


def variable_names(names: Sequence[str]) -> list[str]:
    """Return different names that are valid as parameters in the text of a function."""
    result: list[str] = []
    for name in names:
        plain = re.sub(r"\W", "_", name)
        result.append(unique_name(f"{plain}_" if keyword.iskeyword(plain) else plain, result))
    return result


def _wrong_count(got: int, expected: int) -> Refused:
    return Refused(
        Illegal(
            "structural",
            "the function takes another number of axes than the tensor has dimensions",
            got=f"{got}",
            hint=f"it must take {expected}",
        )
    )


def _malformed(problem: str, got: str) -> Refused:
    return Refused(Illegal("structural", problem, got=got, hint=f"it may return {FORMS}"))


def _index(value: Any) -> Expr:
    return cast(as_expr(value, "index"), "index")


# -- reading --------------------------------------------------------------------------------------


def _read(text: str, count: int) -> IndexMap:
    """Parse the text of a map. The text is not executed."""
    try:
        tree = ast.parse(text[:MAX_TEXT], mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _malformed("not the text of a function", repr(text)) from None
    match tree:
        case ast.Lambda(args=ast.arguments(args=args), body=ast.List(elts=items)):
            inputs = tuple(Var(arg.arg) for arg in args)
        case _:
            raise _malformed("not the text of a function", repr(text))
    if len(inputs) != count:
        raise _wrong_count(len(inputs), count)
    variables = {var.name: var for var in inputs}
    indices = [None if _is_separator(item) else _read_index(item, variables) for item in items]
    return _separated(inputs, indices)


def _is_separator(tree: ast.expr) -> bool:
    return ast.unparse(tree) == repr(AXIS_SEPARATOR)


def _read_index(tree: ast.expr, variables: dict[str, Var]) -> Expr:
    match tree:
        case ast.Name(id=name) if name in variables:
            return variables[name]
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return index_const(number)
        case ast.BinOp(left, operator, right) if type(operator) in INDEX_OPERATORS:
            a, b = _read_index(left, variables), _read_index(right, variables)
            return binary(INDEX_OPERATORS[type(operator)], a, b)  # type: ignore[arg-type]
    raise _malformed("not index arithmetic", ast.unparse(tree))


# -- inverting ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Digit:
    """The part ``source // divisor % count`` of an input; `count` is None for the highest digit."""

    source: Var
    divisor: Extent
    count: Extent | None


@dataclass(frozen=True)
class _Piece:
    """A digit and the factor by which an output multiplies it."""

    digit: _Digit
    factor: int
    span: Extent
    """The number of values of the digit."""


def inverse_of(index_map: IndexMap, shape: Sequence[Extent]) -> Inverse:
    """Return the inverse of the index map of a tensor of `shape`.

    Raises
    ------
    Refused
        If two elements would share a place, or the form of the map is not supported.
    """
    sizes = dict(zip(index_map.inputs, shape, strict=True))
    analyzer = ranged(sizes)
    outputs = [_pieces(output, sizes, analyzer) for output in index_map.outputs]
    found: dict[_Digit, Expr] = {}
    places, extents, conditions = [], [], []
    for n, pieces in enumerate(outputs):
        place = Var(f"place{n}")
        places.append(place)
        extents.append(_extent(pieces))
        for piece, above in itertools.zip_longest(pieces, pieces[1:]):
            value = binary("floordiv", place, index_const(piece.factor))
            if above is not None:
                room = above.factor // piece.factor
                value = binary("floormod", value, index_const(room))
                if room != piece.span:
                    conditions.append(compare("lt", value, extent_expr(piece.span)))
            if piece.digit in found:
                raise _not_invertible(f"{_text(piece.digit)} is kept twice")
            found[piece.digit] = value
    values = []
    for var, extent in sizes.items():
        value, is_exact = _value(var, extent, found)
        values.append(value)
        if not is_exact:
            conditions.append(compare("lt", value, extent_expr(extent)))
    return Inverse(tuple(extents), tuple(places), tuple(values), tuple(conditions))


def _pieces(output: Expr, sizes: dict[Var, Extent], analyzer: Analyzer) -> list[_Piece]:
    """Split an output into digits with factors, in ascending order of the factors."""
    affine = analyzer.affine(output)
    if affine.constant:
        raise _not_invertible(f"{output} begins at {affine.constant}")
    pieces = []
    for term in affine.terms.values():
        digit = _digit(term.atom)
        if digit is None or digit.source not in sizes or term.factor < 1:
            raise Refused(
                Illegal(
                    "limit", "the layout is not understood", got=str(output),
                    hint=f"it may have {FORMS}",
                )
            )  # fmt: skip
        pieces.append(_Piece(digit, term.factor, _span(digit, sizes[digit.source])))
    pieces.sort(key=lambda piece: piece.factor)
    if pieces and pieces[0].factor != 1:
        raise _not_invertible(f"{output} leaves gaps")
    for low, high in itertools.pairwise(pieces):
        room, rest = divmod(high.factor, low.factor)
        if rest or not isinstance(low.span, int) or room < low.span:
            raise _not_invertible(f"{output} mixes {_text(low.digit)} and {_text(high.digit)}")
    return pieces


def _digit(atom: Expr) -> _Digit | None:
    match atom:
        case Var():
            return _Digit(atom, 1, None)
        case Binary("floordiv", Var() as var, d) if (size := _size(d)) is not None:
            return _Digit(var, size, None)
        case Binary("floormod", Var() as var, m) if (size := _size(m)) is not None:
            return _Digit(var, 1, size)
        case Binary("floormod", Binary("floordiv", Var() as var, Const(d, _)), Const(m, _)):
            return _Digit(var, int(d), int(m)) if d > 0 and m > 0 else None
        case Binary("floordiv", Binary("floormod", Var() as var, Const(m, _)), Const(d, _)):
            is_whole = d > 0 and m > 0 and m % d == 0
            return _Digit(var, int(d), int(m) // int(d)) if is_whole else None
    return None


def _size(value: Expr) -> Extent | None:
    """Return a divisor: a positive number, or a symbol (symbols are positive)."""
    if isinstance(value, Const):
        return int(value.value) if value.value > 0 else None
    return value if isinstance(value, Var) and value.is_symbol else None


def _span(digit: _Digit, extent: Extent) -> Extent:
    """Return the number of values of a digit."""
    if digit.count is not None:
        return digit.count
    up = extent_binary("add", extent, extent_binary("sub", digit.divisor, 1))
    return extent_binary("floordiv", up, digit.divisor)


def _extent(pieces: list[_Piece]) -> Extent:
    return extent_binary("mul", pieces[-1].factor, pieces[-1].span) if pieces else 1


def _value(var: Var, extent: Extent, found: dict[_Digit, Expr]) -> tuple[Expr, bool]:
    """Return an index as a sum of digits, and whether this sum is always below its extent."""
    # A symbol stands behind the numbers: it can only follow what it is the size of.
    digits = sorted(
        (d for d in found if d.source is var),
        key=lambda d: (0, d.divisor) if isinstance(d.divisor, int) else (1, 0),
    )
    if not digits:
        if isinstance(extent, int) and extent <= 1:
            return index_const(0), extent == 1  # of no elements, none is at 0
        raise _not_invertible(f"{var.name} is not kept")
    value: Expr = index_const(0)
    reach: Extent = 1
    for digit in digits:
        if not _is_same(digit.divisor, reach):
            raise _not_invertible(f"of {var.name}, {_text(digit)} does not follow what is kept")
        term = binary("mul", found[digit], extent_expr(digit.divisor))
        value = binary("add", value, term)
        reach = extent_binary("mul", digit.divisor, _span(digit, extent))
    if isinstance(reach, int) and isinstance(extent, int):
        if reach < extent:
            raise _not_invertible(f"{var.name} is kept up to {reach} only")
        return value, reach == extent
    if digits[-1].count is not None:
        raise _not_invertible(f"{var.name} is kept up to {reach} only")
    return value, _is_same(digits[-1].divisor, 1)


def _is_same(a: Extent, b: Extent) -> bool:
    """Tell whether two sizes are the same number, or the same symbol."""
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def _text(digit: _Digit) -> str:
    quotient = "" if _is_same(digit.divisor, 1) else f" // {digit.divisor}"
    rest = f" % {digit.count}" if digit.count is not None else ""
    return f"{digit.source.name}{quotient}{rest}"


def _not_invertible(why: str) -> Refused:
    return Refused(
        Illegal(
            "semantic",
            "two elements would share a place of the layout, or one element would have none",
            because=why,
            hint="keep each part of each index once: i // 4 and i % 4 of i",
        )
    )
