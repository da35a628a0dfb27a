"""TFLite models of one operator, or of a few, written for tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

_TYPES = {"float32": "FLOAT32", "float16": "FLOAT16", "int32": "INT32", "int64": "INT64",
          "int8": "INT8", "uint8": "UINT8", "int16": "INT16", "bool": "BOOL"}  # fmt: skip


@dataclass(frozen=True)
class Scales:
    """What the integers of a tensor stand for: one scale, or one for each slice along an axis."""

    scale: float | Sequence[float]
    zero: int | Sequence[int] = 0
    axis: int = 0


@dataclass(frozen=True)
class Case:
    """An operator: its name, operands, options, and the dtypes of its results.

    Arrays are constants; a tuple is the shape of an input of float32, a string after it its dtype.
    """

    op: str
    operands: Sequence[Any]
    options: dict[str, Any] = field(default_factory=dict)
    results: Sequence[str] = ("float32",)
    kind: str = ""
    """Name of its table of options; by default from the name of the operator."""
    version: int = 1
    scales: Sequence[Scales | None] = ()
    """Of the operands, then of the results; those that are missing have none."""

    @property
    def inputs(self) -> list[tuple[tuple[int, ...], str]]:
        """The shapes and dtypes of the inputs."""
        return [_input(each) for each in self.operands if isinstance(each, tuple)]


def _input(given: tuple[Any, ...]) -> tuple[tuple[int, ...], str]:
    if given and isinstance(given[-1], str):
        return given[:-1], given[-1]
    return given, "float32"


def model_of(case: Case, shapes: Sequence[Sequence[int]]) -> bytes:
    """Return the file of a model with one operator, whose results have these shapes."""
    return network_of([case], [shapes])


def network_of(cases: Sequence[Case], shapes: Sequence[Sequence[Sequence[int]]]) -> bytes:
    """Return the file of a model of operators, each of which takes the first result before it.

    The first operand of each but the first operator is left out in its case, and has the scales of
    that result. The outputs of the model are the results of the last operator.
    """
    builder = flatbuffers.Builder(1024)
    buffers, tensors, inputs, items, codes = [b""], [], [], [], []
    results: list[int] = []
    for number, (case, own) in enumerate(zip(cases, shapes, strict=True)):
        scales = iter([*case.scales, *[None] * 99])
        operands = results[:1]
        for given in case.operands:
            found = next(scales)
            if given is None:
                operands.append(-1)
                continue
            if isinstance(given, tuple):
                inputs.append(len(tensors))
                tensors.append((*_input(given), 0, found))
            else:
                buffers.append(given.tobytes())
                tensors.append((given.shape, str(given.dtype), len(buffers) - 1, found))
            operands.append(len(tensors) - 1)
        results = [len(tensors) + n for n in range(len(case.results))]
        tensors += [(tuple(s), dtype, 0, next(scales))
                    for s, dtype in zip(own, case.results, strict=True)]  # fmt: skip
        kind, options = _options(builder, case)
        items.append(_table(
            builder, "Operator", Inputs=_numbers(builder, operands),
            Outputs=_numbers(builder, results), BuiltinOptionsType=kind, BuiltinOptions=options,
            OpcodeIndex=number,
        ))  # fmt: skip
        code = getattr(tflite.BuiltinOperator, case.op)
        codes.append(_table(
            builder, "OperatorCode", DeprecatedBuiltinCode=min(code, 127), Version=case.version,
            BuiltinCode=code,
        ))  # fmt: skip
    made_tensors = [_tensor(builder, n, *each) for n, each in enumerate(tensors)]
    graph = _table(
        builder, "SubGraph", Tensors=_vector(builder, made_tensors),
        Inputs=_numbers(builder, inputs), Outputs=_numbers(builder, results),
        Operators=_vector(builder, items),
    )  # fmt: skip
    made_buffers = [
        _table(builder, "Buffer", Data=builder.CreateByteVector(data) if data else None)
        for data in buffers
    ]
    model = _table(
        builder, "Model", Version=3, OperatorCodes=_vector(builder, codes),
        Subgraphs=_vector(builder, [graph]), Buffers=_vector(builder, made_buffers),
    )  # fmt: skip
    builder.Finish(model, b"TFL3")
    return bytes(builder.Output())


def _tensor(builder: Any, n: int, shape: Sequence[int], dtype: str, buffer: int,
            scales: Scales | None) -> int:  # fmt: skip
    kind = getattr(tflite.TensorType, _TYPES[dtype])
    made = None if scales is None else _table(
        builder, "QuantizationParameters",
        Scale=int(builder.CreateNumpyVector(np.atleast_1d(np.asarray(scales.scale, np.float32)))),
        ZeroPoint=int(builder.CreateNumpyVector(np.atleast_1d(np.asarray(scales.zero, np.int64)))),
        QuantizedDimension=scales.axis,
    )  # fmt: skip
    return _table(builder, "Tensor", Shape=_numbers(builder, shape), Type=kind, Buffer=buffer,
                  Name=builder.CreateString(f"t{n}"), HasRank=True, Quantization=made)  # fmt: skip


def _options(builder: Any, case: Case) -> tuple[int, int | None]:
    name = case.kind or "".join(
        part.capitalize() if not re.fullmatch(r"\d?d", part, re.I) else part.upper()
        for part in case.op.split("_")
    ) + "Options"  # fmt: skip
    if not hasattr(tflite, name):
        return 0, None
    fields = {
        key: _numbers(builder, value) if isinstance(value, list) else value
        for key, value in case.options.items()
    }
    return getattr(tflite.BuiltinOptions, name), _table(builder, name, **fields)


def _table(builder: Any, name: str, **fields: Any) -> int:
    """Write a table of the schema; fields that are None are left out."""
    getattr(tflite, f"{name}Start")(builder)
    for key, value in fields.items():
        if value is not None:
            getattr(tflite, f"{name}Add{key}")(builder, value)
    return int(getattr(tflite, f"{name}End")(builder))


def _numbers(builder: Any, values: Sequence[int]) -> int:
    return int(builder.CreateNumpyVector(np.asarray(values, np.int32)))


def _vector(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def ints(*values: int) -> np.ndarray:
    """Return a constant of int32, such as axes."""
    return np.asarray(values, np.int32)


def floats(*shape: int, seed: int = 1) -> np.ndarray:
    """Return a constant of float32."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


