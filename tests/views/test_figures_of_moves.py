"""The figures of a preview: bytes for each level of memory, and the predicted time."""

import random
from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.pipeline.checks import default_args
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.trace import encode
from dlcompiler.target import resolve
from dlcompiler.target.presets import X86_64_AVX2
from dlcompiler.views import preview
from dlcompiler.views.memory.levels import level_metrics
from dlcompiler.views.memory.metrics import metrics
from dlcompiler.views.moves.figures import figures, models_of
from dlcompiler.views.moves.predicted_time import predicted_time
from tests.analysis.test_footprint import random_schedule
from tests.fuzz.walks import Walk, candidates_of


def moved(program, args, target=X86_64_AVX2):
    return {item["name"]: item["value"] for item in level_metrics(program, args, target)}


def product(n):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def test_a_tile_moves_fewer_bytes_into_the_nearest_caches():
    args = product(512)
    s = create_schedule(args[-1].op)
    before = moved(s, args)
    s[args[-1]].tile(*args[-1].op.axis, 16, 16)
    after = moved(s, args)
    assert list(before) == ["L1d ↔ L2", "L2 ↔ L3", "L3 ↔ memory"]
    assert after["L2 ↔ L3"] < before["L2 ↔ L3"] / 4
    last = next(m["value"] for m in metrics(s, args, X86_64_AVX2) if m["name"] == "memory traffic")
    assert after["L3 ↔ memory"] == last


@pytest.mark.parametrize("count", [0, 1, 2])
def test_each_cache_of_a_target_has_a_line(plain, tensors, count):
    target = replace(X86_64_AVX2, caches=X86_64_AVX2.caches[:count])
    names = list(moved(plain, tensors, target))
    assert names == [["to and from memory"], ["L1d ↔ memory"], ["L1d ↔ L2", "L2 ↔ memory"]][count]


def test_a_vector_and_two_cores_take_less_time(plain, tensors):
    C, two = tensors[-1], replace(X86_64_AVX2, cores=2)
    i, j = C.op.axis
    plain[C].reorder(*C.op.reduce_axis, j)
    plain[C].vectorize(j)
    one = predicted_time(plain, tensors, two)
    plain[C].parallel(i)
    both = predicted_time(plain, tensors, two)
    assert (one["kind"], one["unit"]) == ("predicted", "s")
    assert both["value"] < one["value"]


def test_a_device_has_no_such_model(plain, tensors):
    shown = figures(plain, tensors, resolve("v100"))
    assert [m["name"] for m in shown if m["value"] is None] == [
        "to and from memory",
        "time of a call",
    ]
    assert all("threads of a device" in m["text"] for m in shown if m["value"] is None)


def test_a_pending_obligation_is_the_reason(plain, tensors):
    cached = plain.cache_write(tensors[-1], "local")
    plain[cached].double_buffer()
    assert {m["value"] for m in figures(plain, tensors, X86_64_AVX2)} == {None}


def test_each_predicted_figure_has_its_model():
    models = models_of(["byte", "s"])
    assert [each["of"] for each in models] == ["bytes", "time"]
    assert "cache model" in models[0]["text"]
    assert "roofline model" in models[1]["text"]


def test_loops_of_one_iteration_change_no_time():
    A = te.placeholder((64, 8), name="A")
    B = te.compute((64, 8, 1), lambda i, j, one: A[i, j] * 2.0, name="B")
    plain, idle = create_schedule(B.op), create_schedule(B.op)
    for s in (plain, idle):
        s[B].vectorize(B.op.axis[1])
    idle[B].unroll(B.op.axis[2])
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((64, 1), lambda i, one: te.sum(A[i, k], axis=k), name="C")
    sums, reordered = create_schedule(C.op), create_schedule(C.op)
    for s in (sums, reordered):
        s[C].unroll(k)
    reordered[C].reorder(k, C.op.axis[1])
    for one, other, args in ((plain, idle, [A, B]), (sums, reordered, [A, C])):
        times = [predicted_time(s, args, X86_64_AVX2)["value"] for s in (one, other)]
        assert times[0] == times[1]


def steps(seed):
    """Yield random legal steps: a schedule before the step, the step, and its arguments."""
    s, rng = random_schedule(seed), random.Random(seed)
    for _ in range(4):
        stage = rng.choice([each for each in s.stages if not each.state.is_placeholder]).name
        candidates = candidates_of(s, stage)
        if not candidates:
            continue
        name, args = rng.choice(candidates)
        walk = Walk(rng, s)
        move = walk.asked(stage, name, args)
        if move.verdict:
            args = {**move.args, **walk.parameters(move)}
            yield s, encode(REGISTRY[name], s.state, s.state.stage(stage), args), args


@pytest.mark.campaign
@pytest.mark.parametrize("first", [0, 15])
def test_a_preview_says_what_the_state_shows_once_the_step_is_made(first):
    made = 0
    for seed in range(first, first + 15):
        for s, step, args in steps(seed):
            view = preview(s, step, of, X86_64_AVX2)
            if view["status"] == "illegal":
                continue  # a parameter brings it about
            before = {each["name"]: each for each in of(s)}
            s.apply(step.primitive, step.stage, args)
            after = {each["name"]: each for each in of(s)}
            known = [name for name in before if name in after
                     and None not in (before[name]["value"], after[name]["value"])]  # fmt: skip
            shown = {each["name"]: (each["before"], each["after"]) for each in view["metrics"]}
            want = {name: (before[name]["text"], after[name]["text"]) for name in known}
            assert shown == want, (seed, str(step))
            if view["status"] == "done":
                same = {each["name"] for each in view["metrics"] if each["change"] == "same"}
                assert same >= set(known) - {"time of a call"}, (seed, str(step))
            made += 1
    assert made > 15


def of(schedule):
    return figures(schedule, default_args(schedule), X86_64_AVX2)
