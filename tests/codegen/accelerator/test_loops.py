"""Loops of a computation as the two loops of an instruction around micro-ops."""

import numpy as np
import pytest

from dlcompiler.codegen.accelerator.computations import elements_of, loops_of


def _updates(loops, operands):
    """Return the elements of each operand, update by update, as plain loops give them."""
    found = np.zeros((1, operands), np.int64)
    for extent, steps in loops:
        along = np.arange(extent)[:, None] * np.array(steps)
        found = (found[:, None] + along[None]).reshape(-1, operands)
    return found


def _elements(made, operand):
    return elements_of(made.iterations, made.factors[operand], made.micro_ops[:, operand])


@pytest.mark.parametrize("spacing", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_all_updates_are_there(seed, spacing):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6))
    loops, reach = [], 1
    for _ in range(count):
        extent, is_reduction = int(rng.integers(1, 5)), bool(rng.integers(2))
        steps = (0 if is_reduction else reach, int(rng.integers(0, 9)), int(rng.integers(0, 9)))
        reach *= 1 if is_reduction else extent
        loops.append((extent, steps))
    made = loops_of(loops, 3, 1 << 14, spacing)
    elements = np.stack([_elements(made, operand) for operand in range(3)], axis=1)
    expected = _updates(loops, 3)
    assert sorted(map(tuple, elements)) == sorted(map(tuple, expected))


def test_updates_of_one_element_are_apart():
    loops = [(3, (0, 10, 3)), (3, (0, 1, 1)), (4, (8, 10, 0)), (8, (1, 1, 0))]
    near, apart = (loops_of(loops, 3, 1 << 14, spacing) for spacing in (1, 2))
    assert len(near.micro_ops) == 9
    assert (np.diff(_elements(near, 0)) == 0).any()
    assert len(apart.micro_ops) == 12
    assert (np.diff(_elements(apart, 0)) != 0).all()


def test_one_element_cannot_be_apart():
    made = loops_of([(5, (0, 1, 1))], 3, 1 << 14, 2)
    assert made.iterations == (1, 5)
