"""Random expressions of all dtypes whose result is one and the same in every evaluation."""

from __future__ import annotations

import operator

from dlcompiler import dtypes, te
from dlcompiler.te.constant_operands import literal_value
from tests.scalars.agreement import DATA, edge_values

_COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
_CONDITIONS = (te.all, te.any, te.bitwise_and, te.bitwise_or, te.bitwise_xor)
_INTEGERS = (
    *(operator.add, operator.sub, operator.mul, te.minimum, te.maximum, te.floordiv, te.floormod),
    *(te.truncdiv, te.truncmod, te.left_shift, te.right_shift),
    *(te.bitwise_and, te.bitwise_or, te.bitwise_xor),
)
_DIVISIONS = (te.floordiv, te.floormod, te.truncdiv, te.truncmod)
_REFUSING = (*_DIVISIONS, te.left_shift, te.right_shift)
"""Operations that refuse some constants: their second operand is none."""
# No product, which may be fused with a sum, and no extremum, which may be either of 0 and -0.
_FLOATS = (operator.add, operator.sub, operator.truediv, te.nextafter, te.fmod)
_OF_ONE = {
    "int": (te.bitwise_not, te.abs, te.popcount, te.clz, operator.neg),
    "float": (te.abs, te.floor, te.ceil, te.trunc, te.round, te.sqrt, operator.neg),
}


class Expressions:
    """Draws expressions, often of one operand twice, or of a constant at the end of a dtype.

    Parameters
    ----------
    choose : random.Random
        What decides.
    loads : mapping of str to Expr
        An operand of each dtype.
    """

    def __init__(self, choose, loads):
        self.choose = choose
        self.loads = loads

    def of(self, dtype, depth):
        """Return an expression of a dtype with at most so many operations inside each other."""
        if depth == 0:
            return self.loads[dtype] if self.choose.random() < 0.7 else self._constant(dtype)
        kind = self.choose.random()
        if kind < 0.2:
            return self.of(self.choose.choice(DATA), depth - 1).astype(dtype)
        if kind < 0.3:
            choice = self.choose.choice((te.select, te.if_then_else))
            sides = [self.of(dtype, depth - 1) for _ in range(2)]
            return choice(self._condition(depth - 1), *sides)
        if dtypes.is_bool(dtype):
            return self._condition(depth)
        a, is_float = self.of(dtype, depth - 1), dtypes.is_float(dtype)
        if kind < 0.45:
            return self.choose.choice(_OF_ONE["float" if is_float else "int"])(a).astype(dtype)
        operands = [a, self._beside(a, dtype, depth - 1)]
        self.choose.shuffle(operands)
        operation = self.choose.choice(_FLOATS if is_float else _INTEGERS)
        if operation in _REFUSING and literal_value(operands[1]) is not None:
            operands[1] = self.loads[dtype]
        return operation(*operands)

    def _condition(self, depth):
        if depth == 0:
            return self.loads["bool"]
        if self.choose.random() < 0.7:
            dtype = self.choose.choice(DATA)
            a = self.of(dtype, depth - 1)
            return self.choose.choice(_COMPARISONS)(a, self._beside(a, dtype, depth - 1))
        a = self._condition(depth - 1)
        b = self._beside(a, "bool", depth - 1)
        return self.choose.choice(_CONDITIONS)(a, te.bitwise_not(b))

    def _beside(self, a, dtype, depth):
        kind = self.choose.random()
        if kind < 0.2:
            return a
        return self._constant(dtype) if kind < 0.5 else self.of(dtype, depth)

    def _constant(self, dtype):
        return te.const(self.choose.choice(edge_values(dtype).tolist()), dtype)


def drawn(choose, depth=3):
    """Return a function from elements, one of each dtype of `DATA`, to a random expression."""
    dtype, inside, seed = choose.choice(DATA), choose.randint(1, depth), choose.random()

    def function(*elements):
        # Seeded, since a function may be called more than once.
        loads = dict(zip(DATA, elements, strict=True))
        return Expressions(type(choose)(seed), loads).of(dtype, inside)

    return function
