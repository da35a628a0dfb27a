"""Random expressions: machine code computes what the interpreter does.

Floats are small whole numbers, so that contraction changes nothing.
"""

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

from dlcompiler import dtypes
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    For,
    IfThenElse,
    Load,
    Logical,
    Not,
    PrimFunc,
    Ramp,
    Select,
    Store,
    Var,
    const,
    index_const,
)
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.simulate import interpret
from tests.share import share_of

SIZE, ITERATIONS = 16, 6
DATA = tuple(name for name in dtypes.SCALARS if name not in ("bool", "index"))
INPUTS = {
    name: Buffer(name.upper(), (SIZE,), name) for name in ("bool", "int8", "int64", "float32")
}
I = Var("i")  # noqa: E741
INDEX_OPERATIONS = (
    "add", "sub", "mul", "min", "max", "floordiv", "floormod", "truncdiv", "truncmod",
    "bitand", "bitor", "bitxor",
)  # fmt: skip
INTEGER_OPERATIONS = (*INDEX_OPERATIONS, "shl", "shr")
EXACT_FUNCTIONS = ("abs", "ceil", "floor", "round", "trunc", "fmod", "nextafter")
FLOAT_OPERATIONS = ("add", "sub", "mul", "min", "max")


class Generator:
    """Draws expressions of `lanes` lanes; nodes that were drawn before come up again."""

    def __init__(self, draw, lanes):
        self.draw = draw
        self.lanes = lanes
        self.drawn = {}

    def pick(self, *options):
        return self.draw(st.sampled_from(options))

    def spread(self, scalar):
        return scalar if self.lanes == 1 else Broadcast(scalar, self.lanes)

    def value(self, element, depth):
        """Return an expression of a data dtype, of bool or of index."""
        known = self.drawn.setdefault(element, [])
        if known and self.draw(st.integers(0, 5)) == 0:
            return self.pick(*known)
        if depth == 0 or self.draw(st.integers(0, 7)) == 0:
            result = self.leaf(element)
        elif element == "bool":
            result = self.condition(depth - 1)
        else:
            result = self.operation(element, depth - 1)
        known.append(result)
        return result

    def leaf(self, element):
        if element == "index":
            number = index_const(self.draw(st.integers(-20, 20)))
            if self.lanes == 1:
                return self.pick(I, number)
            stride = index_const(self.draw(st.integers(-3, 3)))
            options = (
                Ramp(self.pick(I, number), stride, self.lanes),
                self.spread(self.pick(I, number)),
            )
            return self.pick(*options)
        if element in INPUTS and self.draw(st.booleans()):
            return self.load(INPUTS[element], 0)
        if element == "bool":
            return self.spread(const(self.draw(st.booleans()), "bool"))
        low, high = (-4, 4) if dtypes.is_float(element) else (-128, 127)
        number = self.draw(st.integers(max(low, 0 if dtypes.is_unsigned(element) else low), high))
        return self.spread(const(number, element))

    def load(self, buffer, depth):
        index = self.value("index", depth)
        size = self.spread(index_const(SIZE))
        wrapped = Load(buffer, (Binary("floormod", index, size),))
        if self.draw(st.booleans()):
            return wrapped
        zero = self.spread(index_const(0))
        inside = Logical("and", Compare("ge", index, zero), Compare("lt", index, size))
        guarded, otherwise = Load(buffer, (index,)), self.value(buffer.dtype, depth)
        if self.draw(st.booleans()):
            return IfThenElse(inside, guarded, otherwise)
        return IfThenElse(Not(inside), otherwise, guarded)

    def condition(self, depth):
        match self.pick("compare", "logical", "not", "load", "cast", "isnan", "likely"):
            case "isnan":
                element = self.pick("float16", "bfloat16", "float32")
                name = self.pick("isnan", "isinf", "isfinite")
                return Call(name, (self.value(element, depth),), self.vector("bool"))
            case "likely":
                return Call("likely", (self.value("bool", depth),), self.vector("bool"))
            case "compare":
                element = self.pick("index", "bool", *DATA)
                op = self.pick("eq", "ne", "lt", "le", "gt", "ge")
                return Compare(op, self.value(element, depth), self.value(element, depth))
            case "logical":
                op = self.pick("and", "or")
                return Logical(op, self.value("bool", depth), self.value("bool", depth))
            case "not":
                return Not(self.value("bool", depth))
            case "load":
                return self.load(INPUTS["bool"], depth)
        return Cast(self.value(self.pick(*DATA), depth), self.vector("bool"))

    def operation(self, element, depth):
        match self.pick(
            "binary", "binary", "cast", "load", "select", "choose", "abs", "spread", "call"
        ):
            case "binary":
                operations = INDEX_OPERATIONS if element == "index" else INTEGER_OPERATIONS
                op = self.pick(*(FLOAT_OPERATIONS if dtypes.is_float(element) else operations))
                return Binary(op, self.value(element, depth), self.value(element, depth))
            case "call" if element == "int32":
                source = self.pick(*(name for name in DATA if dtypes.is_int(name)))
                return Call("clz", (self.value(source, depth),), self.vector(element))
            case "call" if element != "index":
                name = self.pick(*EXACT_FUNCTIONS) if dtypes.is_float(element) else "popcount"
                count = FUNCTIONS[name].arity
                arguments = tuple(self.value(element, depth) for _ in range(count))
                return Call(name, arguments, self.vector(element))
            case "load" if element in INPUTS:
                return self.load(INPUTS[element], depth)
            case "abs" if element != "index" and not dtypes.is_unsigned(element):
                return Call("abs", (self.value(element, depth),), self.vector(element))
            case "select" | "choose" as kind:
                node = Select if kind == "select" else IfThenElse
                sides = self.value(element, depth), self.value(element, depth)
                return node(self.value("bool", depth), *sides)
            case "spread" if self.lanes > 1:
                return Broadcast(Generator(self.draw, 1).value(element, depth), self.lanes)
        if element == "index" or dtypes.is_float(element):
            return Cast(self.value("int8", depth), self.vector(element))
        return Cast(self.value(self.pick(*DATA, "bool", "index"), depth), self.vector(element))

    def vector(self, element):
        return dtypes.with_lanes(element, self.lanes)


