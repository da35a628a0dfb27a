"""What the docstring of a pass shows is what the pass does: *Before* and *After* as text."""

import inspect
import json
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dlcompiler.graph import evaluate, expr_text, parse_expr, var
from dlcompiler.graph import passes as all_passes
from dlcompiler.graph.ir import Constant, Function, Module
from dlcompiler.graph.passes.devices import DeviceRules, is_op
from dlcompiler.graph.text.constants import constant_row
from dlcompiler.graph.text.lexer import METADATA
from tests.graph.random_graphs import flat

IMAGE, KERNEL = (1, 4, 8, 8), (4, 4, 1, 1)
QUANTIZED = np.arange(-8, 8, dtype="int8").reshape(KERNEL)
CHANNELS = np.arange(1, 5, dtype="float32").reshape(4, 1, 1)


@dataclass
class Example:
    """What the example of a docstring leaves open: types of variables, constants, options."""

    shapes: dict[str, tuple[int, ...]]
    constants: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"


EXAMPLES = {
    "simplify_inference": Example(
        {"x": IMAGE, **dict.fromkeys(("gamma", "beta", "mean", "var"), (4,))}
    ),
    "canonicalize_ops": Example({"x": IMAGE, "b": (4,)}),
    "decompose_ops": Example({"x": (1, 4, 8), "w": (4, 4, 3)}),
    "compute_in_integers": Example({"x": IMAGE}, [QUANTIZED], dtype="uint8"),
    "lay_out_integers": Example({"x": IMAGE, "w": KERNEL}, dtype="int8"),
    "widen_sums": Example({"x": (2, 3)}, dtype="float16"),
    "store_weights": Example(
        {"x": (1, 64)},
        [np.ones((64, 64), "float32")],
        options={"dtype": "bfloat16"},
    ),
    "sink_reshapes": Example({"x": (8, 16), "w": (32, 16), "b": (32,)}),
    "fold_constants": Example({"x": (3,)}),
    "simplify_expr": Example({"x": (2, 3, 4)}),
    "eliminate_common_subexpressions": Example({"x": (3,)}),
    "eliminate_dead_code": Example({"x": (3,)}),
    "fold_scale_axis": Example({"x": IMAGE, "w": KERNEL}, [CHANNELS + 1, CHANNELS]),
    "combine_parallel": Example(
        {"x": (2, 4), "a": (8, 4), "b": (6, 4)}, options={"operator": "nn.dense", "least": 2}
    ),
    "fuse_ops": Example({"x": IMAGE, "w": (4, 4, 3, 3)}),
    "convert_layout": Example(
        {"x": IMAGE, "w": KERNEL}, options={"desired_layouts": {"nn.conv2d": ["NHWC"]}}
    ),
    "merge_composite": Example(
        {"x": IMAGE, "w": KERNEL},
        options={"patterns": [("conv_relu", is_op("nn.relu")(is_op("nn.conv2d")))]},
    ),
    "partition_for_device": Example(
        {"x": (3,), "y": (3,)},
        options={"device": DeviceRules("vta", why_not=lambda c, _: "no" * (c.op.name == "sqrt"))},
    ),
    "place_on_devices": Example({"x": (3,)}),
    "offload": Example({"x": (1, 16, 4, 4), "w": (16, 16, 1, 1)}, dtype="int8"),
    "search_layouts": Example({"x": (1, 16, 7, 7), "w": (512, 16, 3, 3)}),
}
PASSES = [
    name for name in all_passes.__all__
    if name != "run_passes" and inspect.isfunction(getattr(all_passes, name))
]  # fmt: skip


def blocks(name):
    """Return the texts below *Before* and *After* in the docstring of a pass."""
    text = inspect.getdoc(getattr(all_passes, name)) or ""
    found = [
        re.search(rf"^\*{title}\*::\n\n(.*?)\n\n(?=\S)", text, re.M | re.S)
        for title in ("Before", "After")
    ]
    return [textwrap.dedent(match[1]) if match else "" for match in found]


@pytest.mark.parametrize("name", PASSES)
def test_the_docstring_shows_what_the_pass_does(name):
    before, after = blocks(name)
    example = EXAMPLES[name]
    dtype = example.dtype
    variables = {name: var(name, shape, dtype) for name, shape in example.shapes.items()}
    rows = [constant_row(Constant(array)) for array in example.constants]
    metadata = f"\n{METADATA}\n{json.dumps({'relay.Constant': rows})}" if rows else ""
    body = parse_expr(before + metadata, variables)
    module = Module.from_expr(Function(tuple(variables.values()), body))
    made = getattr(all_passes, name)(module, **example.options)
    # Docstrings leave out the types of the parameters of kernels.
    assert re.sub(r"(:| ->) Tensor\[[^]]*\]", "", expr_text(made.main.body)) == after
    numbers = np.random.default_rng(0)
    inputs = [numbers.integers(1, 4, shape).astype(dtype) for shape in example.shapes.values()]
    values = [flat(evaluate(each, *inputs)) for each in (module, made)]
    for a, b in zip(*values, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
