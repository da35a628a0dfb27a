"""Each row of *Deliberate differences* in ``docs/COMPAT.md`` is true: what it says happens.

Long because each row of the page has its claim.
"""

import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler.compat import CompatNote, tvm
from dlcompiler.compat.tvm import autotvm, te, tir, topi
from dlcompiler.errors import DLCompilerError
from dlcompiler.runtime import registry
from tests.compat import test_warp_matrices as matrices

PAGE = Path(__file__).parents[2] / "docs/COMPAT.md"
TABLE = PAGE.read_text(encoding="utf-8").split("## Deliberate differences")[1].split("## Names")[0]
ROWS = re.findall(r"^\| (?!Classic)(\S.*?) \| ", TABLE, re.MULTILINE)
CLAIMS = {}


def claim(row):
    """Enter what shows that a row holds; `row` is how its first cell begins."""
    return lambda function: CLAIMS.setdefault(row, function)


def refused(step, text=""):
    with pytest.raises(DLCompilerError, match=text):
        step()


def product(n=16):
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_schedule(c.op), a, b, c, k


def followed():
    """Return the schedule of a product, a stage that reads it, and the two."""
    _, _, _, c, _ = product()
    d = te.compute((16, 16), lambda i, j: c[i, j] + 1.0, name="D")
    return te.create_schedule(d.op), c, d


def values(body, array, dtype="float32"):
    """Return a stage of one tensor of four elements, computed."""
    x = te.placeholder((4,), dtype, name="X")
    return te.evaluate(
        te.compute((4,), lambda i: body(x[i]), name="Y"), {x: np.array(array, dtype)}
    )


def simple():
    x = te.placeholder((4,), name="X")
    y = te.compute((4,), lambda i: te.max(x[i], 0.0), name="Y")
    return te.create_schedule(y.op), x, y


@pytest.mark.parametrize("row", ROWS)
def test_a_row(row, tmp_path):
    found = [function for begin, function in CLAIMS.items() if row.startswith(begin)]
    assert len(found) == 1, f"no claim, or several, for the row: {row}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompatNote)
        found[0](tmp_path)


def test_no_claim_is_left_over():
    assert not [begin for begin in CLAIMS if not any(row.startswith(begin) for row in ROWS)]


@claim("`parallel` or `vectorize` on a reduction axis")
def _(_):
    s, _, _, c, k = product()
    refused(lambda: s[c].parallel(k))
    refused(lambda: s[c].vectorize(k))


@claim("`bind` again")
def _(_):
    s, _, _, c, _ = product()
    i, j = c.op.axis
    x, y = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    s[c].bind(i, x)
    refused(lambda: s[c].bind(i, y))
    refused(lambda: s[c].bind(j, x))


@claim("an illegal step")
def _(_):
    s, _, _, c, _ = product()
    refused(lambda: s[c].reorder(c.op.axis[0], c.op.axis[0]))
    refused(lambda: s[c].compute_inline())


@claim("a compute lambda with fewer parameters")
def _(_):
    refused(lambda: te.compute((3, 3), lambda i: i))


@claim("`i == 0 and j == 0`")
def _(_):
    i, j = te.var("i"), te.var("j")
    refused(lambda: i == 0 and j == 0, r"te\.all")


@claim("`if` or `bool`")
def _(_):
    refused(lambda: bool(te.var("i") < 3))


@claim("max and min of NaN")
def _(_):
    assert np.isnan(values(lambda x: te.max(x, 0.0), [np.nan, 1, 2, 3])[0])
    assert np.isnan(values(lambda x: te.min(0.0, x), [np.nan, 1, 2, 3])[0])


@claim('`te.var("n")`')
def _(_):
    kinds = [te.var("n", kind).dtype for kind in ("int32", "int64", "int8", "uint32", "float32")]
    assert kinds == ["index", "index", "int8", "uint32", "float32"]
    assert te.var("n").dtype == "index"


@claim("nested `te.tag_scope`")
def _(_):
    with te.tag_scope("outer"), te.tag_scope("inner"):
        assert te.compute((3,), lambda i: i).op.tag == "inner"
    assert values(lambda x: te.floordiv(x, 2.0), [-7.5, 7.5, 4, 0]).tolist() == [-4, 3, 2, 0]
    assert values(lambda x: te.exp(x < 0), [1, 1, 1, 1]).tolist() == [1] * 4


