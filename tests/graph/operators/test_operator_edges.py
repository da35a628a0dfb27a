"""Inputs at the edges of what operators take: evaluated and compiled, they are as in NumPy."""

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.errors import ProgramError
from dlcompiler.graph import op

HUGE = [2**62, 2**62 - 1, -(2**62), 2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**40, 3]
INDICES = np.array(HUGE)
DATA = np.array([1, 2, 3, 4, 5], "float32")
ROWS = np.arange(3 * len(HUGE), dtype="float32").reshape(3, -1)
SQUARE = np.ones((3, 3), "float32")
VALUES = np.array([0, 1, 2, 2.5, np.nan, np.inf, -np.inf], "float32")
SEQUENCES = [
    np.array(row, "float32")
    for row in ([1, 2, 2, np.nan, np.nan], [np.nan], [1, 2, np.inf], [-np.inf, 0, np.nan])
]
NAN = np.array([1, 2.5, 5, np.nan], "float32")


def reversed_parts(rows, counts):
    made = rows.copy()
    for column, count in enumerate(counts):
        length = min(max(int(count), 0), len(rows))
        made[:length, column] = rows[:length, column][::-1]
    return made


EDGES = [
    (lambda x, i: op.take(x, i, axis=0), lambda x, i: x[np.clip(i, 0, 4)], DATA, INDICES),
    (lambda x, i: op.take(x, i, axis=0, mode="wrap"), lambda x, i: x[i % 5], DATA, INDICES),
    (lambda x, i: op.reverse_sequence(x, i, seq_axis=0, batch_axis=1), reversed_parts, ROWS,
     INDICES),
    (op.sequence_mask, lambda x, i: x * (np.arange(3)[:, None] < i), ROWS, INDICES),
    *(
        (lambda x, k, upper=upper: op.trilu(x, k, upper=upper),
         lambda x, k, upper=upper: x * ((k < 0) == upper), SQUARE, np.int64(k))
        for k in HUGE[:-1] for upper in (True, False)
    ),
    *(
        (lambda s, v, right=right: op.searchsorted(s, v, right=right),
         lambda s, v, right=right: np.searchsorted(s, v, "right" if right else "left"),
         sequence, VALUES)
        for sequence in SEQUENCES for right in (True, False)
    ),
    (lambda x: op.clip(x, a_min=3.0, a_max=2.0), lambda x: np.clip(x, 3, 2), NAN),
    (lambda x: op.clip(x, a_min=3.0, a_max=-2.0), lambda x: np.clip(x, 3, -2),
     np.array([1, 9], "int32")),
    (lambda: op.arange(start=0, stop=2.5, dtype="int32"), lambda: [0, 1, 2]),
    (lambda: op.arange(start=5.0, stop=0.5, step=-2.0, dtype="int16"), lambda: [5, 3, 1]),
    (lambda: op.arange(start=2**53, stop=2**53 + 3, step=1.0, dtype="int64"),
     lambda: [2**53, 2**53 + 1, 2**53 + 2]),
]  # fmt: skip


def test_edges():
    parameters, results = [], []
    for make, _, *inputs in EDGES:
        own = [graph.var(f"x{len(results)}", np.shape(x), str(x.dtype)) for x in inputs]
        parameters += own
        results.append(make(*own))
    module = graph.Module.from_expr(graph.Function(parameters, graph.Tuple(results)))
    arrays = [x for _, _, *inputs in EDGES for x in inputs]
    for made in (graph.evaluate(module, *arrays), graph.build(module)(*arrays)):
        for found, (_, expected, *inputs) in zip(made, EDGES, strict=True):
            np.testing.assert_array_equal(found, expected(*inputs))


UPDATED = {
    "gather": lambda x, i, y: op.gather(x, i, axis=0),
    "gather_nd": lambda x, i, y: op.gather_nd(x, op.expand_dims(i, axis=0)),
    "adv_index": lambda x, i, y: op.adv_index([x, i]),
    "scatter_elements": lambda x, i, y: op.scatter_elements(x, i, y),
    "sums": lambda x, i, y: op.scatter_elements(x, i, y, reduction="add"),
    "scatter_nd": lambda x, i, y: op.scatter_nd(x, op.expand_dims(i, axis=0), y),
    "a computed table": lambda x, i, y: op.gather(op.exp(x), i, axis=0),
    "read again": lambda x, i, y: op.exp(op.scatter_elements(op.exp(x), i, op.exp(y))),
}  # fmt: skip


@pytest.mark.parametrize("name", UPDATED)
def test_an_index_outside_ends_a_compiled_model(name):
    x, i, y = graph.var("x", (5,)), graph.var("i", (2,), "int64"), graph.var("y", (2,))
    module = graph.Module.from_expr(graph.Function([x, i, y], UPDATED[name](x, i, y)))
    model = graph.build(module)
    given = DATA, np.array([-5, 4]), np.ones(2, "float32")
    np.testing.assert_allclose(model(*given), graph.evaluate(module, *given), rtol=1e-6)
    for index in (5, -6, *HUGE[:-1]):
        with pytest.raises(ProgramError, match="outside"):
            model(DATA, np.array([0, index]), given[2])
