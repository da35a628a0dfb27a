"""Programs to run passes on."""

import pytest

from dlcompiler.ir import Buffer, PrimFunc, StepRef, Store, print_func, verify_func

STAGE = StepRef("", "C")


@pytest.fixture
def text():
    """Return what a pass makes of a body over A, B and C, printed without its first line."""

    def run(change, body, buffers, axes=frozenset()):
        func = PrimFunc("main", tuple(buffers), tuple(buffers[-1:]), body, {STAGE: axes})
        verify_func(func)
        after = change(func)
        verify_func(after)
        return print_func(after).text.partition("\n")[2]

    return run


def buffer(name, *shape, dtype="float32"):
    return Buffer(name, shape, dtype)


def store(target, indices, value):
    return Store(target, tuple(indices), value, (STAGE,))