@claim("`op.body`")
def _(_):
    _, x, y = simple()
    assert str(y.op.body) == "max(X[i], 0.0)"
    assert len(te.compute((4,), lambda i: (x[i], x[i] + 1.0))[0].op.bodies) == 2


@claim("`buffer.data`")
def _(_):
    x = te.placeholder((4,), name="X")
    te.extern((4,), [x], lambda ins, outs: tir.call_packed("f", ins[0], outs[0]))
    te.extern(
        (4,), [x],
        lambda ins, outs: tir.call_packed("f", ins[0].access_ptr("r"), outs[0].access_ptr("w")),
    )  # fmt: skip


@claim("`.size` of a split")
def _(_):
    cfg = autotvm.ConfigSpace()
    cfg.define_split("tile", cfg.axis(8), num_outputs=2)
    assert cfg.get(1)["tile"].size == (-1, 2)


@claim("a call with wrong arguments")
def _(_):
    s, x, y = simple()
    run = tvm.build(s, [x, y])
    refused(lambda: run(np.zeros(4, "f"), np.zeros(5, "f")), r"(?s)argument 2 \(Y\).*got.*expected")


@claim("an output that overlaps")
def _(_):
    s, x, y = simple()
    array = np.zeros(4, "f")
    refused(lambda: tvm.build(s, [x, y])(array, array))


@claim("`build` may leave an output out")
def _(_):
    s, x, _ = simple()
    assert "Y" in str(tvm.lower(s, [x]))
    refused(lambda: tvm.build(s, [x]), "the arguments lack Y")


@claim("`fuse` of a data axis and a reduction axis")
def _(_):
    s, _, _, c, k = product()
    refused(lambda: s[c].fuse(c.op.axis[1], k))


@claim("a stage attached at an axis that is fused")
def _(_):
    s, c, d = followed()
    s[c].compute_at(s[d], d.op.axis[0])
    s[d].fuse(*d.op.axis)
    assert "attach it again" in s.obligations[0].hint
    refused(lambda: tvm.lower(s, [*c.op.input_tensors, d]), "which is no longer a loop")


@claim("`compute_at` a vectorized loop")
def _(_):
    s, c, d = followed()
    s[d].vectorize(d.op.axis[1])
    s[c].compute_at(s[d], d.op.axis[1])
    assert "it will be computed at D.i" in str(s.obligations[0])


@claim("`split` of an axis that has an annotation")
def _(_):
    steps = [
        lambda s, c, k: s[c].split(c.op.axis[1], 4),
        lambda s, c, k: s[c].fuse(*c.op.axis),
        lambda s, c, k: s[c].tile(*c.op.axis, 4, 4),
        lambda s, c, k: s.cache_write(c, "local"),
    ]
    for step in steps:
        s, _, _, c, k = product()
        s[c].vectorize(c.op.axis[1])
        refused(lambda step=step, s=s, c=c, k=k: step(s, c, k))
    s, _, _, c, k = product()
    s[c].unroll(k)
    refused(lambda: s.rfactor(c, k))


@claim("`cache_write` and `rfactor` fail")
def _(_):
    s, c, d = followed()
    p = s.cache_read(c.op.input_tensors[0], "local", [c])
    s[p].compute_at(s[c], c.op.axis[0])
    w = s.cache_write(c, "local")
    assert re.search(r"for .*:\n +allocate A\.local", str(tvm.lower(s, [*c.op.input_tensors, d])))
    assert w.name == "C.local"


@claim("`rfactor` resets the loops")
def _(_):
    s, _, _, c, k = product()
    outer, _ = s[c].split(k, 4)
    left, _ = s[c].split(c.op.axis[0], 4)
    s.rfactor(c, outer)
    assert left in s[c].leaf_iter_vars


@claim("`rfactor`, and `reorder` of reduction axes")
def _(_):
    first = te.comm_reducer(lambda x, y: x - y, lambda kind: tir.const(0, kind), name="minus")
    x, k = te.placeholder((4, 8), name="X"), te.reduce_axis((0, 8), name="k")
    y = te.compute((4,), lambda i: first(x[i, k], axis=k), name="Y")
    s = te.create_schedule(y.op)
    outer, _ = s[y].split(k, 4)
    refused(lambda: s.rfactor(y, outer))


@claim("`cache_write` with a layout")
def _(_):
    s, a, b, c, k = product()
    s[c].split(k, 4)
    s.cache_write(c, "local")
    assert "k.outer" in str(tvm.lower(s, [a, b, c]))


