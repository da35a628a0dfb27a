"""A product tuned by a template: knobs, random search, a log, the best of it."""

import logging
import os
import sys
import tempfile

import numpy as np
import tvm
from tvm import autotvm, te


@autotvm.template("scripts/matmul")
def matmul(n, m, k, dtype):
    a = te.placeholder((n, k), name="A", dtype=dtype)
    b = te.placeholder((k, m), name="B", dtype=dtype)
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)

    y, x = s[c].op.axis
    (r,) = s[c].op.reduce_axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2, filter=lambda e: e.size[-1] <= 64)
    cfg.define_reorder("order", ["r", "yi"], "all")
    cfg.define_annotate("ann", ["xi"], policy="try_vec")

    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, r, yi, xi)
    cfg["order"].apply(s, c, [r, yi])
    cfg["ann"].apply(s, c, [xi])
    return s, [a, b, c]


N, M, K = 32, 48, 40
task = autotvm.task.create("scripts/matmul", args=(N, M, K, "float32"), target="llvm")
print(task.config_space)
assert len(task.config_space) == 6 * 10 * 2 * 2, len(task.config_space)
assert task.flop >= 2 * N * M * K

logging.getLogger("autotvm").setLevel(logging.DEBUG)
logging.getLogger("autotvm").addHandler(logging.StreamHandler(sys.stdout))

log = os.path.join(tempfile.mkdtemp(), "matmul.log")
measure_option = autotvm.measure_option(
    builder="local", runner=autotvm.LocalRunner(number=5, timeout=20)
)
tuner = autotvm.tuner.RandomTuner(task)
tuner.tune(
    n_trial=6,
    measure_option=measure_option,
    callbacks=[autotvm.callback.log_to_file(log), autotvm.callback.progress_bar(6, "matmul")],
)
assert len(open(log).readlines()) == 6
assert tuner.best_config is not None
assert tuner.best_flops > 0

with autotvm.apply_history_best(log):
    with tvm.target.Target("llvm"):
        s, args = matmul(N, M, K, "float32")
        func = tvm.build(s, args)

a = np.random.uniform(size=(N, K)).astype("float32")
b = np.random.uniform(size=(K, M)).astype("float32")
c = tvm.nd.empty((N, M))
func(tvm.nd.array(a), tvm.nd.array(b), c)
tvm.testing.assert_allclose(c.numpy(), a.dot(b), rtol=1e-4)
