"""Works with their results by NumPy in float64; as a command, checks a peer against them.

Peers other than NumPy are large libraries with threads of their own, so a test does that in another
process: ``python -m tests.bench.reference_works torch``.
"""

import math
import sys

import numpy as np

from dlcompiler.bench.contest import job_fields
from dlcompiler.bench.implementations import implementation_of
from dlcompiler.bench.peers import REGISTRY, Absent, Job
from dlcompiler.bench.works import parse_work
from dlcompiler.measurement.equality import differences

ELEMENTWISE = ("copy", "scale", "relu", "exp", "tanh", "sigmoid", "add", "multiply")
WORKS = (
    "gemm:5x7x3",
    "gemm:5x7x3+bias+relu",
    "dense:5x7x3+bias+gelu",
    "dense:5x7x3+residual+tanh",
    "batch_matmul:2x3x4x5",
    "conv2d:1x3x9x8,4,3,2,1",
    "conv2d:2x3x5x5,4,1,1,0+bias+relu",
    "conv2d:1x8x6x6,8,3,1,1+batch_norm+residual+relu",
    "depthwise:1x8x9x9,3,2,1",
    "depthwise:1x8x9x9,3,1,1+batch_norm+relu6",
    "pool2d:max:1x3x9x8,3,2,1",
    "pool2d:avg:2x3x9x8,3,1,1",
    "softmax:3x11",
    "log_softmax:3x11",
    "layer_norm:3x11",
    *(f"elementwise:{function}:64" for function in ELEMENTWISE),
    *(f"reduction:{function}:3x11" for function in ("sum", "max", "min", "mean")),
)
OPTIONS = (
    "gemm:5x7x3,dtype=int8",
    "gemm:16x32x64,dtype=int8,layout=NT+bias",
    "gemm:5x7x3,layout=TT+bias+relu",
    "gemm:16x24x8,dtype=bfloat16+bias",
    "gemm:16x24x8,dtype=float16",
    "batch_matmul:2x3x4x5,layout=NT+bias+relu",
    "conv2d:1x8x9x9,4,3x1,1,1x0,groups=2+bias+relu",
    "conv2d:1x8x9x9,4,3,1,2,dilation=2,layout=NHWC+bias+residual+relu",
    "conv2d:1x8x9x9,4,3,1,1x1x0x0,dtype=int8",
    "depthwise:1x8x9x9,5,2,2,multiplier=2",
    "pool2d:max:1x8x10x10,3,2,0,ceil_mode=1",
    "pool2d:avg:1x8x9x9,3,1,1,count_include_pad=0,layout=NHWC",
    "softmax:2x3x5,axis=1",
    "rms_norm:2x3x8",
    "group_norm:2x6x5x3,3",
    "lstm:3x2x5x7",
    "gru:2x1x4x3,biases=1",
    "gru:2x2x3x5,reset_after=0",
    "rnn:3x2x4x5,activation=relu,biases=0",
    "attention:1x2x5x7x4,mask=1x1x5x7",
    "attention:2x4x3x3x8,causal=1,kv_heads=2",
    "instance_norm:2x3x4x5",
    "cumsum:3x5x4,axis=1",
    "cumsum:3x21,dtype=int64",
    "batch_norm:1x8x4x4",
    "batch_norm:1x4x4x8,axis=-1",
    "elementwise:add:64x10,10,dtype=int8",
    "elementwise:less:64",
    "elementwise:gelu:64",
    "elementwise:leaky_relu:64",
    "elementwise:relu:64,dtype=bfloat16",
    "reduction:sum:2x3x4,axes=0x2",
    "reduction:argmax:4x5,axes=0,keepdims=1",
    "reduction:max:4x5,axes=all",
    "reduction:any:4x5,dtype=bool",
    "transpose:2x3x4,axes=0x2x1,dtype=bfloat16",
    "pad:1x3x4x4,0x0x1x1,0x0x1x2",
    "pad:1x3x4x4,0x0x1x2,0x0x2x1,mode=reflect",
    "pad:1x3x4x4,0x0x1x1,0x0x1x1,mode=edge",
    "concatenate:1x3x4,1x5x4,axis=1",
    "strided_slice:4x6,0x1,2x3,strides=1x2",
    "strided_slice:4x6,3x5,4x3,strides=-1x-2",
    "split:6x4,3",
    "flip:3x4,axis=1",
    "tile:2x3,2x1x2",
    "repeat:2x3,2,axis=0",
    "reshape:2x6,3x4",
    "take:5x3x2,2x2,axis=1",
    "gather:5x3,2x3,index_dtype=int64",
    "embedding:10x4,2x3,dtype=bfloat16",
    "one_hot:2x3,5,axis=1",
    "depth_to_space:1x8x2x3,2",
    "depth_to_space:1x8x2x3,2,mode=CRD",
    "space_to_depth:1x2x4x6,2",
    "resize2d:1x2x4x5,8x7",
    "resize2d:1x2x4x5,8x10,method=nearest_neighbor,mode=asymmetric",
    "resize2d:1x2x4x5,7x9,method=cubic,mode=align_corners",
    "elementwise:where:2x1,2x3,3",
    "elementwise:clip:9,low=-1,high=0.5",
    "elementwise:cast:9,to=int32",
    "elementwise:hard_sigmoid:9",
    "elementwise:leaky_relu:9,alpha=0.2",
    "elementwise:atan:9",
    "reduction:std:3x5",
    "reduction:l2_norm:3x5,axes=0",
    "reduction:logsumexp:3x5",
)
"""Works with options: peers are compared with the references of our operators."""
TOLERANCE = 1e-5  # of values of about 1


