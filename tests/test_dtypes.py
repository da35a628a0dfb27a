"""Names of data types, their sizes, and promotion."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Var, compare

INTEGERS = [name for name in dtypes.SCALARS if dtypes.is_int(name)]
FLOATS = [name for name in dtypes.SCALARS if dtypes.is_float(name)]


@pytest.mark.parametrize(
    ("dtype", "family", "bits", "nbytes"),
    [
        ("bool", "bool", 1, 1),
        ("index", "index", 64, 8),
        ("int8", "int", 8, 1),
        ("uint16", "uint", 16, 2),
        ("float16", "float", 16, 2),
        ("bfloat16", "float", 16, 2),
        ("float64", "float", 64, 8),
    ],
)
def test_families_and_sizes(dtype, family, bits, nbytes):
    assert dtypes.family(dtype) == family
    assert dtypes.bits(dtype) == bits
    assert dtypes.bytes_of(dtype) == nbytes


def test_an_index_is_no_data_integer():
    assert dtypes.is_index("index")
    assert not dtypes.is_int("index")
    assert not dtypes.is_index("int64")


def test_vectors():
    assert dtypes.element("float32x8") == "float32"
    assert dtypes.lanes("float32x8") == 8
    assert dtypes.bytes_of("float32x8") == 32
    assert dtypes.with_lanes("indexx4", 2) == "indexx2"
    assert dtypes.with_lanes("float32x8", 1) == "float32"
    assert dtypes.is_float("float32x8")


@pytest.mark.parametrize("name", ["float", "float32x1", "float32x0", "float32x08", "x8", "", None])
def test_a_wrong_name_is_refused(name):
    assert not dtypes.is_dtype(name)
    with pytest.raises(ExpressionError, match="not the name of a data type"):
        dtypes.bits(name)


def test_a_wrong_name_gets_a_hint():
    with pytest.raises(ExpressionError) as caught:
        dtypes.element("flaot32")
    assert str(caught.value).startswith("read a dtype: not the name of a data type\n")
    assert "did you mean 'float32'?" in str(caught.value)


def test_lanes_must_be_positive():
    with pytest.raises(ExpressionError, match="lanes must be positive"):
        dtypes.with_lanes("float32", 0)


def test_extreme_values():
    assert dtypes.min_value("int8") == -128
    assert dtypes.max_value("uint8") == 255
    assert dtypes.min_value("uint64") == 0
    assert dtypes.max_value("float32") == np.inf
    assert dtypes.min_value("float16x4") == -np.inf
    assert (dtypes.min_value("bool"), dtypes.max_value("bool")) == (False, True)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extreme_integers_are_those_of_numpy(dtype):
    assert dtypes.min_value(dtype) == np.iinfo(dtype).min
    assert dtypes.max_value(dtype) == np.iinfo(dtype).max


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("float32", "int64", "float32"),
        ("float16", "uint64", "float16"),
        ("float16", "bfloat16", "float32"),
        ("float32", "float64", "float64"),
        ("bool", "int8", "int8"),
        ("bool", "index", "index"),
        ("index", "int8", "int8"),
        ("index", "float32", "float32"),
        ("int32", "uint32", "int64"),
        ("uint8", "int8", "int16"),
        ("uint8", "int16", "int16"),
        ("uint32", "int8", "int64"),
        ("uint64", "uint8", "uint64"),
        ("float32x8", "int32", "float32x8"),
        ("indexx4", "int32x4", "int32x4"),
    ],
)
def test_promotion(a, b, expected):
    assert dtypes.promote(a, b) == expected
    assert dtypes.promote(b, a) == expected


@pytest.mark.parametrize("signed", ["int8", "int16", "int32", "int64"])
def test_no_type_holds_uint64_and_a_signed_integer(signed):
    with pytest.raises(ExpressionError) as caught:
        dtypes.promote("uint64", signed)
    assert "no data type holds the values of both" in str(caught.value)
    assert "cast one of them" in str(caught.value)


def test_vectors_of_different_lengths_are_refused():
    with pytest.raises(ExpressionError, match="different lengths"):
        dtypes.promote("float32x8", "float32x4")


@given(st.sampled_from(dtypes.SCALARS))
def test_promotion_with_itself_changes_nothing(dtype):
    assert dtypes.promote(dtype, dtype) == dtype


def test_integers_promote_as_in_numpy_where_numpy_stays_with_integers():
    for a, b in itertools.product(INTEGERS, INTEGERS):
        expected = np.promote_types(a, b)
        if expected.kind != "f":
            assert dtypes.promote(a, b) == expected.name


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
def test_to_numpy_and_back(dtype):
    assert dtypes.from_numpy(dtypes.to_numpy(dtype)) == dtype


def test_an_index_is_int64_in_memory():
    assert dtypes.to_numpy("index") == np.int64


def test_the_ways_to_name_a_dtype():
    for spelling in ("bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)):
        assert dtypes.as_dtype(spelling) == "bfloat16"
    assert dtypes.as_dtype(bool) == dtypes.as_dtype(np.bool_) == "bool"
    assert dtypes.as_dtype("int8x4") == "int8x4"
    for wrong in (float, "float", np.dtype("c8"), None, 32):
        with pytest.raises(ExpressionError):
            dtypes.as_dtype(wrong)


def test_synonyms_are_known_inside_a_with_only():
    with dtypes.synonyms({"float": "float32"}):
        assert dtypes.as_dtype("float") == "float32"
        assert dtypes.as_dtype("int8") == "int8"
    with pytest.raises(ExpressionError):
        dtypes.as_dtype("float")


def test_a_foreign_byte_order_is_refused():
    with pytest.raises(ExpressionError, match="foreign byte order"):
        dtypes.from_numpy(">f4")


@pytest.mark.parametrize("dtype", ["complex64", "U4", "O", "datetime64[s]"])
def test_other_dtypes_of_numpy_are_refused(dtype):
    with pytest.raises(ExpressionError, match="no such data type here"):
        dtypes.from_numpy(dtype)


PROMOTIONS = """
         bool     index    int8     int16    int32    int64    uint8    uint16   uint32   uint64   float16  bfloat16 float32  float64
