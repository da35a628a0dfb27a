"""Kernels of whole models by the classic rule, beside an independent count for ONNX models.

**Source:** a separate simulation of the rule of Relay's ``FuseOps`` (v0.11.1) on ONNX graphs whose
constants were folded. There, a convolution or a product has its bias inside.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import pytest

from dlcompiler.graph import builders, optimize
from dlcompiler.graph.passes import PassContext
from tests.graph.passes.fusion.test_relay_cases import kernels

MODELS = {
    "dcgan": builders.dcgan,
    "dqn": builders.dqn,
    "inception": builders.inception,
    "lenet": builders.lenet,
    "lstm": builders.lstm,
    "mlp": builders.mlp,
    "mobilenet1": lambda: builders.mobilenet(1, image=32),
    "mobilenet2": lambda: builders.mobilenet(2, image=32),
    "resnet18": lambda: builders.resnet(18, image=32),
    "resnet34": lambda: builders.resnet(34, image=32),
    "resnet50": lambda: builders.resnet(50, image=32),
    "squeezenet": lambda: builders.squeezenet(image=64),
    "transformer": builders.transformer,
    "vgg16": lambda: builders.vgg(16, image=32),
}
"""Small images: neither groups nor weights depend on their size, except for VGG's."""


@dataclass(frozen=True)
class Listed:
    """What the list says about a model, and how ours differs from it."""

    operators: int
    kernels: int
    groups: dict[str, int]
    """Some of the groups, by their ONNX operators."""
    more: dict[str, int] = field(default_factory=dict)
    """Groups that only our model has."""
    fewer: dict[str, int] = field(default_factory=dict)
    """Groups that only the listed model has."""
    why: str = ""
    """Why the groups differ."""


SOFTMAX = "the listed model returns the scores before the softmax"
LISTED = {
    "dqn": Listed(10, 6, {"Conv+Relu": 3, "Gemm+Relu": 1}),
    "resnet18": Listed(
        49, 24, {"Conv+Relu": 9, "Conv+Add+Relu": 8, "Conv": 3}, {"Softmax": 1}, why=SOFTMAX
    ),
    "resnet50": Listed(123, 58, {"Conv+Relu": 33, "Conv+Add+Relu": 16}),
    "mobilenet2": Listed(
        100, 55, {"Conv+Clip": 35, "Conv+Add": 10}, {"Softmax": 1}, why=SOFTMAX
    ),
    "squeezenet": Listed(65, 39, {"Conv+Relu": 26, "Concat": 8}, {"Softmax": 1}, why=SOFTMAX),
    "dcgan": Listed(
        10, 5, {}, {"Gemm+Relu": 1, "Reshape": 1}, {"ConvTranspose+Relu": 1},
        why="the listed generator begins with a transposed convolution of one pixel; ours, as "
        "in the paper, with a product that is reshaped to four by four pixels",
    ),
}  # fmt: skip
"""Models of the list that the builders build, too.

BERT's 77 kernels (161 operators) are not compared. That graph multiplies arrays of three
dimensions, spells GELU out, scales queries and keys apart, and has three embeddings and a pooler.
`transformer` reshapes the rows for each product, and has none of these: 20 kernels a block, and 2
before them.
The other models of the list have no builder.
"""
ONNX = {
    "conv2d": "Conv", "conv2d_transpose": "ConvTranspose", "dense": "Gemm", "concatenate": "Concat",
    "add": "Add", "relu": "Relu", "clip": "Clip", "softmax": "Softmax", "reshape": "Reshape",
    "tanh": "Tanh",
}  # fmt: skip


AS_WRITTEN = PassContext(3, disabled_pass=("decompose_ops", "sink_reshapes"))
"""Relay has these passes not: a transposed convolution stays one."""


def groups_of(name: str) -> Counter[str]:
    """Return how many kernels of a model have which calls."""
    module = optimize(MODELS[name]().bound, context=AS_WRITTEN)
    return Counter("+".join(calls) for calls in kernels(module))


def in_onnx(group: str) -> list[str]:
    """Return the ONNX operators of a group; a bias, or a normalisation, is part of its anchor."""
    group = re.sub(r"\b(conv2d|conv2d_transpose|dense)(\+multiply)?\+add\b", r"\1", group)
    return [ONNX.get(operator, operator) for operator in group.split("+")]


@pytest.mark.campaign
@pytest.mark.parametrize("name", LISTED)
def test_kernels_are_those_of_the_list(name):
    listed = LISTED[name]
    operators: Counter[str] = Counter()
    ours: Counter[str] = Counter()
    for group, count in groups_of(name).items():
        ours["+".join(in_onnx(group))] += count
        operators.update(operator for operator in in_onnx(group) for _ in range(count))
    assert all(ours[group] >= count for group, count in listed.more.items())
    ours.subtract(listed.more)
    ours.update(listed.fewer)
    assert ours.total() == listed.kernels, ours
    assert {group: ours[group] for group in listed.groups} == listed.groups
    for sign, groups in ((-1, listed.more), (1, listed.fewer)):
        for group, count in groups.items():
            operators.update(dict.fromkeys(group.split("+"), sign * count))
    assert operators.total() == listed.operators, operators
    assert bool(listed.why) == bool(listed.more or listed.fewer)


@pytest.mark.campaign
@pytest.mark.parametrize("name", MODELS)
def test_groups_of_each_model(name, golden):
    counts = groups_of(name)
    lines = [f"{counts.total()} kernels"]
    lines += [f"{count:3} {group}" for group, count in sorted(counts.items())]
    golden(name, "\n".join(lines) + "\n")
