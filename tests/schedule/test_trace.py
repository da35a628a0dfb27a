"""Traces: JSON and back, replay on this and other shapes, and Python that does the same."""

import json

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import structural_equal
from dlcompiler.pipeline import lower
from dlcompiler.schedule import Trace, create_schedule
from dlcompiler.schedule.primitives import REGISTRY


def matmul_tensors(n=4, m=6, length=8):
    A = te.placeholder((n, length), name="A")
    B = te.placeholder((length, m), name="B")
    k = te.reduce_axis((0, length), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def classic(s, C, x=2, y=3):
    """The classic schedule of a matmul: tiles, a write cache, vectors, threads."""
    cached = s.cache_write(C, "local")
    io, jo, _, ji = s[C].tile(*C.op.axis, x, y)
    s[cached].compute_at(s[C], jo)
    i, j = s[cached].op.axis
    ko, ki = s[cached].split(s[cached].op.reduce_axis[0], 4)
    s[cached].reorder(ko, i, ki, j)
    s[cached].vectorize(j)
    s[cached].unroll(ki)
    s[C].vectorize(ji)
    s[C].parallel(io)


def test_reads_as_a_list_of_steps(golden):
    _, _, C = matmul_tensors()
    s = create_schedule(C.op)
    assert repr(s.trace) == "(no steps)"
    classic(s, C)
    golden("steps", repr(s.trace))


def test_survives_json():
    _, _, C = matmul_tensors()
    s = create_schedule(C.op)
    classic(s, C)
    read = Trace.from_json(s.trace.to_json())
    assert read.steps == s.trace.steps
    assert json.loads(s.trace.to_json())["version"] == 1


def test_replay_reaches_the_same_state():
    A, B, C = matmul_tensors()
    s = create_schedule(C.op)
    classic(s, C)
    other = create_schedule(C.op)
    Trace.from_json(s.trace.to_json()).replay(other)
    assert other.state.id == s.state.id
    assert structural_equal(lower(other, [A, B, C]).body, lower(s, [A, B, C]).body)


def test_replay_on_another_shape_is_the_same_schedule_of_that_shape():
    _, _, C = matmul_tensors()
    s = create_schedule(C.op)
    classic(s, C)
    A, B, C = matmul_tensors(13, 7, 9)
    replayed, written = create_schedule(C.op), create_schedule(C.op)
    s.trace.replay(replayed)
    classic(written, C)
    assert structural_equal(lower(replayed, [A, B, C]).body, lower(written, [A, B, C]).body)


def test_replay_stands_where_it_failed(refusal):
    _, _, C = matmul_tensors()
    s = create_schedule(C.op)
    steps = (
        '{"version": 1, "steps": [{"primitive": "split", "stage": "C", "args": '
        '{"axis": "i", "factor": 2}}, {"primitive": "vectorize", "stage": "C", "args": '
        '{"axis": "i"}}]}'
    )
    assert refusal(Trace.from_json(steps).replay, s) == (
        "vectorize C.i: it was split into i.outer and i.inner\n"
        "  got       axis i of stage C\n"
        "  hint      the loops are now: i.outer, i.inner, j, k"
    )
    assert str(s.trace) == "split C i 2"


# -- malformed ------------------------------------------------------------------------------------


def trace(primitive, stage, **args):
    return json.dumps(
        {"version": 1, "steps": [{"primitive": primitive, "stage": stage, "args": args}]}
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{",
            "read a trace: not JSON\n  got       Expecting property name enclosed in double "
            "quotes: line 1 column 2 (char 1)",
        ),
        (
            "[]",
            "read a trace: not a trace of this version\n  got       'list'\n  expected  version 1",
        ),
        (
            '{"version": 2, "steps": []}',
            "read a trace: not a trace of this version\n  got       2\n  expected  version 1",
        ),
        ('{"version": 1}', "read a trace: 'steps' is not a list\n  got       None"),
        (
            '{"version": 1, "steps": [3]}',
            "read a trace: a step is malformed\n  got       3\n"
            '  expected  {"primitive": "split", "stage": "C", "args": {…}}',
        ),
        (
            '{"version": 1, "steps": [{"primitive": "split", "stage": 3, "args": {}}]}',
            "read a trace: a step is malformed\n"
            "  got       {'primitive': 'split', 'stage': 3, 'args': {}}\n"
            '  expected  {"primitive": "split", "stage": "C", "args": {…}}',
        ),
    ],
)
def test_refuses_text_that_is_no_trace(refusal, text, expected):
    assert refusal(Trace.from_json, text) == expected


