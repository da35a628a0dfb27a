"""Reshaping: any two shapes of as many elements, and indices without more divisions than needed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler import te
from dlcompiler.ir import Binary, walk
from dlcompiler.ir.operations import DIVISIONS
from dlcompiler.ops import transforms
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.auto_inline import inline_injective


@st.composite
def two_shapes(draw):
    """Two shapes that multiply the same factors, in another grouping."""
    factors = draw(st.lists(st.sampled_from((1, 2, 3, 5)), min_size=0, max_size=5))

    def grouped():
        cuts = sorted(draw(st.lists(st.integers(0, len(factors)), max_size=4)))
        ends = [0, *cuts, len(factors)]
        return tuple(int(np.prod(factors[a:b], dtype=int)) for a, b in pairwise(ends))

    return grouped(), grouped()


@given(two_shapes())
def test_elements_keep_their_order(shapes):
    old, new = shapes
    values = np.arange(np.prod(old), dtype="float32").reshape(old)
    A = te.placeholder(old, "float32", "A")
    reshaped = transforms.reshape(A, new)
    np.testing.assert_array_equal(te.evaluate(reshaped, {A: values}), values.reshape(new))


@pytest.mark.parametrize(("old", "new"), [((0, 3), (3, 0)), ((2, 0), (0,)), ((), (1, 1))])
def test_nothing_and_one_element(old, new):
    values = np.ones(old, "float32")
    A = te.placeholder(old, "float32", "A")
    result = te.evaluate(transforms.reshape(A, new), {A: values})
    np.testing.assert_array_equal(result, values.reshape(new))


@pytest.mark.parametrize(
    ("old", "new", "divisions"),
    [((1, 8, 1, 70), (8, 70), 0), ((6, 70), (2, 3, 70), 0), ((2, 3, 70), (6, 70), 2)],
)
def test_parts_of_a_reshaped_tensor_are_read_without_more_divisions(old, new, divisions):
    A = te.placeholder(old, "float32", "A")
    rows = transforms.reshape(A, new)
    part = te.compute((*new[:-1], 9), lambda *i: rows[(*i[:-1], i[-1] + 61)], tag="injective")
    joined = transforms.concatenate([part, rows], axis=len(new) - 1)
    s = create_schedule(joined)
    inline_injective(s)
    nodes = [node for node in walk(lower(s, [A, joined]).body) if isinstance(node, Binary)]
    assert len({str(node) for node in nodes if node.op in DIVISIONS}) == divisions
