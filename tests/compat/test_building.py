"""What `lower` and `build` take of classic code."""

from contextlib import nullcontext as _nothing

import numpy as np
import pytest

from dlcompiler.compat import tvm
from dlcompiler.compat.tvm import autotvm, te, topi


def _layer(has_bias):
    x, w = te.placeholder((4, 8), name="x"), te.placeholder((6, 8), name="w")
    bias = te.placeholder((6,), name="bias")
    out = topi.nn.dense(x, w, bias if has_bias else None)
    return te.create_schedule(out.op), [x, w, bias, out]


@pytest.mark.parametrize("target", ["llvm", "c", "cuda"])
@pytest.mark.parametrize("has_bias", [True, False])
def test_an_optional_bias_is_an_argument_in_any_case(target, has_bias):
    s, args = _layer(has_bias)
    out = args[-1]
    if target == "cuda":
        for stage in s.stages:
            if isinstance(stage.op, te.tensor.ComputeOp):
                stage.bind(stage.op.axis[0], te.thread_axis("threadIdx.x"))
    assert "bias: float32[6]" in str(tvm.lower(s, args, simple_mode=True))
    with pytest.warns() if target == "cuda" else _nothing():
        built = tvm.build(s, args, target)
    rng = np.random.default_rng(0)
    x, w, bias = (rng.random(t.static_shape, "float32") for t in args[:3])
    got = np.empty(out.static_shape, "float32")
    built(x, w, bias, got)
    np.testing.assert_allclose(got, x @ w.T + (bias if has_bias else 0), rtol=1e-5)


def test_a_lowered_program_keeps_what_nothing_reads():
    s, args = _layer(False)
    built = tvm.build(tvm.lower(s, args, name="layer"))
    arrays = [np.ones(t.static_shape, "float32") for t in args]
    built["layer"](*arrays)
    np.testing.assert_array_equal(arrays[-1], 8)
    with pytest.raises(tvm.TVMError, match="wrong shape"):
        built(*arrays[:2], np.ones(7, "float32"), arrays[-1])


def test_a_symbol_that_nothing_uses():
    A, n = te.placeholder((4,), name="A"), te.var("n")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    built = tvm.build(te.create_schedule(B.op), [A, B, n])
    got = np.empty(4, "float32")
    built(np.ones(4, "float32"), got, 3)
    np.testing.assert_array_equal(got, 2)


def test_a_tensor_of_another_expression_is_refused():
    s, args = _layer(False)
    other = te.compute((4,), lambda i: i, name="other")
    with pytest.raises(tvm.TVMError, match="an argument is not part of the schedule"):
        tvm.build(s, [*args, other])


@pytest.mark.campaign
def test_a_template_with_an_optional_bias_is_tuned():
    @autotvm.template("tests/dense_without_bias")
    def dense(n):
        x, w = te.placeholder((4, n), name="x"), te.placeholder((6, n), name="w")
        bias = te.placeholder((6,), name="bias")
        out = topi.nn.dense(x, w)
        s = te.create_schedule(out.op)
        cfg = autotvm.get_config()
        cfg.define_split("tile", out.op.axis[1], num_outputs=2)
        cfg["tile"].apply(s, out, out.op.axis[1])
        return s, [x, w, bias, out]

    task = autotvm.task.create("tests/dense_without_bias", args=(8,), target="llvm")
    found = []
    tuner = autotvm.tuner.GridSearchTuner(task)
    tuner.tune(
        n_trial=2,
        measure_option=autotvm.measure_option(
            builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(number=1, repeat=1)
        ),
        callbacks=[lambda tuner, inputs, results: found.extend(results)],
    )
    assert [result.error_no for result in found] == [0, 0]


def test_a_target_and_what_is_built_for_it():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    lowered = tvm.lower(te.create_schedule(B.op), [A, B], name="more")
    built = tvm.build({"c": lowered})
    assert built.type_key == "c"
    got = np.empty(4, "float32")
    built["more"](np.ones(4, "float32"), got)
    np.testing.assert_array_equal(got, 2)
