"""The nearest legal change to a refused step, primitive by primitive, and on random schedules."""

import random

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import Illegal, Step, create_schedule
from dlcompiler.schedule.moves import suggestions
from dlcompiler.schedule.moves.enumeration import moves_of
from dlcompiler.schedule.moves.suggestions import Suggestion, suggestion
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.trace import decode
from tests.fuzz.expressions import random_expression
from tests.fuzz.walks import Walk


def apply_all(schedule, found):
    """Take the steps of an answer, one after another, on a fork; they must be legal."""
    fork = schedule.fork("tried")
    if found.start:
        fork.jump(found.start)
    for step in found.steps:
        fork.apply(step.primitive, step.stage, decode(fork.state, step))
    return fork


@pytest.fixture
def answer():
    """Return the words of the nearest change, after its steps were taken."""

    def ask(schedule, name, stage, **args):
        before, count = schedule.state, len(schedule.history.history.nodes)
        found = suggestion(schedule, name, stage, args)
        assert schedule.state is before
        assert len(schedule.history.history.nodes) == count, "the history grew"
        if found is None:
            return None
        apply_all(schedule, found)
        return found.text

    return ask


def test_another_loop_or_another_thread_axis(matmul, answer):
    s = matmul.s
    assert (
        answer(s, "bind", "C", axis=matmul.k, thread="blockIdx.x") == "bind i to blockIdx.x instead"
    )
    s[matmul.C].bind(matmul.i, te.thread_axis("threadIdx.x"))
    assert (
        answer(s, "bind", "C", axis=matmul.j, thread="threadIdx.x")
        == "bind j to blockIdx.x instead"
    )


def test_a_legal_step_has_none(matmul, answer):
    assert answer(matmul.s, "vectorize", "C", axis=matmul.j) is None


def test_split_by_a_divisor(matmul, answer):
    assert answer(matmul.s, "split", "C", axis=matmul.k, factor=0) == "use 2 instead of 0"
    assert answer(matmul.s, "split", "C", axis=matmul.k, factor=3.5) == "use 4 instead of 3.5"
    assert answer(matmul.s, "split", "C", axis=matmul.k, nparts=-1) == "use 2 instead of -1"
    assert answer(matmul.s, "split", "C", axis=matmul.k, factor="x") == "use 4 instead of 'x'"
    assert answer(matmul.s, "split", "C", axis=matmul.k, factor="4") == "use 4 instead of '4'"
    zero = te.const(0, "int32")
    assert answer(matmul.s, "split", "C", axis=matmul.k, factor=zero) == "use 2 instead of 0"
    assert answer(matmul.s, "split", "C", axis=matmul.k, factor=np.arange(2)) == (
        "use 4 instead of [0 1]"
    )
    huge = 10**5000
    assert answer(matmul.s, "split", "C", axis=matmul.k, factor=-huge) == (
        "use 2 instead of an integer of 16610 bits"
    )


def test_split_of_a_loop_that_is_vectorized(matmul, answer):
    matmul.s[matmul.C].vectorize(matmul.j)
    assert answer(matmul.s, "split", "C", axis=matmul.j, factor=4) == (
        "split j by 4 earlier, before “vectorize C j”"
    )
    matmul.s[matmul.C].reorder(matmul.j, matmul.i)
    found = suggestion(matmul.s, "split", "C", {"axis": matmul.j, "factor": 0})
    assert found.text == "split i by 2 instead"


def test_tile(matmul, answer):
    call = {"x": matmul.i, "y": matmul.j, "x_factor": 0, "y_factor": 4}
    assert answer(matmul.s, "tile", "C", **call) == "use 2 × 3 instead of 0 × 4"
    matmul.s[matmul.C].vectorize(matmul.j)
    call["x_factor"] = 2
    assert answer(matmul.s, "tile", "C", **call) == (
        "tile C i j 2 4 earlier, before “vectorize C j”"
    )


