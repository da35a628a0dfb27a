"""Each generator, and the interpreter, knows each operation and each function of the tables."""

from contextlib import nullcontext, suppress
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.codegen import REGISTRY, emit
from dlcompiler.codegen.gpu.assembly import llvm_module
from dlcompiler.codegen.gpu.machines import NVPTX
from dlcompiler.errors import TargetError
from dlcompiler.ir import Binary, Buffer, Call, Cast, Compare, Load, PrimFunc, Store, verify_func
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.ir.operations import BINARY, COMPARISONS
from dlcompiler.ir.program import Program
from dlcompiler.simulate import interpret

ASSEMBLY = {"ptx", "amdgcn", "sass"}
"""Languages that LLVM writes from one LLVM IR; each takes a process."""
NO_LIBRARY = ASSEMBLY | {"metal"}
"""Languages that lack some functions, and say so."""
DTYPES = ("index", *dtypes.SCALARS)


LANGUAGES = [language for language in REGISTRY if language != "instructions"]
"""An accelerator has instructions for whole nests, not for single operations."""


def _kernel(dtype, make):
    """Return a function that stores what `make` builds of two values of a dtype."""
    stored = "int64" if dtype == "index" else dtype
    A, B = Buffer("A", (), stored), Buffer("B", (), stored)
    operands = [Load(A, ()), Load(B, ())]
    if dtype == "index":
        operands = [Cast(operand, "index") for operand in operands]
    value = make(*operands)
    if value.dtype == "index":
        value = Cast(value, "int64")
    out = Buffer("C", (), value.dtype)
    func = PrimFunc("kernel", (A, B, out), (out,), Store(out, (), value))
    verify_func(func)
    return func, [np.ones((), dtypes.to_numpy(buffer.dtype)) for buffer in (A, B, out)]


def _try_all(target, dtype, make, *, is_function=False):
    func, arrays = _kernel(dtype, make)
    for language in LANGUAGES:
        may_lack = is_function and language in NO_LIBRARY
        may_lack = may_lack or (language == "metal" and dtype == "float64")
        with suppress(TargetError) if may_lack else nullcontext():
            if language in ASSEMBLY:
                assert llvm_module(Program.of(func), NVPTX)[0].finished()[0]
            else:
                assert emit(func, replace(target, language=language)).text
    interpret(func, arrays)


@pytest.mark.campaign
@pytest.mark.parametrize("op", [*BINARY, *COMPARISONS])
def test_operations(op, target):
    node, row = (Binary, BINARY[op]) if op in BINARY else (Compare, COMPARISONS[op])
    for dtype in DTYPES:
        is_index_shift = dtype == "index" and op in ("shl", "shr")  # built as a product
        if row.takes(dtype) and not is_index_shift:
            _try_all(target, dtype, lambda a, b: node(op, a, b))


@pytest.mark.campaign
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, target):
    signature = FUNCTIONS[name]

    def make(a, b):
        args = [a, b][: signature.arity]
        if signature.last is not None:
            args[-1] = Cast(args[-1], signature.last)
        return Call(name, tuple(args), signature.result_dtype(a.dtype))

    taken = [dtype for dtype in DTYPES if signature.takes(*[dtype] * signature.arity)]
    if signature.last is not None:
        taken = [dtype for dtype in DTYPES if dtypes.is_float(dtype)]
    assert taken
    for dtype in taken:
        _try_all(target, dtype, make, is_function=True)
