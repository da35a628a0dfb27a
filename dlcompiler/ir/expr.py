"""Expressions of the loop IR, and the operators that build them.

Long because the nodes carry Python's operators, and these build nodes.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypeGuard,
    TypeVar,
    dataclass_transform,
)

import numpy as np

from dlcompiler import dtypes
from dlcompiler.display import render
from dlcompiler.errors import ExpressionError, shown_number
from dlcompiler.ir.operations import (
    BINARY,
    COMPARISONS,
    DIVISIONS,
    BinaryOp,
    CompareOp,
    LogicalOp,
    fold_index,
)
from dlcompiler.ir.operators import BUILDERS, Operators
from dlcompiler.records import slot_setters

if TYPE_CHECKING:
    from dlcompiler.ir.stmt import Buffer

AxisKind: TypeAlias = Literal["data", "reduce", "scan"]
Extent: TypeAlias = "int | Expr"
"""A number of iterations or elements: a number where it is known, else an index expression."""
T = TypeVar("T")

MAX_POWER = 64
MAX_INDEX_SHIFT = 62


class Expr(Operators):
    """A node of an expression. `dtype` is its type, such as ``float32`` or ``float32x8``."""

    __slots__ = ()
    dtype: str

    def __str__(self) -> str:
        return render("expr", self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


# A node is compared by identity and never by its fields: shared sub-trees would make a generated
# __eq__ exponential, and 1 == 1.0 == True. `structural_equal` compares by value.
@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def node(cls: type[T]) -> type[T]:
    """Make a class of nodes: frozen, slotted, compared by identity."""
    return dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)


_set = object.__setattr__


@node
class Const(Expr):
    """A literal: `bool`, `int` or `float` with its dtype."""

    value: bool | int | float
    dtype: str

    def __init__(self, value: bool | int | float, dtype: str) -> None:
        _set_value(self, value)
        _set_dtype(self, dtype)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __index__(self) -> int:
        return int(self.value) if isinstance(self.value, int) else Expr.__index__(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is not None and np.dtype(dtype) == object:
            return Expr.__array__(self, dtype, copy)
        return np.array(self.value, dtype)


_set_value, _set_dtype = slot_setters(Const)


@node
class Var(Expr):
    """A scalar variable; loop variables have the dtype ``index``.

    The value of a symbol (`is_symbol`) comes from the caller: from the shapes of arrays, or as an
    argument.
    """

    name: str
    dtype: str = "index"
    is_symbol: bool = False


@node
class Binary(Expr):
    """An arithmetic operation on two operands of one dtype."""

    op: BinaryOp
    a: Expr
    b: Expr
    dtype: str = field(init=False)

    def __init__(self, op: BinaryOp, a: Expr, b: Expr) -> None:
        _set_op(self, op)
        _set_a(self, a)
        _set_b(self, b)
        _set_result(self, a.dtype)


_set_op, _set_a, _set_b, _set_result = slot_setters(Binary)


@node
class Compare(Expr):
    """A comparison of two operands of one dtype."""

    op: CompareOp
    a: Expr
    b: Expr
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", dtypes.with_lanes("bool", dtypes.lanes(self.a.dtype)))

    def __bool__(self) -> bool:
        """Compare two variables by identity, so that ``in`` and ``.index`` work on lists."""
        if self.op in ("eq", "ne") and isinstance(self.a, Var) and isinstance(self.b, Var):
            return (self.a is self.b) == (self.op == "eq")
        return Operators.__bool__(self)


@node
class Logical(Expr):
    """``and`` or ``or`` of two conditions; the second is evaluated only if it is needed."""

    op: LogicalOp
    a: Expr
    b: Expr
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", self.a.dtype)


@node
class Not(Expr):
    """The negation of a condition."""

    value: Expr
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", self.value.dtype)


@node
class Cast(Expr):
    """A conversion to another dtype."""

    value: Expr
    dtype: str


@node
class Select(Expr):
    """A choice that evaluates both sides; it can be vectorized."""

    condition: Expr
    a: Expr
    b: Expr
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", self.a.dtype)


@node
class IfThenElse(Expr):
    """A choice that evaluates only the chosen side, so that its condition may guard a load."""

    condition: Expr
    a: Expr
    b: Expr
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", self.a.dtype)


@node
class Call(Expr):
    """A pure function of scalars, by name (``exp``, ``sqrt`` …)."""

    name: str
    args: tuple[Expr, ...]
    dtype: str


@node
class Load(Expr):
    """One element (or, with vector indices, several) of a buffer.

    Under a `predicate`, a vector of conditions, the other lanes are 0 and read nothing.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    predicate: Expr | None = None
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", dtypes.with_lanes(self.buffer.dtype, lanes_of(self.indices)))


