"""Bit-serial products: all numbers of bits, both encodings, awkward shapes."""

import dataclasses

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.codegen import emit
from dlcompiler.errors import TargetError, TuningError
from dlcompiler.measurement import verify
from dlcompiler.ops.bitserial.encoding import packed
from dlcompiler.pipeline import lower
from dlcompiler.runtime import llvm
from dlcompiler.target import resolve
from tests.inner_loops import inner_loops
from tests.ops.products import check, choices

DENSE, CONV2D = ops.operator("bitserial_dense"), ops.operator("bitserial_conv2d")
BITS = {
    "data_bits": (1, 2, 3, 4),
    "weight_bits": (1, 2, 3, 4),
    "weights": ("unipolar", "bipolar"),
    "word": ("uint32", "uint64"),
    "block": (8, 16, 32),
}
SHAPES = {
    "m": (0, 1, 13),
    "n": (0, 1, 17),
    "k": (0, 1, 31, 97),
    "data_bits": (1, 4),
    "weights": ("unipolar", "bipolar"),
    "cpu": ("cpu", "x86-64-avx2", "x86-64-sse2", "c"),
}
IMAGES = {
    "c": (0, 1, 37, 64),
    "o": (1, 17),
    "kernel": (1, 3, (2, 1)),
    "stride": (1, 2),
    "padding": (0, 1, (0, 1, 2, -1)),
    "dilation": (1, 2),
    "layout": ("NCHW", "NHWC"),
    "weights": ("unipolar", "bipolar"),
    "cpu": ("cpu", "x86-64-avx2", "c"),
}


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(BITS), ids=str)
def test_bits(choice):
    check(DENSE, DENSE.workload(m=3, n=17, k=70, **choice))


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(SHAPES), ids=str)
def test_rows(choice):
    given = {name: value for name, value in choice.items() if name != "cpu"}
    check(DENSE, DENSE.workload(**given), target=resolve(choice["cpu"]))


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(IMAGES), ids=str)
def test_images(choice):
    given = {name: value for name, value in choice.items() if name != "cpu"}
    workload = CONV2D.workload(n=2, h=7, w=5, data_bits=2, **given)
    check(CONV2D, workload, target=resolve(choice["cpu"]))


@pytest.mark.parametrize(
    ("operator", "parameters"),
    [
        (DENSE, {"m": 3, "n": 17, "k": 97, "data_bits": 3, "weights": "bipolar"}),
        (CONV2D, {"c": 37, "h": 5, "w": 7, "o": 9, "kernel": 3, "padding": 1, "stride": 2,
                  "weight_bits": 2, "weights": "bipolar"}),
        (CONV2D, {"c": 37, "h": 5, "w": 6, "o": 9, "kernel": 3, "padding": (0, 1, 2, -1),
                  "data_bits": 2, "layout": "NHWC", "dilation": 2}),
    ],
    ids=["rows", "NCHW", "NHWC"],
)  # fmt: skip
def test_awkward_shapes_on_two_cores(operator, parameters):
    target = dataclasses.replace(resolve("cpu"), cores=2)
    workload = operator.workload(**parameters)
    config = operator.space(workload, target).config(
        **{**operator.default_config(workload, target).values, "parallel": True}
    )
    check(operator, workload, config, target=target)


def test_an_inner_loop_counts_bits_in_registers():
    target = resolve("x86-64-avx512")
    target = dataclasses.replace(target, features=(*target.features, "+avx512vpopcntdq"))
    workload = CONV2D.workload(c=128, h=28, w=28, o=64, kernel=3, padding=1, data_bits=2)
    config = CONV2D.default_config(workload, target)
    func = lower(*CONV2D.template(workload, target, config), target=target)
    text = llvm.emit_assembly(emit(func, target).text, llvm.Options.for_target(target))
    loops = inner_loops(func, text, "bitserial_conv2d.counts")
    assert [loop.stack_accesses for loop in loops] == [()] * len(loops)
    most = max(loop.count("vpopcntq") for loop in loops)
    assert most == config["tile_x"] * config["tile_n"] // target.lanes("uint64") * 2


def test_the_interpreter_agrees():
    workload = CONV2D.workload(c=33, h=3, w=3, o=8, kernel=2, padding=1, data_bits=2, layout="NHWC",
                               weights="bipolar")  # fmt: skip
    target = resolve("cpu")
    config = CONV2D.default_config(workload, target)
    schedule, args = CONV2D.template(workload, target, config)
    assert "interpreter" in verify(schedule, args, target=target).oracles


def test_higher_bits_of_data_do_not_count():
    workload = DENSE.workload(m=2, n=3, k=70, data_bits=2)
    known = DENSE.reference(workload, 1)
    given = {**known.inputs, "data": known.inputs["data"] | np.uint8(0b10101100)}
    (got,) = check(DENSE, workload, inputs=given).values()
    masked = (given["data"] & 3).astype("int32")
    np.testing.assert_array_equal(got, masked @ known.plain["weight"].T)


def test_bits_of_a_word_begin_with_the_first_number():
    codes = np.zeros((1, 40), np.uint8)
    codes[0, [0, 33]] = 3, 2
    np.testing.assert_array_equal(packed(codes, 2, "uint32"), [[[1, 1], [0, 2]]])
    np.testing.assert_array_equal(packed(codes, 2, "uint64"), [[[1, 1 | 1 << 33]]])


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"data_bits": 5}, "not a number of bits"),
        ({"weight_bits": 0}, "not a number of bits"),
        ({"weights": "signed"}, "weights is not one of the choices"),
        ({"word": "uint8"}, "word is not one of the choices"),
        ({"block": 12}, "block is not one of the choices"),
        ({"groups": 2}, "in groups are not supported"),
        ({"layout": "NCHW8c"}, "layout is not one of the choices"),
        ({"dtype": "int8"}, "the parameters are not valid"),
    ],
    ids=str,
)
def test_refusals(parameters, problem):
    with pytest.raises(TuningError, match=problem):
        CONV2D.workload(**{"c": 4, "h": 4, "w": 4, "o": 4, "kernel": 1, **parameters})


def test_other_devices_are_refused():
    workload = DENSE.workload(m=2, n=3, k=70)
    with pytest.raises(TargetError, match="no schedule for this kind of device"):
        DENSE.default_config(workload, resolve("gpu"))