def arrays_of(work):
    generator = np.random.default_rng(3)
    shapes = list(work.shapes.items())[:-1]
    return {role: generator.uniform(-1, 1, s).astype(np.float32) for role, s in shapes}


def job_of(work, row, arrays):
    fields = {**job_fields(work, row), "threads": 1, "arrays": arrays}
    return Job(**fields)


def convolution(data, weight, stride, padding, groups):
    data = np.pad(data, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    kernel = weight.shape[-1]
    windows = np.lib.stride_tricks.sliding_window_view(data, (kernel, kernel), axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]
    if groups > 1:
        return np.einsum("nchwij,cij->nchw", windows, weight[:, 0])
    return np.einsum("nchwij,ocij->nohw", windows, weight)


def main_result(work, arrays):
    x = arrays["data"]
    match work.family:
        case "gemm":
            return x @ arrays["weight"]
        case "dense":
            return x @ arrays["weight"].T
        case "batch_matmul":
            return x @ arrays["other"]
        case "conv2d" | "depthwise":
            groups = work["channels"] if work.family == "depthwise" else 1
            return convolution(x, arrays["weight"], work["stride"], work["padding"], groups)
        case "pool2d":
            fill = -np.inf if work.function == "max" else 0
            border = [(0, 0), (0, 0), *[(work["padding"],) * 2] * 2]
            padded = np.pad(x, border, constant_values=fill)
            seen = np.lib.stride_tricks.sliding_window_view(padded, (work["kernel"],) * 2, (2, 3))
            seen = seen[:, :, :: work["stride"], :: work["stride"]]
            return seen.max((4, 5)) if work.function == "max" else seen.mean((4, 5))
        case "softmax" | "log_softmax":
            powers = np.exp(x - x.max(1, keepdims=True))
            result = powers / powers.sum(1, keepdims=True)
            return np.log(result) if work.family == "log_softmax" else result
        case "layer_norm":
            centred = x - x.mean(1, keepdims=True)
            normal = centred / np.sqrt(centred.var(1, keepdims=True) + 1e-5)
            return normal * arrays["scale"] + arrays["shift"]
        case "reduction":
            return getattr(np, work.function)(x, axis=1)
    functions = {
        "copy": lambda: x,
        "scale": lambda: 0.5 * x,
        "relu": lambda: np.maximum(x, 0),
        "exp": lambda: np.exp(x),
        "tanh": lambda: np.tanh(x),
        "sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "add": lambda: x + arrays["other"],
        "multiply": lambda: x * arrays["other"],
    }
    return functions[work.function]()


def expected(work, arrays):
    wide = {role: array.astype(np.float64) for role, array in arrays.items()}
    y = main_result(work, wide)
    along = (-1, 1, 1) if y.ndim == 4 else (-1,)
    for step in work.epilogue:
        match step:
            case "bias":
                y = y + wide["bias"].reshape(along)
            case "batch_norm":
                y = y * wide["scale"].reshape(along) + wide["shift"].reshape(along)
            case "residual":
                y = y + wide["residual"]
            case "relu":
                y = np.maximum(y, 0)
            case "relu6":
                y = np.clip(y, 0, 6)
            case "tanh":
                y = np.tanh(y)
            case "gelu":
                y = 0.5 * y * (1 + np.vectorize(math.erf)(y / math.sqrt(2)))
    return y


def check(name, text):
    """Compare all offers of a peer for a work; return how many there were."""
    work = parse_work(text)
    arrays = arrays_of(work)
    count = 0
    for row in work.rows:
        try:
            offers = REGISTRY[name](job_of(work, row, arrays))
        except Absent:
            continue
        for offer in offers:
            count += 1
            for _ in range(2):
                offer.call()
            got = offer.result()
            assert got.shape == work.shapes["out"], (text, offer.way)
            assert got.dtype == np.float32
            np.testing.assert_allclose(
                got, expected(work, arrays), atol=TOLERANCE, rtol=0, err_msg=f"{text} {offer.way}"
            )
    return count


def check_options(name, text):
    """Compare all offers of a peer with the reference of our operator; return how many."""
    work = parse_work(text)
    implementation = implementation_of(work, work.judged)
    reference = implementation.reference()
    given = {**reference.inputs, **reference.plain}
    arrays = {role: given[own] for role, own in implementation.roles.items()}
    right = list(zip(reference.expected.values(), reference.bound.values(), strict=True))
    try:
        offers = REGISTRY[name](job_of(work, work.judged, arrays))
        for offer in offers:
            offer.call()
    except Absent:
        return 0
    for offer in offers:
        found = offer.result()
        results = found if isinstance(found, list) else [found]
        for got, (expected, bound) in zip(results, right, strict=True):
            assert got.shape == work.shapes["out"], (text, offer.way)
            assert not differences(got, expected, 1000 * bound).wrong.any(), (text, offer.way)
    return len(offers)


if __name__ == "__main__":
    count = sum(check(sys.argv[1], text) for text in WORKS)
    print(sum(check_options(sys.argv[1], text) for text in OPTIONS), count)
