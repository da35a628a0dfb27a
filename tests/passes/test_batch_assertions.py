"""`batch_assertions`: tests at once, and reports as before."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ProgramError
from dlcompiler.passes import batch_assertions
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule
from tests.passes.examples import after, example
from tests.passes.reading import read


def test_the_example_of_its_docstring():
    before = example(batch_assertions, "Before")
    assert str(batch_assertions(read(before))) == example(batch_assertions, "After")


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(31):\n        assert I[i] < 10, 'short'\n",
        "    for i in parallel(64):\n        assert I[i] < 10, 'parallel'\n",
        "    for i in range(64):\n        assert I[i] < 10, 'a store'\n        C[i] = 1.0\n",
    ],
)
def test_what_stays(body):
    program = f"def main(I: int32[64], C: float32[64]):\n{body}"
    assert after(batch_assertions, program) == program


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 63, 64, 100])
@pytest.mark.parametrize("way", ["known", "symbolic"])
def test_the_first_that_fails_is_reported(size, way):
    n = size if way == "known" else te.var("n")
    T, J = te.placeholder((10,), name="T"), te.placeholder((n,), "int32", name="J")
    C = te.compute((n, 2), lambda i, j: T[J[i] + j], name="C")
    kernel = build(create_schedule(C.op), [T, J, C])
    assert "holds" in str(lower(create_schedule(C.op), [T, J, C])) or size in (0, 1, 31)
    index, out = np.zeros(size, "int32"), np.empty((size, 2), "float32")
    kernel(np.ones(10, "float32"), index, out)
    for place in {0, size // 2, size - 1} - {-1} if size else ():
        index[place:] = 9
        said = f"index 10 in dimension 0 of extent 10, at i={place}"
        with pytest.raises(ProgramError, match=said):
            kernel(np.ones(10, "float32"), index, out)
        index[:] = 0
