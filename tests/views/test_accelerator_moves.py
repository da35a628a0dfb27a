"""Moves for an accelerator: from a product on blocks to a good schedule by moves of the palette."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import TargetError
from dlcompiler.schedule.moves.accelerator_moves import _excesses
from dlcompiler.schedule.state import Step
from dlcompiler.schedule.trace import decode
from dlcompiler.target.accelerators.vta import VtaConfig, vta
from dlcompiler.views import palette
from tests.accelerator_programs import check_product, plain_product

VTA = dlc.target.resolve("vta-pynq")


def items(s, key, primitives=None):
    view = palette(s, key, primitives, VTA)
    return [i for part in ("loop", "stage") for group in view[part] for i in group["items"]]


def item(s, key, primitive, text):
    offered = {each["text"]: each for each in items(s, key, [primitive])}
    assert text in offered, list(offered)
    return offered[text]


def click(s, key, primitive, text, **numbers):
    """Take a step that the palette of a loop or stage offers."""
    chosen = item(s, key, primitive, text)
    assert chosen["status"] in ("legal", "pending"), chosen
    data = chosen["step"]
    step = Step(data["primitive"], data["stage"], {**data["args"], **numbers})
    s.apply(step.primitive, step.stage, decode(s.state, step))


def cycles(s, args):
    """Build, compare with NumPy, and return the simulated cycles."""
    kernel = dlc.build(s, args, target=VTA)
    check_product(kernel, args)
    return kernel.report().cycles


def on_chip(s):
    click(s, "sums", "cache_read", "A in vta-pynq.inp, for sums (load inp)")
    click(s, "sums", "cache_read", "W in vta-pynq.wgt, for sums (load wgt)")
    click(s, "sums", "set_scope", "in vta-pynq.acc (gemm)")


def reduced_outside(s):
    """Bring the loop ko outside all but the loops of the intrinsic, and load in it."""
    click(s, "sums/ko", "reorder", "outward, past j")
    click(s, "sums/ko", "compute_at", "A.vta-pynq.inp at sums.ko")
    click(s, "sums/ko", "compute_at", "W.vta-pynq.wgt at sums.ko")
    click(s, "sums/j", "tensorize", "with vta_gemm_1x16x16 (gemm)")


def test_clicks_lead_to_a_fast_program():
    s, args = plain_product(rows=4, inner=2)
    on_chip(s)
    click(s, "C/y", "compute_at", "sums at C.y")
    reduced_outside(s)
    naive = cycles(s, args)

    s, args = plain_product(rows=4, inner=2)
    on_chip(s)
    click(s, "C/y", "split", "split", factor=2)
    click(s, "C/x", "reorder", "inward, past y.outer")
    click(s, "C/y.outer", "compute_at", "sums at C.y.outer")
    click(s, "sums/ko", "reorder", "outward, past j")
    click(s, "sums/ko", "reorder", "outward, past y")
    click(s, "sums/ko", "reorder", "outward, past x")
    click(s, "sums/ko", "compute_at", "A.vta-pynq.inp at sums.ko")
    click(s, "sums/ko", "compute_at", "W.vta-pynq.wgt at sums.ko")
    click(s, "sums/j", "tensorize", "with vta_gemm_1x16x16 (gemm)")
    blocked = cycles(s, args)
    click(s, "A.vta-pynq.inp", "double_buffer", "double_buffer")
    click(s, "W.vta-pynq.wgt", "double_buffer", "double_buffer")
    double = cycles(s, args)
    click(s, "C/y.outer", "bind", "to virtual threads")
    threads = cycles(s, args)
    assert naive > 5 * blocked
    assert blocked > double > threads


def test_every_state_on_the_way_has_no_memory_of_micro_ops():
    s, _ = plain_product()
    scopes = {i["step"]["args"].get("scope") for i in items(s, "sums")}
    assert scopes == {None, "global", "vta-pynq.inp", "vta-pynq.wgt", "vta-pynq.acc"}


REFUSED = [
    ("cache_read", "A in vta-pynq.wgt, for sums",
     "wgt is read by gemm only, as the operand that goes along j", "choose vta-pynq.inp"),
    ("cache_read", "W in vta-pynq.inp, for sums",
     "inp is read by gemm only, as the operand that is the same for all j", "choose vta-pynq.wgt"),
    ("cache_read", "A in vta-pynq.acc, for sums", "acc holds int32",
     "compute it as int32, or choose another memory"),
    ("set_scope", "in vta-pynq.inp", "inp holds int8",
     "compute it as int8, or choose another memory"),
]  # fmt: skip


@pytest.mark.parametrize(("primitive", "text", "reason", "hint"), REFUSED)
def test_a_wrong_memory_says_why(primitive, text, reason, hint):
    refused = item(plain_product()[0], "sums", primitive, text)
    assert (refused["status"], refused["reason"], refused["hint"]) == ("illegal", reason, hint)


def test_the_intrinsic_is_offered_before_it_fits():
    s, _ = plain_product()
    refused = item(s, "sums/j", "tensorize", "with vta_gemm_1x16x16")
    assert refused["status"] == "illegal"
    assert "16" in refused["because"]
    assert refused["hint"].endswith("reorder the others outside sums.j")


def elementwise(body, dtype="int32"):
    A = te.placeholder((4, 8, 1, 16), dtype, name="A")
    B = te.compute(A.shape, lambda *i: body(A[i]), "B")
    C = te.compute(A.shape, lambda *i: B[i].astype("int8"), "C")
    return te.create_schedule(C.op), [A, C]


def test_elementwise_stages_go_where_the_alu_is():
    s, args = elementwise(lambda a: te.maximum(a >> 2, 0))
    click(s, "B", "cache_read", "A in vta-pynq.acc, for B (load acc)")
    click(s, "B", "set_scope", "in vta-pynq.acc (alu)")
    a = np.arange(-256, 256, dtype="int32").reshape(4, 8, 1, 16)
    kernel = dlc.build(s, args, target=VTA)
    kernel(a, c := np.empty(a.shape, "int8"))
    np.testing.assert_array_equal(c, np.maximum(a >> 2, 0).astype("int8"))
    s, _ = elementwise(lambda a: a * 3)
    refused = item(s, "B", "set_scope", "in vta-pynq.acc")
    assert refused["reason"] == "alu has no operation mul"
    s, _ = elementwise(lambda a: a, "int8")
    refused = item(s, "B", "set_scope", "in vta-pynq.inp")
    assert refused["reason"] == "inp is read by gemm only"
    refused = item(s, "C", "cache_write", "in vta-pynq.acc")
    assert refused["reason"] == "acc holds int32"


def test_a_memory_that_is_too_small_says_so():
    s, _ = plain_product(rows=1024)
    refused = item(s, "sums", "set_scope", "in vta-pynq.acc (gemm)")
    assert refused["status"] == "pending"
    assert refused["reason"].startswith("sums has 8,192 elements, and acc has room for 2,048")
    on_chip(s)
    click(s, "C/y", "compute_at", "sums at C.y")
    assert item(s, "C/x", "compute_at", "sums at C.x")["status"] != "illegal"
    click(s, "C/x", "split", "split", factor=512)
    refused = item(s, "C/x.outer", "compute_at", "sums at C.x.outer")
    assert refused["reason"] == "not enough depth: 2,048 elements of acc"
    assert refused["got"] == "4,096 elements of sums"


def test_what_is_too_large_is_what_the_build_refuses():
    """Neither threads that a condition leaves out, nor a second buffer without a next iteration."""
    small = vta("vta-pynq", VtaConfig(LOG_ACC_BUFF_SIZE=9, LOG_WGT_BUFF_SIZE=11))  # 8 elements
    for factor, is_guarded in ((3, True), (2, False)):
        s, args = plain_product(rows=2, columns=5, inner=1)
        C = args[2]
        (sums,) = C.op.input_tensors
        w = s.cache_read(args[1], "vta-pynq.wgt", [sums])
        a = s.cache_read(args[0], "vta-pynq.inp", [sums])
        s[sums].set_scope("vta-pynq.acc")
        _, inner = s[C].split(C.op.axis[0], factor)
        s[C].bind(inner, te.thread_axis("cthread"))
        s[sums].compute_at(s[C], inner)
        x, y, i, j = sums.op.axis
        ko, ki = sums.op.reduce_axis
        s[sums].reorder(ko, x, y, i, j, ki)
        s[sums].tensorize(i, te.tensor_intrin("vta_gemm_1x16x16"))
        s[a].compute_at(s[sums], ko)
        s[w].compute_at(s[sums], ko)  # of one iteration
        s[w].double_buffer()
        excesses = _excesses(small, s.state)
        assert list(excesses) == ([] if is_guarded else ["sums"])
        if is_guarded:
            check_product(dlc.build(s, args, target=small), args)
        else:
            with pytest.raises(TargetError, match="the memory acc is too small"):
                dlc.build(s, args, target=small)
