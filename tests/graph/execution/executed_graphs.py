"""Random graphs with exact arithmetic, and the comparison of models with the interpreter."""

from __future__ import annotations

import numpy as np

from dlcompiler.graph import Module, build, evaluate, op
from dlcompiler.graph.passes.base import PassContext
from tests.graph.random_graphs import RandomGraph, flat, inputs_of
from tests.graph.random_images import RandomImages, image_inputs

POISON = 0xAB
CONTEXTS = {
    "unfused": PassContext(0, disabled_pass=("fuse_ops",)),
    "fused": PassContext(3),
}
EXACT = (op.nn.relu, op.negative, op.abs, op.copy, op.floor)


class ExactGraph(RandomGraph):
    """A graph of small whole numbers: sums are exact in each order."""

    def unary(self):
        return self.random.choice(EXACT)(self.pick()[0])

    def binary(self):
        return op.clip(super().binary(), a_min=-9.0, a_max=9.0)


def case(seed: int) -> tuple[Module, list[np.ndarray]]:
    """Return a random module without branches, and arrays for its parameters."""
    if seed % 2:
        module = RandomImages(seed, 5).module()
        return module, image_inputs(module, seed)
    module = ExactGraph(seed, size=8, has_scopes=False).module()
    return module, inputs_of(module, seed)


def check(seed: int) -> None:
    """Compare a random module with its interpretation: unfused, and fused."""
    module, inputs = case(seed)
    expected = flat(evaluate(module, *inputs))
    for name, context in CONTEXTS.items():
        model = build(module, context=context)
        found = [flat(model(*inputs)), poisoned(model, inputs), flat(list_of(model, inputs))]
        for results in found:
            for a, b in zip(results, expected, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}, {name}")


def poisoned(model, inputs) -> list[np.ndarray]:
    """Return the results of a call whose arena held other values before."""
    outputs = [np.empty(p.static_shape, p.dtype) for p in model.params if p.is_output]
    model.function.call_poisoned(POISON, *inputs, *outputs)
    return outputs


def list_of(model, inputs) -> tuple[np.ndarray, ...]:
    """Return the results of a run that is one step after another."""
    run = model.stepped(*inputs)
    for _ in run.steps():
        pass
    return tuple(run.outputs)
