"""Intrinsics in C: the loops that they declare, since their instructions are LLVM's."""

from dlcompiler.pipeline import emit_source
from tests.intrinsics import tiled


def test_what_is_declared_is_what_c_computes():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(k, "gemm_f32_6x16x8")
    text = emit_source(s, args, "c")[0].text
    assert text.count("C[(i_outer*6 + i)*32 + j_outer*16 + j] ") == 2
    assert "gemm" not in text
