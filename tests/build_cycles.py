"""Build a kernel and drop it, thousands of times: memory stays flat, and no call loses its code.

``python -m tests.build_cycles --count 5000`` prints what is left after each tenth. Every tenth
kernel is dropped while another thread is in it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import threading
import weakref
from pathlib import Path

import numpy as np

from dlcompiler import te
from dlcompiler.pipeline import build
from dlcompiler.schedule import create_schedule

SIZE = 64
LONG = 1 << 11
"""Repetitions of a call that lasts some milliseconds."""
LLVMLITE_KEEPS = 1600
"""What llvmlite 0.50 never frees of a pass builder [byte]: measured, 1488."""
DROPPED_IN_CALL = 10
PARALLEL = 4


def resident_bytes() -> int:
    """Return the memory of this process that is in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def mappings() -> int:
    """Return how many pieces of address space this process has."""
    return len(Path("/proc/self/maps").read_text().splitlines())


def make(number: int):
    """Return a new kernel, ``B[i] = number + sum over k of A[i]``; every fourth is parallel."""
    A = te.placeholder((SIZE,), name="A")
    k = te.reduce_axis((0, LONG), name="k")
    B = te.compute((SIZE,), lambda i: te.sum(A[i] * te.cos(A[i] + k), axis=k), name="sums")
    C = te.compute((SIZE,), lambda i: B[i] * 0.0 + float(number), name="C")
    s = create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    if number % PARALLEL == 0:
        s[C].parallel(C.op.axis[0])
    return build(s, [A, C])


def drop_in_call(number: int) -> None:
    """Drop a kernel while another thread is in it; its code goes when the call has ended."""
    held = [make(number)]
    gone = weakref.ref(held[0].module)
    a, c = np.ones(SIZE, np.float32), np.full(SIZE, -1, np.float32)
    begun = threading.Event()

    def call() -> None:
        begun.set()
        held.pop()(a, c)

    thread = threading.Thread(target=call)
    thread.start()
    begun.wait()
    thread.join()
    assert (c == number).all(), f"kernel {number} computed {c}"
    if gone() is not None:
        gc.collect()
    assert gone() is None, f"kernel {number} is still loaded"


def build_and_drop(number: int) -> None:
    """Build a kernel, call it, and drop it."""
    if number % DROPPED_IN_CALL == 0:
        drop_in_call(number)
        return
    kernel = make(number)
    if number % DROPPED_IN_CALL == 1:
        a, c = np.ones(SIZE, np.float32), np.empty(SIZE, np.float32)
        kernel(a, c)
        assert (c == number).all()


def run(count: int, parts: int = 10) -> list[tuple[int, int]]:
    """Build and drop `count` kernels; return memory [byte] and mappings after each part."""
    numbers = itertools.count()
    found = []
    for _ in range(parts):
        for number in itertools.islice(numbers, count // parts):
            build_and_drop(number)
        gc.collect()
        found.append((resident_bytes(), mappings()))
    return found


def growth(found: list[tuple[int, int]]) -> tuple[int, int]:
    """Return by how much memory [byte] and mappings grew after the first two parts."""
    return found[-1][0] - found[1][0], found[-1][1] - found[1][1]


def main() -> None:
    """Print what is left after each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    found = run(parser.parse_args().count)
    for memory, pieces in found:
        print(f"{memory / 2**20:7.1f} MiB in {pieces} mappings")
    memory, pieces = growth(found)
    print(f"grown by {memory / 2**20:.2f} MiB, {pieces} mappings")


if __name__ == "__main__":
    main()
