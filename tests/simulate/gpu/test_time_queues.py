"""Warps that share resources: bounds of their time, and what cannot make them faster."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dlcompiler.simulate.gpu.time_queues import clocks_together

CLOCKS = st.floats(0, 1e6)
DEMANDS = st.lists(st.tuples(CLOCKS, st.integers(1, 64)), min_size=1, max_size=5)


@given(DEMANDS, CLOCKS)
def test_time_is_between_one_warp_alone_and_all_one_after_the_other(demands, delay):
    found = clocks_together(demands, delay)
    alone = delay + sum(clocks for clocks, _ in demands)
    in_turn = delay + sum(clocks * warps for clocks, warps in demands)
    busiest = max(clocks * (warps - 1) for clocks, warps in demands)
    assert max(alone, busiest) * (1 - 1e-9) <= found <= in_turn * (1 + 1e-9)


@given(DEMANDS, CLOCKS, st.floats(1, 10), st.integers(1, 8))
def test_more_of_anything_takes_no_less_time(demands, delay, factor, more):
    found = clocks_together(demands, delay) * (1 - 1e-9)
    (clocks, warps), *others = demands
    assert clocks_together([(clocks * factor, warps), *others], delay) >= found
    assert clocks_together([(clocks, warps + more), *others], delay) >= found
    assert clocks_together(demands, delay * factor) >= found
    assert clocks_together([*demands, (clocks, warps)], delay) >= found


@given(st.floats(1, 1e6), st.integers(1, 64))
def test_one_resource_is_always_busy_without_delays(clocks, warps):
    assert abs(clocks_together([(clocks, warps)], 0) / (clocks * warps) - 1) < 1e-9