@pytest.mark.parametrize("text", ["[" * 100_000, "", "null", None, b"\xff", 3])
def test_refuses_any_other_text(refusal, text):
    assert refusal(Trace.from_json, text).startswith("read a trace: not ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            trace("__import__", "C"),
            f"replay __import__ C: no such primitive\n  expected  {', '.join(sorted(REGISTRY))}",
        ),
        (
            trace("split", "D", axis="i", factor=2),
            "replay split D i 2: no stage 'D'\n  expected  A, B, C",
        ),
        (
            trace("split", "C", axis="x", factor=2),
            "replay split C x 2: stage C has no axis 'x'\n  expected  i, j, k",
        ),
        (
            trace("split", "C", axis=["i"], factor=2),
            "replay split C (i) 2: stage C has no axis ['i']\n  expected  i, j, k",
        ),
        (
            trace("split", "C", scope="local"),
            "replay split C local: unknown argument 'scope'\n"
            "  expected  axis, factor=None, nparts=None",
        ),
        (trace("split", "C"), "split C: axis must be given"),
        (trace("tile", "C", x="i", y="j"), "tile C (i, j): x_factor and y_factor must be given"),
        (trace("compute_at", "C", parent="B"), "compute_at C: axis must be given"),
        (
            trace("compute_at", "C", axis="i"),
            "replay compute_at C i: no stage None\n  expected  A, B, C",
        ),
        (
            trace("split", "C", axis="i", factor=[4]),
            "split C.i: factor must be an integer\n  got       [4] (list)",
        ),
        (
            trace("split", "C", axis="i", factor=True),
            "split C.i: factor must be an integer\n  got       True (bool)",
        ),
        (
            trace("cache_write", "C", scope=["local"]),
            "replay cache_write C (local): ['local'] is not a text\n  expected  a text",
        ),
        (
            trace("fuse", "C", axes={"i": 1}),
            "replay fuse C {'i': 1}: stage C has no axis {'i': 1}\n  expected  i, j, k",
        ),
    ],
)
def test_refuses_to_replay_a_malformed_step(matmul, refusal, text, expected):
    assert refusal(Trace.from_json(text).replay, matmul.s) == expected


def test_extra_digits_are_only_a_large_factor(matmul):
    with pytest.raises(ScheduleError, match="an integer of 401 digits"):
        Trace.from_json(trace("split", "C", axis="i", factor=10**400))
    text = trace("split", "C", axis="i", factor=10**90)
    Trace.from_json(text).replay(matmul.s)
    assert [axis.extent for axis in matmul.s[matmul.C].leaf_iter_vars] == [1, 4, 6, 8]


# -- to_python ------------------------------------------------------------------------------------


def check_python(s, tensors):
    """The code of a trace makes a schedule that lowers to the same program; return the code."""
    code = s.trace.to_python()
    variables = {tensor.name: tensor for tensor in tensors}
    exec(code, {"te": Language, **variables}, variables)
    args = [stage.tensor for stage in s.stages if stage.state.is_placeholder]
    args += s.outputs
    again = lower(variables["s"], args)
    assert structural_equal(again.body, lower(s, args).body), code
    return code


class Language:
    """What the code of a trace needs of ``te``; the facade puts create_schedule there."""

    create_schedule = staticmethod(create_schedule)


def test_python_of_the_classic_schedule(golden):
    tensors = matmul_tensors(16, 12, 8)
    s = create_schedule(tensors[2].op)
    classic(s, tensors[2])
    golden("python", check_python(s, tensors))


def split_twice(s, C):
    outer, _ = s[C].split(C.op.axis[0], 2)
    s[C].split(outer, nparts=2)


def fuse_many(s, C):
    fused = s[C].fuse(*C.op.axis)
    outer, inner = s[C].split(fused, 5)
    s[C].split(s[C].fuse(outer, inner), nparts=3)


def fuse_three(s, C):
    outer, inner = s[C].split(C.op.axis[0], 2)
    s[C].split(s[C].fuse(outer, inner, C.op.axis[1]), 4)


def cache_of_a_cache(s, C):
    cached = s.cache_write(s.cache_write(C, "local"), "global")
    s[cached].split(s[cached].op.axis[0], 2)
    s[cached].split(s[cached].op.reduce_axis[0], 2)