bool     bool     index    int8     int16    int32    int64    uint8    uint16   uint32   uint64   float16  bfloat16 float32  float64
index    index    index    int8     int16    int32    int64    uint8    uint16   uint32   uint64   float16  bfloat16 float32  float64
int8     int8     int8     int8     int16    int32    int64    int16    int32    int64    -        float16  bfloat16 float32  float64
int16    int16    int16    int16    int16    int32    int64    int16    int32    int64    -        float16  bfloat16 float32  float64
int32    int32    int32    int32    int32    int32    int64    int32    int32    int64    -        float16  bfloat16 float32  float64
int64    int64    int64    int64    int64    int64    int64    int64    int64    int64    -        float16  bfloat16 float32  float64
uint8    uint8    uint8    int16    int16    int32    int64    uint8    uint16   uint32   uint64   float16  bfloat16 float32  float64
uint16   uint16   uint16   int32    int32    int32    int64    uint16   uint16   uint32   uint64   float16  bfloat16 float32  float64
uint32   uint32   uint32   int64    int64    int64    int64    uint32   uint32   uint32   uint64   float16  bfloat16 float32  float64
uint64   uint64   uint64   -        -        -        -        uint64   uint64   uint64   uint64   float16  bfloat16 float32  float64
float16  float16  float16  float16  float16  float16  float16  float16  float16  float16  float16  float16  float32  float32  float64
bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32  bfloat16 float32  float64
float32  float32  float32  float32  float32  float32  float32  float32  float32  float32  float32  float32  float32  float32  float64
float64  float64  float64  float64  float64  float64  float64  float64  float64  float64  float64  float64  float64  float64  float64
"""  # noqa: E501 - a table


def test_promotion_of_all_pairs():
    header, *rows = (line.split() for line in PROMOTIONS.strip("\n").splitlines())
    assert sorted(header) == sorted(dtypes.SCALARS)
    for a, *results in rows:
        for b, expected in zip(header, results, strict=True):
            if expected == "-":
                with pytest.raises(ExpressionError):
                    dtypes.promote(a, b)
            else:
                assert dtypes.promote(a, b) == expected, (a, b)


# What a Python number becomes beside each dtype, and what the operation is done in.
LITERALS = {
    True: {"bool": "bool", "index": "index"},
    2: {"bool": "int32", "index": "index"},
    0.5: dict.fromkeys(("bool", "index", *INTEGERS), "float32"),
}


@pytest.mark.parametrize("number", LITERALS)
@pytest.mark.parametrize("dtype", dtypes.SCALARS)
def test_promotion_of_numbers(number, dtype):
    x = Var("x", dtype)
    expected = LITERALS[number].get(dtype, dtype)
    for kind in (type(number), np.dtype(type(number)).type):
        assert compare("lt", x, kind(number)).a.dtype == expected
        assert compare("lt", kind(number), x).b.dtype == expected
