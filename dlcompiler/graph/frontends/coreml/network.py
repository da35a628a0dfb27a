"""Make expressions of a network, layer by layer.

All tensors of a network are float32. The first versions have five dimensions for each: steps,
batch, channels, height and width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.coreml import functions
from dlcompiler.graph.frontends.coreml.conversion import converted
from dlcompiler.graph.frontends.coreml.layers import LAYERS
from dlcompiler.graph.frontends.coreml.messages import OPERATION, Message
from dlcompiler.graph.frontends.coreml.node import Layer
from dlcompiler.graph.frontends.coreml.reading import BGR, Package, feature_type, is_gray
from dlcompiler.graph.frontends.origin import Origin, constant_of
from dlcompiler.graph.ir import Expr, Span, TensorType, Var
from dlcompiler.graph.passes.tools import KnownTypes


@dataclass
class NetworkImporter:
    """A network whose layers become calls: the values so far, and their types."""

    package: Package
    shapes: Mapping[str, Sequence[int]]
    network: Message
    types: KnownTypes = field(default_factory=lambda: KnownTypes({}))
    values: dict[str, Expr] = field(default_factory=dict)
    """Name of a tensor -> its value."""

    def run(self) -> tuple[list[Var], list[Expr]]:
        """Return the inputs and the outputs of the network."""
        description = self.package.model["description"]
        params = [self._param(each) for each in description["input"]]
        for each in self.network["preprocessing"]:
            self._preprocess(each, description["input"])
        last: list[str] = []
        for layer in self.network["layers"]:
            self._layer(layer)
            last = layer["output"]
        outputs = [each for each in description["output"] if each["name"] in self.values]
        if outputs:
            return params, [self._output(each) for each in outputs]
        return params, [self.values[name] for name in last]

    def _param(self, feature: Message) -> Var:
        """Return an input, and add what layers take for it."""
        name = feature["name"]
        usual = feature_type(feature)
        if usual is None:
            raise GraphError(OPERATION, f"input {name!r} is no array of a known shape, or image")
        kind = TensorType(tuple(self.shapes.get(name, usual.shape)), usual.dtype)
        param = Var(name, kind)
        self.types[param] = kind
        origin = self._origin(name)
        value = origin.cast(param, "float32")
        is_image = feature["type"]["imageType"] is not None
        mapping = "imageInputShapeMapping" if is_image else "arrayInputShapeMapping"
        if self.network[mapping] == 0:
            value = origin.reshape(value, self._five(name, origin.shape(value)))
        self.values[name] = value
        return param

    def _five(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the five extents of a tensor in the first versions."""
        match len(shape):
            case 1:
                return (1, 1, *shape, 1, 1)
            case 2:
                return (*shape, 1, 1, 1)
            case 3:
                return (1, 1, *shape)
            case 4:
                return (1, *shape)
            case 5:
                return shape
        raise GraphError(OPERATION, f"input {name!r} has another number of dimensions",
                         got=repr(shape), expected="1 to 5")  # fmt: skip

    def _origin(self, name: str) -> Origin:
        return Origin(name, self.types, span=Span(node=name))

    def _preprocess(self, given: Message, inputs: Sequence[Message]) -> None:
        """Scale an image and add a bias to each channel, or subtract a mean image."""
        images = [each for each in inputs if each["type"] and each["type"]["imageType"]]
        name = given["featureName"] or (images[0]["name"] if images else "")
        found = next((each for each in images if each["name"] == name), None)
        if found is None:
            raise GraphError(OPERATION, "there is no image to preprocess", got=repr(name)[:100])
        node = Layer(name, self.types, "preprocessing", [self.values[name]], given, 1,
                     span=Span(node=name))  # fmt: skip
        x = node.input()
        scaler, mean = given["scaler"], given["meanImage"]
        if scaler is not None:
            color = found["type"]["imageType"]["colorSpace"]
            parts = ("grayBias",) if is_gray(color) else ("redBias", "greenBias", "blueBias")
            bias = [scaler[part] for part in parts][:: -1 if color == BGR else 1]
            scale = scaler.get("channelScale", 1.0)
            column = np.asarray(bias, np.float32).reshape(-1, 1, 1)
            x = node.call("add", functions.linear(node, x, scale, 0), constant_of(column))
        elif mean is not None:
            shape = node.shape(x)[-3:]
            values = mean["meanImage"]
            if len(values) != math.prod(shape):
                node.fail("its mean has another size", got=str(len(values)), expected=str(shape))
            x = node.call("subtract", x, constant_of(values.reshape(shape)))
        self.values[name] = x

    def _layer(self, layer: Message) -> None:
        """Add the results of a layer to the values."""
        name = layer["output"][0] if layer["output"] else ""
        kind = next((key for key, given in layer.items() if isinstance(given, Message)), "")
        inputs = []
        for each in layer["input"]:
            if each not in self.values:
                raise GraphError(OPERATION, f"nothing computes an operand of layer {name!r}",
                                 got=repr(each)[:100])  # fmt: skip
            inputs.append(self.values[each])
        node = Layer(
            name, self.types, kind or f"number {max(layer.others, default=0)}", inputs,
            layer[kind] if kind else layer, len(layer["output"]), span=Span(node=name),
        )  # fmt: skip
        made = converted(node, LAYERS)
        if len(made) != node.count:
            node.fail("it has another number of results", got=str(node.count),
                      expected=str(len(made)))  # fmt: skip
        self.values.update(zip(layer["output"], made, strict=True))

    def _output(self, feature: Message) -> Expr:
        """Return an output as the description of the model has it."""
        name = feature["name"]
        value, origin, usual = self.values[name], self._origin(name), feature_type(feature)
        if usual is None:
            return self._shortened(origin, value)
        value = origin.cast(value, usual.dtype)
        shape = origin.shape(value)
        is_same_size = math.prod(shape) == math.prod(usual.shape)  # type: ignore[arg-type]
        if self.shapes or not is_same_size:
            return self._shortened(origin, value)
        return origin.reshape(value, usual.shape)  # type: ignore[arg-type]

    def _shortened(self, origin: Origin, value: Expr) -> Expr:
        """Return an output of the first versions without the dimensions that are not there."""
        shape = origin.shape(value)
        if self.network["arrayInputShapeMapping"] != 0 or len(shape) != 5 or shape[:2] != (1, 1):
            return value
        return origin.reshape(value, shape[2:3] if shape[3:] == (1, 1) else shape[2:])
