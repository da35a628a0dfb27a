"""Names that the language, its library or other names have taken."""

import numpy as np
import pytest

from dlcompiler.codegen.c.names import Names, comment, identifier
from dlcompiler.ir import Buffer, For, Load, PrimFunc, Store, Var, index_const

HOSTILE = (
    *("int", "class", "restrict", "double", "true", "NULL", "INFINITY", "main", "expf", "malloc"),
    *("memcpy", "int64_t", "INT64_MIN", "linux", "status", "done", "dlc_add_i32", "_Bool", "y0"),
    *("a b", "*/ x", "a.b", "2", "", "é", "A\nB", "x; system()", "#define", "x" * 300, "M_PI", "v"),
)


@pytest.mark.campaign
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name, build):
    a, b, i = Buffer(name, (4,), "float32"), Buffer(name, (4,), "float32"), Var(name)
    body = For(i, index_const(4), "serial", Store(b, (i,), Load(a, (i,))))
    kernel = build(PrimFunc(name, (a, b), (b,), body))
    out = np.zeros(4, "float32")
    kernel(np.arange(4, dtype="float32"), out)
    assert out.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("A", "A"), ("j.outer", "j_outer"), ("T.local", "T_local"), ("int", "int_")),
        *(("sinf", "sinf_"), ("x_t", "x_t_"), ("_x", "x"), ("dlc_x", "vdlc_x"), ("9", "v9")),
        *(("", "v"), ("main", "main_"), ("M_PI", "M_PI_"), ("x" * 99, "x" * 60)),
    ],
)
def test_identifiers(name, expected):
    assert identifier(name) == expected


def test_names_are_unique_where_they_can_be_seen():
    names = Names()
    assert [names.new("i"), names.new("i")] == ["i", "i_1"]
    with names.block():
        assert [names.new("i"), names.new("i_1")] == ["i_2", "i_1_1"]
    assert names.new("i") == "i_2"
    names.release("i_2")
    assert names.new("i") == "i_2"


@pytest.mark.parametrize("text", ["*/", "/*", "*/*/", "/*/", "a\nb", "??/", "\\", "\u202e", "//"])
def test_a_comment_stays_one(text):
    inside = comment(text)
    assert "*/" not in inside
    assert "/*" not in inside
    assert inside.isascii()
    assert inside.isprintable()
