"""A convolution of NCHW images tuned by a template with stages that are packed and cached."""

import os
import tempfile

import numpy as np
import tvm
from tvm import autotvm, te
from tvm.autotvm.tuner import GridSearchTuner, XGBTuner


@autotvm.template("scripts/conv2d")
def conv2d(n, h, w, co, ci, kh, kw, stride, padding):
    data = te.placeholder((n, ci, h, w), name="data")
    kernel = te.placeholder((co, ci, kh, kw), name="kernel")
    (sh, sw), (ph, pw) = stride, padding
    padded = te.compute(
        (n, ci, h + 2 * ph, w + 2 * pw),
        lambda b, c, y, x: tvm.tir.if_then_else(
            tvm.tir.all(y >= ph, y < h + ph, x >= pw, x < w + pw),
            data[b, c, y - ph, x - pw],
            0.0,
        ),
        name="padded",
    )
    oh, ow = (h + 2 * ph - kh) // sh + 1, (w + 2 * pw - kw) // sw + 1
    rc, ry, rx = te.reduce_axis((0, ci)), te.reduce_axis((0, kh)), te.reduce_axis((0, kw))
    conv = te.compute(
        (n, co, oh, ow),
        lambda b, f, y, x: te.sum(
            padded[b, rc, y * sh + ry, x * sw + rx] * kernel[f, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name="conv",
    )
    s = te.create_schedule(conv.op)

    cfg = autotvm.get_config()
    b, f, y, x = s[conv].op.axis
    rc, ry, rx = s[conv].op.reduce_axis
    cfg.define_split("tile_f", cfg.axis(f), num_outputs=3, max_factor=8)
    cfg.define_split("tile_x", x, policy="verbose", num_outputs=2, max_factor=16)
    cfg.define_split("tile_rc", cfg.reduce_axis(rc), policy="candidate", num_outputs=2,
                     candidate=[[-1, 1], [-1, 2], [-1, 4]])  # fmt: skip
    cfg.define_knob("unroll_kw", [True, False])
    cfg.define_knob("pad", ["inline", "row"])
    cfg.multi_filter(lambda e: e["tile_f"].size[-1] * e["tile_x"].size[-1] <= 64)
    if cfg.is_fallback:
        cfg.fallback_split("tile_f", [-1, 1, 4])

    fo, fm, fi = cfg["tile_f"].apply(s, conv, f)
    xo, xi = cfg["tile_x"].apply(s, conv, x)
    co_, ci_ = cfg["tile_rc"].apply(s, conv, rc)
    s[conv].reorder(b, fo, y, xo, fm, co_, ry, ci_, rx, fi, xi)
    s[conv].vectorize(xi)
    if cfg["unroll_kw"].val:
        s[conv].unroll(rx)
    if cfg["pad"].val == "inline":
        s[padded].compute_inline()
    else:
        s[padded].compute_at(s[conv], y)
    cfg.add_flop(2 * n * co * oh * ow * ci * kh * kw)
    return s, [data, kernel, conv]


ARGS = (1, 9, 12, 8, 4, 3, 3, (1, 1), (1, 1))
task = autotvm.task.create("scripts/conv2d", args=ARGS, target="llvm -mcpu=native")
assert task.flop == 2 * 8 * 9 * 12 * 4 * 9
option = autotvm.measure_option(autotvm.LocalBuilder(timeout=20), autotvm.LocalRunner(timeout=20))
log = os.path.join(tempfile.mkdtemp(), "conv2d.log")
for kind, trials in ((XGBTuner, 6), (GridSearchTuner, 3)):
    tuner = kind(task)
    tuner.tune(n_trial=trials, measure_option=option, early_stopping=100,
               callbacks=[autotvm.callback.log_to_file(log)])  # fmt: skip

autotvm.record.pick_best(log, log + ".best")
((best, result),) = autotvm.record.load_from_file(log + ".best")
assert result.error_no == 0
assert best.task.workload == task.workload

data = np.random.uniform(size=(1, 4, 9, 12)).astype("float32")
kernel = np.random.uniform(size=(8, 4, 3, 3)).astype("float32")
wide = np.pad(data, [(0, 0), (0, 0), (1, 1), (1, 1)])
patches = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
expected = np.einsum("bcyxpq,fcpq->bfyx", patches, kernel)
for context in (autotvm.apply_history_best(log + ".best"), autotvm.FallbackContext()):
    with context, tvm.target.Target("llvm -mcpu=native"):
        s, args = conv2d(*ARGS)
        func = tvm.build(s, args, "llvm")
    out = tvm.nd.empty(expected.shape)
    func(tvm.nd.array(data), tvm.nd.array(kernel), out)
    tvm.testing.assert_allclose(out.numpy(), expected, rtol=1e-4)
