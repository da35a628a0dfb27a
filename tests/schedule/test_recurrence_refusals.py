"""Recurrences scheduled: what is refused."""

import pytest

from dlcompiler import te
from dlcompiler.autotune.features.space_features import features_of
from dlcompiler.errors import ScheduleError, TuningError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.recurrences import running, two_stages
from tests.schedule.test_recurrences import scheduled


def refused(call, *lines):
    with pytest.raises(ScheduleError) as caught:
        call()
    assert str(caught.value) == "\n".join(lines)


@pytest.mark.parametrize(
    ("primitive", "word"),
    [("vectorize", "vectorized"), ("parallel", "parallel"), ("bind", "bound to threads")],
)
@pytest.mark.parametrize("part", ["S", "step"])
def test_time_is_not_concurrent(primitive, word, part):
    r = running(6, 5)
    s = scheduled(r)
    axis = r.S.op.scan_axis if part == "S" else r.step.op.axis[0]
    more = [te.thread_axis("threadIdx.x")] if primitive == "bind" else []
    refused(
        lambda: getattr(s[r.tensors[part]], primitive)(axis, *more),
        f"{primitive} {part}.{'idx' if part == 'S' else 't'}: the time of a recurrence cannot be "
        f"{word}",
        f"  got       stage {part}",
        "  because   each step reads what earlier ones computed",
        "  hint      choose another axis of an update: the elements of one step are independent",
    )


def test_time_keeps_its_order():
    r = running(6, 5)
    s = scheduled(r)
    outer, inner = s[r.S].split(r.S.op.scan_axis, 2)
    refused(
        lambda: s[r.S].reorder(inner, outer),
        "reorder S (idx.inner, idx.outer): the steps of S keep their order",
        "  because   each step reads what earlier ones computed",
        "  hint      reorder the loops of one step: s[step]",
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda s, S: s.cache_write(S, "local"),
        lambda s, S: s[S].set_scope("local"),
        lambda s, S: s[S].compute_inline(),
        lambda s, S: s[S].double_buffer(),
        lambda s, S: s[S].storage_align(S.op.axis[0], 8),
        lambda s, S: s[S].transform_layout(lambda t: [t]),
    ],
)
def test_what_is_not_for_a_scan(call):
    r = running(6, 5)
    C = te.compute((6, 5), lambda t, i: r.S[t, i], name="C")
    s = create_schedule(C.op)
    with pytest.raises(ScheduleError, match="is not available on a scan"):
        call(s, r.S)


def test_a_scan_is_not_attached():
    r = running(6, 5)
    C = te.compute((6, 5), lambda t, i: r.S[t, i], name="C")
    s = create_schedule(C.op)
    refused(
        lambda: s[r.S].compute_at(s[C], C.op.axis[0]),
        "compute_at S at C.t: compute_at is not available on a scan",
        "  got       S, whose steps are computed once, in a loop nest of their own",
        "  hint      schedule what a step computes: s[step]",
    )


@pytest.mark.parametrize(
    ("part", "when"), [("first", "before all steps"), ("step", "at each step")]
)
def test_parts_have_their_place(part, when):
    r = running(6, 5)
    s = scheduled(r)
    tensor = r.tensors[part]
    for call, title in (
        (lambda: s[tensor].compute_at(s[r.S], r.S.op.scan_axis), f"compute_at {part} at S.idx"),
        (lambda: s[tensor].compute_inline(), f"compute_inline {part}"),
    ):
        refused(
            call,
            f"{title}: {part} is part of a scan: it is computed {when}",
            "  hint      attach or inline the stages that it reads",
        )
    refused(
        lambda: s[tensor].set_scope("local"),
        f"set_scope {part}: {part} is stored in the result of a scan, over all time",
        f'  hint      compute it in a buffer of its own: s.cache_write({part}, "local")',
    )
    refused(
        lambda: s.cache_read(tensor, "local", [r.S]),
        f"cache_read {part}: S is a scan: it stores {part} itself, and reads no copy",
        "  hint      let the stages of its cell read a copy, or readers of S",
    )


def test_a_step_is_not_computed_ahead():
    r = two_stages(8, 5)
    s = scheduled(r)
    refused(
        lambda: s[r.s1].double_buffer(),
        "double_buffer s1: s1 is computed at each step of S, for this step only",
        "  because   later steps read what this one computes",
    )
    outer, _ = s[r.S].split(r.S.op.scan_axis, 2)
    refused(
        lambda: s[r.s1].compute_at(s[r.S], outer),
        "compute_at s1 at S.idx.outer: s1 would read state[t - 1, i] at steps that are not "
        "computed then",
        "  because   s1 is computed for several steps of S at once",
        "  hint      compute it in the innermost loop over time: s[s1].compute_root()",
    )


def test_a_step_does_not_roll_and_is_in_no_group():
    r = two_stages(8, 5)
    s = scheduled(r)
    with pytest.raises(ScheduleError, match="s1 is computed at each step of S, for this step only"):
        s[r.s1].rolling_buffer()
    for outputs in (r.s2, r.S):
        with pytest.raises(ScheduleError, match="is part of a recurrence, which no group can move"):
            s.create_group(outputs=[outputs], inputs=[r.X])


def test_a_state_has_no_stage():
    r = running(6, 5)
    s = scheduled(r)
    refused(
        lambda: s[r.state],
        "schedule['state']: state is a state of S: it has no stage of its own",
        "  hint      s[S] has the loop over time, and the buffer",
    )


def test_parts_are_no_arguments():
    r = running(6, 5)
    refused(
        lambda: lower(scheduled(r), [r.X, r.S, r.first]),
        "lower main: the argument first is stored in S",
        "  hint      leave it out of the arguments: it is a part of a scan",
    )


def test_moves_name_the_loop_over_time():
    r = two_stages(6, 5)
    s = scheduled(r)
    moves = {(move.primitive, *move.targets): bool(move.verdict) for move in s.moves()}
    assert moves["unroll", "S.idx"]
    assert not moves["parallel", "S.idx"]
    assert moves["compute_at", "s1", "S.idx"]
    assert moves["parallel", "s2.i"]


def test_cost_models_do_not_know_them():
    r = running(6, 5)
    with pytest.raises(TuningError) as caught:
        features_of(scheduled(r).state, resolve("cpu"))
    assert str(caught.value) == (
        "features of a schedule: a recurrence has none yet\n"
        "  got       S\n"
        '  hint      tune without a cost model: tuner="random"'
    )
