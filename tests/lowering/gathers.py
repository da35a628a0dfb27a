"""A table, indices into it, and ways to run a program that reads the one by the other."""

import numpy as np

from dlcompiler import te
from dlcompiler.pipeline import build, lower
from dlcompiler.simulate import interpret

T = te.placeholder((10, 4), name="T")
I = te.placeholder((40,), "int32", name="I")  # noqa: E741  the array of indices
table = np.arange(40, dtype="float32").reshape(10, 4)


def rows(index=lambda i: I[i], name="C"):
    return te.compute((40, 4), lambda i, j: T[index(i), j], name=name)


def runs(schedule, args, target="cpu"):
    """Return a function of arrays: in machine code, as C, or interpreted."""
    if target == "interpreter":
        func = lower(schedule, args)
        return lambda *arrays: interpret(func, arrays)
    return build(schedule, args, target=target)


WAYS = ("cpu", "c", "interpreter")
