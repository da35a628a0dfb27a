"""The text itself: golden, debug lines, names."""

import re

import pytest

from dlcompiler.codegen import emit
from dlcompiler.codegen.lines import statement_lines
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Cast,
    For,
    If,
    Load,
    PrimFunc,
    Ramp,
    Seq,
    Store,
    Var,
    const,
    index_const,
    print_func,
    seq,
)
from dlcompiler.target.presets import X86_64_AVX2

A, B = Buffer("A", (4, 16), "float32"), Buffer("B", (4, 16), "float32")
I, J = Var("i"), Var("j.outer")  # noqa: E741


def _scale(kind="serial"):
    """B[i, :] = A[i, :] * 2 in vectors of 8, but for the first half of row 0."""
    lanes = Ramp(J * 8, index_const(1), 8)
    double = Load(A, (I, lanes)) + Load(A, (I, lanes))
    inner = For(J, index_const(2), "serial", If(I + J > 0, Store(B, (I, lanes), double)))
    return PrimFunc("scale", (A, B), (B,), For(I, index_const(4), kind, inner))


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_golden(golden, kind):
    func = _scale(kind)
    source = emit(func, X86_64_AVX2)
    golden(f"{kind}_loop_ir", print_func(func).text)
    golden(kind, source.text)


def test_text_is_the_same_each_time(target):
    assert emit(_scale("parallel"), target) == emit(_scale("parallel"), target)


def test_lines_say_what_each_line_of_text_carries_out(target):
    func = _scale()
    source = emit(func, target)
    text = print_func(func).text.splitlines()
    of_line = {}
    for line, number in zip(source.text.splitlines(), source.lines, strict=True):
        of_line.setdefault(number, []).append(line)
        if match := re.search(r"!dbg !(\d+)$", line):
            place = f"!{match[1]} = !DILocation(line: {number}, "
            assert place in source.text
    assert text[4 - 1].strip() == "if i + j.outer > 0:"
    assert any("icmp sgt i64" in line for line in of_line[4])
    assert any("store <8 x float>" in line for line in of_line[5])
    assert any("%i = phi i64" in line for line in of_line[2])


def test_assembly_has_the_lines_of_the_loop_ir(target, assembly):
    func = _scale()
    text = assembly(emit(func, target))
    assert '.file\t1 "scale.loop-ir"' in text
    lines = {int(number) for number in re.findall(r"\.loc\t1 (\d+) ", text)}
    stored = (
        print_func(func)
        .text.splitlines()
        .index("                B[i, j.outer*8 : +8] = A[i, j.outer*8 : +8] + A[i, j.outer*8 : +8]")
    )
    assert stored + 1 in lines


def test_line_numbers_are_those_of_the_printer():
    store = Store(A, (I, I), const(0.0, "float32"))
    other = Store(A, (I, I), const(1.0, "float32"))
    body = seq(
        [
            If(I > 1, store, Seq((other, If(I > 2, store)))),
            Allocate(Buffer("T", (2,), "int8"), For(J, index_const(2), "serial", Seq(()))),
            If(I > 3, Seq(()), store),
        ]
    )
    func = PrimFunc("f", (A,), (A,), For(I, index_const(4), "serial", body))
    assert statement_lines(func) == print_func(func).line_of


@pytest.mark.parametrize(
    "name", ["A", "A.shared", "a b", 'quo"te', "back\\slash", "ünï", "0", "entry", "i.loop", "i"]
)
def test_names(build, name):
    import numpy as np

    array, i = Buffer(name, (4,), "int32"), Var("i")
    symbol = f"f {name}"
    store = Store(array, (i,), Cast(i, "int32"))
    kernel = build(PrimFunc(symbol, (array,), (array,), For(i, index_const(4), "parallel", store)))
    result = np.zeros(4, "int32")
    kernel(result)
    assert result.tolist() == [0, 1, 2, 3]


def test_two_buffers_of_one_name(build):
    import numpy as np

    a, b = Buffer("A", (4,), "int32"), Buffer("A", (4,), "int32")
    i = Var("A")
    body = For(i, index_const(4), "serial", Store(b, (i,), Load(a, (i,)) + 1))
    result = np.zeros(4, "int32")
    build(PrimFunc("f", (a, b), (b,), body))(np.arange(4, dtype="int32"), result)
    assert result.tolist() == [1, 2, 3, 4]


def test_index_arithmetic_may_not_overflow_and_data_may(target):
    y, i = Buffer("Y", (4,), "int64"), Var("i")
    value = Cast(i * 3, "int64") * 5 + Cast(i, "int64")
    loop = For(i, index_const(4), "serial", Store(y, (i,), value))
    text = emit(PrimFunc("f", (y,), (y,), loop), target).text
    assert "mul nsw i64 %i, 3" in text
    assert re.search(r"mul i64 %\d+, 5", text)
    assert re.search(r"= add i64 %\d+, %i", text)


def test_floats_may_only_contract(target):
    x = Buffer("X", (4,), "float32")
    load = Load(x, (index_const(0),))
    text = emit(PrimFunc("f", (x,), (x,), Store(x, (index_const(1),), load * load + load)), target)
    operations = re.findall(r"= (f\w+ (?:\w+ )*)float", text.text)
    assert operations == ["fmul contract ", "fadd contract "]