@claim("`set_scope`, `storage_align` of an output")
def _(_):
    s, _, _, c, _ = product()
    refused(lambda: s[c].set_scope("local"))
    refused(lambda: s[c].storage_align(c.op.axis[0], 8, 0))


@claim("`transform_layout` of an argument")
def _(_):
    s, _, _, c, _ = product()
    refused(lambda: s[c].transform_layout(lambda i, j: [j, i]))
    s, c, _ = followed()
    s[c].transform_layout(lambda i, j: [j, i])


@claim("`prefetch` at a parallel")
def _(_):
    s, a, _, c, _ = product()
    s[c].parallel(c.op.axis[0])
    refused(lambda: s[c].prefetch(a, c.op.axis[0], 1))


@claim("`pragma` takes any name")
def _(_):
    s, _, _, c, _ = product()
    refused(lambda: s[c].pragma(c.op.axis[0], "no_such_pragma"))
    for name in ("import_c", "import_llvm"):
        refused(lambda name=name: s[c].pragma(c.op.axis[0], name, "text"))


@claim("a second cache")
def _(_):
    a = te.placeholder((4,), name="A")
    made = [te.compute((4,), lambda i: a[i] + 1.0, name=name) for name in "BC"]
    s = te.create_schedule([tensor.op for tensor in made])
    names = [s.cache_read(a, "local", [tensor]).name for tensor in made]
    assert names == ["A.local", "A.local_1"]


@claim("`lower` prints")
def _(_):
    s, x, y = simple()
    assert "for i in range(4):" in str(tvm.lower(s, [x, y], simple_mode=True))


@claim('`target="c"`')
def _(_):
    s, x, y = simple()
    source = tvm.build(s, [x, y], "c", name="f").get_source()
    assert "int f(const float *restrict X, float *restrict Y)" in source
    assert "tvm" not in source.lower()


@claim("`get_source()`")
def _(_):
    s, x, y = simple()
    built = tvm.build(s, [x, y])
    assert built.get_source() == built.function.llvm_ir != dlc.build(s, [x, y]).source()


@claim("`__expf` and other fast functions of CUDA")
def _(_):
    n = tvm.te.placeholder((4,), name="n")
    fast = tvm.te.compute((4,), lambda i: tvm.tir.call_pure_extern("float32", "__expf", n[i]))
    s = tvm.te.create_schedule(fast.op)
    assert "exp(n[i])" in str(tvm.lower(s, [n, fast], simple_mode=True))


@claim('`pragma(axis, "debug_skip_region")`')
def _(_):
    s, _, _, c, _ = product()
    refused(lambda: s[c].pragma(c.op.axis[0], "debug_skip_region"))


@claim("`export_library`")
def _(folder):
    s, x, y = simple()
    written = tvm.build(s, [x, y], name="f").export_library(folder / "lib.tar")
    assert str(written).startswith("lib.tar is a container of dlcompiler")
    tvm.runtime.load_module(folder / "lib.tar")["f"](np.ones(4, "f"), np.ones(4, "f"))


@claim("`load_module`")
def _(folder):
    s, x, y = simple()
    tvm.build(s, [x, y]).export_library(folder / "lib.tar")
    os.chmod(folder / "lib.tar", 0o666)
    refused(lambda: tvm.runtime.load_module(folder / "lib.tar"))


@claim("`nd.array` of a device context")
def _(_):
    array = tvm.nd.array(np.zeros(3, "f"), tvm.cuda(0))
    assert array.data.ctypes.data % 64 == 0
    array.numpy()


@claim("target flags")
def _(_):
    s, x, y = simple()
    with pytest.warns(CompatNote, match="libraries cblas are ignored"):
        tvm.build(s, [x, y], "llvm -libs=cblas -anything=1")


@claim("`topi` has definitions and schedules")
def _(_):
    y = topi.exp(te.placeholder((4, 64), name="X"))
    args = [*y.op.input_tensors, y]
    s = topi.generic.schedule_injective(y)
    assert "vectorized" in str(tvm.lower(s, args, simple_mode=True))
    assert not hasattr(topi.generic, "schedule_reduce")


@claim('`te.min_value("float32")`')
def _(_):
    assert te.min_value("float32").value == -np.inf


@claim("`te.round` of a half")
def _(_):
    assert values(te.round, [0.5, 1.5, 2.5, -0.5]).tolist() == [0, 2, 2, 0]


