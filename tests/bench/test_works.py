"""Works are read from texts, and what is wrong with one is said."""

import pytest

from dlcompiler.bench.heldout import FAMILIES, heldout_works
from dlcompiler.bench.works import GRAMMAR, form, parse_work
from dlcompiler.errors import UserError


def test_the_works_of_the_command_line():
    gemm = parse_work("gemm:512x640x768")
    assert gemm.shapes == {"data": (512, 768), "weight": (768, 640), "out": (512, 640)}
    assert gemm.flops == 2 * 512 * 640 * 768
    conv = parse_work("conv2d:1x64x56x56,128,3,2,1+bias+relu")
    assert conv.shapes["out"] == (1, 128, 28, 28)
    assert conv.shapes["bias"] == (128,)
    assert conv.flops == 2 * 128 * 28 * 28 * 64 * 9
    assert (conv.rows, conv.judged) == (("plain", "prepacked"), "prepacked")
    depthwise = parse_work("depthwise:1x64x112x112,3,2,1")
    assert depthwise.shapes["weight"] == (64, 1, 3, 3)
    softmax = parse_work("softmax:64x1000")
    assert (softmax.rows, softmax.judged) == (("plain",), "plain")
    assert parse_work("elementwise:add:64").nbytes == 3 * 64 * 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gem:1x2x3", "did you mean 'gemm'?"),
        ("gemm", "expected  gemm:MxNxK"),
        ("gemm:1x2", "expected  gemm:MxNxK"),
        ("gemm:1x2x３", "not the sizes"),
        ("gemm:1x0x3", "a size is 0"),
        ("gemm:99999x99999x1", "an array is too large"),
        ("gemm:1x2x3+relu+bias", "repeated or out of order"),
        ("gemm:1x2x3+relu+tanh", "repeated or out of order"),
        ("gemm:1x2x3+batch_norm", "behind convolutions only"),
        ("gemm:1x2x3+swish", "no step has this name"),
        ("softmax:4x4+relu", "nothing can be fused"),
        ("conv2d:1x1x2x2,1,5,1,1", "larger than the padded image"),
        ("elementwise:64", "elementwise:{copy,"),
        ("elementwise:pow:64", "elementwise:{copy,"),
    ],
)
def test_what_is_wrong_is_said(text, problem):
    with pytest.raises(UserError) as caught:
        parse_work(text)
    assert problem in str(caught.value)


def test_each_form_names_all_sizes():
    for family, grammar in GRAMMAR.items():
        choice = f"{grammar.functions[0]}:" if grammar.functions else ""
        sizes = {"N": "1", "MxNxK": "1x1x1", "BxMxNxK": "1x1x1x1", "RxC": "1x1"}.get(grammar.form)
        sizes = sizes or "1x1x1x1" + ",1" * grammar.form.count(",")
        assert len(parse_work(f"{family}:{choice}{sizes}").sizes) == len(grammar.names), form(
            family
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_heldout_works_follow_from_their_seed(family):
    works = heldout_works(family, 5, 40)
    assert works == heldout_works(family, 5, 40)
    assert len({work.text for work in works}) == 40
    assert {work.text for work in works} != {work.text for work in heldout_works(family, 6, 40)}