@node
class Ramp(Expr):
    """The vector ``base, base + stride, …`` of `lanes` elements."""

    base: Expr
    stride: Expr
    lanes: int
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", dtypes.with_lanes(self.base.dtype, self.lanes))


@node
class Broadcast(Expr):
    """The vector of `lanes` copies of `value`."""

    value: Expr
    lanes: int
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", dtypes.with_lanes(self.value.dtype, self.lanes))


class TensorHandle(Protocol):
    """The properties of a tensor that the IR uses; `te.Tensor` has them."""

    @property
    def name(self) -> str:
        """Name of the tensor."""

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extent of each dimension."""

    @property
    def dtype(self) -> str:
        """Type of an element."""


@node
class TensorLoad(Expr):
    """One element of a tensor; lowering replaces it by a load from a buffer."""

    tensor: TensorHandle
    indices: tuple[Expr, ...]
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", dtypes.with_lanes(self.tensor.dtype, lanes_of(self.indices)))


@dataclass(frozen=True, slots=True)
class Range:
    """The values that an axis takes."""

    min: int
    """The first value."""
    extent: Extent
    """Number of values."""


class Axis(Operators):
    """A dimension that a stage iterates over: a data axis, a reduction axis or a scan's time axis.

    Axes are compared by identity. In an expression an axis stands for its variable `var`.
    """

    __slots__ = ("extent", "id", "kind", "lineage", "name", "start", "var")

    def __init__(
        self,
        name: str,
        extent: Extent,
        kind: AxisKind,
        *,
        start: int = 0,
        id: str = "",
        lineage: object | None = None,
    ) -> None:
        self.name = name
        self.start = start
        """Value of the axis in its first iteration; its variable counts from 0."""
        self.extent = extent
        """Number of iterations when it was created; [1]."""
        self.kind: AxisKind = kind
        self.id = id
        """Unique in its history: derived from (parent state, step, position); '' for axes of te."""
        self.lineage = lineage
        """The history that owns an axis made by a schedule step; None for an axis of te."""
        self.var = Var(name)

    def __as_expr__(self) -> Expr:
        return binary("add", self.var, self.start) if self.start else self.var

    def __repr__(self) -> str:
        return f"Axis({self.name}, extent={self.extent}, {self.kind})"

    @property
    def static_extent(self) -> int:
        """Number of iterations; raises an error if it depends on symbols."""
        if not isinstance(self.extent, int):
            raise ExpressionError(
                f"extent of {self.name}", "it is known only when the program runs",
                got=str(self.extent), hint="give the symbols values first: te.specialize",
            )  # fmt: skip
        return self.extent

    @property
    def dom(self) -> Range:
        """The range of values that the axis takes."""
        return Range(self.start, self.extent)


@dataclass(frozen=True, eq=False)
class Reducer:
    """A way to combine partial results of one or several values.

    Either `op`, an operation on single values, or `results`: expressions of `lhs` and `rhs`, the
    variables for the values of two partial results. `dlcompiler.te.reducers.laws` tells whether
    their order matters.
    """

    name: str
    op: BinaryOp | None = None
    lhs: tuple[Var, ...] = ()
    rhs: tuple[Var, ...] = ()
    results: tuple[Expr, ...] = ()
    identities: tuple[Expr, ...] = ()
    """Identities of `results`: the result of a reduction over no points."""

    def identity(self, dtype: str) -> Const:
        """Return the identity of `op`: the value that leaves any other unchanged."""
        match self.op:
            case "add":
                return const(0, dtype)
            case "mul":
                return const(1, dtype)
            case "min":
                return const(dtypes.max_value(dtype), dtype)
            case "max":
                return const(dtypes.min_value(dtype), dtype)
        raise AssertionError(self.op)

    def identity_of(self, values: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the identity for each of `values`, which one reduction combines together."""
        if self.op is not None:
            return tuple(self.identity(value.dtype) for value in values)
        return self.identities


