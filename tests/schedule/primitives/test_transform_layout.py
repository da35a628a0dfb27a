"""transform_layout: the nests it makes, maps that are inverted and that are not, refusals."""

from types import SimpleNamespace

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import Trace, create_schedule
from dlcompiler.schedule.index_maps import index_map_of


@pytest.fixture
def two():
    """P doubles A of 5×6, and C reads P transposed."""
    A = te.placeholder((5, 6), "int32", name="A")
    P = te.compute((5, 6), lambda i, j: A[i, j] * 2, name="P")
    C = te.compute((6, 5), lambda i, j: P[j, i] + 1, name="C")
    return SimpleNamespace(s=create_schedule(C.op), A=A, P=P, C=C, args=[A, C])


def test_the_layout_is_stored_and_its_axes_are_returned(two, nest, golden, computes):
    s, P = two.s, two.P
    axes = s[P].transform_layout(lambda i, j: [j // 4, i, j % 4])
    assert [(axis.name, axis.extent) for axis in axes] == [("ax0", 2), ("i", 5), ("ax2", 4)]
    assert s[P].leaf_iter_vars == axes
    s[P].vectorize(axes[-1])
    golden("blocked", nest(two))
    computes(s)


def test_the_stage_is_found_by_its_tensors_in_every_layout(two, computes):
    s, P = two.s, two.P
    s[P].transform_layout(lambda *ij: [ij[1], ij[0]])
    now = s[P].tensor
    s[now].transform_layout(lambda a, b: [a // 2, b, a % 2])
    assert {s[key].name for key in (P, P.op, now, now.op, s[P].tensor)} == {"P"}
    s[P].compute_at(s[two.C], two.C.op.axis[0])
    s.cache_read(P, "local", [two.C])
    assert "s[P].transform_layout(lambda a, b: [a // 2, b, a % 2])" in s.trace.to_python()


@pytest.mark.parametrize(
    "index_map",
    [
        lambda i, j: [j, i],
        lambda i, j: [i * 6 + j],
        lambda i, j: [i * 8 + j],
        lambda i, j: [i, j // 4, (j // 2) % 2, j % 2],
        lambda i, j: [i // 2 + j // 3 * 3, i % 2, j % 3],
        lambda i, j: [i // 3, j // 4, i % 3, j % 4],
        lambda i, j: (j // 16, i, j % 16),
    ],
)
def test_every_element_has_a_place_of_its_own(two, computes, index_map):
    two.s[two.P].transform_layout(index_map)
    computes(two.s)


def test_a_reduction_with_a_start_is_padded(computes):
    A = te.placeholder((7, 5), "int32", name="A")
    k = te.reduce_axis((0, 5), name="k")
    P = te.compute((7,), lambda i: te.sum(A[i, k], axis=k, init=A[i, 0]), name="P")
    C = te.compute((7,), lambda i: P[6 - i] + 1, name="C")
    s = create_schedule(C.op)
    axes = s[P].transform_layout(lambda i: [i // 4, i % 4])
    s[P].reorder(k, *axes)
    computes(s)


def test_several_outputs(computes):
    A = te.placeholder((7,), "int32", name="A")
    P, Q = te.compute((7,), lambda i: (A[i] + 1, A[i] * 2), name="P")
    C = te.compute((7,), lambda i: P[i] * Q[6 - i], name="C")
    s = create_schedule(C.op)
    s[P].transform_layout(lambda i: [i % 3, i // 3])
    cached = s.cache_read(Q, "local", [C])
    assert s[cached].op.output(0).shape == (3, 3)
    computes(s)


def test_the_trace_holds_the_function_as_text(two):
    two.s[two.P].transform_layout(lambda i, j: [j // 4, i, j % 4])
    step = two.s.trace.steps[0]
    assert step.args == {"index_map": "lambda i, j: [j // 4, i, j % 4]"}
    again = create_schedule(two.C.op)
    Trace.from_json(two.s.trace.to_json()).replay(again)
    assert again.state.id == two.s.state.id


@pytest.mark.parametrize(
    ("index_map", "why"),
    [
        (lambda i, j: [i], "j is not kept"),
        (lambda i, j: [i, j, j], "j is kept twice"),
        (lambda i, j: [i * 5 + j], "i*5 + j mixes j and i"),
        (lambda i, j: [i + j, j], "i + j mixes i and j"),
        (lambda i, j: [i, j + 1], "j + 1 begins at 1"),
        (lambda i, j: [i * 2, j], "i*2 leaves gaps"),
        (lambda i, j: [i, j % 4], "j is kept up to 4 only"),
        (lambda i, j: [i, j // 4], "of j, j // 4 does not follow what is kept"),
    ],
)
def test_refuses_maps_that_cannot_be_inverted(two, refusal, index_map, why):
    assert refusal(two.s[two.P].transform_layout, index_map) == (
        "transform_layout P: two elements would share a place of the layout, or one element would "
        "have none\n"
        f"  because   {why}\n"
        "  hint      keep each part of each index once: i // 4 and i % 4 of i"
    )


@pytest.mark.parametrize(
    "index_map", [lambda i, j: [(i * 6 + j) // 4, (i * 6 + j) % 4], lambda i, j: [i * j, j]]
)
def test_refuses_forms_that_are_not_understood(two, refusal, index_map):
    text = refusal(two.s[two.P].transform_layout, index_map)
    assert text.startswith("transform_layout P: the layout is not understood\n  got       ")
    assert text.endswith("quotients and remainders by numbers: i // 4, i % 4, i*8 + j")


@pytest.mark.parametrize(
    ("index_map", "problem"),
    [
        (lambda i: [i], "the function takes another number of axes than the tensor has dimensions"),
        (lambda i, j, k: [i], "the function takes another number of axes than the tensor has"),
        (3, "not a function of the axes"),
        (lambda i, j: ["i", j], "the function does more than index arithmetic"),
        ("lambda i, j: [i, __import__('os')]", "not index arithmetic"),
        ("__import__('os')", "not the text of a function"),
        ("lambda i, j: [", "not the text of a function"),
        ("lambda i: [i]", "the function takes another number of axes"),
    ],
)
def test_refuses_what_is_no_map(two, refusal, index_map, problem):
    text = refusal(two.s[two.P].transform_layout, index_map)
    assert text.startswith(f"transform_layout P: {problem}")


def test_refuses_loops_that_were_changed(two, refusal):
    two.s[two.P].split(two.P.op.axis[0], 2)
    assert refusal(two.s[two.P].transform_layout, lambda i, j: [j, i]) == (
        "transform_layout P: the loops of P or its strides have been changed already\n"
        "  hint      call transform_layout first, then schedule the new axes"
    )


def test_what_is_stored_in_another_layout_is_no_argument(two, refusal):
    two.s[two.P].transform_layout(lambda i, j: [j, i])
    assert refusal(lower, two.s, [two.A, two.P, two.C]) == (
        "lower main: the argument P is stored in another layout\n"
        "  hint      leave it out of the arguments: transform_layout is for what stays inside"
    )


def test_refuses_the_layout_of_the_caller(two, refusal):
    for tensor, what in ((two.A, "an input"), (two.C, "an output")):
        text = refusal(two.s[tensor].transform_layout, lambda i, j: [j, i])
        assert f"{tensor.name} is {what}: its memory is the caller's" in text


def test_names_that_are_no_variables_are_replaced():
    index_map = index_map_of(lambda *axes: axes, ["i.c", "class", "i_c"])
    assert str(index_map) == "lambda i_c, class_, i_c_1: [i_c, class_, i_c_1]"


# -- AXIS_SEPARATOR -------------------------------------------------------------------------------


def separated(i, j):
    return [j // 4, i, te.AXIS_SEPARATOR, j % 4]


def test_a_separator_is_noted_at_the_buffer(two, nest, computes):
    axes = two.s[two.P].transform_layout(separated)
    assert [axis.extent for axis in axes] == [2, 5, 4]
    assert "allocate P: int32[2, 5 | 4]\n" in nest(two)
    computes(two.s)
    two.s[two.P].compute_at(two.s[two.C], two.C.op.axis[1])
    assert "allocate P: int32[1, 1 | 1]\n" in nest(two)
    computes(two.s)


def test_separators_are_written_read_and_replaced(two, nest):
    s, P = two.s, two.P
    s[P].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j // 2, te.AXIS_SEPARATOR, j % 2])
    text = "lambda i, j: [i, te.AXIS_SEPARATOR, j // 2, te.AXIS_SEPARATOR, j % 2]"
    assert s.trace.steps[0].args == {"index_map": text}
    assert f"s[P].transform_layout({text})" in s.trace.to_python()
    again = create_schedule(two.C.op)
    Trace.from_json(s.trace.to_json()).replay(again)
    assert again.state.stage("P").separators == s.state.stage("P").separators == (1, 2)
    s[P].transform_layout(lambda a, b, c: [a, b, c])
    assert "allocate P: int32[5, 3, 2]\n" in nest(two)


def test_flat_memory_is_used_as_without_separators(two):
    func = lower(two.s, two.args)
    two.s[two.P].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])
    assert str(lower(two.s, two.args)) == str(func).replace("[5, 6]\n", "[5 | 6]\n")


def test_a_half_of_a_double_buffer_is_of_the_first_dimension(two, computes):
    s, P = two.s, two.P
    s[P].transform_layout(separated)
    s[P].compute_at(s[two.C], two.C.op.axis[0])
    s[P].double_buffer()
    assert "allocate P: int32[2, 1, 5 | 1]\n" in str(lower(s, two.args))
    computes(s)


@pytest.mark.parametrize(
    "index_map",
    [
        lambda i, j: [te.AXIS_SEPARATOR, i, j],
        lambda i, j: [i, j, te.AXIS_SEPARATOR],
        lambda i, j: [i, te.AXIS_SEPARATOR, te.AXIS_SEPARATOR, j],
    ],
)
def test_refuses_separators_with_nothing_to_separate(two, refusal, index_map):
    assert refusal(two.s[two.P].transform_layout, index_map) == (
        "transform_layout P: a separator has no axis on one of its sides\n"
        "  hint      it stands between axes: [i, te.AXIS_SEPARATOR, j]"
    )


def test_refuses_padding_of_separated_dimensions(two, refusal):
    axes = two.s[two.P].transform_layout(separated)
    assert refusal(two.s[two.P].storage_align, axes[1], 8) == (
        "storage_align P.i: the dimensions of P lie in several of the memory\n"
        "  hint      padding is for flat memory: leave it out, or te.AXIS_SEPARATOR"
    )


def test_separators_are_no_indices():
    with pytest.raises(TypeError):
        te.AXIS_SEPARATOR + 1


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda i, j: [i, j][5], "IndexError: list index out of range"),
        (lambda i, j: [{}[j], i], "KeyError: "),
        (lambda i, j: [missing, j], "NameError: name 'missing' is not defined"),  # noqa: F821
        (lambda i, j: [i.nothing, j], "AttributeError: "),
        (lambda i, j: [i, 1 // 0], "ZeroDivisionError: "),
    ],
    ids=["index", "key", "name", "attribute", "zero"],
)
def test_an_error_in_the_function_is_wrapped(two, function, got):
    here = two.s.node
    with pytest.raises(ScheduleError) as caught:
        two.s[two.P].transform_layout(function)
    first, second, *_, last = str(caught.value).splitlines()
    assert first == "transform_layout P: the function of the axes fails"
    assert second.startswith(f"  got       {got}")
    assert last.startswith("  hint      it is called with i, j, and may return sums of axes")
    assert two.s.node is here
    assert not two.s.can("transform_layout", two.s[two.P], function)
