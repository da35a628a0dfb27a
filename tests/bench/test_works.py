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
        ("gemm:4x4x4,foo=1", "no option of its family has this name"),
        ("gemm:4x4x4,layouts=NT", "did you mean 'layout'?"),
        ("gemm:4x4x4,layout=NT,layout=NT", "an option is given twice"),
        ("gemm:4x4x4,dtype=int4", "did you mean 'int64'?"),
        ("gemm:4x4x4,layout=XX", "NN, NT, TN, TT"),
        ("gemm:4x4x4,dtype=int8,4", "no option of its family"),
        ("conv2d:1x8x9x9,5,3,1,1,groups=3", "the groups do not divide the channels"),
        ("conv2d:1x8x9x9,5,3x3x3,1,1", "not the sizes"),
        ("conv2d:1x8x9x9,5,3,0,1", "a size is 0"),
        ("elementwise:add:3,4", "the shapes cannot be aligned"),
        ("softmax:4x4,axis=5", "no such dimension"),
        ("pad:4x4,1x1", "not the sizes"),
        ("gemm:1x2x3+relu+bias", "repeated or out of order"),
        ("gemm:1x2x3+relu+tanh", "repeated or out of order"),
        ("gemm:1x2x3+batch_norm", "behind convolutions only"),
        ("gemm:1x2x3+swish", "no step has this name"),
        ("softmax:4x4+relu", "nothing can be fused"),
        ("conv2d:1x1x2x2,1,5,1,1", "larger than the padded image"),
        ("elementwise:relu:64,alpha=2", "no such option"),
        ("strided_slice:4x4,0x0,5x1", "not inside the tensor"),
        ("split:4x4,3", "the sections are not equal"),
        ("split:4x4,2x2", "not the sizes"),
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
        assert len(grammar.form.split(",")) >= len(grammar.parts), form(family)
        for part, names in zip(grammar.form.split(","), grammar.parts, strict=False):
            assert isinstance(names, str) or len(names) == len(part.split("x")), form(family)


@pytest.mark.parametrize(
    ("text", "shapes", "dtype"),
    [
        ("gemm:5x7x3,layout=TT", {"data": (3, 5), "weight": (7, 3), "out": (5, 7)}, "float32"),
        ("gemm:5x7x3,dtype=int8", {"data": (5, 3), "weight": (3, 7), "out": (5, 7)}, "int32"),
        ("conv2d:1x8x9x7,4,3x1,2,1x0,groups=2,layout=NHWC",
         {"data": (1, 9, 7, 8), "weight": (4, 4, 3, 1), "out": (1, 5, 4, 4)}, "float32"),
        ("conv2d:1x8x9x9,4,3,1,1x1x0x0,dilation=2",
         {"data": (1, 8, 9, 9), "weight": (4, 8, 3, 3), "out": (1, 4, 6, 6)}, "float32"),
        ("depthwise:1x8x9x9,3,1,1,multiplier=2",
         {"data": (1, 8, 9, 9), "weight": (16, 1, 3, 3), "out": (1, 16, 9, 9)}, "float32"),
        ("pool2d:max:1x8x10x10,3,2,0,ceil_mode=1",
         {"data": (1, 8, 10, 10), "out": (1, 8, 5, 5)}, "float32"),
        ("reduction:argmax:2x3x4,axes=1,keepdims=1",
         {"data": (2, 3, 4), "out": (2, 1, 4)}, "int32"),
        ("reduction:sum:2x3x4,axes=0x2", {"data": (2, 3, 4), "out": (3,)}, "float32"),
        ("reduction:sum:2x3x4,axes=all", {"data": (2, 3, 4), "out": ()}, "float32"),
        ("elementwise:less:2x3,3", {"data": (2, 3), "other": (3,), "out": (2, 3)}, "bool"),
        ("transpose:2x3x4,axes=0x2x1", {"data": (2, 3, 4), "out": (2, 4, 3)}, "float32"),
        ("pad:2x3,0x1,-1x1,mode=edge", {"data": (2, 3), "out": (1, 5)}, "float32"),
        ("concatenate:2x3,2x4,axis=1",
         {"data0": (2, 3), "data1": (2, 4), "out": (2, 7)}, "float32"),
        ("elementwise:where:2x1,2x3,3",
         {"condition": (2, 1), "data": (2, 3), "other": (3,), "out": (2, 3)}, "float32"),
        ("elementwise:cast:5,to=float16", {"data": (5,), "out": (5,)}, "float16"),
        ("strided_slice:4x6,0x1,2x3,strides=2", {"data": (4, 6), "out": (2, 3)}, "float32"),
        ("embedding:9x4,2x3", {"data": (9, 4), "indices": (2, 3), "out": (2, 3, 4)}, "float32"),
        ("one_hot:2x3,5,axis=0", {"indices": (2, 3), "out": (5, 2, 3)}, "float32"),
    ],
)  # fmt: skip
def test_options_give_shapes_and_dtypes(text, shapes, dtype):
    work = parse_work(text)
    assert work.shapes == shapes
    assert work.dtypes["out"] == dtype


def test_bytes_and_operations_follow_the_options():
    assert parse_work("gemm:5x7x3,dtype=int8").nbytes == 5 * 3 + 3 * 7 + 4 * 5 * 7
    assert parse_work("gemm:5x7x3,dtype=bfloat16+bias").nbytes == 2 * (15 + 21 + 35) + 4 * 7
    assert parse_work("embedding:9000x4,2x3").nbytes == 4 * 24 + 4 * 6 + 4 * 24
    assert parse_work("split:6x4,3").nbytes == 2 * 4 * 24
    grouped = parse_work("conv2d:1x8x9x9,4,3,1,1,groups=2")
    assert grouped.flops == 2 * 4 * 81 * 4 * 9


@pytest.mark.parametrize("family", FAMILIES)
def test_heldout_works_follow_from_their_seed(family):
    works = heldout_works(family, 5, 40)
    assert works == heldout_works(family, 5, 40)
    assert len({work.text for work in works}) == 40
    assert {work.text for work in works} != {work.text for work in heldout_works(family, 6, 40)}
