"""A sum over nothing is 0, however its loop is split."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.pipeline import build
from dlcompiler.schedule import create_schedule


@pytest.mark.parametrize("split", [{"factor": 1}, {"factor": 4}, {"nparts": 2}])
def test_the_initialisation_survives_the_split_of_an_empty_axis(split):
    A = te.placeholder((3, 0), name="A")
    k = te.reduce_axis((0, 0), name="k")
    C = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(k, **split)
    s[C].reorder(outer, inner, C.op.axis[0])
    result = np.full(3, np.nan, np.float32)
    build(s, [A, C], name="row_sums")(np.zeros((3, 0), np.float32), result)
    assert result.tolist() == [0.0, 0.0, 0.0]
