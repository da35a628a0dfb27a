"""Neighbouring loads of shared memory that become one, and those that do not."""

from __future__ import annotations

import pytest

from dlcompiler.ir import Var
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline import lower_program
from dlcompiler.simulate.gpu import count_launch
from dlcompiler.simulate.gpu.forms import Form
from dlcompiler.simulate.gpu.merging import merged
from dlcompiler.simulate.gpu.populations import Access, Place
from tests.thread_programs import tiled_matmul

K, THREAD = Var("k"), Var("x")


@pytest.mark.parametrize(
    ("extent", "constant", "of_thread", "bytes_", "unrolled", "width"),
    [
        (8, 0, 32, 4, True, 16),  # four floats
        (6, 0, 32, 4, True, 8),  # pairs: 6 is no multiple of 4
        (8, 8, 32, 4, True, 8),  # begins at 8 bytes
        (8, 0, 4, 4, True, 4),  # the next thread begins 4 bytes on
        (8, 0, 32, 4, False, 4),  # a loop
        (8, 0, 32, 8, True, 16),
        (3, 0, 32, 4, True, 4),
    ],
)
def test_what_is_merged(extent, constant, of_thread, bytes_, unrolled, width):
    address = Form(constant, {K: bytes_, THREAD: of_thread})
    place, access = merged(
        Place({K: extent}), Access("shared", address, bytes_), {K} if unrolled else set()
    )
    assert access.bytes == width
    (left,) = place.extents.values()
    assert left * width == extent * bytes_


def test_elements_apart_are_not_merged():
    place = Place({K: 8})
    access = Access("shared", Form(0, {K: 8, THREAD: 64}), 4)
    assert merged(place, access, {K}) == (place, access)


def test_merging_changes_requests_and_no_bytes():
    (launch,) = lower_program(*tiled_matmul(n=32, tile=16, step=8), "gpu").launches
    thread = merge_thread_loops(launch)
    plain, fewer = (count_launch(thread, is_merged=flag) for flag in (False, True))
    for a, b in zip(plain.accesses, fewer.accesses, strict=True):
        assert a.most.lanes * a.bytes == b.most.lanes * b.bytes
        if a.name == "load A.shared":  # a thread reads a row: two times four of its 8 elements
            assert (a.bytes, b.bytes) == (4, 16)
            assert b.most.requests == a.most.requests // 4
        else:
            assert a.most == b.most