POSITIVE = {"LOG", "SQRT", "RSQRT", "POW"}
"""Operators that are tried with positive numbers."""
CASES = [
    *(Case(op, [(2, 3, 5), (3, 1)], {"FusedActivationFunction": n})
      for n, op in enumerate(["ADD", "SUB", "MUL", "DIV"])),
    *(Case(op, [(2, 3, 5)]) for op in (
        "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU",
        "RELU6", "RELU_N1_TO_1", "ROUND", "SIN", "SQUARE", "TANH", "SOFTMAX", "LOG_SOFTMAX",
        "L2_NORMALIZATION", "ZEROS_LIKE",
    )),
    *(Case(op, [(3, 4)]) for op in sorted(POSITIVE - {"POW"})), Case("POW", [(3, 4), (3, 4)]),
    *(Case(op, [(3, 4), (3, 4)]) for op in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "ATAN2")),
    *(Case(op, [(4, "int32"), (4, "int32")], results=["int32"])
      for op in ("BITWISE_XOR", "RIGHT_SHIFT")),
    Case("SIGN", [(3, 4)]), Case("RELU_0_TO_1", [(3, 4)]),
    Case("REDUCE_PROD", [(3, 4), ints(1)], kind="ReducerOptions"),
    *(Case(op, [(3, 4, "bool"), ints(1)], results=["bool"], kind="ReducerOptions")
      for op in ("REDUCE_ANY", "REDUCE_ALL")),
    Case("ARG_MIN", [(3, 4), ints(0)], {"OutputType": 2}, ["int32"]),
    *(Case(op, [(3, 4), (3, 4)], results=["bool"]) for op in (
        "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL",
    )),
    *(Case(op, [(3, 4, "bool"), (3, 4, "bool")], results=["bool"])
      for op in ("LOGICAL_AND", "LOGICAL_OR")),
    *(Case(op, [(4, "int32"), (4, "int32")], results=["int32"])
      for op in ("FLOOR_DIV", "FLOOR_MOD")),
    Case("LEAKY_RELU", [(3, 4)], {"Alpha": 0.25}), Case("PRELU", [(1, 2, 3, 4), floats(1, 1, 4)]),
    Case("GELU", [(3, 4)], {"Approximate": True}), Case("GELU", [(3, 4)]),
    Case("SELECT_V2", [(3, 1, "bool"), (3, 4), (1, 4)]),
    Case("SELECT", [(3, "bool"), (3, 4), (3, 4)]),
    Case("CAST", [(3, 4)], {"InDataType": 0, "OutDataType": 2}, ["int32"]),
    Case("DEQUANTIZE", [floats(3, 4).astype("float16")]),
    *(Case("CONV_2D", [(2, 7, 8, 4), floats(6, *kernel, 4 // groups), floats(6)], {
        "Padding": padding, "StrideH": step, "StrideW": step, "DilationHFactor": dilation,
        "DilationWFactor": dilation, "FusedActivationFunction": 1,
    }) for padding, step, dilation, kernel, groups in (
        (0, 2, 1, (3, 3), 1), (1, 1, 2, (3, 2), 1), (0, 1, 1, (3, 3), 2), (0, 2, 1, (2, 1), 1),
    )),
    *(Case("DEPTHWISE_CONV_2D", [(2, 7, 8, 3), floats(1, 3, 2, 3 * multiplier),
                                 floats(3 * multiplier)], {
        "Padding": padding, "StrideH": 2, "StrideW": 2, "DepthMultiplier": multiplier,
    }) for padding, multiplier in ((0, 1), (1, 2))),
    *(Case("TRANSPOSE_CONV", [ints(2, *size, 5), floats(5, 3, 3, 4), (2, 4, 6, 4)], {
        "Padding": padding, "StrideH": 2, "StrideW": 2,
    }) for padding, size in ((0, (8, 12)), (1, (9, 13)), (0, (7, 11)))),
    *(Case(op, [(2, 7, 8, 3)], {
        "Padding": padding, "StrideH": 2, "StrideW": 2, "FilterHeight": 3, "FilterWidth": 2,
    }, kind="Pool2DOptions") for op in ("MAX_POOL_2D", "AVERAGE_POOL_2D") for padding in (0, 1)),
    Case("FULLY_CONNECTED", [(3, 4), floats(5, 4), floats(5)], {"FusedActivationFunction": 3}),
    Case("FULLY_CONNECTED", [(2, 3, 4), floats(5, 4), None], {"KeepNumDims": True}),
    Case("FULLY_CONNECTED", [(2, 3, 4), floats(5, 12), None]),
    Case("BATCH_MATMUL", [(2, 3, 4), (2, 5, 4)], {"AdjY": True}, kind="BatchMatMulOptions"),
    *(Case(op, [(2, 3, 4), ints(-1, 0)], {"KeepDims": keeps}, kind="ReducerOptions")
      for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN") for keeps in (True, False)),
    Case("ARG_MAX", [(3, 4), ints(1)], {"OutputType": 4}, ["int64"]),
    Case("TOPK_V2", [(3, 7), ints(2)], {}, ["float32", "int32"], kind="TopKV2Options"),
    Case("CUMSUM", [(3, 4), ints(-1)], {"Exclusive": True, "Reverse": True}),
    Case("ONE_HOT", [(3, "int32"), ints(4).reshape(()), floats(), floats(seed=2)], {"Axis": -1}),
    Case("RESHAPE", [(3, 4), ints(2, -1)]), Case("SQUEEZE", [(1, 3, 1, 4)], {"SqueezeDims": [0]}),
    Case("EXPAND_DIMS", [(3, 4), ints(-1)]), Case("TRANSPOSE", [(2, 3, 4), ints(2, 0, 1)]),
    Case("CONCATENATION", [(2, 3), (2, 1)], {"Axis": -1}),
    Case("SPLIT", [ints(1).reshape(()), (2, 6)], {"NumSplits": 3}, ["float32"] * 3),
    Case("SPLIT_V", [(2, 6), ints(1, -1, 2), ints(1).reshape(())], {"NumSplits": 3},
         ["float32"] * 3),
    Case("PACK", [(2, 3), (2, 3)], {"Axis": 1, "ValuesCount": 2}),
    Case("UNPACK", [(2, 3)], {"Axis": 1, "Num": 3}, ["float32"] * 3),
    Case("SLICE", [(4, 5), ints(1, 0), ints(2, -1)]),
    Case("STRIDED_SLICE", [(4, 5, 3), ints(1, -1, 1), ints(9, 0, 2), ints(2, -2, 1)],
         {"BeginMask": 1, "ShrinkAxisMask": 4}),
    Case("PAD", [(2, 3), ints(1, 0, 0, 2).reshape(2, 2)]),
    Case("PADV2", [(2, 3), ints(1, 0, 0, 2).reshape(2, 2), floats()], kind="PadV2Options"),
    Case("MIRROR_PAD", [(3, 4), ints(1, 1, 2, 0).reshape(2, 2)], {"Mode": 0}),
    Case("GATHER", [(4, 3), ints(2, 0, 3)], {"Axis": 0}), Case("TILE", [(2, 3), ints(2, 1)]),
    Case("BROADCAST_TO", [(2, 1), ints(3, 2, 4)], version=2),
    Case("REVERSE_V2", [(3, 4), ints(1)], kind="ReverseV2Options"),
    *(Case(f"RESIZE_{name}", [(1, 4, 5, 2), ints(7, 3)],
           {"AlignCorners": corners, "HalfPixelCenters": half})
      for name in ("BILINEAR", "NEAREST_NEIGHBOR")
      for corners, half in ((False, False), (True, False), (False, True))),
    Case("DEPTH_TO_SPACE", [(1, 2, 3, 8)], {"BlockSize": 2}),
    Case("SPACE_TO_DEPTH", [(1, 4, 6, 2)], {"BlockSize": 2}),
    Case("SHAPE", [(3, 4)], {"OutType": 2}, ["int32"]), Case("FILL", [ints(2, 3), floats()]),
    Case("RANGE", [ints(1).reshape(()), ints(8).reshape(()), ints(3).reshape(())], {}, ["int32"]),
]  # fmt: skip
"""Operators with awkward operands."""