@claim("AutoTVM never looks at the outputs")
def _(_):
    assert autotvm.measure.MeasureErrorNo.WRONG_ANSWER == 5


@claim("AutoTVM's log is found")
def _(_):
    task, scaled = _task()
    record = autotvm.MeasureInput(tvm.target.Target("llvm -mcpu=core-avx2"), task,
                                  task.config_space.get(1))  # fmt: skip
    result = autotvm.MeasureResult((1.0,), 0, 0.1, 0.0)
    with autotvm.apply_history_best([(record, result)]), tvm.target.Target("llvm"):
        s, (_, y) = scaled(8)
    assert [axis.extent for axis in s[y].leaf_iter_vars] == [4, 2]


def _task():
    @autotvm.template("differences/scaled")
    def scaled(n):
        x = te.placeholder((n,), name="X")
        y = te.compute((n,), lambda i: x[i] * 2.0, name="Y")
        s = te.create_schedule(y.op)
        cfg = autotvm.get_config()
        cfg.define_split("tile", y.op.axis[0], num_outputs=2)
        cfg["tile"].apply(s, y, y.op.axis[0])
        if cfg["tile"].size[-1] == 8:
            cfg.raise_error("too wide")
        return s, [x, y]

    return autotvm.task.create("differences/scaled", args=(8,), target="llvm"), scaled


@claim("`cfg.raise_error`")
def _(_):
    task, _ = _task()
    refused(lambda: task.instantiate(task.config_space.get(3)), "too wide")


@claim("AutoTVM logs may be pickled")
def _(folder):
    task, _ = _task()
    inp = autotvm.MeasureInput(tvm.target.Target("llvm"), task, task.config_space.get(0))
    line = json.loads(autotvm.record.encode(inp, autotvm.MeasureResult((1.0,), 0, 0.1, 0.0)))
    path = folder / "log"
    path.write_text(f"{json.dumps(line)}\n\x80\x04\x95.\n", encoding="latin-1")
    with pytest.warns(CompatNote, match="2"):
        assert len(list(autotvm.record.load_from_file(str(path)))) == 1


@claim("a shift by the width")
def _(_):
    assert values(lambda x: x << x, [32, 33, 40, 99], "int32").tolist() == [0] * 4
    assert values(lambda x: -1 >> x, [32, 33, 40, 99], "int32").tolist() == [-1] * 4
    with pytest.raises(DLCompilerError, match="is shifted by 32, but has 32 bits"):
        values(lambda x: x << 32, [1] * 4, "int32")
    assert values(te.clz, [0] * 4, "int32").tolist() == [32] * 4


@claim("`a / b` and `te.power` of integers")
def _(_):
    assert values(lambda x: x / 2, [1, 2, 3, 4], "int32").tolist() == [0.5, 1, 1.5, 2]
    assert values(lambda x: x**2, [1, 2, 3, 4], "int32").tolist() == [1, 4, 9, 16]
    assert values(lambda x: te.div(x, 2), [-3, 3, 5, 4], "int32").tolist() == [-1, 1, 2, 2]


@claim("operands of mixed signedness")
def _(_):
    a, b = te.placeholder((4,), "uint8", name="a"), te.placeholder((4,), "int8", name="b")
    assert te.compute((4,), lambda i: a[i] + b[i]).dtype == "int16"
    wide = te.placeholder((4,), "uint64", name="wide")
    refused(lambda: te.compute((4,), lambda i: wide[i] + b[i]))


@claim("`.shape[0].value`")
def _(_):
    assert type(te.placeholder((4,)).shape[0]) is int


@claim("`te.gradient` through a reducer")
def _(_):
    x, k = te.placeholder((4,), name="X"), te.reduce_axis((0, 4), name="k")
    own = te.comm_reducer(lambda a, b: a + b * b, lambda kind: tir.const(0, kind), name="own")
    refused(lambda: te.gradient(te.compute((), lambda: own(x[k], axis=k)), [x]))
    te.gradient(te.compute((), lambda: te.max(x[k], axis=k)), [x])


@claim("`te.max(a, b)`")
def _(_):
    n = te.var("n")
    assert str(te.max(n, 3)) == "max(n, 3)"
    refused(lambda: dlc.te.max(n, 3))


