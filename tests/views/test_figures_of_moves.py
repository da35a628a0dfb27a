"""The figures of a preview: bytes for each level of memory, and the predicted time."""

from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.target.presets import X86_64_AVX2
from dlcompiler.views.memory.levels import level_metrics
from dlcompiler.views.memory.metrics import metrics
from dlcompiler.views.moves.figures import figures, models_of
from dlcompiler.views.moves.predicted_time import predicted_time


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