@st.composite
def functions(draw, lanes=(1, 4)):
    """Draw ``for i: Y[i, :] = expression``."""
    lanes, element = draw(st.sampled_from(lanes)), draw(st.sampled_from(["bool", *DATA]))
    value = Generator(draw, lanes).value(element, 4)
    out = Buffer("Y", (ITERATIONS, lanes), element)
    zero = index_const(0)
    last = zero if lanes == 1 else Ramp(zero, index_const(1), lanes)
    kind = draw(st.sampled_from(["serial", "parallel"]))
    loop = For(I, index_const(ITERATIONS), kind, Store(out, (I, last), value))
    return PrimFunc("random", (*INPUTS.values(), out), (out,), loop)


def arrays_of(func):
    generator = np.random.default_rng(6)
    for buffer in func.params:
        if buffer.dtype == "bool":
            yield generator.integers(0, 2, buffer.shape).astype(bool)
        else:
            low = -4 if dtypes.is_float(buffer.dtype) else -128
            yield generator.integers(low, -low, buffer.shape).astype(dtypes.to_numpy(buffer.dtype))


def test_random_expressions(build):
    @settings(max_examples=share_of(200))
    @given(functions())
    def check(func):
        note(str(func))
        interpreted, compiled = list(arrays_of(func)), list(arrays_of(func))
        with np.errstate(all="ignore"):
            interpret(func, interpreted)
        build(func)(*compiled)
        # NumPy does not see that a NaN of bfloat16 equals another.
        exact = "float32" if func.outputs[0].dtype == "bfloat16" else compiled[-1].dtype
        np.testing.assert_array_equal(compiled[-1].astype(exact), interpreted[-1].astype(exact))

    check()
