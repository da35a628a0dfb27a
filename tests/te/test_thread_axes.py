"""Thread axes: how they are written, and what is refused."""

import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError


@pytest.mark.parametrize(
    ("arguments", "extent"),
    [
        (("threadIdx.x",), None),
        ((None, "threadIdx.x"), None),
        ((64, "threadIdx.x"), 64),
        (((0, 64), "threadIdx.x", "tx"), 64),
    ],
)
def test_the_ways_to_write_one(arguments, extent):
    axis = te.thread_axis(*arguments)
    assert (axis.tag, axis.extent) == ("threadIdx.x", extent)


def test_it_has_a_name_to_show():
    assert te.thread_axis("blockIdx.y").name == "blockIdx.y"
    assert te.thread_axis((0, 4), "blockIdx.y", "by").name == "by"


def test_unknown_axes_are_refused():
    with pytest.raises(ExpressionError) as caught:
        te.thread_axis("threadIdx")
    assert str(caught.value) == (
        "thread_axis: no such thread axis\n"
        "  got       'threadIdx'\n"
        "  expected  blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, "
        "vthread\n"
        "  hint      did you mean threadIdx.z?"
    )
    with pytest.raises(ExpressionError, match="no such thread axis"):
        te.thread_axis(64)


@pytest.mark.parametrize("dom", [0, -1, (1, 8), (0, 0), True, 2.5, (0, 1, 2)])
def test_what_is_no_number_of_threads_is_refused(dom):
    with pytest.raises(ExpressionError, match="not a number of threads"):
        te.thread_axis(dom, "threadIdx.x")
