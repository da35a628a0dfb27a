"""Kernels that come and go: memory stays flat, and no call loses its code."""

import os
import subprocess
import sys

import pytest

from tests import build_cycles
from tests.share import share_of

FULL = bool(os.environ.get("DLCOMPILER_TEST_FULL"))


@pytest.mark.campaign
@pytest.mark.timeout(1200)
def test_memory_stays_flat_over_many_kernels():
    """In a process of its own; `make test-full` builds 5,000 kernels, and so does the module."""
    count = 5000 if FULL else share_of(100, at_least=40)
    program = (
        "from tests.build_cycles import growth, run\n"
        f"memory, mappings = growth(run({count}))\n"
        "print(memory, mappings)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    memory, mappings = map(int, done.stdout.split())
    assert memory < (4 << 20) + count * build_cycles.LLVMLITE_KEEPS, "kernels leave something"
    assert mappings < 20


def test_a_kernel_dropped_in_a_call_stays_until_its_end():
    for number in (1, 2, 4):  # serial ones and a parallel one
        build_cycles.drop_in_call(number)