@claim("`call_extern` calls any symbol")
def _(_):
    x = te.placeholder((4,), name="X")
    y = te.extern(
        (4,), [x],
        lambda i, o: tir.call_extern("int32", "getpid", i[0].access_ptr("r"), o[0].access_ptr("w")),
    )  # fmt: skip
    refused(lambda: tvm.build(te.create_schedule(y.op), [x, y]), "getpid")


@claim("an exception of a packed function")
def _(_):
    def fail(*_):
        raise KeyError("of its own")

    tvm.register_func("differences.fail", fail, override=True)
    x = te.placeholder((4,), name="X")
    y = te.extern((4,), [x], lambda i, o: tir.call_packed("differences.fail", i[0], o[0]))
    run = tvm.build(te.create_schedule(y.op), [x, y])
    with pytest.raises(KeyError, match="of its own"):
        run(np.zeros(4, "f"), np.zeros(4, "f"))


@te.hybrid.script
def _kept(a):
    c = output_tensor((4,), "float32")  # noqa: F821
    for i in range(4):
        if a[i] > 1:
            c[i] = a[i]
    return c


@claim("the loops of `te.hybrid`")
def _(_):
    assert _kept(te.placeholder((4,), name="X")).op.axis == ()


@claim("what a hybrid script leaves unwritten")
def _(_):
    x = te.placeholder((4,), name="X")
    y = _kept(x)
    got = np.full(4, 7, "f")
    tvm.build(te.create_schedule(y.op), [x, y])(np.arange(4, dtype="f"), got)
    assert got.tolist() == _kept(np.arange(4, dtype="f")).tolist() == [0, 0, 2, 3]


@claim("a hybrid script may write its inputs")
def _(_):
    @te.hybrid.script
    def writes(a):
        c = output_tensor((4,), "float32")  # noqa: F821
        a[0] = 1.0
        return c

    @te.hybrid.script
    def calls(a):
        c = output_tensor((4,), "float32")  # noqa: F821
        c[0] = _kept(a)
        return c

    refused(lambda: writes(te.placeholder((4,), name="X")), "an input cannot be written to")
    refused(lambda: calls(te.placeholder((4,), name="X")))


@claim('`allocate(…, "shared")`')
def _(_):
    @te.hybrid.script
    def shares(a):
        c = output_tensor((4,), "float32")  # noqa: F821
        t = allocate((4,), "float32", "shared")  # noqa: F821
        t[0] = a[0]
        return c

    @te.hybrid.script
    def counts(a):
        c = output_tensor((4,), "float32")  # noqa: F821
        c[0] = max_num_threads(True)  # noqa: F821
        return c

    refused(lambda: shares(te.placeholder((4,), name="X")), "no such memory")
    refused(lambda: counts(te.placeholder((4,), name="X")), "is not a function of hybrid script")


@claim("`register_intrin_lowering`")
def _(_):
    with pytest.warns(CompatNote, match=r"tir\.exp has the same meaning on all targets"):
        tvm.ir.register_intrin_lowering("tir.exp", target="llvm", f=lambda op: op, level=99)


@claim("fragments of tensor cores")
def _(_):
    for product in matrices.SHAPES:
        assert matrices.multiplied(product).parts
    refused(lambda: matrices.multiplied((16, 16, 8)), "no product of this shape")
    refused(lambda: matrices.multiplied(matrices.SHAPES[0], "int8"), "no matrix of this dtype")


@claim("the body of an intrinsic for tensor cores")
def _(_):
    load = matrices.SHAPES[0], "row_major", matrices.A
    assert matrices.copied((16, 16), "float16", *load).parts
    refused(lambda: matrices.copied((16, 16), "float16", *load, stride=8), "the stride is not")


@claim("`tvm_callback_cuda_postproc`")
def _(_):
    s, x, y = simple()
    s[y].bind(y.op.axis[0], te.thread_axis("threadIdx.x"))
    tvm.register_func("tvm_callback_cuda_postproc", lambda code: code + " ", override=True)
    try:
        refused(lambda: tvm.build(s, [x, y], "cuda"), "returns other code")
    finally:
        del registry._functions["tvm_callback_cuda_postproc"]


@claim('`"float"`, `"int"` and `"uint"`')
def _(_):
    x = te.placeholder((4,), "int", name="X")
    assert x.dtype == "int32"
    assert te.compute((4,), lambda i: x[i].astype("float")).dtype == "float32"
    refused(lambda: x.astype("float"), "not the name of a data type")
