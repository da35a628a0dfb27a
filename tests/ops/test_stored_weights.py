"""Weights that are stored as floats of 16 bits, and converted as kernels read them."""

import pytest

from dlcompiler import ops
from dlcompiler.errors import TargetError, TuningError
from dlcompiler.ir import print_func
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.products import check, choices

CPUS = ("cpu", "x86-64-avx2", "c")
WORKS = {
    "dense": {"m": (0, 1, 5), "n": (1, 37), "k": (0, 1, 67), "packed": (0, 16, 64)},
    "matmul": {"m": (1, 5), "n": (1, 37), "k": (1, 67), "packed": (0, 32),
               "layout": ("NN", "NT", "TN"), "epilogue": ("", "bias+relu")},
    "conv2d": {"c": (0, 1, 5), "h": (1, 7), "w": (5,), "o": (1, 18), "kernel": (1, 3),
               "padding": (0, 1), "stride": (1, 2), "layout": ("NCHW", "NHWC")},
    "lstm": {"steps": (1, 3), "batch": (1, 3), "inputs": (1, 9), "hidden": (1, 21),
             "packed": (8, 16), "biases": (0, 2)},
    "gru": {"inputs": (9,), "hidden": (1, 21), "packed": (16,), "reset_after": (0, 1)},
    "rnn": {"inputs": (9,), "hidden": (1, 21), "packed": (16, 64), "cell": (0, 1)},
}  # fmt: skip
CHOICES = [
    (kind, choice)
    for kind, parameters in WORKS.items()
    for choice in choices({**parameters, "weight_dtype": ("float16", "bfloat16"), "cpu": CPUS})
]


@pytest.mark.campaign
@pytest.mark.parametrize(("kind", "choice"), CHOICES, ids=str)
def test_values(kind, choice):
    parameters = {name: value for name, value in choice.items() if name != "cpu"}
    chosen = ops.select(kind, parameters, resolve(choice["cpu"]))
    check(chosen.operator, chosen.workload, chosen.config, target=choice["cpu"])


@pytest.mark.parametrize(
    ("m", "n", "dtype", "is_prefetched"),
    [(1, 1024, "", True), (4, 1024, "bfloat16", True), (1, 96, "", False)],
)
def test_packed_weights_beyond_the_caches_are_prefetched(m, n, dtype, is_prefetched):
    target = resolve("x86-64-avx2")
    parameters = {"m": m, "n": n, "k": 512, "packed": 32, "weight_dtype": dtype}
    chosen = ops.select("dense", parameters, target)
    schedule, args = chosen.operator.template(chosen.workload, target, chosen.config)
    text = print_func(lower(schedule, args, target=target)).text
    assert ("prefetch" in text) == is_prefetched


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("dense", {"m": 1, "n": 4, "k": 4, "weight_dtype": "int8"}),
        ("dense", {"m": 1, "n": 4, "k": 4, "dtype": "float64", "weight_dtype": "float16"}),
        ("lstm", {"inputs": 4, "hidden": 4, "weight_dtype": "float16"}),
        ("conv2d", {"c": 1, "h": 4, "w": 4, "o": 4, "kernel": 1, "weight_dtype": "float64"}),
    ],
    ids=str,
)
def test_other_dtypes_are_refused(kind, parameters):
    with pytest.raises(TuningError, match=r"in th(is|e) dtype"):
        ops.select(kind, parameters, resolve("cpu"))


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("dense", {"m": 1, "n": 4, "k": 4}),
        ("conv2d", {"c": 1, "h": 4, "w": 4, "o": 4, "kernel": 1}),
    ],
    ids=str,
)
def test_gpus_refuse_them(kind, parameters):
    target = resolve("gpu")
    chosen = ops.select(kind, {**parameters, "weight_dtype": "float16"}, target)
    with pytest.raises(TargetError, match="weights have the dtype of the data on GPUs"):
        chosen.operator.template(chosen.workload, target, chosen.config)
