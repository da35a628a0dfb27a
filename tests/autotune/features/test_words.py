"""The words for features: every column of every kind has them, and no two columns share them."""

import pytest

from dlcompiler import te
from dlcompiler.autotune.features import KINDS
from dlcompiler.autotune.features.columns import Column
from dlcompiler.autotune.features.statements import statements
from dlcompiler.autotune.features.words import words_of
from dlcompiler.ops import operator
from dlcompiler.schedule import create_schedule
from dlcompiler.target.presets import X86_64_AVX2


def programs():
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((16, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((16, 16), lambda i, j: te.exp(C[i, j] + A[i, j]) / B[i, j], name="D.part.v2")
    s = create_schedule(D.op)
    s.cache_write(D, "local")
    yield "with dots in names", s
    matmul = operator("matmul")
    workload = matmul.workload(m=64, n=64, k=64)
    config = matmul.default_config(workload, X86_64_AVX2)
    yield "matmul", matmul.template(workload, X86_64_AVX2, config)[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "schedule"), list(programs()), ids=["dots", "matmul"])
def test_every_feature_has_words(kind, name, schedule):
    columns: list[Column] = list(KINDS[kind](statements(schedule.state), X86_64_AVX2, {}))
    words = [words_of(column.name) for column in columns]
    assert len(set(words)) == len({column.name for column in columns}) > 40
    for column, text in zip(columns, words, strict=True):
        assert text != column.name
        assert ": " in text
        assert "read0" not in text


@pytest.mark.parametrize(
    "name", ["tile_m", "parallel", "", ".", "C.read0.", "C.loop.length", "x.loop1.y", "C.read0.no"]
)
def test_what_is_no_feature_keeps_its_name(name):
    assert words_of(name) == name
