"""Quantized programs of PyTorch 2 export become integer kernels."""

import importlib

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

import torch
from torch import nn

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.torch.package import array_of
from dlcompiler.graph.passes.tools import operator_of

importlib.import_module("torch.ao.quantization.fx._decomposed")  # registers the operators
OPS = torch.ops.quantized_decomposed
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def quantized(x, scale, zero=3, dtype=torch.uint8, limits=(0, 255)):
    return OPS.quantize_per_tensor(x, scale, zero, *limits, dtype)


def numbers_of(q, scale, zero=3, dtype=torch.uint8, limits=(0, 255)):
    return OPS.dequantize_per_tensor(q, scale, zero, *limits, dtype)


def rounded(x, scale, zero=3, **how):
    """Return numbers after they were integers, as quantizers write it before each layer."""
    return numbers_of(quantized(x, scale, zero, **how), scale, zero, **how)


class Classifier(nn.Module):
    """Two convolutions and a dense layer as PT2E leaves them: weights of int8, biases of floats."""

    def __init__(self):
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        for name, shape in {"first": (6, 3, 3, 3), "second": (8, 3, 3, 3), "head": (5, 8)}.items():
            weight = torch.randint(-127, 128, shape, generator=draw, dtype=torch.int8)
            self.register_buffer(name, weight)
            self.register_buffer(f"{name}_scale", torch.rand(shape[0], generator=draw) * 0.01)
            self.register_buffer(f"{name}_bias", torch.randn(shape[0], generator=draw))
            self.register_buffer(f"{name}_zero", torch.zeros(shape[0], dtype=torch.int64))

    def weight(self, name):
        return OPS.dequantize_per_channel(
            getattr(self, name), getattr(self, f"{name}_scale"), getattr(self, f"{name}_zero"),
            0, -127, 127, torch.int8,
        )  # fmt: skip

    def forward(self, x):
        x = rounded(x, 0.05, 120)
        x = nn.functional.conv2d(x, self.weight("first"), self.first_bias, padding=1).relu()
        x = nn.functional.max_pool2d(rounded(x, 0.08, 0), 2)
        x = rounded(x, 0.08, 0)
        x = nn.functional.conv2d(x, self.weight("second"), self.second_bias, groups=2).relu()
        x = rounded(rounded(x, 0.11, 0).mean((2, 3)), 0.03, 0)
        x = nn.functional.linear(x, self.weight("head"), self.head_bias)
        return quantized(x, 0.2, 128, limits=(0, 200))


def test_a_classifier():
    model = Classifier().eval()
    x = torch.randn((2, 3, 8, 6), generator=torch.Generator().manual_seed(1)) * 2
    module = graph.from_torch(model, (x,))
    expected = model(x).numpy().astype(int)
    for found in (graph.evaluate(module, x.numpy()), graph.build(module, threads=1)(x.numpy())):
        assert found.dtype == np.uint8
        # Each of four layers may round a number half-way between two integers the other way.
        assert abs(found - expected).max() <= 1
    names = [operator_of(node) for node in graph.optimize(module).nodes()]
    assert names.count("qnn.conv2d") == 2
    assert "qnn.dense" in names


def test_a_product_whose_weight_is_transposed():
    weight = torch.randint(-127, 128, (5, 9), dtype=torch.int8)
    scales, zeros = torch.full((5,), 0.01), torch.zeros(5, dtype=torch.int64)

    class Model(nn.Module):
        def forward(self, x):
            wide = OPS.dequantize_per_channel(weight, scales, zeros, 0, -127, 127, torch.int8)
            return torch.addmm(torch.ones(5), rounded(x, 0.05), wide.t())

    x = torch.randn(4, 9)
    module = graph.from_torch(Model().eval(), (x,))
    assert "qnn.dense" in {operator_of(node) for node in graph.optimize(module).nodes()}
    np.testing.assert_allclose(graph.build(module)(x.numpy()), Model()(x).numpy(), atol=1e-4)


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16])
def test_scales_that_are_tensors(dtype):
    limits = torch.iinfo(dtype).min, torch.iinfo(dtype).max

    class Model(nn.Module):
        def forward(self, x, scale, zero):
            q = OPS.quantize_per_tensor(x, scale, zero, *limits, dtype)
            return q, OPS.dequantize_per_tensor(q, scale, zero, *limits, dtype)

    args = torch.randn(3, 7), torch.tensor(0.05), torch.tensor(7)
    module = graph.from_torch(Model().eval(), args)
    found, expected = graph.build(module)(*map(array_of, args)), Model()(*args)
    assert abs(found[0].astype(int) - expected[0].numpy()).max() <= 1
    np.testing.assert_allclose(found[1], expected[1].numpy(), atol=0.051)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize("choose", [OPS.choose_qparams, OPS.choose_qparams_symmetric])
def test_scales_that_the_program_chooses(choose, dtype):
    limits = torch.iinfo(dtype).min, torch.iinfo(dtype).max

    class Model(nn.Module):
        def forward(self, x):
            return choose(x, *limits, 1e-7, dtype)

    generator = torch.Generator().manual_seed(3)
    for x in (torch.randn((4, 9), generator=generator), torch.rand((4, 9), generator=generator),
              -torch.rand((4, 9), generator=generator), torch.zeros(4, 9)):  # fmt: skip
        module = graph.from_torch(Model().eval(), (x,))
        for found, expected in zip(graph.build(module)(x.numpy()), Model()(x), strict=True):
            np.testing.assert_array_equal(found, expected.numpy(), strict=True)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize("multiply", [nn.functional.linear, lambda x, w, b: x @ w.t() + b])
def test_a_product_of_data_whose_scale_is_chosen_when_it_runs(multiply, dtype):
    limits = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    weight = torch.randint(-127, 128, (5, 9), dtype=torch.int8)
    scales, zeros = torch.full((5,), 0.01), torch.zeros(5, dtype=torch.int64)

    class Model(nn.Module):
        def forward(self, x):
            wide = OPS.dequantize_per_channel(weight, scales, zeros, 0, -127, 127, torch.int8)
            how = *limits, dtype
            scale, zero = OPS.choose_qparams(x, *limits, 1e-7, dtype)
            x = OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, scale, zero, *how),
                                          scale, zero, *how)  # fmt: skip
            return multiply(x, wide, torch.ones(5))

    x = torch.randn((2, 4, 9), generator=torch.Generator().manual_seed(5)) + 0.5
    module = graph.from_torch(Model().eval(), (x,))
    assert "qnn.dense" in {operator_of(node) for node in graph.optimize(module).nodes()}
    np.testing.assert_allclose(graph.build(module)(x.numpy()), Model()(x).numpy(), atol=1e-4)


@pytest.mark.campaign
def test_a_weight_that_the_program_quantizes():
    weight = torch.randn(5, 9)

    class Model(nn.Module):
        def forward(self, x):
            wide = rounded(weight, 0.02, 0, dtype=torch.int8, limits=(-127, 127))
            return nn.functional.linear(rounded(x, 0.05), wide)

    x = torch.randn(4, 9)
    module = graph.from_torch(Model().eval(), (x,))
    assert "qnn.dense" in {operator_of(node) for node in graph.optimize(module).nodes()}
    np.testing.assert_allclose(graph.build(module)(x.numpy()), Model()(x).numpy(), atol=0.1)


def test_a_zero_point_outside_of_the_dtype():
    class Model(nn.Module):
        def forward(self, x):
            return quantized(x, 0.05, 300)

    with pytest.raises(GraphError, match="a zero point is no uint8"):
        graph.from_torch(Model().eval(), (torch.randn(3),))