def test_reorder_stays_near(matmul, answer):
    s = matmul.s
    s[matmul.C].vectorize(matmul.i)
    s[matmul.C].reorder(matmul.k, matmul.i)
    s[matmul.C].parallel(matmul.k) if s.can("parallel", matmul.k) else None
    s[matmul.C].reorder(matmul.j, matmul.i)
    s[matmul.C].parallel(matmul.j)
    verdict = s.can("reorder", matmul.i, matmul.j)
    assert "inside a vectorized" in verdict.reason
    assert set(verdict.conflicts) == {"C/i", "C/j"}
    text = answer(s, "reorder", "C", axes=(matmul.i, matmul.j))
    assert text.startswith("reorder to")


def test_reorder_of_an_axis_given_twice(matmul, answer):
    text = answer(matmul.s, "reorder", "C", axes=(matmul.i, matmul.i))
    assert text == "reorder to j, i instead"


def test_fuse(matmul, answer):
    s, i, j, k = matmul.s, matmul.i, matmul.j, matmul.k
    assert answer(s, "fuse", "C", axes=(j, k)) == "fuse i and j instead"
    s[matmul.C].reorder(i, k, j)
    assert answer(s, "fuse", "C", axes=(i, j)) == "reorder to i, j, k, then fuse i and j"
    assert s.can("fuse", i, j).conflicts == ("C/k",)


def test_vectorize_takes_the_innermost_data_loop(matmul, answer):
    assert answer(matmul.s, "vectorize", "C", axis=matmul.k) == "vectorize j instead"
    assert matmul.s.can("vectorize", matmul.k).conflicts == ("C/k", "C//body")


def test_parallel_takes_the_outermost_data_loop(matmul, answer):
    assert answer(matmul.s, "parallel", "C", axis=matmul.k) == "parallel i instead"


