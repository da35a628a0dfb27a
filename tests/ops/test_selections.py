"""ops: operators that select, repeat and rearrange elements, exactly as NumPy does them."""

import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from tests.ops.products import check

WORKLOADS = [
    ("strided_slice", {"shape": "9x37", "begin": "1,3", "size": "4,30", "strides": "2,1"}),
    ("strided_slice", {"shape": "9x37", "begin": "8,36", "size": "9,19", "strides": "-1,-2"}),
    ("strided_slice", {"shape": "9x5x37", "begin": "2,0,0", "size": "5,5,37", "dtype": "int8"}),
    ("split", {"shape": "6x35", "sections": 3}),
    ("split", {"shape": "6x35", "sections": 5, "axis": 1, "dtype": "float16"}),
    ("flip", {"shape": "5x67", "axis": 1}),
    ("flip", {"shape": "5x67", "dtype": "bool"}),
    ("tile", {"shape": "5x67", "reps": "2,3"}),
    ("tile", {"shape": "7", "reps": "2,3", "dtype": "int64"}),
    ("tile", {"shape": "2x3x5", "reps": "2"}),
    ("repeat", {"shape": "5x67", "repeats": 3, "axis": 1}),
    ("repeat", {"shape": "5x67", "repeats": 2, "dtype": "bfloat16"}),
    ("reshape", {"shape": "6x35", "to": "2x3x5x7"}),
    ("reshape", {"shape": "6x35x4", "to": "21x40", "dtype": "uint16"}),
    ("reshape", {"shape": "0x3", "to": "5x0"}),
    ("reshape", {"shape": "1", "to": "scalar"}),
    ("take", {"shape": "11x67", "indices": "3x5"}),
    ("take", {"shape": "5x67", "indices": "9", "axis": 1, "index_dtype": "int64"}),
    ("gather", {"shape": "5x67", "indices": "4x9", "axis": 1}),
    ("gather", {"shape": "5x67", "indices": "9x67", "dtype": "int16"}),
    ("embedding", {"rows": 101, "width": 37, "indices": "2x7"}),
    ("one_hot", {"indices": "3x5", "depth": 11}),
    ("one_hot", {"indices": "3x5", "depth": 11, "axis": 0, "dtype": "int8"}),
    ("depth_to_space", {"shape": "2x12x5x7", "block": 2}),
    ("depth_to_space", {"shape": "2x5x7x12", "block": 2, "mode": "CRD", "layout": "NHWC"}),
    ("space_to_depth", {"shape": "2x3x6x10", "block": 2}),
    ("space_to_depth", {"shape": "2x6x10x3", "block": 2, "layout": "NHWC"}),
]


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "parameters"), WORKLOADS, ids=str)
def test_values(name, parameters):
    operator = ops.operator(name)
    check(operator, operator.workload(**parameters))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("strided_slice", {"shape": "3", "begin": "2", "size": "2"}),
        ("strided_slice", {"shape": "3", "begin": "0", "size": "2", "strides": "-1"}),
        ("strided_slice", {"shape": "3x3", "begin": "0", "size": "2"}),
        ("split", {"shape": "7", "sections": 2}),
        ("flip", {"shape": "7", "axis": 1}),
        ("tile", {"shape": "7", "reps": "-1"}),
        ("repeat", {"shape": "7", "repeats": 0}),
        ("reshape", {"shape": "7", "to": "2x3"}),
        ("take", {"shape": "0x7", "indices": "3"}),
        ("gather", {"shape": "3x7", "indices": "4x7", "axis": 1}),
        ("gather", {"shape": "3x7", "indices": "3", "axis": 1}),
        ("embedding", {"rows": 0, "width": 7, "indices": "3"}),
        ("one_hot", {"indices": "3", "depth": 3, "index_dtype": "float32"}),
        ("depth_to_space", {"shape": "1x6x2x2", "block": 2}),
        ("space_to_depth", {"shape": "1x6x3x2", "block": 2}),
        ("depth_to_space", {"shape": "1x8x2x2", "block": 2, "mode": "RCD"}),
    ],
    ids=str,
)
def test_refusals(name, parameters):
    with pytest.raises(TuningError):
        ops.operator(name).workload(**parameters)
