"""Arrays, modules and lowered programs as classic code holds them."""

import numpy as np
import pytest

from dlcompiler.compat import CompatNote, tvm
from dlcompiler.compat.tvm import te, topi
from dlcompiler.errors import UserError


@pytest.fixture(scope="module")
def parts():
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A(i, j) * 2, name="B")
    s = te.create_schedule(B.op)
    return s, [A, B]


@pytest.fixture(scope="module")
def module(parts):
    return tvm.build(*parts, "llvm", name="twice")


def test_arrays():
    a = tvm.nd.array([[1, 2], [3, 4]])
    assert (a.shape, a.dtype, a.ndim, len(a)) == ((2, 2), "int64", 2, 2)
    copy = a.numpy()
    copy[0, 0] = 9
    assert a.asnumpy()[0, 0] == 1
    assert a.data.ctypes.data % 64 == 0
    b = tvm.nd.empty((2, 2), "int64", ctx=tvm.cpu(0))
    assert a.copyto(b) is b
    np.testing.assert_array_equal(b, a.numpy())
    b[:] = 5
    assert b.copyto(tvm.cpu()).numpy().tolist() == [[5, 5], [5, 5]]
    assert np.from_dlpack(b).tolist() == [[5, 5], [5, 5]]
    assert tvm.nd.from_dlpack(b).numpy().tolist() == [[5, 5], [5, 5]]
    assert tvm.nd.array(np.zeros((), "float16"), device=tvm.cpu()).shape == ()
    with pytest.raises(UserError, match="wrong shape"):
        b.copyfrom(np.zeros(3))


def test_calls(module):
    a = np.arange(32, dtype="float32").reshape(4, 8)
    for call in (module, module["twice"], module[module.entry_name], module.get_function("twice")):
        b = tvm.nd.empty((4, 8))
        call(tvm.nd.array(a), b)
        np.testing.assert_array_equal(b.numpy(), a * 2)
    with pytest.raises(tvm.TVMError, match="there is no such function"):
        module["thrice"]
    with pytest.raises(tvm.TVMError, match="wrong shape"):
        module(tvm.nd.array(a), tvm.nd.empty((4, 7)))


def test_sources_in_c(parts, tmp_path):
    module = tvm.build(*parts, "c", name="twice")
    assert module.type_key == "c"
    source = module.get_source()
    assert "int twice(const float *restrict A, float *restrict B)" in source
    assert source == module.get_source("c")
    assert source.startswith(module.get_source("h"))
    module.save(tmp_path / "twice.c")
    assert (tmp_path / "twice.c").read_text() == source
    module.save(tmp_path / "twice.h")
    with pytest.raises(tvm.TVMError, match="the module was built for the target 'c'"):
        module.get_source("ll")
    with pytest.raises(tvm.TVMError, match="it was built as C, which LLVM does not see"):
        module.export_library(tmp_path / "twice.tar")
    assert tvm.target.Target("c").keys == ("cpu",)


def test_sources(module):
    assert "define void @twice" in module.get_source()
    assert "twice:" in module.get_source("asm")
    assert list(module.imported_modules) == []
    with pytest.raises(tvm.TVMError, match="has no device code"):
        module.imported_modules[0]


def test_times(module):
    arrays = [tvm.nd.empty((4, 8)), tvm.nd.empty((4, 8))]
    timing = module.time_evaluator("twice", tvm.cpu(), number=3, repeat=4)(*arrays)
    assert len(timing.results) == 4
    assert timing.min <= timing.median <= timing.max
    assert min(timing.results) <= timing.mean
    long = module.time_evaluator(module.entry_name, dev=tvm.cpu(), number=1, min_repeat_ms=2)
    assert long(*arrays).mean > 0
    with pytest.raises(tvm.TVMError, match="these limits allow no measurement"):
        module.time_evaluator("twice", number=0)


