"""Random programs and caches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dlcompiler.ir import Builder, PrimFunc, decl_buffer
from dlcompiler.ir.numeric import storage
from dlcompiler.target import CacheLevel
from dlcompiler.target.presets import X86_64_AVX2


def machine(*levels):
    """Return a target with these caches."""
    return replace(X86_64_AVX2, caches=levels)


def level(size, ways, line=64, name="L1d"):
    """Return a cache."""
    return CacheLevel(name, size, line=line, shared_by=1, ways=ways)


def random_levels(rng):
    """Return one to three caches; neither sizes nor lines need to grow."""
    found = []
    for n in range(rng.randrange(1, 4)):
        line, ways = rng.choice((16, 32, 64, 128)), rng.randrange(1, 17)
        sets = rng.choice((1, 2, 3, 4, 5, 7, 8, 12, 16))
        found.append(level(line * ways * sets, ways, line, f"L{n + 1}"))
    return tuple(found)


def random_accesses(rng):
    """Return a program of nests whose indices wrap around, so that lines come back in any order."""
    dtype = rng.choice(("int8", "float32", "float64"))
    sizes = [rng.randrange(1, 1500) for _ in range(rng.randrange(2, 5))]
    buffers = [decl_buffer((size,), dtype, name=f"b{n}") for n, size in enumerate(sizes)]
    outputs = buffers[rng.randrange(1, len(buffers)) :]
    ib = Builder()
    views = [ib.buffer_ptr(buffer) for buffer in buffers]
    written = views[-len(outputs) :]
    for view in written:
        with ib.for_range(0, view.shape[0], name="z") as z:
            view[z] = 0

    def place(view, loops):
        index = rng.randrange(100)
        for var in loops:
            index = index + var * rng.randrange(-40, 90)
        return index % view.shape[0]

    for _ in range(rng.randrange(1, 4)):
        with (
            ib.for_range(0, rng.randrange(1, 30), name="i") as i,
            ib.for_range(0, rng.randrange(1, 30), name="j") as j,
            ib.if_scope((i + j * 3) % rng.randrange(1, 4) == 0),
        ):
            a, b = rng.choice(views), rng.choice(views)
            target = rng.choice(written)
            target[place(target, (i, j))] = a[place(a, (j,))] + b[place(b, (i, j))]
    inputs = [buffer for buffer in buffers if buffer not in outputs]
    return PrimFunc("main", (*inputs, *outputs), tuple(outputs), ib.get())


def arrays_of(func):
    """Return arrays of zeros for the parameters of a program."""
    return [np.zeros(buffer.static_shape, storage(buffer.dtype)) for buffer in func.buffers]