@node
class Reduce(Expr):
    """A reduction: combine `values` over all points of `axes` where `condition` holds.

    The reduction starts from `init`, if given, else from the reducer's identity. A reducer of
    several values has several results, which are outputs of one operation; this node is result
    number `index`.
    """

    reducer: Reducer
    values: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    condition: Expr | None = None
    init: tuple[Expr, ...] = ()
    index: int = 0
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        _set(self, "dtype", self.values[self.index].dtype)

    @property
    def value(self) -> Expr:
        """The expression whose values are combined to this result."""
        return self.values[self.index]

    @property
    def start(self) -> tuple[Expr, ...]:
        """The initial values of the results."""
        return self.init or self.reducer.identity_of(self.values)


# -- building ---------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, bool) or isinstance(value, numbers.Real)


def _python_number(value: Any) -> Any:
    """Convert a NumPy number to a Python number, because not all are `numbers.Real`."""
    return value.item() if isinstance(value, np.generic) else value


def lanes_of(indices: Sequence[Expr]) -> int:
    """Return the number of lanes of an access with these indices; 1 for scalar indices."""
    for index in indices:
        if index.dtype != "index":
            return max([dtypes.lanes(each.dtype) for each in indices])
    return 1


def const(value: Any, dtype: Any) -> Const:
    """Make a literal of `dtype`.

    Raises
    ------
    ExpressionError
        If `dtype` cannot hold `value`: an integer that is out of range or not whole, or a finite
        number that would become infinite.
    """
    value, dtype = _python_number(value), dtypes.as_dtype(dtype)
    if not _is_number(value):
        raise ExpressionError("literal", "not a number", got=repr(value))
    if dtypes.is_bool(dtype):
        if value not in (0, 1):
            raise ExpressionError(
                f"literal {shown_number(value)}", "does not fit bool", got=shown_number(value),
                expected="0 or 1",
                hint="compare it: x != 0",
            )  # fmt: skip
        return Const(bool(value), dtype)
    if dtypes.is_float(dtype):
        high = dtypes.LARGEST[dtypes.element(dtype)]
        if -high <= value <= high or value != value or value in (math.inf, -math.inf):
            return Const(float(value), dtype)
        raise _does_not_fit(value, dtype, -high, high)
    if not (isinstance(value, numbers.Integral) or float(value).is_integer()):
        raise ExpressionError(
            f"literal {value!r}", f"not an integer, as {dtype} needs", got=repr(value)
        )
    low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
    if not dtypes.is_index(dtype) and not low <= value <= high:
        raise _does_not_fit(value, dtype, low, high)
    return Const(int(value), dtype)


def _does_not_fit(value: Any, dtype: str, low: float, high: float) -> ExpressionError:
    return ExpressionError(
        f"literal {shown_number(value)}",
        f"does not fit {dtype}",
        got=shown_number(value),
        expected=f"{low} to {high}",
        hint="cast the other operand to a wider type with .astype(…)",
    )


def index_const(value: int) -> Const:
    """Make a literal of dtype ``index``."""
    return Const(value, "index")


def as_expr(value: Any, like: str | None = None) -> Expr:
    """Return `value` as an expression.

    A Python or NumPy number becomes a literal of dtype `like`, the dtype of the other operand. But
    a fractional number becomes ``float32`` if `like` is an integer dtype. Without `like`, an int
    becomes ``int32`` and a float ``float32``.
    """
    if isinstance(value, Expr):
        return value
    if hasattr(value, "__as_expr__"):
        expr: Expr = value.__as_expr__()
        return expr
    value = _python_number(value)
    if isinstance(value, bool):
        return Const(value, "bool") if like is None else const(value, like)
    if isinstance(value, numbers.Integral):
        return const(int(value), like if like not in (None, "bool") else "int32")
    if isinstance(value, numbers.Real):
        return const(float(value), like if like and dtypes.is_float(like) else "float32")
    raise ExpressionError(
        "expression",
        "cannot be used in an expression",
        got=f"{value!r} ({type(value).__name__})",
        expected="an expression, an axis, or a number",
        hint="index a tensor to use its elements: A[i, j]" if hasattr(value, "shape") else None,
    )