def test_a_lowered_program_prints_and_builds(parts):
    lowered = tvm.lower(*parts, name="lowered", simple_mode=True)
    assert str(lowered).startswith("def lowered(A: float32[4, 8]")
    assert lowered["lowered"].name == "lowered"
    a, b = np.ones((4, 8), "float32"), tvm.nd.empty((4, 8))
    tvm.build(lowered)["lowered"](a, b)
    assert b.numpy().sum() == 64
    with pytest.raises(tvm.TVMError, match="no list of arguments"):
        tvm.lower(parts[0], parts[1][0])


def test_saved_and_loaded(module, tmp_path):
    a, b = np.ones((4, 8), "float32"), np.empty((4, 8), "float32")
    with pytest.warns(CompatNote, match="a tar file cannot be written here"):
        written = module.export_library(tmp_path / "lib.tar")
    assert str(written).startswith("lib.tar is a container of dlcompiler")
    loaded = tvm.runtime.load_module(str(tmp_path / "lib.tar"))
    loaded["twice"](a, b)
    assert b.sum() == 64
    module.save(tmp_path / "twice.ll")
    assert "define void @twice" in (tmp_path / "twice.ll").read_text()
    with pytest.raises(tvm.TVMError, match="unknown format"):
        module.save(tmp_path / "twice.exe")


def test_reducers_without_an_axis_combine_their_operands():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: te.max(A[i], tvm.tir.const(0, A.dtype)), name="B")
    C = topi.nn.relu(A)
    a = np.array([-1, 2, -3, 4], "float32")
    for out in (B, C):
        np.testing.assert_array_equal(_run([A, out], a), np.maximum(a, 0))


def _run(tensors, *arrays):
    s = te.create_schedule(tensors[-1].op)
    out = tvm.nd.empty(tensors[-1].shape, tensors[-1].dtype)
    tvm.build(s, tensors)(*map(tvm.nd.array, arrays), out)
    return out.numpy()


def test_literals():
    assert (tvm.tir.const(1).dtype, tvm.tir.const(1.5).dtype) == ("int32", "float32")
    assert tvm.tir.const(True).dtype == "bool"
    assert tvm.runtime.convert((1, 2.0))[1].dtype == "float32"
    assert tvm.topi.utils.get_const_tuple((te.const(3), 4)) == (3, 4)
    assert te.placeholder((tvm.tir.indexdiv(64, 32), te.const(4) * 2)).shape == (2, 8)
    assert isinstance(tvm.tir.IntImm("int8", 3), tvm.tir.IntImm)
    assert not isinstance(te.const(3), tvm.tir.FloatImm)
    assert isinstance(tvm.tir.Var("n"), tvm.tir.Var)
    assert isinstance(te.placeholder((3,)), te.tensor.Tensor)
    with pytest.raises(tvm.TVMError):
        topi.utils.get_const_int("n")


def _inlined(helper):
    A = te.placeholder((4, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    same = te.compute((4, 4), lambda i, j: A[i, j] + 1, name="same")
    row = te.compute((4, 4), lambda i, j: same[0, j] * 2, name="row")
    turned = te.compute((4, 4), lambda i, j: row[j, i], name="turned")
    total = te.compute((4,), lambda i: te.sum(turned[i, k], axis=k), name="total")
    split = te.compute((4,), lambda i: total[i] + 1, name="split")
    out = te.compute((4,), lambda i: split[i] + total[i], name="out")
    s = te.create_schedule(out.op)
    s[split].split(split.op.axis[0], 2)
    helper(s)
    return [stage.name for stage in s.stages if stage.is_inlined]


def test_the_helpers_that_inline():
    assert _inlined(te.schedule.AutoInlineElemWise) == ["same"]
    assert _inlined(te.schedule.AutoInlineBroadcast) == ["same", "row"]
    assert _inlined(te.schedule.AutoInlineInjective) == ["same", "row", "turned"]


def test_tags():
    @te.tag_scope(tag="outer")
    def define():
        return te.compute((4,), lambda i: i, name="A"), te.compute((4,), lambda i: i, "B", "own")

    A, B = define()
    assert (A.op.tag, B.op.tag) == ("outer", "own")
    with te.tag_scope("a"):
        assert define()[0].op.tag == "outer"
        assert te.compute((4,), lambda i: i).op.tag == "a"
