"""The table of operations: complete, and each column means what the others mean."""

import itertools
from typing import get_args

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.errors import InternalError
from dlcompiler.ir import Binary, Buffer, Compare, Load, PrimFunc, Store, index_const, verify_func
from dlcompiler.ir.operations import BINARY, COMPARISONS, BinaryOp, CompareOp, fold_index
from dlcompiler.runtime import formulas

NUMBERS = (-(2**70), -7, -2, -1, 0, 1, 2, 7, 2**70)
OPERATIONS = {**BINARY, **COMPARISONS}


def _pairs(op):
    for a, b in itertools.product(NUMBERS, repeat=2):
        if op in ("shl", "shr"):
            if 0 <= b <= 7:
                yield a, b
        elif b or (not (BINARY.get(op) and BINARY[op].is_division) and op != "div"):
            yield a, b


def test_each_operation_has_a_row():
    assert tuple(BINARY) == get_args(BinaryOp)
    assert tuple(COMPARISONS) == get_args(CompareOp)


@pytest.mark.parametrize("op", [op for op, row in OPERATIONS.items() if row.symbol])
def test_the_symbol_is_python_s_operator(op):
    symbol, numbers = OPERATIONS[op].symbol, OPERATIONS[op].numbers
    for a, b in _pairs(op):
        assert eval(f"a {symbol} b", {"a": a, "b": b}) == numbers(a, b), (a, b)


def test_divisions_toward_zero():
    for a, b in _pairs("truncdiv"):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert BINARY["truncdiv"].numbers(a, b) == quotient, (a, b)
        assert BINARY["truncmod"].numbers(a, b) == a - b * quotient, (a, b)


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32"])
def test_numbers_and_arrays_agree(op, dtype):
    row = OPERATIONS[op]
    if not row.takes(dtype):
        return
    if dtypes.is_float(dtype):
        edges = [0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]
    else:
        edges = [dtypes.min_value(dtype), 0, 1, 2, 7, 8, 64, dtypes.max_value(dtype)]
        edges += [] if dtypes.is_unsigned(dtype) else [-1, -3]
    values = np.array([value for value in edges if _fits(value, dtype)], dtype)
    a, b = map(np.ravel, np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        one_by_one = np.array([row.numbers(x, y) for x, y in zip(a, b, strict=True)])
        np.testing.assert_array_equal(one_by_one, row.arrays(a, b))
        if op not in ("min", "max"):
            np.testing.assert_array_equal(one_by_one, row.numbers(a, b))


def _fits(value, dtype):
    return dtypes.is_float(dtype) or dtypes.min_value(dtype) <= value <= dtypes.max_value(dtype)


def test_formulas_of_the_runtime_are_those_of_indices():
    """The runtime never sees the IR: it has a table of its own, of the operations on extents."""
    assert set(formulas.OPERATIONS) <= {*OPERATIONS, "and", "or"}
    for op, function in formulas.OPERATIONS.items():
        for a, b in itertools.product(NUMBERS, repeat=2):
            if op in BINARY:
                assert function(a, b) == fold_index(op, a, b), (op, a, b)
            elif op in COMPARISONS:
                assert function(a, b) == COMPARISONS[op].numbers(a, b), (op, a, b)
    for op, symbol in formulas.SYMBOLS.items():
        assert symbol == (OPERATIONS[op].symbol if op in OPERATIONS else op)


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("dtype", ["bool", "index", "int32", "uint8", "float32", "bfloat16"])
def test_the_verifier_refuses_what_an_operation_does_not_take(op, dtype):
    buffer = Buffer("A", (1,), "int32" if dtype == "index" else dtype)
    value = index_const(3) if dtype == "index" else Load(buffer, (index_const(0),))
    condition = Compare("eq", Binary(op, value, value), value)
    out = Buffer("B", (1,), "bool")
    func = PrimFunc("f", (buffer, out), (out,), Store(out, (index_const(0),), condition))
    is_shift_of_index = dtype == "index" and op in ("shl", "shr")
    if BINARY[op].takes(dtype) and not is_shift_of_index:
        verify_func(func)
        return
    with pytest.raises(InternalError, match=rf"computes {op} of {dtype}|shifts an index"):
        verify_func(func)