@pytest.fixture
def total():
    A = te.placeholder((64,), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    return create_schedule(B.op), k


def test_a_reduction_to_a_number_is_factored(total, answer):
    s, k = total
    assert answer(s, "vectorize", "B", axis=k) == (
        "split k by 16, then rfactor k.inner, then vectorize B.rf.k.inner"
    )
    assert answer(s, "parallel", "B", axis=k) == (
        "split k by 16, then rfactor k.outer, then parallel B.rf.k.outer"
    )


def test_a_second_vectorized_loop_is_unrolled(matmul, answer):
    matmul.s[matmul.C].vectorize(matmul.j)
    assert answer(matmul.s, "vectorize", "C", axis=matmul.i) == "unroll i instead"


def test_unroll_of_a_long_loop(answer):
    A = te.placeholder((4096,), name="A")
    B = te.compute((4096,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    text = answer(s, "unroll", "B", axis=B.op.axis[0])
    assert text == "split i by 16, then unroll i.inner"


def test_rfactor_of_a_data_loop(matmul, answer):
    assert answer(matmul.s, "rfactor", "C", axis=matmul.i) == "rfactor k instead"
    assert answer(matmul.s, "rfactor", "C", axis=matmul.k, factor_axis=9) == "rfactor k instead"


def test_compute_at(chain, answer):
    s = chain.s
    assert answer(s, "compute_at", "P", parent="P", axis=chain.P.op.axis[0]) == (
        "compute P at Q.i instead"
    )


def test_compute_at_a_loop_too_far_in(answer):
    A = te.placeholder((8, 8), name="A")
    P = te.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="P")
    Q = te.compute((8, 8), lambda i, j: P[i, j] + 1.0, name="Q")
    R = te.compute((8, 8), lambda i, j: P[i, j] + Q[i, j], name="R")
    s = create_schedule(R.op)
    verdict = s.can("compute_at", P, Q, Q.op.axis[1])
    assert isinstance(verdict, Illegal)
    assert verdict.conflicts == ("Q/j", "R//body")
    assert answer(s, "compute_at", "P", parent="Q", axis=Q.op.axis[1]) == (
        "compute P at R.j instead"
    )


def test_compute_inline(answer):
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    P = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="P")
    Q = te.compute((8,), lambda i: P[i] + 1.0, name="Q")
    s = create_schedule(Q.op)
    assert answer(s, "compute_inline", "P") == "compute P at Q.i instead"
    assert s.can("compute_inline", P).conflicts == ("P/k", "P//body")
    assert answer(s, "compute_inline", "Q") is None


def test_an_output_is_not_inlined_but_what_it_reads(chain, answer):
    assert answer(chain.s, "compute_inline", "D") == "inline Q instead"


def test_what_an_output_cannot_have_its_cache_can(matmul, answer):
    s = matmul.s
    first = "cache_write C in local, then "
    assert answer(s, "set_scope", "C", scope="local") == f"{first}set_scope C.local local"
    assert answer(s, "storage_align", "C", axis=matmul.i, factor=8) == (
        f"{first}storage_align C.local i.c 8"
    )
    assert answer(s, "align_extent", "C", axis=matmul.j, factor=8) == (
        f"{first}align_extent C.local j.c 8"
    )
    assert answer(s, "double_buffer", "C") == f"{first}double_buffer C.local"
    assert answer(s, "transform_layout", "C", index_map="lambda i, j: [j, i]").startswith(first)


def test_cache(matmul, answer):
    assert answer(matmul.s, "cache_write", "C", scope="attic") == ("cache_write C in local instead")
    assert answer(matmul.s, "cache_read", "A", scope="local", readers=()) == (
        "cache_read A in local instead"
    )


def test_an_inlined_stage_gets_loops_first(chain, answer):
    chain.s[chain.Q].compute_inline()
    assert answer(chain.s, "cache_write", "Q", scope="local") == (
        "compute Q on its own, then cache_write Q in local"
    )


def test_prefetch(matmul, answer):
    matmul.s[matmul.C].vectorize(matmul.j)
    assert answer(matmul.s, "prefetch", "C", tensor="A", axis=matmul.j, offset=2) == (
        "prefetch C A i 2 instead"
    )
    assert answer(matmul.s, "prefetch", "C", tensor="A", axis=matmul.i, offset=0) == (
        "use 1 instead of 0"
    )


def test_a_step_that_an_annotation_forbids_comes_before_it(matmul, answer):
    matmul.s[matmul.C].parallel(matmul.i)
    matmul.s[matmul.C].vectorize(matmul.j)
    assert answer(matmul.s, "cache_write", "C", scope="local") == (
        "cache_write C in local earlier, before “parallel C i”"
    )


def test_a_step_is_not_moved_before_one_that_undoes_it(chain, answer):
    """A double buffer made before `compute_inline` of the same stage would leave nothing of it."""
    chain.s[chain.P].compute_inline()
    assert isinstance(chain.s.attempt("double_buffer", "P", {}).verdict, Illegal)
    text = answer(chain.s, "double_buffer", "P")
    assert text is None or "earlier" not in text


def test_the_calls_tried_are_limited(matmul, monkeypatch):
    call = ("vectorize", "C", {"axis": matmul.k})
    monkeypatch.setattr(suggestions, "MAX_ATTEMPTS", 0)
    assert suggestion(matmul.s, *call) is None
    monkeypatch.setattr(suggestions, "MAX_ATTEMPTS", 1)
    assert suggestion(matmul.s, *call).text == "vectorize j instead"


def test_the_annotation_of_a_loop_that_is_split_earlier_goes_to_its_part(answer):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    (i,) = B.op.axis
    s[B].vectorize(i)
    found = suggestion(s, "split", "B", {"axis": i, "factor": 8})
    assert found.text == "split i by 8 earlier, before “vectorize B i”"
    assert [str(step) for step in found.steps] == ["split B i 8", "vectorize B i.inner"]
    assert str(apply_all(s, found).trace) == "split B i 8\nvectorize B i.inner"


def test_pragma(matmul, answer):
    call = {"axis": matmul.i, "pragma_type": "auto_unroll_max_step", "pragma_value": -1}
    assert answer(matmul.s, "pragma", "C", **call) == "use 16 instead of -1"


def test_a_state_that_is_only_looked_at_takes_no_step(matmul):
    attempt = matmul.s.attempt("split", "C", {"axis": matmul.i, "factor": 2})
    after = matmul.s.after(attempt)
    _, inner = attempt.result
    assert after.can("vectorize", inner)
    with pytest.raises(ScheduleError, match="only looked at"):
        after.apply("vectorize", "C", {"axis": inner})
    refused = matmul.s.attempt("split", "C", {"axis": matmul.i, "factor": 0})
    with pytest.raises(ScheduleError, match="illegal"):
        matmul.s.after(refused)


WRONG = (0, -1, 3, 1 << 50, 2.5, None)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(24))
def test_the_nearest_change_is_legal(seed):
    """On random schedules: what is offered in place of a refused move can be done."""
    rng = random.Random(seed)
    schedule = create_schedule([t.op for t in random_expression(rng).outputs])
    Walk(rng, schedule).run(6)
    for stage in schedule.state.stages:
        for move in moves_of(schedule, stage.name):
            numbers = {d.parameter: rng.choice(WRONG) for d in move.domains}
            args = {**move.args, **numbers}
            try:
                verdict = schedule.attempt(move.primitive, stage.name, args).verdict
            except ScheduleError:
                continue
            if isinstance(verdict, Illegal):
                answer = suggestion(schedule, move.primitive, stage.name, args)
                if answer is not None:
                    apply_all(schedule, answer)


