"""Random expressions of edge values of all dtypes: all evaluations agree bit by bit."""

import os
import random

import numpy as np
import pytest

from dlcompiler import dtypes
from tests.scalars.agreement import DATA, agree, edge_values
from tests.scalars.drawn_expressions import drawn

ELEMENTS = 64
SEEDS = 60 if os.environ.get("DLCOMPILER_TEST_FULL") else 4


def _values(dtype, generator):
    if dtypes.is_bool(dtype):  # any byte but 0 is true
        bytes_ = np.array([0, 0, 0, 1, 2, 128, 255], np.uint8)
        return generator.choice(bytes_, ELEMENTS).view(bool)
    return generator.choice(edge_values(dtype), ELEMENTS).astype(dtypes.to_numpy(dtype))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(SEEDS))
def test_all_evaluations_agree(seed):
    choose, generator = random.Random(seed), np.random.default_rng(seed)
    given = [_values(dtype, generator) for dtype in DATA]
    functions = {f"Y{n}": drawn(choose) for n in range(30)}
    copies = {f"Z{n}": lambda *loads, n=n: loads[n] for n in range(len(DATA))}
    results = agree({**functions, **copies}, given)
    for result in results.values():
        if result.dtype == bool:
            assert set(result.tobytes()) <= {0, 1}
