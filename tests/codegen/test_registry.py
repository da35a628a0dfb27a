"""Choosing a generator, and what generators refuse."""

import dataclasses

import pytest

from dlcompiler.codegen import emit
from dlcompiler.errors import InternalError, TargetError
from dlcompiler.ir import (
    Buffer,
    Call,
    For,
    Load,
    PrimFunc,
    Ramp,
    Seq,
    Store,
    Var,
    const,
    index_const,
)
from dlcompiler.target.presets import X86_64_SSE2


def _copy(dtype="float32", lanes=1, name="copy"):
    a, b = Buffer("A", (1024,), dtype), Buffer("B", (1024,), dtype)
    i = Var("i")
    index = i if lanes == 1 else Ramp(i * lanes, index_const(1), lanes)
    body = For(i, index_const(1024 // lanes), "serial", Store(b, (index,), Load(a, (index,))))
    return PrimFunc(name, (a, b), (b,), body)


def test_source_says_what_to_call(target):
    source = emit(_copy(name="copy.1"), target)
    assert (source.symbol, source.language, source.uses_threads) == ("copy.1", "llvm", False)
    assert "define void @copy.1(ptr " in source.text


def test_unknown_language(target):
    with pytest.raises(TargetError) as error:
        emit(_copy(), dataclasses.replace(target, language="abacus"))
    assert str(error.value) == (
        "generate code for copy: no code generator has this name\n"
        "  got       'abacus'\n"
        "  expected  'llvm', 'c', 'loops', 'instructions', 'cuda', 'opencl', 'hip', 'metal', "
        "'ptx', 'amdgcn', 'sass'"
    )


def test_vectors_are_at_most_64_lanes(target):
    emit(_copy(lanes=64), target)
    with pytest.raises(TargetError) as error:
        emit(_copy(lanes=128), target)
    assert str(error.value) == (
        "generate LLVM code: a vector of more than 64 lanes\n"
        "  got       float32x128\n"
        "  expected  at most 64 lanes\n"
        "  hint      split the axis first and vectorize the inner part"
    )


@pytest.mark.parametrize("name", ["memset", "expf", "floorf", "dlc_x", "llvm.sqrt.f32", ""])
def test_reserved_names(target, name):
    with pytest.raises(TargetError) as error:
        emit(_copy(name=name), target)
    assert str(error.value) == (
        f"generate LLVM code for {name or 'a function'}: the name of the function is reserved\n"
        f"  got       {name!r}\n"
        "  hint      give the function another name"
    )


def test_float16_where_the_machine_cannot_convert_it():
    with pytest.raises(TargetError) as error:
        emit(_copy("float16"), X86_64_SSE2)
    assert str(error.value) == (
        "generate LLVM code for copy: float16 needs a processor that converts it\n"
        "  got       x86-64-sse2\n"
        "  expected  a target with the feature f16c\n"
        "  hint      compute in float32"
    )


def test_an_unknown_function_is_a_bug(target):
    a = Buffer("A", (), "float32")
    call = Call("gamma", (const(1.0, "float32"),), "float32")
    with pytest.raises(InternalError, match=r"unknown function gamma"):
        emit(PrimFunc("f", (a,), (a,), Store(a, (), call)), target)


def test_nothing_to_do(build):
    a = Buffer("A", (0,), "float32")
    build(PrimFunc("nothing", (a,), (a,), Seq(())))()
