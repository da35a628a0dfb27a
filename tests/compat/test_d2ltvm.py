"""The book's helper module: every name that its notebooks use, and what they give."""

import numpy as np
import pytest

from dlcompiler.compat import CompatNote, d2ltvm, simulated, tvm
from dlcompiler.compat.d2ltvm import benchmarks
from dlcompiler.compat.tvm import te
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import Timing


def test_data_is_the_same_twice():
    for first, second in zip(d2ltvm.get_abc(8)[:2], d2ltvm.get_abc(8)[:2], strict=True):
        np.testing.assert_array_equal(first, second)
        assert first.dtype == "float32"
    assert d2ltvm.get_conv_data(4, 3, 8, 3, 1, 2)[2].shape == (4, 4, 4)
    assert d2ltvm.get_conv_data(3, 3, 8, 3, conv_type="depthwise")[1].shape == (3, 1, 3, 3)
    assert d2ltvm.get_bcast_data((3, 1), (1, 4))[2].shape == (3, 4)
    assert [a.shape for a in d2ltvm.get_bn_data(2, 3)][1] == (2, 1, 1)
    assert isinstance(d2ltvm.get_abc(4, tvm.nd.array)[0], tvm.nd.NDArray)


def test_a_workload_is_repeated_until_it_takes_a_second():
    calls = []

    def workload(runs):
        calls.append(runs)
        return runs * 0.01

    assert d2ltvm.bench_workload(workload) == pytest.approx(0.01)
    assert calls == [1, 1, 100]
    assert d2ltvm.bench_workload(lambda runs: 2.0 * runs) == 2.0


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(benchmarks, "LONG_S", 1e-4)


def test_speeds_on_a_simulated_gpu_are_predicted_without_a_run(monkeypatch):
    def make(n):
        a, b, c = d2ltvm.vector_add(n)
        s = te.create_schedule(c.op)
        s[c].bind(c.op.axis[0], te.thread_axis("threadIdx.x"))
        return s, (a, b, c)

    origin = Provenance("predicted", "a model")
    monkeypatch.setattr(simulated, "kind_of_times", lambda _: "predicted")
    monkeypatch.setattr(simulated, "provenance_of_times", lambda *_: origin)
    monkeypatch.setattr(simulated, "measure", lambda *_: Timing((2e-6,), provenance=origin))
    monkeypatch.setattr(simulated.SimulatedModule, "__call__", None)
    with pytest.warns(CompatNote, match="the times are predicted by a model, not measured"):
        assert d2ltvm.bench_vector_add_tvm(make, [8], "cuda")[0] == pytest.approx(8 / 1e9 / 2e-6)


def test_measurements(short):
    def schedule(make):
        def of(*size):
            flat = size[0] if len(size) == 1 else size
            tensors = make(flat)
            tensors = tensors if isinstance(tensors, tuple) else tuple(tensors)
            output = tensors[-1]
            return te.create_schedule(output.op), tensors

        return of

    add = schedule(lambda n: d2ltvm.vector_add(n))
    assert d2ltvm.bench_vector_add_tvm(add, [8], "llvm")[0] > 0
    broadcast = schedule(lambda n: d2ltvm.broadcast_add((n, 1), (n, n)))
    assert d2ltvm.bench_bcast_add_tvm(broadcast, [8], "llvm")[0] > 0
    product = schedule(lambda n: d2ltvm.matmul(n, n, n))
    assert d2ltvm.bench_matmul_tvm(product, [8], "llvm")[0] > 0
    conv = schedule(lambda z: d2ltvm.conv(z[0], z[1], z[2], z[2], z[3], z[3], z[4], z[4])[:3])
    assert d2ltvm.bench_conv_tvm(conv, [(2, 8, 3)], "llvm")[0] > 0
    deep = schedule(lambda z: d2ltvm.depthwise_conv(z[0], z[1], z[1], z[2], z[2], z[3], z[3])[:3])
    assert d2ltvm.bench_depthwise_conv_tvm(deep, [(2, 8, 3)], "llvm")[0] > 0
    pool = schedule(lambda z: d2ltvm.pool("max", z[0], z[1], z[1], z[2], z[2], 1, 1)[:2])
    assert d2ltvm.bench_pooling_tvm(pool, [(2, 8, 3)], "llvm")[0] > 0
    norm = schedule(lambda z: d2ltvm.batch_norm(*z))
    assert d2ltvm.bench_bn_tvm(norm, [(2, 8)], "llvm")[0] > 0


def test_baselines(short):
    assert d2ltvm.bench_matmul_mxnet([8])[0] > 0
    assert d2ltvm.bench_conv_mxnet([(2, 8, 3)])[0] > 0
    assert d2ltvm.bench_depthwise_conv_mxnet([(2, 8, 3)])[0] > 0
    assert d2ltvm.bench_pooling_mxnet("avg", [(2, 8, 3)], ctx="cpu")[0] > 0
    assert d2ltvm.bench_bn_mxnet([(2, 8)], ctx="cpu")[0] > 0
    assert d2ltvm.bench_workload(d2ltvm.np_matmul_timer(np.int64(8))) > 0


def test_an_axis_is_split_several_times():
    C = d2ltvm.vector_add(24)[2]
    s = te.create_schedule(C.op)
    parts = d2ltvm.split_axis([3, 4], s, C, C.op.axis[0])
    assert [axis.extent for axis in parts] == [2, 3, 4]


def test_plots_use_matplotlib_only_when_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = d2ltvm.plot_gflops([1, 2, 4], [[1, 2, 3], [2, 3, 4]], legend=["a", "b"])
    assert (axes.get_xscale(), axes.get_ylabel(), len(axes.lines)) == ("log", "GFLOPS", 2)
    assert len(d2ltvm.plot([3, 1, 2], ylabel="s").lines) == 1
    assert callable(d2ltvm.plot)
    pyplot.close("all")


def test_an_image_becomes_the_input_of_a_network():
    image = np.zeros((224, 224, 3), "uint8")
    assert d2ltvm.image_preprocessing(image).shape == (1, 3, 224, 224)
