"""Random workloads of every operator: usual sizes, and those at which rules of thumb break."""

from __future__ import annotations

import dataclasses
import math

import pytest

from dlcompiler import ops
from dlcompiler.errors import ExpressionError, TuningError
from dlcompiler.ops.activations import ACTIVATIONS
from dlcompiler.ops.bitserial.encoding import BLOCKS as BIT_BLOCKS
from dlcompiler.ops.bitserial.encoding import ENCODINGS, WORDS
from dlcompiler.ops.conv2d.direct import BLOCKS as DIRECT
from dlcompiler.ops.conv2d.gemm import BLOCKS as GEMM
from dlcompiler.ops.conv2d.layouts import LAYOUTS as IMAGES
from dlcompiler.ops.data_movement import MODES
from dlcompiler.ops.functions import FUNCTIONS as ELEMENTWISE
from dlcompiler.ops.gemm.product import LAYOUTS as PRODUCTS
from dlcompiler.ops.reduction import FUNCTIONS as REDUCTIONS
from dlcompiler.ops.resizing import METHODS
from dlcompiler.ops.resizing import MODES as COORDINATES
from dlcompiler.ops.selections import INDICES
from dlcompiler.ops.shapes import FLOATS, INTEGERS
from dlcompiler.target import resolve
from tests.share import CI_SHARE

CPUS = (
    *("cpu", "x86-64-avx512", "x86-64-avx2", "x86-64-sse4", "x86-64-sse2"),
    *("aarch64", "cortex-a53", "armv7", "riscv64", "wasm32", "c"),
)
CORES = (1, 2, 3, 4, 6, 7, 8, 12, 16, 31, 64, 128)
PRIMES = (11, 13, 17, 23, 31, 37, 61, 67, 97, 127, 131, 251, 257, 509, 1021, 4099)
USUAL = (3, 7, 14, 28, 56, 64, 96, 112, 128, 197, 224, 256, 320, 384, 512, 768, 1000, 3072, 30522)
HUGE = (65_536, 100_000, 131_071, 1 << 20)
OF_PROCESSORS = tuple(n for n in ops.REGISTRY if "cpu" in ops.operator(n).schedules)
"""Operators that CPUs compute, and most of them GPUs; the others are of accelerators only."""
OF_GPUS = tuple(n for n in OF_PROCESSORS if "gpu" in ops.operator(n).schedules)
NAMES = (*OF_PROCESSORS, "conv2d")
PARTS = pytest.mark.parametrize("part", range(CI_SHARE))
"""Parts of the seeds of an operator: so many that CI runs one of each operator."""


def drawn_target(choose):
    """Return a CPU with a number of cores."""
    return dataclasses.replace(resolve(choose.choice(CPUS)), cores=choose.choice(CORES))


def drawn_workload(name, choose, most=1 << 20):
    """Return parameters that an operator takes, whose extents are at most `most`."""
    for _ in range(100):
        params = _DRAWS[name](Extents(choose, most))
        try:
            if name == "conv2d":
                _check_convolution(params)
            else:
                found = ops.operator(name)
                found.define(found.workload(**params))
        except TuningError:
            continue
        except ExpressionError as error:
            if "too large" not in str(error):
                raise
            continue
        return params
    raise AssertionError(f"no workload of {name}")


@dataclasses.dataclass
class Extents:
    """Draws extents, and all else from lists."""

    choose: object
    most: int

    def of(self, *values):
        return self.choose.choice(values)

    def extent(self, most=None):
        most = min(self.most, most or self.most)
        kind = self.choose.random()
        if kind < 0.02:
            return 0
        if kind < 0.25:
            found = self.choose.randint(1, 9)
        elif kind < 0.4:
            found = self.of(*PRIMES)
        elif kind < 0.6:
            found = self.of(*USUAL)
        elif kind < 0.75:
            found = (1 << self.choose.randint(0, 14)) + self.of(-1, 0, 0, 1)
        elif kind < 0.9:
            found = round(2 ** self.choose.uniform(0, 14))
        else:
            found = self.of(*HUGE)
        return min(found, most)

    def shape(self, least=1):
        ndim = max(least, self.of(1, 2, 2, 2, 3, 4))
        return tuple(self.extent(max(self.most >> (4 * n), 4)) for n in range(ndim))[::-1]

    def epilogue(self):
        steps = ("", "", "relu", "bias", "bias+relu", "batch_norm+residual", "bias+gelu")
        return self.of(*steps, self.of(*ACTIVATIONS))