def cached_twice(s, C):
    first, second = s.cache_write(C, "local"), s.cache_write(C, "local")
    s[first].split(s[first].op.reduce_axis[0], 2)
    s[second].split(s[second].op.axis[0], 2)
    s[second].compute_at(s[C], C.op.axis[0])


def scheduled_before_the_cache(s, C):
    cached = s.cache_write(C, "local")
    _, inner = s[C].split(C.op.axis[1], 4)
    s[C].vectorize(inner)
    s[cached].compute_at(s[C], C.op.axis[0])
    s[cached].compute_root()


def nothing(s, C):
    pass


@pytest.mark.parametrize(
    "schedule",
    [
        nothing,
        split_twice,
        fuse_many,
        fuse_three,
        cache_of_a_cache,
        cached_twice,
        scheduled_before_the_cache,
        classic,
    ],
)
@pytest.mark.parametrize("sizes", [(4, 6, 8), (7, 5, 3)])
def test_python_replays(schedule, sizes):
    tensors = matmul_tensors(*sizes)
    s = create_schedule(tensors[2].op)
    schedule(s, tensors[2])
    check_python(s, tensors)


def test_python_of_attached_and_inlined_stages(chain):
    outer, _ = chain.s[chain.D].split(chain.D.op.axis[0], 4)
    chain.s[chain.Q].compute_at(chain.s[chain.D], outer)
    chain.s[chain.P].compute_inline()
    check_python(chain.s, [chain.A, chain.P, chain.Q, chain.D])


def test_python_of_axes_with_one_name():
    A = te.placeholder((4, 8), name="A")
    x = te.reduce_axis((0, 8), name="x")
    R = te.compute((4,), lambda x_: te.sum(A[x_, x], axis=x), name="x")
    s = create_schedule(R.op)
    cached = s.cache_write(R, "local")
    s[cached].split(x, 2)
    s[R].split(R.op.axis[0], 2)
    check_python(s, [A, R])


def test_python_of_outputs_given_in_the_opposite_order():
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    P = te.compute((4,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((4,), lambda i: B[i] + 1.0, name="Q")
    R = te.compute((4,), lambda i: P[i] + Q[i], name="R")
    s = create_schedule([R.op, Q.op])
    again = create_schedule([Q.op, R.op])
    assert s.trace.to_python().endswith("create_schedule([Q.op, R.op])\n")
    assert s.state.id == again.state.id
    assert [stage.name for stage in s.stages] == [stage.name for stage in again.stages]


def test_python_of_several_outputs():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule([B.op, C.op])
    s[B].vectorize(B.op.axis[0])
    assert "te.create_schedule([B.op, C.op])" in check_python(s, [A, B, C])


@pytest.mark.parametrize(
    ("name", "variable"), [("s", "s_1"), ("te", "te_1"), ("lambda", "lambda_1"), ("A.b", "A_b")]
)
def test_python_says_which_variable_stands_for_an_awkward_name(name, variable):
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: A[i] + 1.0, name=name)
    s = create_schedule(C.op)
    s[C].split(C.op.axis[0], 2)
    assert s.trace.to_python() == (
        f"# {variable} is the tensor {name!r}\n"
        f"s = te.create_schedule({variable}.op)\n"
        f"(i,) = s[{variable}].op.axis\n"
        f"i_outer, i_inner = s[{variable}].split(i, factor=2)\n"
    )


def test_python_takes_another_name_for_the_schedule(matmul):
    matmul.s[matmul.C].unroll(matmul.k)
    assert matmul.s.trace.to_python("plan").splitlines()[0] == "plan = te.create_schedule(C.op)"


def test_python_of_a_trace_that_was_read(matmul, refusal):
    read = Trace.from_json(matmul.s.trace.to_json())
    assert refusal(read.to_python) == (
        "print a trace: a trace that was read has no tensors\n"
        "  hint      replay it on a schedule, and print that one's trace"
    )


@pytest.mark.parametrize("value", [[], [[1]], {}])
@pytest.mark.parametrize("pragma", ["vectorize", "auto_unroll_max_step"])
def test_a_list_is_no_number(matmul, pragma, value):
    text = trace("pragma", "C", axis="j", pragma_type=pragma, pragma_value=value)
    with pytest.raises(ScheduleError, match="pragma_value must be an integer"):
        Trace.from_json(text).replay(matmul.s)
