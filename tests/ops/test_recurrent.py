"""ops.recurrent_operator: layers and cells of any extents, with and without packed weights."""

from dataclasses import replace

import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from dlcompiler.target import resolve
from tests.ops.products import check, choices

PARAMETERS = {
    "steps": (1, 3),
    "batch": (1, 7),
    "inputs": (1, 19),
    "hidden": (1, 37),
    "biases": (0, 1, 2),
    "last": (0, 1),
    "packed": (0, 16),
    "dtype": ("float32", "float64"),
}
OPTIONS = {"lstm": {}, "gru": {"reset_after": (0, 1)}, "rnn": {"activation": ("tanh", "relu")}}


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("name", "choice"),
    [
        pytest.param(name, choice, id=f"{name}-{choice}")
        for name, options in OPTIONS.items()
        for choice in choices({**PARAMETERS, **options})
    ],
)
def test_values(name, choice):
    operator = ops.operator(name)
    check(operator, operator.workload(**choice))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("lstm", {"steps": 3, "batch": 7, "inputs": 5, "hidden": 19, "packed": 16}),
        ("gru", {"steps": 2, "inputs": 3, "hidden": 9, "reset_after": 0, "last": 0}),
        ("rnn", {"batch": 3, "inputs": 5, "hidden": 37, "packed": 32, "cell": 1}),
    ],
)
def test_some_values(name, parameters):
    operator = ops.operator(name)
    check(operator, operator.workload(**parameters))


def test_cores_share_the_panels_of_a_step():
    operator = ops.operator("gru")
    target = replace(resolve("cpu"), cores=2)
    workload = operator.workload(steps=2, batch=3, inputs=9, hidden=40, packed=8)
    space = operator.space(workload, target)
    values = {**dict(operator.default_config(workload, target).values), "parallel": "steps"}
    check(operator, workload, space.config(**values), target=target)


def test_large_steps_are_shared_and_small_ones_are_not():
    operator, target = ops.operator("lstm"), replace(resolve("x86-64-avx2"), cores=2)
    shared = {
        hidden: operator.default_config(
            operator.workload(steps=8, batch=4, inputs=64, hidden=hidden, packed=8), target
        )["parallel"]
        for hidden in (64, 650)
    }
    assert shared == {64: "", 650: "steps"}


def test_refusals():
    sizes = {"inputs": 3, "hidden": 5}
    with pytest.raises(TuningError, match="steps is not valid"):
        ops.operator("lstm").workload(**sizes, steps=0)
    with pytest.raises(TuningError, match="computes one step"):
        ops.operator("gru").workload(**sizes, steps=2, cell=1)
    with pytest.raises(TuningError, match="no such activation"):
        ops.operator("rnn").workload(**sizes, activation="gelu")