def _product(x):
    n, k = x.extent(), x.extent()
    few = x.of(True, False)
    return {
        "m": x.extent(8) if few else x.extent(),
        "n": x.extent(32) if few and x.of(True, False) else n,
        "k": k,
        "dtype": x.of("float32", "float32", "float64", "float16", "bfloat16", "int8"),
        "epilogue": x.epilogue(),
    }


def _matmul(x):
    return {**_product(x), "layout": x.of(*PRODUCTS), "packed": x.of(0, 0, 0, 4, 8, 16, 24, 64)}


def _dense(x):
    return {**_product(x), "packed": x.of(0, 0, 8, 16, 17, 32)}


def _batch_matmul(x):
    return {**_product(x), "layout": x.of(*PRODUCTS), "batch": x.extent(4096)}


def _window(x):
    kernel = x.of(1, 1, 2, 3, 3, 5, 7, 11, (1, 7), (3, 1), (5, 2))
    return {
        "n": x.of(1, 1, 1, 2, 3, 8, 64),
        "c": x.extent(4096),
        "h": x.extent(600),
        "w": x.extent(600),
        "kernel": kernel,
        "stride": x.of(1, 1, 1, 2, 3, (1, 2), (2, 1), 5),
        "padding": x.of(0, 1, 1, 2, 3, (1, 0), (0, 1, 2, 3), (-1, 0)),
        "dilation": x.of(1, 1, 1, 2, 3, (1, 2)),
    }


