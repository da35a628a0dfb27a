"""Strides in words: those of the addresses that the interpreter's arrays have."""

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.views import loop_tree
from dlcompiler.views.loops.strides import stride_words, with_strides

TARGET = resolve("x86-64-avx2")


def test_a_product(plain, tensors):
    words = stride_words(plain, tensors, TARGET)
    assert words == {
        "C/i": "stride 64 in A, stride 64 in C",
        "C/j": "unit stride in B, unit stride in C",
        "C/k": "unit stride in A, stride 64 in B",
    }


def test_an_outer_loop_moves_by_the_factor(blocked, tensors):
    words = stride_words(blocked, tensors, TARGET)
    assert words["C/j.inner"].startswith("unit stride in C")
    assert "stride 16 in C" in words["C/j.outer"]
    assert "stride 1,024 in C" in words["C/i.outer"]
    assert words["C.local/k.outer"] == "stride 4 in A, stride 256 in B"


def test_accesses_that_differ_are_left_out():
    A = te.placeholder((64,), name="A")
    B = te.compute((8,), lambda i: A[i] + A[2 * i], name="B")
    s = create_schedule(B.op)
    assert stride_words(s, [A, B], TARGET) == {"B/i": "unit stride in B"}


def test_a_tree_speaks_of_them(plain, tensors):
    tree = loop_tree(plain)
    spoken = with_strides(tree, plain, tensors, TARGET)
    assert (
        spoken["rows"][1]["label"] == f"{tree['rows'][1]['label']}, stride 64 in A, stride 64 in C"
    )
    same = [{**row, "label": ""} for row in tree["rows"]]
    assert [{**row, "label": ""} for row in spoken["rows"]] == same


def test_without_sizes_nothing_is_said():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    tree = loop_tree(s)
    assert with_strides(tree, s, [A, B], TARGET) is tree
