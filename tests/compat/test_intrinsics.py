"""The tutorial "intrinsics and math functions", for this CPU."""

import numpy as np
import pytest

from dlcompiler.compat import tvm
from dlcompiler.compat.notes import CompatNote
from dlcompiler.compat.tvm import te
from dlcompiler.compat.tvm.ir import register_intrin_lowering, register_op_attr
from dlcompiler.errors import ExpressionError, UserError


def _rule(op):
    assert isinstance(op, tvm.tir.Call)
    name = op.op.name
    assert name.startswith("tir.")
    dispatch_name = name[4:].removeprefix("my")
    if op.dtype == "float32":
        return tvm.tir.call_pure_extern("float32", f"{dispatch_name}f", op.args[0])
    if op.dtype == "float64":
        return tvm.tir.call_pure_extern("float64", dispatch_name, op.args[0])
    return op


def mylog(x):
    return tvm.tir.call_intrin(x.dtype, "tir.mylog", x)


def _built(function, dtype="float32"):
    n = te.var("n")
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute(A.shape, lambda i: function(A[i]), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[0], factor=8)[1])
    f = tvm.build(s, [A, B], "llvm")
    a = np.linspace(0.1, 4, 37).astype(dtype)
    b = tvm.nd.array(np.zeros_like(a))
    f(tvm.nd.array(a), b)
    return a, b.numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_function_of_ones_own(dtype):
    register_op_attr("tir.mylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
    register_intrin_lowering("tir.mylog", target="llvm", f=_rule, level=99)
    a, b = _built(mylog, dtype)
    np.testing.assert_allclose(b, np.log(a), rtol=1e-5)


def test_functions_of_c_by_name():
    a, b = _built(lambda x: tvm.tir.call_pure_extern("float32", "expf", x))
    np.testing.assert_allclose(b, np.exp(a), rtol=1e-6)


def test_functions_of_te_by_name():
    a, b = _built(lambda x: tvm.tir.call_intrin("float32", "tir.exp", x))
    np.testing.assert_allclose(b, np.exp(a), rtol=1e-6)


def test_a_rule_of_a_known_function_changes_nothing():
    with pytest.warns(CompatNote, match=r"tir\.exp has the same meaning on all targets"):
        register_intrin_lowering("tir.exp", target="llvm", f=lambda op: op.args[0], level=99)
    a, b = _built(te.exp)
    np.testing.assert_allclose(b, np.exp(a), rtol=1e-6)


def test_levels_and_decorators():
    @register_intrin_lowering("tir.mylevel", "default", level=20)
    def first(op):
        return op.args[0] * 2.0

    register_intrin_lowering("tir.mylevel", "default", f=lambda op: op.args[0], level=10)
    x = te.var("x", "float32")
    assert str(tvm.tir.call_intrin("float32", "tir.mylevel", x)) == "x*2.0"
    register_intrin_lowering("tir.mylevel", "llvm", f=lambda op: op.args[0], level=1)
    assert tvm.tir.call_intrin("float32", "mylevel", x) is x


def test_what_is_refused():
    x = te.var("x", "float32")
    with pytest.raises(ExpressionError, match="no rule says what it computes"):
        tvm.tir.call_intrin("float32", "tir.unknown", x)
    register_intrin_lowering("tir.mycuda", "cuda", f=_rule)
    with pytest.raises(
        ExpressionError, match=r'register_intrin_lowering\("tir.mycuda", target="llvm"'
    ):
        tvm.tir.call_intrin("float32", "tir.mycuda", x)
    register_intrin_lowering("tir.mysame", "llvm", f=lambda op: op)
    with pytest.raises(ExpressionError, match="its rule does not return a value of its dtype"):
        tvm.tir.call_intrin("float32", "tir.mysame", x)
    with pytest.raises(ExpressionError, match="it takes other arguments"):
        tvm.tir.call_intrin("float32", "tir.exp", x, x)
    with pytest.raises(
        ExpressionError, match="not a supported function of the C mathematics library"
    ):
        tvm.tir.call_pure_extern("float32", "__fancyf", x)
    with pytest.raises(UserError, match="an expression has no effects"):
        register_op_attr("tir.my", "TCallEffectKind", tvm.tir.CallEffectKind.UpdateState)
    with pytest.raises(UserError, match="not a function"):
        register_intrin_lowering("tir.my", "llvm", f=3)
    with pytest.warns(CompatNote, match="has no effect"):
        register_op_attr("tir.my", "TScriptPrinterName", "my")


def test_calls_of_other_versions_are_refused_by_name():
    with pytest.raises(ExpressionError, match=r"call_intrin tir\.tvm_storage_sync: no rule says"):
        tvm.tir.call_intrin("handle", "tir.tvm_storage_sync", "shared")