def _convolution(x):
    window = _window(x)
    groups = x.of(1, 1, 1, 2, 3, 8, 32, window["c"] or 1)
    c = max(window["c"] // groups, 1) * groups
    o = x.extent(2048)
    return {
        **window,
        "c": c,
        "o": max(o // groups, 1) * groups,
        "groups": groups,
        "dtype": x.of("float32", "float32", "float64"),
        "epilogue": x.epilogue(),
    }


def _direct(x):
    return {
        **_convolution(x),
        "dtype": x.of("float32", "float32", "float64", "float16", "bfloat16", "int8"),
        "layout": x.of("NCHW", *IMAGES),
        "block": x.of(0, *DIRECT),
    }


def _conv2d(x):
    return {name: value for name, value in _direct(x).items() if name != "block"}


def _bits(x):
    return {
        "data_bits": x.of(1, 2, 2, 3, 4),
        "weight_bits": x.of(1, 1, 2, 3, 4),
        "weights": x.of(*ENCODINGS),
        "word": x.of("", "", *WORDS),
        "block": x.of(0, 0, *BIT_BLOCKS),
    }


def _bitserial_dense(x):
    return {"m": x.extent(), "n": x.extent(), "k": x.extent(), **_bits(x)}


def _bitserial_conv2d(x):
    layout = x.of("NCHW", "NHWC")
    return {**_window(x), "o": x.extent(2048), "layout": layout, **_bits(x)}


def _winograd(x):
    known = _convolution(x)
    absent = ("stride", "dilation", "groups", "kernel")
    plain = {name: value for name, value in known.items() if name not in absent}
    return {**plain, "kernel": 3, "tile": x.of(2, 4)}


def _gemm(x):
    return {**_convolution(x), "block": x.of(0, *GEMM)}


def _depthwise(x):
    return {
        **_window(x),
        "multiplier": x.of(1, 1, 1, 2, 3),
        "layout": x.of("NCHW", *IMAGES),
        "dtype": x.of("float32", "float32", "float64", "float16", "bfloat16", "int8"),
        "epilogue": x.epilogue(),
    }


def _pool(x):
    return {
        **_window(x),
        "kind": x.of("max", "avg"),
        "layout": x.of("NCHW", *IMAGES),
        "ceil_mode": x.of(0, 1),
        "count_include_pad": x.of(0, 1),
        "dtype": x.of("float32", *FLOATS, *INTEGERS),
    }


def _with_axis(x):
    shape = x.shape()
    return {"shape": shape, "axis": x.of(*range(len(shape))), "dtype": x.of("float32", *FLOATS)}


def _rows(x):
    return {"shape": x.shape(), "dtype": x.of("float32", *FLOATS)}


def _groups(x):
    shape, groups = x.shape(2), x.of(1, 1, 2, 4, 32)
    return {
        "shape": (shape[0], groups * x.extent(64), *shape[2:]),
        "groups": groups,
        "dtype": x.of("float32", *FLOATS),
    }


def _instances(x):
    return {"shape": x.shape(2), "dtype": x.of("float32", *FLOATS)}


def _cumsum(x):
    return {**_with_axis(x), "dtype": x.of("float32", "float64", "int32", "int64")}


def _attention(x):
    kv_heads = x.of(1, 2, 8)
    heads, rows, length = kv_heads * x.of(1, 1, 4), x.extent(2048), x.extent(4096)
    return {
        "batch": x.of(1, 1, 2), "heads": heads, "kv_heads": kv_heads,
        "rows": x.of(1, rows), "length": length, "depth": x.extent(256),
        "width": x.of(64, x.extent(256)), "causal": x.of(0, 0, 1),
        "mask": x.of("", "", (1, 1, 1, length)), "dtype": x.of("float32", "float64"),
    }  # fmt: skip


def _recurrent(x, **options):
    cell = x.of(0, 0, 1)
    return {
        "steps": 1 if cell else x.extent(500), "batch": x.of(1, x.extent(64)),
        "inputs": x.extent(1024), "hidden": x.extent(1024), "biases": x.of(0, 1, 2, 2),
        "cell": cell, "last": cell or x.of(0, 1), "packed": x.of(0, 8, 16, 64),
        "dtype": x.of("float32", "float64"),
        **{name: x.of(*values) for name, values in options.items()},
    }  # fmt: skip


def _elementwise(x):
    function = x.of(*ELEMENTWISE)
    shape = x.shape()
    shapes = [shape[x.of(0, 0, len(shape) - 1) :] for _ in range(ELEMENTWISE[function].arity)]
    shapes = [tuple(x.of(e, e, e, 1) for e in given) for given in shapes]
    return {"function": function, "shapes": shapes, "dtype": x.of(*ELEMENTWISE[function].dtypes)}


def _reduction(x):
    function, shape = x.of(*REDUCTIONS), x.shape()
    some = tuple(n for n in range(len(shape)) if x.of(True, False))
    return {
        "function": function,
        "shape": shape,
        "axes": x.of("all", x.of(*range(len(shape))), some),
        "keepdims": x.of(0, 1),
        "dtype": x.of(*REDUCTIONS[function].dtypes),
    }


def _transpose(x):
    shape = x.shape()
    axes = list(range(len(shape)))
    x.choose.shuffle(axes)
    return {"shape": shape, "axes": tuple(axes), "dtype": x.of("float32", *FLOATS, *INTEGERS)}


def _pad(x):
    shape = x.shape()
    return {
        "shape": shape,
        "before": tuple(x.of(0, 0, 1, 2, 5, -1) for _ in shape),
        "after": tuple(x.of(0, 0, 1, 3, 17, -1) for _ in shape),
        "mode": x.of(*MODES),
        "dtype": x.of("float32", *FLOATS, *INTEGERS),
    }


def _concatenate(x):
    shape = x.shape()
    axis = x.of(*range(len(shape)))
    count = x.of(1, 2, 2, 3, 9)
    shapes = [(*shape[:axis], x.extent(4099), *shape[axis + 1 :]) for _ in range(count)]
    return {"shapes": shapes, "axis": axis, "dtype": x.of("float32", *FLOATS, *INTEGERS)}


def _slice(x):
    shape = x.shape()
    begin = tuple(x.choose.randrange(max(extent, 1)) for extent in shape)
    size = [max(x.of(1, extent - first), 0) for extent, first in zip(shape, begin, strict=True)]
    return {"shape": shape, "begin": begin, "size": size, "dtype": x.of("float32", "int8")}


def _repeated(x, **more):
    known = _with_axis(x)
    return {**known, **{name: x.of(*values) for name, values in more.items()}}


def _tile(x):
    return {"shape": x.shape(), "reps": x.of((2,), (1, 3), (2, 1, 2))}


def _reshape(x):
    shape = x.shape()
    return {"shape": shape, "to": x.of(shape[::-1], (math.prod(shape),), (*shape[1:], shape[0]))}


def _indexed(x):
    shape = x.shape()
    axis = x.of(*range(len(shape)))
    return {"shape": shape, "indices": (x.extent(61),), "axis": axis, "index_dtype": x.of(*INDICES)}


def _gather(x):
    known = _indexed(x)
    return {**known, "indices": known["shape"]}  # each dimension is as long as that of the data


def _embedding(x):
    return {"rows": x.extent(), "width": x.extent(4096), "indices": x.shape()}


def _one_hot(x):
    return {"indices": (x.extent(4099),), "depth": x.extent(1000), "axis": x.of(0, -1)}


def _blocks(x):
    c, h, w = (4 * x.extent(64) for _ in range(3))
    block, layout = x.of(1, 2), x.of("NCHW", "NHWC")
    sizes = {"N": x.of(1, 2), "C": c, "H": h, "W": w}
    return {"shape": tuple(sizes[letter] for letter in layout), "block": block, "layout": layout}


def _resize(x):
    return {
        "shape": (x.of(1, 2), x.extent(64), x.extent(300), x.extent(300)),
        "to": (x.extent(300), x.extent(300)),
        "method": x.of(*METHODS),
        "mode": x.of(*COORDINATES[:-1]),
        "layout": x.of("NCHW", "NHWC"),
        "dtype": x.of("float32", *FLOATS),
    }


def _check_convolution(params):
    ops.operator("conv2d_direct").workload(**params)


_DRAWS = {
    "matmul": _matmul,
    "dense": _dense,
    "batch_matmul": _batch_matmul,
    "conv2d": _conv2d,
    "conv2d_direct": _direct,
    "conv2d_winograd": _winograd,
    "conv2d_gemm": _gemm,
    "depthwise_conv2d": _depthwise,
    "bitserial_dense": _bitserial_dense,
    "bitserial_conv2d": _bitserial_conv2d,
    "pool2d": _pool,
    "softmax": _with_axis,
    "log_softmax": _with_axis,
    "layer_norm": _rows,
    "rms_norm": _rows,
    "group_norm": _groups,
    "instance_norm": _instances,
    "attention": _attention,
    "lstm": _recurrent,
    "gru": lambda x: _recurrent(x, reset_after=(0, 1)),
    "rnn": lambda x: _recurrent(x, activation=("tanh", "relu")),
    "cumsum": _cumsum,
    "batch_norm": _with_axis,
    "elementwise": _elementwise,
    "reduction": _reduction,
    "transpose": _transpose,
    "pad": _pad,
    "concatenate": _concatenate,
    "strided_slice": _slice,
    "split": lambda x: _repeated(x, sections=(1, 2, 3, 4)),
    "flip": _with_axis,
    "tile": _tile,
    "repeat": lambda x: _repeated(x, repeats=(1, 2, 3, 8)),
    "reshape": _reshape,
    "take": _indexed,
    "gather": _gather,
    "embedding": _embedding,
    "one_hot": _one_hot,
    "depth_to_space": _blocks,
    "space_to_depth": _blocks,
    "resize2d": _resize,
}
