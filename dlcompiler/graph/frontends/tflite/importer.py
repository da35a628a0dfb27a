"""Make a module of a TFLite model, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.files import array_of
from dlcompiler.graph.frontends.origin import Origin, folded
from dlcompiler.graph.frontends.tflite.node import TfliteNode
from dlcompiler.graph.frontends.tflite.operators import OPERATORS
from dlcompiler.graph.frontends.tflite.quantized import (
    BIASES,
    RAW,
    Scales,
    dequantized,
    dequantized_bias,
    quantized,
    scales_of,
)
from dlcompiler.graph.frontends.tflite.reading import (
    OPERATION,
    damaged,
    dtype_of,
    limited,
    read_model,
    shape_of,
    tflite_package,
)
from dlcompiler.graph.ir import (
    Constant,
    Expr,
    Function,
    Module,
    Span,
    TensorType,
    Tuple,
    Var,
)
from dlcompiler.graph.passes.tools import KnownTypes

MOST_FOLDED = 1 << 22
"""Most elements of a result that is computed while the model is imported; [1]."""
MOST_DEPTH = 16
"""Most branches inside each other; [1]."""


def from_tflite(source: Any, *, shapes: Mapping[str, Sequence[int]] | None = None) -> Module:
    """Return a TFLite model as a module.

    Parameters
    ----------
    source : path or bytes
        The model: of floats, or quantized to 8 or 16 bits.
    shapes : mapping, optional
        Shapes of inputs, by their names, where the model leaves extents open: the file has 1 there.

    Returns
    -------
    Module
        Calls have the names of the tensors that they make. Images stay in the layout NHWC. The
        result is a tensor, or a tuple of the outputs. An operator on quantized tensors is one on
        floats between `qnn.dequantize` and `qnn.quantize`; inputs and outputs of the model stay
        the integers that they are in the file.

    Raises
    ------
    GraphError
        The file is damaged, or an operator is not known.

    Notes
    -----
    Both branches of a condition are computed, and the right one is chosen.

    TFLite scales sums by an integer of 32 bits and a shift, and rounds halves away from zero; here
    a float32 number scales them, and halves are rounded to even. An integer of a result may thus
    differ by 1. Where weights are integers and data are floats, TFLite rounds the data to 8 bits
    first; here the data stay as they are.

    **Source:** the schema of TensorFlow Lite, version 3.
    """
    model = read_model(source)
    with damaged():
        if model.SubgraphsLength() < 1:
            raise GraphError(OPERATION, "the model has no graph")
        importer = Importer(model, is_as_stored=not shapes)
        graph = model.Subgraphs(0)
        params = importer.params(graph, dict(shapes or {}))
        results = importer.run(0, params)
    if not results:
        raise GraphError(OPERATION, "the model has no outputs")
    body = results[0] if len(results) == 1 else Tuple(tuple(results))
    return Module({"main": Function(tuple(params), body)})


def _places(count: int, item: Any) -> list[int]:
    return [int(item(n)) for n in range(limited(count))]


@dataclass(frozen=True)
class _Scope:
    """A graph while its operators become calls."""

    graph: Any
    values: dict[int, Expr]
    """Number of a tensor -> its value as the file stores it."""
    numbers: dict[int, Expr] = field(default_factory=dict)
    """Number of a tensor -> what it stands for."""


@dataclass
class Importer:
    """What is known about a model while its operators become calls."""

    model: Any
    is_as_stored: bool = True
    """Whether tensors have the shapes that the file gives them."""
    types: KnownTypes = field(default_factory=lambda: KnownTypes({}))
    depth: int = 0

    def params(self, graph: Any, shapes: Mapping[str, Sequence[int]]) -> list[Var]:
        """Return the inputs of a graph, with other shapes if some are given."""
        found = []
        for place in _places(graph.InputsLength(), graph.Inputs):
            name, kind = self.tensor_name(graph, place), self.tensor_type(graph, place)
            if name in shapes:
                kind = TensorType(tuple(shapes[name]), kind.dtype)
            found.append(Var(name, kind))
            self.types[found[-1]] = kind
        names = [param.name for param in found]
        for name in shapes:
            if name not in names:
                raise GraphError(OPERATION, "there is no such input", got=name,
                                 expected=", ".join(names) or "none")  # fmt: skip
        return found

    def tensor_name(self, graph: Any, place: int) -> str:
        """Return the name of a tensor."""
        name = graph.Tensors(place).Name()
        return name.decode("utf-8", "replace") if name else f"tensor_{place}"

    def tensor_type(self, graph: Any, place: int) -> TensorType:
        """Return the type of a tensor."""
        tensor, what = graph.Tensors(place), f"tensor {place}"
        return TensorType(shape_of(tensor, what), dtype_of(tensor.Type(), what))

    def run(self, number: int, given: Sequence[Expr]) -> list[Expr]:
        """Return the outputs of a graph of the model with these inputs."""
        if not 0 <= number < self.model.SubgraphsLength() or self.depth > MOST_DEPTH:
            raise GraphError(OPERATION, "a branch is missing, or inside itself", got=str(number))
        graph = self.model.Subgraphs(number)
        limited(graph.TensorsLength())
        scope = _Scope(graph, dict(
            zip(_places(graph.InputsLength(), graph.Inputs), given, strict=True)
        ))  # fmt: skip
        for n in range(limited(graph.OperatorsLength())):
            item = graph.Operators(n)
            outputs = _places(item.OutputsLength(), item.Outputs)
            node = self._node(scope, item, outputs)
            stored = [self.tensor_type(graph, place) for place in outputs]
            made = zip(outputs, self._converted(node), stored, strict=False)
            for place, value, kind in made:
                scope.values[place] = self._stored(scope, node, place, value, kind)
        return [self._value(scope, place)
                for place in _places(graph.OutputsLength(), graph.Outputs)]  # fmt: skip

    def _value(self, scope: _Scope, place: int) -> Expr:
        """Return the value of a tensor as it is stored: one that is computed, or a constant."""
        graph, values = scope.graph, scope.values
        if place not in values:
            if not 0 <= place < graph.TensorsLength():
                raise GraphError(OPERATION, "an operator reads a tensor that is not there",
                                 got=str(place))  # fmt: skip
            tensor = graph.Tensors(place)
            buffer = self.model.Buffers(tensor.Buffer())
            what = f"tensor {self.tensor_name(graph, place)!r}"
            shape, dtype = shape_of(tensor, what), dtype_of(tensor.Type(), what)
            if not buffer.DataLength() and 0 not in shape:
                raise GraphError(OPERATION, f"nothing computes {what}")
            data = buffer.DataAsNumpy() if buffer.DataLength() else b""
            array = array_of(bytes(data), shape, dtype, OPERATION, what)
            values[place] = Constant(array, self.tensor_name(graph, place))
        return values[place]

    def _scales(self, graph: Any, place: int) -> Scales | None:
        """Return what the integers of a tensor stand for; None for other tensors."""
        if not 0 <= place < graph.TensorsLength():
            return None
        what = f"tensor {self.tensor_name(graph, place)!r}"
        return scales_of(graph.Tensors(place), self.tensor_type(graph, place), what)

    def _number(self, scope: _Scope, place: int) -> Expr:
        """Return what a tensor stands for; each one is dequantized once."""
        if place not in scope.numbers:
            value, scales = self._value(scope, place), self._scales(scope.graph, place)
            if scales is not None:
                origin = self._origin(scope.graph, place, "numbers")
                value = folded(dequantized(origin, value, scales), self.types, MOST_FOLDED)
            scope.numbers[place] = value
        return scope.numbers[place]

    def _origin(self, graph: Any, place: int, what: str) -> Origin:
        name = self.tensor_name(graph, place)
        return Origin(f"{name}.{what}", self.types, span=Span(node=name))

    def _operands(self, scope: _Scope, name: str, places: Sequence[int]) -> list[Expr | None]:
        """Return the operands of an operator; None for one that is left out."""
        take = self._value if name in RAW else self._number
        found = [None if place < 0 else take(scope, place) for place in places]
        data, weight, bias = BIASES.get(name, (0, 0, len(places)))
        if bias >= len(places) or places[bias] < 0:
            return found
        value = self._value(scope, places[bias])
        scales = [self._scales(scope.graph, places[n]) for n in (data, weight)]
        if self.types.tensor(value).dtype in ("int32", "int64") and scales[0] and scales[1]:
            origin = self._origin(scope.graph, places[bias], "numbers")
            found[bias] = dequantized_bias(origin, value, scales[0], scales[1])
        return found

    def _stored(
        self, scope: _Scope, node: TfliteNode, place: int, value: Expr, kind: TensorType
    ) -> Expr:
        """Return a result as the file stores it; a constant one is computed at once."""
        scales = None if node.op_name in RAW else self._scales(scope.graph, place)
        if scales is not None:
            origin = self._origin(scope.graph, place, "integers")
            value = quantized(origin, value, scales, kind.dtype)
        return self._checked(node, value, kind)

    def _node(self, scope: _Scope, item: Any, outputs: Sequence[int]) -> TfliteNode:
        """Return an operator with its operands and options."""
        tflite, graph = tflite_package(), scope.graph
        code = self.model.OperatorCodes(item.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        name = _name_of(tflite.BuiltinOperator, number)
        if name == "CUSTOM":
            name = f"CUSTOM {(code.CustomCode() or b'').decode('utf-8', 'replace')}"
        own = self.tensor_name(graph, outputs[0]) if outputs else ""
        options = None
        if item.BuiltinOptionsType():
            kind = getattr(tflite, _name_of(tflite.BuiltinOptions, item.BuiltinOptionsType()))
            options = kind()
            table = item.BuiltinOptions()
            options.Init(table.Bytes, table.Pos)
        return TfliteNode(
            own, self.types, name,
            self._operands(scope, name, _places(item.InputsLength(), item.Inputs)),
            [self._wanted(graph, place, name) for place in outputs], options,
            span=Span(node=own),
        )  # fmt: skip

    def _wanted(self, graph: Any, place: int, name: str) -> TensorType:
        """Return the type of a result before it is quantized."""
        kind = self.tensor_type(graph, place)
        is_raw = name in RAW or self._scales(graph, place) is None
        return kind if is_raw else TensorType(kind.shape, "float32")

    def _converted(self, node: TfliteNode) -> Sequence[Expr]:
        """Return the values of an operator, before they are quantized."""
        if node.op_name == "IF":
            return self._branches(node)
        converter = OPERATORS.get(node.op_name)
        if converter is None:
            node.fail("there is no such operator here", got=node.op_name)
        with node.refusing(OPERATION):
            made = converter(node)
            found = [made] if isinstance(made, Expr) else list(made)
            for value in found:
                self.types[value]  # its operands may not fit
        return found

    def _checked(self, node: TfliteNode, value: Expr, wanted: TensorType) -> Expr:
        """Return a value that has its type in the file; a constant one is computed at once."""
        kind = self.types[value]
        if not isinstance(kind, TensorType) or kind.dtype != wanted.dtype or (
            self.is_as_stored and kind.shape != wanted.shape
        ):  # fmt: skip
            node.fail("its result has another type in the file", got=str(wanted),
                      expected=str(kind))  # fmt: skip
        return folded(value, self.types, MOST_FOLDED)

    def _branches(self, node: TfliteNode) -> list[Expr]:
        """Return the results of the branch that a condition chooses."""
        condition, given = node.input(0), [node.input(n) for n in range(1, len(node.inputs))]
        inside = replace(self, depth=self.depth + 1)
        both = [
            inside.run(int(node.option(name)), given)
            for name in ("ThenSubgraphIndex", "ElseSubgraphIndex")
        ]
        chosen = node.reshape(condition, ())
        return [node.call("where", chosen, a, b) for a, b in zip(*both, strict=True)]


def _name_of(enumeration: Any, number: int) -> str:
    """Return the name of a number of an enumeration of the schema."""
    for name, value in vars(enumeration).items():
        if value == number and isinstance(value, int):
            return str(name)
    return f"number {number}"
