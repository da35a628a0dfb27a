"""Results larger than the caches are stored past them."""

import dataclasses

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.ops.injective import schedule_injective
from dlcompiler.pipeline import build
from dlcompiler.schedule import create_schedule
from dlcompiler.target import CacheLevel, resolve


@pytest.mark.parametrize(("rows", "is_streamed"), [(64, False), (65, True)])
def test_only_what_no_cache_holds_is_stored_past_them(rows, is_streamed):
    small = CacheLevel("L1d", 32 * 1024, line=64, shared_by=1)
    target = dataclasses.replace(resolve("cpu"), caches=(small,))
    A = te.placeholder((rows, 128), name="A")
    B = te.compute((rows, 128), lambda i, j: A[i, j] * 2.0, name="B")
    s = create_schedule(B.op)
    schedule_injective(s, B, target)
    kernel = build(s, [A, B])
    assert ("!nontemporal" in kernel.source()) == is_streamed
    a = np.arange(rows * 128, dtype="float32").reshape(rows, 128)
    b = np.zeros_like(a)
    kernel(a, b)
    np.testing.assert_array_equal(b, a * 2)
