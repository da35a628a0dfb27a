"""Running what the LLVM generator writes: build a function by hand, emit, compile, call."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.codegen import Source, emit
from dlcompiler.ir import Buffer, For, Load, PrimFunc, Ramp, Store, Var, index_const, verify_func
from dlcompiler.runtime import llvm, threads
from dlcompiler.target import resolve


@dataclass
class Kernel:
    """A compiled function that takes arrays, without the checks of the runtime's own."""

    source: Source
    module: llvm.LoadedModule

    def __call__(self, *arrays):
        operands = [array.ctypes.data for array in arrays]
        status = ctypes.c_int64(0)
        if self.source.messages:
            operands.append(ctypes.addressof(status))
        signature = ctypes.CFUNCTYPE(None, *([ctypes.c_void_p] * len(operands)))
        threads.prepare()
        signature(self.module.address(self.source.symbol))(*operands)
        assert not status.value, self.source.messages[status.value - 1]


@pytest.fixture(scope="session")
def target():
    return resolve("cpu")


@pytest.fixture(scope="session")
def options(target):
    return llvm.Options.for_target(target)


@pytest.fixture(scope="session")
def build(target, options):
    """Return a kernel for a PrimFunc."""

    def build_(func):
        verify_func(func)
        source = emit(func, target)
        assert len(source.lines) == len(source.text.splitlines())
        return Kernel(source, llvm.compile_ir(source.text, options))

    return build_


@pytest.fixture(scope="session")
def assembly(options):
    """Return the assembly of a Source."""
    return lambda source: llvm.assembly(source.text, options)


@pytest.fixture(scope="session")
def elementwise(build):
    """Compile ``out[i] = make(in0[i], in1[i], …)`` for all i; return it as a function of arrays.

    `make` gets the loads of the inputs and returns the expression. With `lanes` these are vectors;
    arrays are padded to whole ones.
    """

    def elementwise_(make, *input_dtypes, dtype, lanes=1, size=64):
        size = -(-size // lanes) * lanes
        inputs = [Buffer(f"X{n}", (size,), name) for n, name in enumerate(input_dtypes)]
        out = Buffer("Y", (size,), dtype)
        i = Var("i")
        index = i if lanes == 1 else Ramp(i * lanes, index_const(1), lanes)
        value = make(*(Load(buffer, (index,)) for buffer in inputs))
        loop = For(i, index_const(size // lanes), "serial", Store(out, (index,), value))
        kernel = build(PrimFunc("kernel", (*inputs, out), (out,), loop))

        def call(*values):
            arrays = [
                np.resize(np.asarray(value, dtypes.to_numpy(name)), size)
                for value, name in zip(values, input_dtypes, strict=True)
            ]
            result = np.zeros(size, dtypes.to_numpy(dtype))
            kernel(*arrays, result)
            return result[: len(values[0])]

        return call

    return elementwise_
