"""Random tensor expressions, for the property tests of this folder."""

import pytest
from hypothesis import strategies as st

from dlcompiler import te
from dlcompiler.te.constant_operands import literal_value

ROWS, COLUMNS, TERMS = 4, 6, 5
_OF_NUMBERS = ["add", "sub", "mul", "maximum", "minimum"]
_OF_INTEGERS = [*_OF_NUMBERS, "floordiv", "floormod", "truncdiv", "truncmod"]


class Maker:
    """Draws expressions over two axes (and a reduction axis) that read the tensors A and B."""

    def __init__(self, draw, features):
        self.draw = draw
        self.features = features
        self.A = te.placeholder((ROWS, COLUMNS), "float32", name="A")
        self.B = te.placeholder((ROWS, COLUMNS), "int32", name="B")
        self.axes = []

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def deeper(self, depth):
        return depth > 0 and self.draw(st.booleans())

    def index(self, extent):
        """An index that stays below `extent`."""
        axis = self.pick(*self.axes)
        forms = ["direct", "shifted", "scaled", "number", "gathered"]
        match self.pick(*forms):
            case "direct":
                return axis % extent
            case "shifted":
                return (axis + self.pick(1, 3)) % extent
            case "scaled":
                return (axis * 2 + self.pick(*self.axes)) // 3 % extent
            case "number":
                return self.pick(*range(extent))
        return self.B[self.axes[0] % ROWS, self.axes[1] % COLUMNS] % extent

    def element(self, tensor):
        return tensor[self.index(ROWS), self.index(COLUMNS)]

    def number(self, depth):
        """An expression of float32."""
        if not self.deeper(depth):
            literal = self.draw(st.floats(-8, 8, width=32).map(lambda v: te.const(v, "float32")))
            return self.pick(self.element(self.A), literal)
        kinds = [*_OF_NUMBERS, "negate", "if", "select", "convert", "divide"]
        kinds += ["guarded"] if "guards" in self.features else []
        kinds += ["exp", "tanh", "abs", "floor"] if "functions" in self.features else []
        kind, below = self.pick(*kinds), depth - 1
        match kind:
            case "negate":
                return -self.number(below)
            case "if":
                return te.if_then_else(
                    self.condition(below), self.number(below), self.number(below)
                )
            case "select":
                return te.select(self.condition(below), self.number(below), self.number(below))
            case "convert":
                return self.integer(below).astype("float32")
            case "divide":
                return self.number(below) / self.pick(2, 0.75, -3)
            case "guarded":
                i, j = self.axes[:2]
                return te.if_then_else(te.all(i >= 1, j < COLUMNS - 2), self.A[i - 1, j + 2], 0.5)
            case "exp" | "tanh" | "abs" | "floor":
                return getattr(te, kind)(self.number(below))
        return self.apply(kind, self.number(below), self.number(below))

    def integer(self, depth):
        """An expression of int32."""
        if not self.deeper(depth):
            literal = te.const(self.draw(st.integers(-(2**31), 2**31 - 1)), "int32")
            return self.pick(self.element(self.B), literal, self.pick(*self.axes).astype("int32"))
        kinds = [*_OF_INTEGERS, "if", "narrow"]
        kinds += ["truncate"] if "decisions" in self.features else []
        kind, below = self.pick(*kinds), depth - 1
        match kind:
            case "if":
                return te.if_then_else(
                    self.condition(below), self.integer(below), self.integer(below)
                )
            case "narrow":
                return self.integer(below).astype("int8").astype("int32")
            case "truncate":
                return self.number(below).astype("int32")
        return self.apply(kind, self.integer(below), self.integer(below))

    def apply(self, kind, a, b):
        match kind:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
        if literal_value(b) == 0 and kind in _OF_INTEGERS[len(_OF_NUMBERS) :]:
            b = te.const(3, "int32")  # a division by the constant 0 is refused
        return getattr(te, kind)(a, b)

    def condition(self, depth):
        if self.deeper(depth):
            combine = self.pick(te.all, te.any)
            return combine(self.condition(depth - 1), self.condition(depth - 1))
        sides = [(self.integer(0), self.integer(0)), (self.axes[0] + 0, self.axes[1] * 1)]
        if "decisions" in self.features:
            sides.append((self.number(0), self.number(0)))
        a, b = self.pick(*sides)
        match self.pick("lt", "le", "eq", "ne"):
            case "lt":
                return a < b
            case "le":
                return a <= b
            case "eq":
                return a == b
        return a != b


@pytest.fixture(scope="session")
def random_tensor():
    """Draw a tensor: ``random_tensor(data, "guards", …)`` gives (tensor, A, B).

    Features: ``guards`` (choices that keep an index inside), ``functions``, ``decisions`` (floats
    compared or made integers), ``reductions``.
    """

    def make(data, *features):
        maker = Maker(data.draw, features)
        reducer = maker.pick(None, te.sum, te.max, te.min) if "reductions" in features else None
        k = te.reduce_axis(maker.pick((0, TERMS), (2, 2 + TERMS), (1, 1)), name="k")

        def element(i, j):
            maker.axes = [i, j] + ([k] if reducer else [])
            kind = maker.pick("number", "number", "integer")
            value = getattr(maker, kind)(3)
            return reducer(value, axis=k) if reducer else value

        return te.compute((ROWS, COLUMNS), element, name="C"), maker.A, maker.B

    return make
