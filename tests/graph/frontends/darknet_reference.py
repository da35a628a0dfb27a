"""What Darknet computes, written again with loops over pixels, and files of networks for tests."""

import struct
from itertools import product

import numpy as np


def sections_of(text):
    """Return (name, options) for each section of the text of a network."""
    found = []
    for line in text.splitlines():
        line = line.replace(" ", "")
        if line.startswith("["):
            found.append((line[1:-1], {}))
        elif line and line[0] not in "#;":
            key, value = line.split("=")
            found[-1][1][key] = value
    return found


class Numbers:
    """Random weights in the order in which Darknet reads them."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.file = []

    def take(self, shape, kind, spread=1.0):
        """Return the next weights, and remember what the file holds."""
        if kind == "variance":
            found = self.random.uniform(0.2, 2, shape)
        elif kind == "scale":
            found = self.random.uniform(0.5, 1.5, shape)
        else:
            found = self.random.normal(0, spread, shape)
        found = found.astype("<f4")
        self.file.append(found.ravel())
        return found.astype("float64")

    def bytes(self, version=(0, 2, 0), seen=b"\1" + bytes(7)):
        """Return the file of the weights."""
        return struct.pack("<3i", *version) + seen + b"".join(part.tobytes() for part in self.file)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def plse(x):
    if x < -4:
        return 0.01 * (x + 4)
    return 0.01 * (x - 4) + 1 if x > 4 else 0.125 * x + 0.5


def lhtan(x):
    if x < 0:
        return 0.001 * x
    return 0.001 * (x - 1) + 1 if x > 1 else x


def stair(x):
    n = np.floor(x)
    return np.floor(x / 2) + (0 if n % 2 == 0 else x - n)


def hard_mish(x):
    if x > 0:
        return x
    return x * x / 2 + x if x > -2 else 0.0


ACTIVATIONS = {
    "linear": lambda x: x,
    "logistic": sigmoid,
    "loggy": lambda x: 2 / (1 + np.exp(-x)) - 1,
    "relu": lambda x: x * (x > 0),
    "relu6": lambda x: min(max(x, 0), 6),
    "elu": lambda x: x if x >= 0 else np.exp(x) - 1,
    "selu": lambda x: 1.0507 * x if x >= 0 else 1.0507 * 1.6732 * (np.exp(x) - 1),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(0.797885 * x + 0.035677 * x**3)),
    "relie": lambda x: x if x > 0 else 0.01 * x,
    "leaky": lambda x: x if x > 0 else 0.1 * x,
    "ramp": lambda x: x * (x > 0) + 0.1 * x,
    "tanh": lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1),
    "hardtan": lambda x: -1.0 if x < -1 else 1.0 if x > 1 else x,
    "lhtan": lhtan,
    "plse": plse,
    "stair": stair,
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log(1 + np.exp(x))),
    "hard_mish": hard_mish,
}


def activate(x, name):
    return np.vectorize(ACTIVATIONS[name], otypes=["float64"])(x)


def normalize(x, scale, mean, variance):
    side = (1, -1) + (1,) * (x.ndim - 2)
    scale, mean, variance = (np.reshape(v, side) for v in (scale, mean, variance))
    return (x - mean) / (np.sqrt(variance) + 0.000001) * scale


class Reference:
    """A network that is computed layer by layer, and whose weights are drawn meanwhile."""

    def __init__(self, text, seed=0, *, is_transposed=False):
        self.sections = sections_of(text)
        self.numbers = Numbers(seed)
        self.is_transposed = is_transposed

    def run(self, x):
        """Return the outputs of all layers that predict boxes, and of the last layer."""
        self.layers, outputs = [], []
        x = x.astype("float64")
        for name, options in self.sections[1:]:
            x = getattr(self, name)(x, options)
            self.layers.append(x)
            if name in ("yolo", "region", "detection"):
                outputs.append(x)
        return outputs if outputs and outputs[-1] is x else [*outputs, x]

    def before(self, text):
        places = [int(n) for n in text.split(",")]
        return [self.layers[n if n >= 0 else len(self.layers) + n] for n in places]

    def moments(self, size, o):
        if not int(o.get("batch_normalize", 0)):
            return None
        return [self.numbers.take((size,), kind) for kind in ("scale", "mean", "variance")]

    def convolutional(self, x, o):
        x = x if x.ndim == 4 else x[:, :, None, None]
        count, channels, height, width = x.shape
        filters, size, stride = (int(o.get(k, 1)) for k in ("filters", "size", "stride"))
        step_y, step_x = int(o.get("stride_y", stride)), int(o.get("stride_x", stride))
        groups, apart = int(o.get("groups", 1)), int(o.get("dilation", 1))
        pad = size // 2 if int(o.get("pad", 0)) else int(o.get("padding", 0))
        bias = self.numbers.take((filters,), "bias")
        moments = self.moments(filters, o)
        depth = channels // groups
        shape = (filters, depth * size * size)
        spread = shape[1] ** -0.5
        if int(o.get("flipped", 0)):
            weights = self.numbers.take(shape[::-1], "weight", spread).T
        else:
            weights = self.numbers.take(shape, "weight", spread)
        weights = weights.reshape(filters, depth, size, size)
        rows = (height + 2 * pad - size) // step_y + 1
        columns = (width + 2 * pad - size) // step_x + 1
        wide = np.pad(x, ((0, 0), (0, 0), *((pad * apart, pad * apart),) * 2))
        out = np.zeros((count, filters, rows, columns))
        per_group = filters // groups
        for group, m, n in product(range(groups), range(size), range(size)):
            own = slice(group * per_group, (group + 1) * per_group)
            seen = wide[
                :,
                group * depth : (group + 1) * depth,
                m * apart : m * apart + (rows - 1) * step_y + 1 : step_y,
                n * apart : n * apart + (columns - 1) * step_x + 1 : step_x,
            ]
            out[:, own] += np.einsum("bchw,fc->bfhw", seen, weights[own, :, m, n])
        if moments is not None:
            out = normalize(out, *moments)
        return activate(out + bias[:, None, None], o.get("activation", "logistic"))

    conv = convolutional

    def connected(self, x, o):
        x = x.reshape(len(x), -1)
        size, output = x.shape[1], int(o.get("output", 1))
        bias = self.numbers.take((output,), "bias")
        shape = (size, output) if self.is_transposed else (output, size)
        weights = self.numbers.take(shape, "weight", size**-0.5)
        moments = self.moments(output, o)
        out = x @ (weights if self.is_transposed else weights.T)
        if moments is not None:
            out = normalize(out, *moments)
        return activate(out + bias, o.get("activation", "logistic"))

    def windows(self, x, o, start, step, end):
        stride = int(o.get("stride", 1))
        size = int(o.get("size", stride))
        padding = int(o.get("padding", size - 1))
        step_y, step_x = int(o.get("stride_y", stride)), int(o.get("stride_x", stride))
        count, channels, height, width = x.shape
        rows = (height + padding - size) // step_y + 1
        columns = (width + padding - size) // step_x + 1
        out = np.zeros((count, channels, rows, columns))
        for i, j in product(range(rows), range(columns)):
            found, inside = np.full((count, channels), start), 0
            for n, m in product(range(size), range(size)):
                row, column = i * step_y + n - padding // 2, j * step_x + m - padding // 2
                if 0 <= row < height and 0 <= column < width:
                    found, inside = step(found, x[:, :, row, column]), inside + 1
            out[:, :, i, j] = end(found, inside)
        return out

    def maxpool(self, x, o):
        return self.windows(x, o, -3.4e38, np.maximum, lambda found, inside: found)

    max = maxpool

    def local_avgpool(self, x, o):
        return self.windows(x, o, 0.0, np.add, lambda found, inside: found / inside)

    def avgpool(self, x, o):
        return x.mean((2, 3), keepdims=True)

    def activation(self, x, o):
        return activate(x, o["activation"])

    def dropout(self, x, o):
        return x

    cost = dropout

    def softmax(self, x, o):
        x = x.reshape(len(x), int(o.get("groups", 1)), -1) / float(o.get("temperature", 1))
        return softmax(x, 2).reshape(len(x), -1)

    def route(self, x, o):
        values = self.before(o["layers"])
        groups, place = int(o.get("groups", 1)), int(o.get("group_id", 0))
        sizes = [value.shape[1] // groups for value in values]
        parts = [v[:, place * n : place * n + n] for v, n in zip(values, sizes, strict=True)]
        return np.concatenate(parts, 1)

    def shortcut(self, x, o):
        out = x * float(o.get("alpha", 1))
        for add in self.before(o["from"]):
            _, c1, h1, w1 = add.shape
            _, c2, h2, w2 = x.shape
            stride, sample = max(w1 // w2, 1), max(w2 // w1, 1)
            for k, j, i in product(range(min(c1, c2)), range(min(h1, h2)), range(min(w1, w2))):
                out[:, k, j * sample, i * sample] += (
                    float(o.get("beta", 1)) * add[:, k, j * stride, i * stride]
                )
        return activate(out, o.get("activation", "linear"))

    def upsample(self, x, o):
        stride = int(o.get("stride", 2))
        out = np.zeros((*x.shape[:2], x.shape[2] * stride, x.shape[3] * stride))
        for j, i in product(range(out.shape[2]), range(out.shape[3])):
            out[:, :, j, i] = float(o.get("scale", 1)) * x[:, :, j // stride, i // stride]
        return out

    def reorg(self, x, o):
        """Move elements by their places in memory, as Darknet does."""
        stride = int(o.get("stride", 1))
        _, c, h, w = x.shape
        few = c // (stride * stride)
        out = np.zeros((len(x), c * h * w))
        flat = x.reshape(len(x), -1)
        for k, j, i in product(range(c), range(h), range(w)):
            here = i + w * (j + h * k)
            row, column = j * stride + k // few // stride, i * stride + k // few % stride
            there = column + w * stride * (row + h * stride * (k % few))
            if int(o.get("reverse", 0)):
                out[:, there] = flat[:, here]
            else:
                out[:, here] = flat[:, there]
        if int(o.get("reverse", 0)):
            return out.reshape(len(x), few, h * stride, w * stride)
        return out.reshape(len(x), c * stride * stride, h // stride, w // stride)

    def reorg3d(self, x, o):
        s = int(o["stride"])
        return np.concatenate([x[:, :, m::s, n::s] for m in range(s) for n in range(s)], 1)

    def scale_channels(self, x, o):
        return activate(self.before(o["from"])[0] * x, o.get("activation", "linear"))

    sam = scale_channels

    def yolo(self, x, o):
        classes, out = int(o["classes"]), x.copy()
        entries, factor = classes + 5, float(o.get("scale_x_y", 1))
        for n in range(len(o["mask"].split(",")) if "mask" in o else int(o["num"])):
            for k in range(entries):
                place = n * entries + k
                if k not in (2, 3) and not int(o.get("new_coords", 0)):
                    out[:, place] = sigmoid(x[:, place])
                if k < 2:
                    out[:, place] = out[:, place] * factor - 0.5 * (factor - 1)
        return out

    def region(self, x, o):
        classes, coords, out = int(o["classes"]), int(o.get("coords", 4)), x.copy()
        background, entries = int(o.get("background", 0)), classes + coords + 1
        for n in range(int(o["num"])):
            at = n * entries
            out[:, at : at + 2] = sigmoid(x[:, at : at + 2])
            if not background:
                out[:, at + coords] = sigmoid(x[:, at + coords])
            first = at + coords + (not (background and int(o.get("softmax", 0))))
            chosen = slice(first, at + entries)
            out[:, chosen] = (
                softmax(x[:, chosen], 1) if int(o.get("softmax", 0)) else sigmoid(x[:, chosen])
            )
        return out

    def detection(self, x, o):
        out = x.reshape(len(x), -1).copy()
        if int(o.get("softmax", 0)):
            classes = int(o["classes"])
            for place in range(int(o["side"]) ** 2):
                chosen = slice(place * classes, place * classes + classes)
                out[:, chosen] = softmax(out[:, chosen], 1)
        return out


SMALL = """\
[net]
# a comment
batch=64
height=8
width = 8
channels=3

[convolutional]
batch_normalize=1
filters=4
size=3
stride=1
pad=1
activation=leaky

[maxpool]
size=2
stride=2

[convolutional]
filters=6
size=1
activation=linear

[route]
layers=-1,-2

[reorg]
stride=1

[shortcut]
from=-2
activation=relu

[connected]
output=5
activation=linear

[softmax]
"""
"""A network of a few layers."""


def weights_of(text, shape, **options):
    """Return the file of random weights for a network."""
    reference = Reference(text, **options)
    reference.run(np.zeros(shape))
    return reference.numbers.bytes()
