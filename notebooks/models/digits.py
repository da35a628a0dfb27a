"""Train the network of notebook 07, and write it as an ONNX file with the images of its test.

    pip install onnx scikit-learn torch
    python notebooks/models/digits.py

It writes ``digits.onnx`` and ``digits.npz`` beside this file. The notebook reads these two only. A
run takes less than a minute, and is repeatable: equal versions of the packages give equal weights.
The network in the repository was made with torch 2.14.1. It is right on 310 of the 320 images of
the test, 96.9 %.

**Source:** the images are from E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten
Digits", UCI Machine Learning Repository, 1998, doi:10.24432/C50P49, licence CC BY 4.0. scikit-learn
has 1,797 of them, of 8×8 pixels with the values 0 … 16; the last 320 are the test here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from torch import nn

HERE = Path(__file__).resolve().parent
TEST_IMAGES = 320
"""Number of images that are kept for the test."""
EPOCHS = 30
BATCH = 32


class Digits(nn.Module):
    """A small network with the parts of larger ones: a residual block, a depthwise convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.stem_conv = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(16)
        self.block1_conv = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.block1_norm = nn.BatchNorm2d(16)
        self.block2_conv = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.block2_norm = nn.BatchNorm2d(16)
        self.depthwise_conv = nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)
        self.depthwise_norm = nn.BatchNorm2d(16)
        self.pointwise_conv = nn.Conv2d(16, 32, 1, bias=False)
        self.pointwise_norm = nn.BatchNorm2d(32)
        self.last_conv = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.last_norm = nn.BatchNorm2d(32)
        self.dense = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the scores of the ten digits, before the softmax."""
        x = torch.relu(self.stem_norm(self.stem_conv(image)))
        y = torch.relu(self.block1_norm(self.block1_conv(x)))
        x = torch.relu(self.block2_norm(self.block2_conv(y)) + x)
        x = torch.relu(self.depthwise_norm(self.depthwise_conv(x)))
        x = torch.relu(self.pointwise_norm(self.pointwise_conv(x)))
        x = nn.functional.max_pool2d(x, 2)
        x = torch.relu(self.last_norm(self.last_conv(x)))
        return self.dense(x.mean((2, 3)))


def trained(images: torch.Tensor, labels: torch.Tensor) -> Digits:
    """Return a network that was trained on the images, in inference mode."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # sums of several threads may have another order
    torch.use_deterministic_algorithms(True)
    network = Digits()
    steps = EPOCHS * (len(images) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(images))
        for first in range(0, len(images) - BATCH + 1, BATCH):
            chosen = order[first : first + BATCH]
            loss = nn.functional.cross_entropy(network(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network.eval()


class Graph:
    """The nodes and weights of an ONNX graph, made one after another."""

    def __init__(self, network: Digits) -> None:
        self.weights = {name: value.numpy() for name, value in network.state_dict().items()}
        self.nodes: list[onnx.NodeProto] = []
        self.used: list[str] = []

    def node(self, kind: str, name: str, *inputs: str, **attributes: object) -> str:
        """Add a node, and return the name of its result, which is that of the node."""
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        self.used += [each for each in inputs if each in self.weights]
        return name

    def conv(self, name: str, x: str, *, relu: bool = True, **attributes: object) -> str:
        """Add a convolution with its batch norm, and a ReLU."""
        x = self.node("Conv", f"{name}_conv", x, f"{name}_conv.weight", **attributes)
        parts = ("weight", "bias", "running_mean", "running_var")
        norm = f"{name}_norm"
        x = self.node("BatchNormalization", norm, x, *(f"{norm}.{part}" for part in parts))
        return self.node("Relu", f"{name}_relu", x) if relu else x


def onnx_model(network: Digits) -> onnx.ModelProto:
    """Return the network as a model of ONNX; it ends with a softmax."""
    graph = Graph(network)
    padded = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    x = graph.conv("stem", "image", **padded)
    y = graph.conv("block1", x, **padded)
    y = graph.conv("block2", y, relu=False, **padded)
    x = graph.node("Relu", "block_relu", graph.node("Add", "block_add", y, x))
    x = graph.conv("depthwise", x, group=16, **padded)
    x = graph.conv("pointwise", x, kernel_shape=[1, 1])
    x = graph.node("MaxPool", "pool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = graph.conv("last", x, **padded)
    x = graph.node("Flatten", "flat", graph.node("GlobalAveragePool", "average", x))
    x = graph.node("Gemm", "dense", x, "dense.weight", "dense.bias", transB=1)
    graph.node("Softmax", "probabilities", x, axis=1)
    shapes = {"image": ("batch", 1, 8, 8), "probabilities": ("batch", 10)}
    image, result = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    )
    weights = [numpy_helper.from_array(graph.weights[name], name) for name in graph.used]
    made = helper.make_graph(graph.nodes, "digits", [image], [result], weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    """Train the network, write the files, and print the accuracy."""
    digits = load_digits()
    pixels, labels = digits.images.astype("uint8"), digits.target.astype("uint8")
    images = torch.tensor(pixels[:, None] / np.float32(16))
    answers = torch.tensor(labels, dtype=torch.int64)
    network = trained(images[:-TEST_IMAGES], answers[:-TEST_IMAGES])
    with torch.no_grad():
        right = network(images[-TEST_IMAGES:]).argmax(1) == answers[-TEST_IMAGES:]
    print(f"right on {int(right.sum())} of {TEST_IMAGES} images of the test")
    onnx.save(onnx_model(network), HERE / "digits.onnx")
    kept = slice(-TEST_IMAGES, None)
    np.savez_compressed(HERE / "digits.npz", pixels=pixels[kept], labels=labels[kept])


if __name__ == "__main__":
    main()
