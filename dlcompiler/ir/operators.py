"""Define Python's operators on expressions, axes and tensors."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir.operations import BINARY, COMPARISONS

if TYPE_CHECKING:
    from dlcompiler.ir.expr import Expr

BUILDERS: dict[str, Callable[..., Any]] = {}
"""What each operator builds: filled by `dlcompiler.ir.expr`, whose nodes have these operators."""


_NUMPY_NAMES = {
    "power": "pow",
    **{
        row.arrays.__name__: name
        for name, row in (*BINARY.items(), *COMPARISONS.items())
        if row.symbol
    },
}
"""The operators of Python, by the name of the NumPy function that carries out each."""


def operate(operation: str, *operands: Any) -> Any:
    """Apply a Python operator to numbers and expressions, or element by element to tensors."""
    return apply(operation, BUILDERS[operation], *operands)


def apply(operation: str, element: Callable[..., Any], *operands: Any) -> Any:
    """Apply `element` to numbers and expressions, or element by element to tensors."""
    for operand in operands:
        if isinstance(operand, Elementwise):
            return operand.elementwise(operation, operands, element)
    return element(*operands)


def is_operand(value: Any) -> bool:
    """Tell whether `value` can be an operand of an expression."""
    if isinstance(value, Elementwise):
        return False
    return isinstance(value, Operators | numbers.Real | np.generic) or hasattr(value, "__as_expr__")


class Operators:
    """Python operators for everything that stands for an expression: nodes, axes, tensors."""

    __slots__ = ()
    __hash__ = object.__hash__

    def same_as(self, other: object) -> bool:
        """Tell whether `other` is the same object, because ``==`` builds a condition."""
        return self is other

    def __add__(self, other: Any) -> Any:
        return operate("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return operate("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return operate("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return operate("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return operate("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return operate("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return operate("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return operate("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return operate("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return operate("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return operate("floormod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return operate("floormod", other, self)

    def __and__(self, other: Any) -> Any:
        return operate("bitand", self, other)

    def __rand__(self, other: Any) -> Any:
        return operate("bitand", other, self)

    def __or__(self, other: Any) -> Any:
        return operate("bitor", self, other)

    def __ror__(self, other: Any) -> Any:
        return operate("bitor", other, self)

    def __xor__(self, other: Any) -> Any:
        return operate("bitxor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return operate("bitxor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return operate("shl", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return operate("shl", other, self)

    def __rshift__(self, other: Any) -> Any:
        return operate("shr", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return operate("shr", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        power = operate("pow", self, other)
        return power if modulo is None else power % modulo

    def __rpow__(self, other: Any) -> Any:
        return operate("pow", other, self)

    def __invert__(self) -> Any:
        return operate("invert", self)

    def __abs__(self) -> Any:
        return operate("abs", self)

    def __pos__(self) -> Any:
        return operate("pos", self)

    def __neg__(self) -> Any:
        return operate("neg", self)

    def __lt__(self, other: Any) -> Any:
        return operate("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return operate("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return operate("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return operate("ge", self, other)

    def __eq__(self, other: Any) -> Any:
        if not is_operand(other) and not isinstance(other, np.ndarray):
            return NotImplemented
        return operate("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        if not is_operand(other) and not isinstance(other, np.ndarray):
            return NotImplemented
        return operate("ne", self, other)

    def __bool__(self) -> bool:
        raise ExpressionError(
            "truth value of an expression",
            "it is known only when the program runs",
            got=str(self),
            hint="combine conditions with te.all(a, b) or te.any(a, b), choose with "
            "te.if_then_else(condition, a, b)",
        )

    # Conversions to Python numbers raise an error with a hint; without these methods Python's own
    # error would name neither the expression nor the alternative.

    def __int__(self) -> int:
        raise _unknown("int() of an expression", self, "convert in the program: x.astype('int32')")

    def __float__(self) -> float:
        raise _unknown(
            "float() of an expression", self,
            "convert in the program, x.astype('float32'); te.sqrt, te.exp … take expressions where "
            "those of math take numbers",
        )  # fmt: skip

    def __complex__(self) -> complex:
        raise _unknown(
            "complex() of an expression", self, "there are no complex numbers in a program"
        )

    def __index__(self) -> int:
        raise _unknown(
            "an expression in the place of an integer", self,
            "range(), a size and the index of a list take numbers: use an axis in place of a loop "
            "of Python, and te.if_then_else to choose",
        )  # fmt: skip

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute ``np.float32(2) * x`` by the operators of `x`; refuse other NumPy functions."""
        name = ufunc.__name__
        if method == "__call__" and name in _NUMPY_NAMES and not options:
            operands = tuple(map(_as_number, inputs))
            is_comparison = name in ("equal", "not_equal") and isinstance(self, Elementwise)
            if is_comparison and not any(isinstance(x, np.ndarray) for x in operands):
                return name == "not_equal"  # as a tensor beside a number of Python
            return operate(_NUMPY_NAMES[name], *operands)
        raise _no_function(name, self)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Compute ``np.shape(A)`` and ``np.ndim(A)``; refuse other NumPy functions."""
        name = function.__name__
        if name in ("shape", "ndim") and hasattr(self, name):
            return getattr(self, name)
        raise _no_function(name, self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return an array of objects, for ``np.sum([x, y])``; refuse arrays of numbers."""
        if dtype is not None and np.dtype(dtype) != object:
            raise _no_array(self)
        made = np.empty(1, object)
        made[0] = self  # of an array of no dimensions, NumPy would ask for __array__ again
        return made.reshape(())

    def __matmul__(self, other: Any) -> Any:
        raise _no_product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        raise _no_product(other, self)

    def __round__(self, ndigits: object = None) -> Any:
        raise _unknown("round() of an expression", self, "te.round rounds in the program")

    def __floor__(self) -> Any:
        raise _unknown("math.floor() of an expression", self, "te.floor rounds in the program")

    def __ceil__(self) -> Any:
        raise _unknown("math.ceil() of an expression", self, "te.ceil rounds in the program")

    def __trunc__(self) -> Any:
        raise _unknown("math.trunc() of an expression", self, "te.trunc rounds in the program")

    def equal(self, other: Any) -> Any:
        """Return the condition ``self == other``; code written for classic TVM uses this name."""
        return operate("eq", self, other)

    def astype(self, dtype: Any) -> Any:
        """Convert to `dtype`, given by name or as a NumPy dtype."""
        return operate("cast", self, dtype)