def test_steps_are_data(matmul):
    answer = suggestion(matmul.s, "vectorize", "C", {"axis": matmul.k})
    assert answer.steps == (Step("vectorize", "C", {"axis": "j"}),)


def test_a_schedule_suggests(matmul):
    """`Schedule.suggest` takes the call as `Schedule.can` does."""
    found = matmul.s.suggest("split", matmul.k, factor=0)
    assert found == Suggestion(
        "use 2 instead of 0", (Step("split", "C", {"axis": "k", "factor": 2}),)
    )
    assert matmul.s.suggest("vectorize", matmul.j) is None


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_primitive_on_an_input_has_an_answer_or_none(matmul, name):
    """Bounds are inferred for computed stages only; an input has none."""
    row, column = matmul.i, matmul.j
    values = {"axis": row, "x": row, "y": column, "parent": "C", "axes": (row, column)}
    args = {n: values.get(n, 0) for n in REGISTRY[name].parameters if n != "nparts"}
    try:
        found = suggestion(matmul.s, name, "A", args)
    except ScheduleError:
        return
    if found is not None:
        apply_all(matmul.s, found)


@pytest.mark.parametrize("name", sorted(REGISTRY))
@pytest.mark.parametrize("sign", [0, 1, -1])
def test_a_primitive_on_an_inlined_stage_has_an_answer_or_none(chain, name, sign):
    """Bounds are inferred for stages with loops only; an inlined one has none."""
    chain.s[chain.P].compute_inline()
    args = dict.fromkeys(REGISTRY[name].parameters, sign * 10**5000)
    if "axis" in args:
        args["axis"] = chain.P.op.axis[0]
    try:
        found = suggestion(chain.s, name, "P", args)
    except ScheduleError:
        return
    if found is not None:
        apply_all(chain.s, found)


@pytest.mark.parametrize("args", [{}, {"parent": []}, {"parent": None, "axis": 3}])
def test_a_group_at_no_stage(chain, answer, args):
    chain.s.create_group(chain.Q, chain.P, include_inputs=True)
    assert answer(chain.s, "compute_group_at", "Q", **args) is None


@pytest.mark.parametrize("axis", ["i", (), None])
def test_storage_of_an_axis_that_is_none(matmul, axis):
    assert suggestion(matmul.s, "storage_align", "C", {"axis": axis, "factor": 8}) is None


def test_a_recurrence_whose_loop_is_no_axis(answer):
    X, state = (te.placeholder((4, 8), name=name) for name in ("X", "S"))
    init = te.compute((1, 8), lambda _, i: X[0, i], name="init")
    update = te.compute((4, 8), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    R = te.scan(init, update, state, inputs=[X])
    s = create_schedule(R.op)
    (name,) = [stage.name for stage in s.state.stages if stage.op is R.op]
    assert answer(s, "vectorize", name, axis={}) is None
