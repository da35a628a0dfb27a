"""What the lanes of a warp touch: the first request of each access, and all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.ir import Var
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline import lower_program
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate.gpu import Given, count_launch, requests
from dlcompiler.simulate.gpu.counters import read_launch
from dlcompiler.simulate.gpu.forms import variables_of
from dlcompiler.simulate.gpu.requests import INACTIVE, OF_DATA, first_requests
from tests.thread_programs import softmax, staged_copy, tiled_matmul

PROGRAMS = {
    "matmul": lambda: tiled_matmul(n=16, tile=8, step=4),
    "virtual threads": lambda: tiled_matmul(n=16, tile=4, step=4, vthreads=2),
    "copy": staged_copy,
    "softmax": softmax,
    "transposed": lambda: transposed(64),
}


def transposed(n, lanes=1):
    """Return a transposed copy by way of shared memory: a block for each tile of 32 × 32."""
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[j, i] * 2.0, name="B")
    s = create_schedule(B.op)
    shared = s.cache_read(A, "shared", [B])
    tx, ty = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    by, bx, i, j = s[B].tile(*B.op.axis, 32, 32)
    _, i = s[B].split(i, 8)
    for axis, thread in ((by, te.thread_axis("blockIdx.y")), (bx, te.thread_axis("blockIdx.x"))):
        s[B].bind(axis, thread)
    s[B].bind(i, ty)
    s[B].bind(j, tx)
    s[shared].compute_at(s[B], bx)
    rows, columns = s[shared].op.axis
    if lanes > 1:
        columns, inner = s[shared].split(columns, lanes)
        s[shared].vectorize(inner)
    _, y = s[shared].split(rows, 8)
    s[shared].bind(y, ty)
    s[shared].bind(columns, tx)
    return s, [A, B]


def launched(schedule, args):
    return lower_program(schedule, args, "gpu").launches


def every_request(launch):
    """Yield all requests of a launch with how often each occurs, by the access."""
    _, warps, found = read_launch(merge_thread_loops(launch), launch.loops, Given(), 32)
    for site, place, access in found.accesses:
        used = frozenset[Var]().union(*map(variables_of, (access.address, *place.guards)))
        inside = {var: n for var, n in place.extents.items() if var in used}
        times = math.prod(n for var, n in place.extents.items() if var not in used)
        points = requests._points(inside)
        masks, addresses = requests._lanes(place, access, warps, points)
        for point, warp in np.argwhere(masks.any(axis=-1)):
            one = requests._request(site, access, (masks, addresses, points), (point, warp))
            yield (site, access.space, access.bytes), times, one


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_requests_add_up_to_the_counters(name):
    for launch in launched(*PROGRAMS[name]()):
        sums: dict[object, np.ndarray] = {}
        for key, times, each in every_request(launch):
            counts = [1, int(each.mask.sum()), each.sectors, each.wavefronts, each.ideal_wavefronts]
            sums[key] = sums.get(key, 0) + times * np.array(counts)
        for access in count_launch(merge_thread_loops(launch), loops=launch.loops).accesses:
            requested, lanes, sectors, passes, ideal = sums[access.site, access.space, access.bytes]
            assert (requested, lanes) == (access.most.requests, access.most.lanes)
            if access.space == "global":
                assert sectors == access.most.sectors
            else:
                assert (passes, ideal) == (access.most.wavefronts, access.most.ideal_wavefronts)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_request_is_one_of_all(name):
    for launch in launched(*PROGRAMS[name]()):
        known = {}
        for key, _, each in every_request(launch):
            known.setdefault(key, []).append(each.addresses)
        thread = merge_thread_loops(launch)
        found = first_requests(thread, loops=launch.loops)
        counted = count_launch(thread, loops=launch.loops).accesses
        keys = [(each.site, each.space, each.bytes) for each in found]
        assert keys == [(each.site, each.space, each.bytes) for each in counted]
        for key, each in zip(keys, found, strict=True):
            assert each.addresses in known[key]


def test_a_transposed_read_of_shared_memory_hits_one_bank():
    (launch,) = launched(*transposed(64))
    found = {each.name: each for each in first_requests(merge_thread_loops(launch))}
    load, store = found["load A.shared"], found["store A.shared"]
    assert load.addresses == tuple(128 * lane for lane in range(32))
    assert (load.wavefronts, load.ideal_wavefronts) == (32, 1)
    assert (store.addresses, store.wavefronts) == (tuple(range(0, 128, 4)), 1)
    assert (found["load A"].sectors, found["load A"].ideal_sectors) == (4, 4)


def test_vectors_are_served_in_parts():
    (launch,) = launched(*transposed(64, lanes=4))
    found = {each.name: each for each in first_requests(merge_thread_loops(launch))}
    store = found["store A.shared"]
    assert (store.bytes, store.parts, int(store.mask.sum())) == (16, 4, 8)
    assert store.wavefronts == store.ideal_wavefronts == 1, "a quarter of the warp takes part"


def test_iterations_without_active_threads_are_left_out():
    A = te.placeholder((100,), name="A")
    B = te.compute((100,), lambda i: te.if_then_else(i >= 70, A[i], 0.0), name="B")
    s = create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 32)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    (launch,) = launched(s, [A, B])
    load = next(r for r in first_requests(merge_thread_loops(launch)) if r.name == "load A")
    assert [number for _, number in load.at] == [2]
    assert load.addresses[:7] == (None,) * 6 + (280,)
    assert load.sectors == 4


def test_data_decides():
    N = te.placeholder((64,), "int32", name="N")
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[N[i]], name="B")
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    (launch,) = launched(s, [N, A, B])
    found = {each.name: each for each in first_requests(merge_thread_loops(launch))}
    assert (found["load A"].why_not, found["load A"].addresses) == (OF_DATA, ())
    assert found["load N"].sectors == 4


def test_nothing_is_active():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: te.if_then_else(i * i < 0, A[i], 0.0), name="B")
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    (launch,) = launched(s, [A, B])
    found = [r for r in first_requests(merge_thread_loops(launch)) if r.name == "load A"]
    assert [each.why_not for each in found] in ([], [INACTIVE])
