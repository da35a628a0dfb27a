"""`measure`, `compare` and the table of steps."""

import json

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import CallError, MeasurementError
from dlcompiler.measurement import RemoteKernel, StepTable, compare, measure, shared_worker
from dlcompiler.measurement.steps import STEPS_MIME
from dlcompiler.pipeline import build
from dlcompiler.schedule import create_schedule


def product(n=16):
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return create_schedule(c.op), [a, b, c]


def test_measure_gives_a_timing_with_the_work_of_the_expression():
    kernel = build(*product(), name="matmul")
    timing = measure(kernel, seconds=0.01)
    assert timing.median_s > 0
    assert timing.flops == 2 * 16**3
    assert timing.provenance.kind == "measured"


def test_measure_does_not_change_the_arrays():
    kernel = build(*product(), name="matmul")
    arrays = [np.ones((16, 16), np.float32) for _ in range(3)]
    measure(kernel, arrays, seconds=0.01)
    assert (arrays[2] == 1).all()


def test_measure_refuses_what_is_not_a_kernel():
    with pytest.raises(MeasurementError, match="not a kernel"):
        measure(len)


def test_measure_refuses_arrays_that_do_not_fit():
    kernel = build(*product(), name="matmul")
    with pytest.raises(CallError, match="argument 2"):
        measure(kernel, [np.ones((16, 16), np.float32), np.ones((16, 16)), np.ones((16, 16))])


def gather(index, size=50):
    rows = te.placeholder((20, 4), name="T")
    ids = te.placeholder((size,), "int32", name="I")
    looked_up = te.compute((size, 4), lambda i, j: rows[index(ids[i]), j], name="C")
    return create_schedule(looked_up.op), [rows, ids, looked_up]


@pytest.mark.parametrize("index", [lambda i: i, te.assume_bounds, lambda i: i - 1000])
def test_inputs_that_are_used_as_indices_are_drawn_so_that_they_name_elements(index):
    schedule, args = gather(index)
    assert measure(build(schedule, args), seconds=0.01).median_s > 0
    other = schedule.fork("parallel")
    other[args[2]].parallel(args[2].op.axis[0])
    assert compare(schedule, other, rounds=3).timing.ratio > 0
    assert StepTable().add("plain", schedule, args, rounds=3).timing.median_s > 0


def test_a_guarded_index_is_measured_where_it_names_an_element():
    schedule, args = gather(lambda i: te.if_then_else(i > 5, i, 0))
    assert measure(build(schedule, args), seconds=0.01).median_s > 0


def test_an_index_that_nothing_checks_is_not_drawn_at_random():
    floats = te.placeholder((5,), name="F")
    rows = te.placeholder((10,), name="T")
    looked_up = te.compute(
        (5,), lambda i: rows[te.assume_bounds(floats[i].astype("int32"))], name="C"
    )
    kernel = build(create_schedule(looked_up.op), [rows, floats, looked_up], name="loose")
    with pytest.raises(MeasurementError) as error:
        measure(kernel)
    assert str(error.value) == (
        "measure loose: no arrays can be drawn\n"
        "  got       F\n"
        "  because   its valid values are not known, and te.assume_bounds leaves checks out\n"
        "  hint      dlcompiler.measure(kernel, arrays)"
    )
    arrays = [np.ones(10, "float32"), np.ones(5, "float32"), np.ones(5, "float32")]
    assert measure(kernel, arrays, seconds=0.01).median_s > 0


def test_an_index_given_is_checked_when_it_is_measured():
    schedule, args = gather(lambda i: i)
    arrays = [np.ones((20, 4), "float32"), np.full(50, 20, "int32"), np.ones((50, 4), "float32")]
    with pytest.raises(MeasurementError, match=r"T\[.*\] is outside T: index 20 in dimension 0"):
        measure(build(schedule, args), arrays)


def test_no_arrays_are_drawn_of_a_size_that_is_not_known():
    n = te.var("n")
    given = te.placeholder((n,), name="A")
    twice = te.compute((n,), lambda i: given[i] * 2.0, name="B")
    with pytest.raises(MeasurementError) as error:
        measure(build(create_schedule(twice.op), [given, twice], name="twice"))
    assert str(error.value) == (
        "measure twice: no arrays can be drawn\n"
        "  got       A: float32[n]\n"
        "  because   the value of a symbol is not known\n"
        "  hint      dlcompiler.measure(kernel, arrays)"
    )


def test_a_kernel_of_any_size_is_measured_on_arrays():
    n, factor = te.var("n"), te.var("factor", "float32")
    given = te.placeholder((n,), name="A")
    scaled = te.compute((n,), lambda i: given[i] * factor, name="B")
    kernel = build(create_schedule(scaled.op), [given, factor, scaled], name="scale")
    arrays = [np.ones(40, "float32"), 2.0, np.ones(40, "float32")]
    assert measure(kernel, arrays, seconds=0.01).median_s > 0
    with pytest.raises(CallError, match="n is both 40 and 41"):
        measure(kernel, [*arrays[:2], np.ones(41, "float32")])


def test_a_kernel_is_loaded_again_after_its_worker_ended():
    remote = RemoteKernel.of(build(*product(), name="matmul"))
    remote.time(limits={"min_seconds": 0.01}, timeout_s=30)
    shared_worker().close()
    assert remote.time(limits={"min_seconds": 0.01}, timeout_s=30).median_s > 0


def test_an_unknown_baseline_is_refused():
    remote = RemoteKernel.of(build(*product(), name="matmul"))
    with pytest.raises(MeasurementError, match="no such baseline"):
        remote.pair("numpy.nothing", limits={"rounds": 1}, timeout_s=30)


def test_compare_measures_both_and_shows_the_difference():
    a, args = product()
    b = a.fork("tiled")
    i, j = args[2].op.axis
    b[args[2]].tile(i, j, 4, 4)
    result = compare(a, b, rounds=3)
    assert (result.a, result.b) == ("main", "tiled")
    assert "+    for i.outer in range(4):" in result.diff
    assert "tiled takes" in repr(result)


def test_the_table_verifies_measures_and_shows_each_step():
    table = StepTable("numpy.matmul")
    schedule, args = product()
    table.add("plain", schedule, args, rounds=3)
    i, j = args[2].op.axis
    schedule[args[2]].tile(i, j, 4, 4)
    step = table.add("tiled", schedule, args, rounds=3)
    assert step.ratio is not None
    assert step.ratio > 0
    assert [row["step"] for row in table.rows()] == ["plain", "tiled"]
    assert table["tiled"] is step
    assert "verified" in repr(table)
    assert "(measured on " in repr(table)


def test_a_step_keeps_its_state_when_the_schedule_goes_on():
    table = StepTable()
    schedule, args = product()
    step = table.add("plain", schedule, args, rounds=3)
    i, j = args[2].op.axis
    schedule[args[2]].tile(i, j, 4, 4)
    assert step.schedule.state is not schedule.state


def test_the_bundle_is_json_and_html_without_scripts():
    table = StepTable()
    table.add("<img src=x onerror=alert(1)>", *product(), rounds=3)
    bundle = table._repr_mimebundle_()
    assert json.loads(json.dumps(bundle[STEPS_MIME]))["version"] == 1
    assert "<img" not in bundle["text/html"]
    assert "<script" not in bundle["text/html"]


def test_an_unknown_step_is_refused():
    with pytest.raises(MeasurementError, match="no such step"):
        StepTable()["nothing"]
