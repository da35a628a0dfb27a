"""`vectorize_unrolled`: unrolled loops of independent assignments become vectors."""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.ir import Binary, verify_func, walk
from dlcompiler.ops import operator
from dlcompiler.passes.cut_at_barriers import as_cpu_function
from dlcompiler.passes.vectorize_unrolled import vectorize_unrolled
from dlcompiler.pipeline import build_program, lower_program
from dlcompiler.target import resolve
from tests.passes.examples import after, keeps_results, shows
from tests.passes.reading import read
from tests.share import cases_of


def test_the_example_of_its_docstring():
    shows(vectorize_unrolled)


@pytest.mark.parametrize(
    "statement",
    [
        "C[i + 1] = C[i]",  # of the iteration before
        "C[i] = C[i + 1]",  # of the next one
        "C[7] = C[7] + A[i]",  # a sum in one element
        "C[i*2] = A[i]",  # not neighbours
        "C[7 - i] = A[i]",
        "C[i] = A[i*2]",
        "C[i] = A[7 - i]",
        "C[i // 2] = A[i]",
    ],
)
def test_iterations_that_depend_on_each_other_or_are_no_vectors_stay_a_loop(statement):
    func = read(
        f"def main(A: float32[8], C: float32[8]):\n    for i in unrolled(4):\n        {statement}\n"
    )
    assert vectorize_unrolled(func) is func


def test_statements_that_exchange_elements_stay_a_loop():
    func = read(
        "def main(A: float32[8], C: float32[8]):\n"
        "    for i in unrolled(4):\n"
        "        C[i] = A[i]\n"
        "        C[i + 2] = A[i + 4]\n"
    )
    assert vectorize_unrolled(func) is func


def test_several_arrays_and_one_value_for_all_lanes():
    text = (
        "def main(A: float32[8], C: float32[8], D: float32[8]):\n"
        "    for i in unrolled(4):\n"
        "        C[i + 4] = C[i + 4] + A[3]\n"
        "        D[i] = C[i + 4]*A[i]\n"
    )
    assert after(vectorize_unrolled, text, ("C", "D")) == (
        "def main(A: float32[8], C: float32[8], D: float32[8]):\n"
        "    C[4 : +4] += broadcast(A[3], 4)\n"
        "    D[0 : +4] = C[4 : +4]*A[0 : +4]\n"
    )


@pytest.mark.campaign
def test_random_schedules_keep_their_results():
    keeps_results(vectorize_unrolled, cases_of(range(60)))


def test_a_simulated_tile_is_computed_in_vectors():
    matmul, target = operator("matmul"), resolve("rtx-3090")
    workload = matmul.workload(m=32, n=48, k=16)
    config = matmul.default_config(workload, target)
    schedule, args = matmul.template(workload, target, config)
    func = as_cpu_function(lower_program(schedule, args, target))
    changed = vectorize_unrolled(func)
    verify_func(changed)
    assert _products(func) == {1}
    assert max(_products(changed)) > 1
    rng = np.random.default_rng(0)
    first = [rng.integers(-3, 4, a.static_shape).astype(a.dtype) for a in args]
    second = [array.copy() for array in first]
    build_program(func)(*first)
    build_program(changed)(*second)
    np.testing.assert_array_equal(first[-1], second[-1])


def _products(func):
    """Return the numbers of lanes of all products of floats."""
    products = [n for n in walk(func.body) if isinstance(n, Binary) and n.op == "mul"]
    return {dtypes.lanes(n.dtype) for n in products if dtypes.is_float(n.dtype)}
