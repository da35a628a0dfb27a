"""Two models compared value by value: the first that differs is named."""

import numpy as np
import pytest

from dlcompiler.errors import CallError
from dlcompiler.graph import build, builders, compare, constant, op, var
from dlcompiler.graph.ir import Module, Tuple
from tests.graph.execution.executed_graphs import CONTEXTS


def chain(wrong=1.0, dtype="float32"):
    x = var("x", (3, 4), dtype)
    y = op.add(op.exp(x, name="first"), constant(np.asarray(wrong, dtype)), name="second")
    return Module.from_expr(Tuple((op.negative(y, name="third"), x)))


def built(**args):
    return build(chain(**args), context=CONTEXTS["unfused"])


def test_equal_models_do_not_differ():
    x = np.random.default_rng(0).standard_normal((3, 4)).astype("f")
    found = compare(built(), built(), x)
    assert found.first is None
    assert found.results_agree
    assert [pair.name for pair in found.pairs][-2:] == ["result.0", "result.1"]
    assert {pair.error for pair in found.pairs} == {0.0}
    assert str(found).startswith("no difference in")


def test_the_first_value_that_differs_is_named():
    x = np.random.default_rng(0).standard_normal((3, 4)).astype("f")
    found = compare(built(), built(wrong=1.5), x)
    assert found.first.name == "second"
    assert not found.results_agree
    assert [pair.name for pair in found.pairs if pair.differs] == ["second", "third", "result.0"]
    assert len(found.first.at) == 2
    assert "second differs at" in str(found)
    assert "1 values before it agree" in str(found)
    assert compare(built(), built(wrong=1.5), x, tolerance=10).first is None
    assert "✕ differs" in found._repr_html_()


def test_fused_values_are_only_in_one():
    x = np.ones((3, 4), "f")
    found = compare(built(), build(chain()), x)
    assert found.first is None
    assert set(found.only[0]) >= {"first"}
    assert "first" not in {pair.name for pair in found.pairs}


@pytest.mark.parametrize(
    ("a", "b", "differs"),
    [
        (np.nan, np.nan, False),
        (np.inf, np.inf, False),
        (np.inf, -np.inf, True),
        (np.nan, 1.0, True),
        (1.0, np.inf, True),
        (0.0, -0.0, False),
        (3e38, -3e38, True),
    ],
)
def test_values_that_are_no_numbers(a, b, differs):
    models = [
        build(
            Module.from_expr(op.add(var("x", (2,)), constant(np.array([0, v], "f")))), opt_level=0
        )
        for v in (a, b)
    ]
    found = compare(*models, np.zeros(2, "f"))
    assert (found.first is not None) == differs


def test_integers_and_booleans_are_equal_or_not():
    for dtype, delta in (("int64", 1), ("bool", True)):
        x = var("x", (2,), dtype)
        made = [constant(np.asarray(v, dtype)) for v in (0, delta)]
        name = op.add if dtype == "int64" else op.logical_or
        a, b = (build(Module.from_expr(name(x, v))) for v in made)
        x = np.array([2**62, 0]).astype(dtype) if dtype == "int64" else np.zeros(2, "bool")
        assert compare(a, a, x).first is None
        assert compare(a, b, x).first is not None


def test_models_of_other_types_are_refused():
    x = np.ones((3, 4), "f")
    other = build(Module.from_expr(op.sum(var("x", (3, 4)), axis=0)))
    with pytest.raises(CallError, match="other types"):
        compare(built(), other, x)
    with pytest.raises(CallError, match="missing"):
        compare(built(), built())
    for wrong in (-1, float("nan")):
        with pytest.raises(CallError, match="tolerance"):
            compare(built(), built(), x, tolerance=wrong)


def test_a_whole_model_in_c_agrees_with_the_one_of_llvm():
    given = builders.mlp()
    a, b = (build(given.module, t, params=given.params) for t in ("cpu", "c"))
    x = np.random.default_rng(0).standard_normal(a.params[0].static_shape).astype("f")
    found = compare(a, b, x)
    assert found.first is None
    assert len(found.pairs) == len(a.steps) + 1
