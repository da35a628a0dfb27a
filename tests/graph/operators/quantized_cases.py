"""Cases of operators on integers that stand for numbers."""

from tests.graph.operators.operator_cases import Given, case


def _bytes(*shape, low=-128, high=128, dtype="int8"):
    return Given(shape, dtype, low, high)


def _scale(*shape, dtype="float32"):
    return Given(shape, dtype, 0.01, 0.5)


_ZERO = Given((), "uint8", 0, 256)

QUANTIZED = {
    "qnn.quantize": [
        case(Given((2, 3), "float32", -9, 9), _scale(), _ZERO),
        case(Given((2, 5), "float32", -90, 90), _scale(5), _bytes(5), out_dtype="int8"),
        case(Given((3, 1, 2), "float32"), _scale(3), Given((3,), "uint16", 0, 65536), axis=0,
             out_dtype="uint16"),
        case(Given((0, 2), "float64"), _scale(dtype="float64"), _ZERO),
        case(Given((1, 3, 2, 5), "float32", -9, 9), _scale(3),
             Given((3,), "uint8", 0, 256), axis=1),
        case(Given((7,), "float16", -9, 9), _scale(dtype="float16"), _bytes(), out_dtype="int8"),
    ],
    "qnn.dequantize": [
        case(_bytes(2, 3), _scale(), _bytes()),
        case(_bytes(2, 5, low=0, high=256, dtype="uint8"), _scale(2),
             Given((2,), "uint8", 0, 256), axis=0),
        case(Given((3, 2), "int32", -9999, 9999), _scale(2), Given((), "int32", 0, 1)),
        case(_bytes(4), _scale(dtype="float16"), _bytes()),
        case(_bytes(2, 3, 1, 2), _scale(3), _bytes(3), axis=1),
    ],
    "qnn.requantize": [
        case(Given((2, 3), "int32", -9999, 9999), _scale(), _ZERO),
        case(Given((1, 3, 2, 1), "int32", -9999, 9999), _scale(3), _bytes(), axis=1,
             out_dtype="int8"),
    ],
    "qnn.conv2d": [
        case(_bytes(1, 3, 6, 7), _bytes(2, 3, 3, 2)),
        case(_bytes(2, 4, 5, 5, low=0, high=256, dtype="uint8"), _bytes(6, 2, 3, 3), groups=2,
             padding=(1, 0, 2, 1), strides=2, dilation=(1, 2), input_zero_point=255),
        case(_bytes(1, 5, 4, 3), _bytes(3, 3, 3, 1), groups=3, data_layout="NHWC",
             kernel_layout="HWOI", padding=1, input_zero_point=-128),
    ],
    "qnn.dense": [
        case(_bytes(2, 5), _bytes(3, 5), input_zero_point=7),
        case(_bytes(5, low=0, high=256, dtype="uint8"), _bytes(3, 5), input_zero_point=128),
    ],
    "qnn.matmul": [
        case(_bytes(2, 5), _bytes(5, 3), input_zero_point=-1),
        case(_bytes(2, 1, 4, 3, low=0, high=256, dtype="uint8"), _bytes(3, 4, 5),
             transpose_a=True, input_zero_point=3),
    ],
}  # fmt: skip
