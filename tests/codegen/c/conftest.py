"""Running what the C generator writes, and looking at it."""

import pytest

from dlcompiler.codegen import emit
from dlcompiler.ir import verify_func
from dlcompiler.pipeline import CKernel
from dlcompiler.runtime.c_source import COMPILERS, c_compiler
from dlcompiler.target import resolve


@pytest.fixture(scope="session")
def compiler():
    """Path of a C compiler; without one the test is skipped."""
    found = c_compiler()
    if found is None:
        pytest.skip(f"no C compiler: none of {', '.join(COMPILERS)} is on the PATH")
    return found


@pytest.fixture(scope="session")
def source():
    """Return the C of a PrimFunc."""

    def source_(func):
        verify_func(func)
        made = emit(func, resolve("c"))
        assert len(made.lines) == len(made.text.splitlines())
        assert made.text.startswith(made.named("header"))
        return made

    return source_


@pytest.fixture(scope="session")
def build(source, compiler):
    """Return a kernel for a PrimFunc."""
    return lambda func: CKernel(source(func), resolve("c"))