def as_index(value: Any, where: str) -> Expr:
    """Return an integer as an expression of dtype ``index``; `where` begins the error message."""
    if isinstance(value, bool | np.bool_):
        raise ExpressionError(where, "a bool is not an index", got=repr(value))
    expr = as_expr(value, "index" if isinstance(value, numbers.Integral) else None)
    element = dtypes.element(expr.dtype)
    if element == "index":
        return expr
    if dtypes.is_float(element) or dtypes.is_bool(element):
        raise ExpressionError(where, "an index must be an integer", got=f"{expr} ({element})")
    return cast(expr, "index")


def promoted(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Convert both operands to one dtype and one number of lanes."""
    if isinstance(a, Operators):
        a = as_expr(a)
        b = as_expr(b, dtypes.element(a.dtype))
    else:
        b = as_expr(b)
        a = as_expr(a, dtypes.element(b.dtype))
    if a.dtype == b.dtype:
        return a, b
    lanes = max(dtypes.lanes(a.dtype), dtypes.lanes(b.dtype))
    dtype = dtypes.promote(dtypes.element(a.dtype), dtypes.element(b.dtype))
    return _widen(cast(a, dtype), lanes), _widen(cast(b, dtype), lanes)


def _widen(value: Expr, lanes: int) -> Expr:
    return Broadcast(value, lanes) if lanes > 1 and dtypes.lanes(value.dtype) == 1 else value


def negate(value: Any) -> Expr:
    """Build the negation of a number."""
    expr = as_expr(value)
    element = dtypes.element(expr.dtype)
    # 0.0 - x is 0.0 for x = 0.0; -0.0 - x is -0.0, as the negation must be.
    zero = const(-0.0 if dtypes.is_float(element) else 0, element)
    return binary("sub", zero, expr)


def binary(op: BinaryOp, a: Any, b: Any) -> Expr:
    """Build an arithmetic expression; operands are promoted to one dtype.

    On conditions ``&`` and ``|`` are ``and`` and ``or``, and ``^`` is ``!=``.

    Raises
    ------
    ExpressionError
        If the operands are conditions, or floats where integers are needed.
    """
    a, b = promoted(a, b)
    element = dtypes.element(a.dtype)
    if dtypes.is_bool(element):
        if op == "bitxor":
            return Compare("ne", a, b)
        if op in ("bitand", "bitor"):
            return Logical("and" if op == "bitand" else "or", a, b)
        raise ExpressionError(
            f"{op} of conditions",
            "arithmetic on bool is not defined",
            got=f"{a} and {b}",
            hint="combine with te.all/te.any, or convert with .astype('int32')",
        )
    if op == "div" and not dtypes.is_float(element):
        element = "float32"
        a, b = (cast(x, dtypes.with_lanes(element, dtypes.lanes(x.dtype))) for x in (a, b))
    if not BINARY[op].takes(element):
        raise ExpressionError(
            f"{op} of floats", "defined for integers only", got=f"{a} and {b} ({element})",
            hint="te.floor(a / b) and te.fmod(a, b) are for floats" if op in DIVISIONS else None,
        )  # fmt: skip
    if element == "index" and op in ("shl", "shr"):
        return _index_shift(op, a, b)
    if element == "index" and isinstance(a, Const) and isinstance(b, Const):
        return index_const(fold_index(op, int(a.value), int(b.value)))
    if element == "index" and op == "bitand" and _is_mask(b):
        return Binary("floormod", a, index_const(int(b.value) + 1))
    return Binary(op, a, b)


def _is_mask(value: Expr) -> TypeGuard[Const]:
    """Tell whether this is a constant 2**k - 1, a mask of the lowest bits."""
    if not isinstance(value, Const) or value.value < 0:
        return False
    return int(value.value) & int(value.value) + 1 == 0


def _index_shift(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    """Build the shift of an index by a constant as a product or a floor division."""
    if not isinstance(b, Const) or not 0 <= b.value <= MAX_INDEX_SHIFT:
        raise ExpressionError(
            "shift of an index",
            "the distance is not a small constant",
            got=f"{a} and {b}",
            expected=f"0 to {MAX_INDEX_SHIFT}",
            hint="convert it: i.astype('int64')",
        )
    return binary("mul" if op == "shl" else "floordiv", a, 2 ** int(b.value))


def power(a: Any, b: Any) -> Expr:
    """Build ``a**b``.

    An integer to the power of a Python int from 0 to 64 is a product of integers, which wraps. A
    float to the power of 2 is a product. All other powers are calls of `pow`; it converts integers
    to ``float32``.
    """
    b = _python_number(b)
    if isinstance(b, int) and not isinstance(b, bool):
        base = as_expr(a)
        is_integer = dtypes.is_int(base.dtype) or dtypes.is_index(base.dtype)
        if (is_integer and 0 <= b <= MAX_POWER) or (b == 2 and dtypes.is_float(base.dtype)):
            return _integer_power(base, b)
    a, b = promoted(a, b)
    if dtypes.is_bool(a.dtype):
        raise ExpressionError("pow of conditions", "takes numbers", got=f"{a} and {b}")
    if not dtypes.is_float(a.dtype):
        a, b = cast(a, "float32"), cast(b, "float32")
    return Call("pow", (a, b), a.dtype)


def _integer_power(base: Expr, exponent: int) -> Expr:
    """Build an integer power by repeated squaring; the squares are shared nodes."""
    result: Expr | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else binary("mul", result, base)
        exponent >>= 1
        base = binary("mul", base, base) if exponent else base
    return const(1, base.dtype) if result is None else result


def invert(value: Any) -> Expr:
    """Build ``~value``: the complement of an integer, the negation of a condition."""
    expr = as_expr(value)
    element = dtypes.element(expr.dtype)
    if dtypes.is_bool(element):
        return Not(expr)
    if element == "index":
        return binary("sub", -1, expr)
    if dtypes.is_float(element):
        raise ExpressionError(
            "~ of a float", "defined for integers only", got=f"{expr} ({element})"
        )
    ones = dtypes.max_value(element) if dtypes.is_unsigned(element) else -1
    return binary("bitxor", expr, const(ones, element))


def absolute(value: Any) -> Expr:
    """Build the absolute value; the smallest signed integer wraps to itself."""
    expr = as_expr(value)
    if dtypes.is_bool(expr.dtype):
        raise ExpressionError("abs of a condition", "takes a number", got=str(expr))
    if dtypes.is_float(expr.dtype):
        return Call("abs", (expr,), expr.dtype)
    return expr if dtypes.is_unsigned(expr.dtype) else binary("max", expr, -expr)


def compare(op: CompareOp, a: Any, b: Any) -> Expr:
    """Build a comparison; operands are promoted to one dtype."""
    a, b = promoted(a, b)
    return Compare(op, a, b)


def condition(value: Any, operation: str) -> Expr:
    """Return `value` as a condition, refusing a Python bool.

    A Python bool is nearly always a comparison that Python has already evaluated, such as
    ``i == 0 and j == 0``. Accepting it would silently drop the condition.
    """
    if isinstance(value, bool | np.bool_):
        raise ExpressionError(
            operation,
            "the condition is a Python bool, decided before the program runs",
            got=repr(value),
            expected="a comparison of axes or tensor elements",
            hint="use te.all(a, b) and te.any(a, b) instead of 'and' and 'or'; te.const(True, "
            "'bool') if a constant is meant",
        )
    expr = as_expr(value)
    if dtypes.element(expr.dtype) != "bool":
        raise ExpressionError(
            operation,
            "the condition is not a bool",
            got=f"{expr} ({expr.dtype})",
            hint="compare it: x != 0",
        )
    return expr


def logical(op: LogicalOp, *values: Any) -> Expr:
    """Join conditions with ``and`` or ``or``."""
    if not values:
        raise ExpressionError(f"te.{'all' if op == 'and' else 'any'}", "no condition given")
    exprs = [condition(value, f"te.{'all' if op == 'and' else 'any'}") for value in values]
    result = exprs[0]
    for expr in exprs[1:]:
        result = Logical(op, result, expr)
    return result


def cast(value: Any, dtype: Any) -> Expr:
    """Convert `value` to the element type `dtype`, keeping its lanes."""
    expr, dtype = as_expr(value), dtypes.as_dtype(dtype)
    target = dtypes.with_lanes(dtypes.element(dtype), dtypes.lanes(expr.dtype))
    if expr.dtype == target:
        return expr
    if isinstance(expr, Const) and isinstance(expr.value, int) and expr.dtype == "index":
        return const(expr.value, target)
    return Cast(expr, target)


BUILDERS.update((op, partial(binary, op)) for op in BINARY)
BUILDERS.update((op, partial(compare, op)) for op in COMPARISONS)
BUILDERS.update(
    {
        "neg": negate,
        "pos": as_expr,
        "abs": absolute,
        "invert": invert,
        "pow": power,
        "cast": cast,
    }
)