def _as_number(operand: Any) -> Any:
    """Return the number in a NumPy array of no dimensions; return others unchanged."""
    return operand[()] if isinstance(operand, np.ndarray) and not operand.ndim else operand


def _unknown(what: str, expr: Operators, hint: str) -> ExpressionError:
    return ExpressionError(
        what,
        "it is known only when the program runs",
        got=str(expr),
        hint=hint,
    )


def _no_function(name: str, expr: Operators) -> ExpressionError:
    hint = f"functions of te take expressions, as te.{name} where there is one; those of topi "
    return _unknown(f"np.{name} of an expression", expr, f"{hint}take tensors")


def _no_array(expr: Operators) -> ExpressionError:
    return _unknown(
        "an array of NumPy from an expression", expr,
        "te.evaluate, or a kernel that is built, gives the values of a tensor; an array of objects "
        "holds expressions: np.array([x, y], dtype=object)",
    )  # fmt: skip


def _no_product(a: Any, b: Any) -> ExpressionError:
    return ExpressionError(
        "@ of expressions", "a product of matrices is not one operation on elements",
        got=f"{a} @ {b}", hint="te.sum(A[i, k] * B[k, j], axis=k) in a te.compute, or topi.matmul",
    )  # fmt: skip


class Elementwise(Operators):
    """Base class of tensors, on which operators work element by element.

    ``==`` compares by identity, so that ``in`` and ``.index`` work on lists of tensors.
    """

    __slots__ = ()
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__

    def elementwise(
        self, operation: str, operands: Sequence[Any], element: Callable[..., Expr]
    ) -> Any:
        """Apply `element` to the elements of `operands`; at least one operand is a tensor."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Refuse the conversion to an array, because NumPy would wrap the tensor as one element."""
        if dtype is None:
            raise _no_array(self)
        return super().__array__(dtype, copy)

    def astype(self, dtype: Any) -> Any:
        """Convert each element to `dtype`."""
        name = dtypes.as_dtype(dtype)
        return self.elementwise("cast", (self,), lambda value: BUILDERS["cast"](value, name))
