"""Make a module of a TFLite model, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dlcompiler.errors import DLCompilerError, GraphError
from dlcompiler.graph.frontends.origin import folded
from dlcompiler.graph.frontends.tflite.node import TfliteNode
from dlcompiler.graph.frontends.tflite.operators import OPERATORS
from dlcompiler.graph.frontends.tflite.reading import (
    OPERATION,
    array_of,
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
        The model: floats, with weights of 16 or 32 bits.
    shapes : mapping, optional
        Shapes of inputs, by their names, where the model leaves extents open: the file has 1 there.

    Returns
    -------
    Module
        Calls have the names of the tensors that they make. Images stay in the layout NHWC. The
        result is a tensor, or a tuple of the outputs.

    Raises
    ------
    GraphError
        The file is damaged, an operator is not known, or the model computes with integers that
        stand for numbers.

    Notes
    -----
    Both branches of a condition are computed, and the right one is chosen.

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
        values: dict[int, Expr] = dict(
            zip(_places(graph.InputsLength(), graph.Inputs), given, strict=True)
        )
        for n in range(limited(graph.OperatorsLength())):
            item = graph.Operators(n)
            outputs = _places(item.OutputsLength(), item.Outputs)
            node = self._node(graph, item, outputs, values)
            for place, value in zip(outputs, self._converted(node), strict=False):
                values[place] = value
        return [self._value(graph, place, values)
                for place in _places(graph.OutputsLength(), graph.Outputs)]  # fmt: skip

    def _value(self, graph: Any, place: int, values: dict[int, Expr]) -> Expr:
        """Return the value of a tensor: one that is computed, or a constant."""
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
            array = array_of(data, shape, dtype, what)
            values[place] = Constant(array, self.tensor_name(graph, place))
        return values[place]

    def _node(
        self, graph: Any, item: Any, outputs: Sequence[int], values: dict[int, Expr]
    ) -> TfliteNode:
        """Return an operator with its operands and options."""
        tflite = tflite_package()
        code = self.model.OperatorCodes(item.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        name = _name_of(tflite.BuiltinOperator, number)
        if name == "CUSTOM":
            name = f"CUSTOM {(code.CustomCode() or b'').decode('utf-8', 'replace')}"
        own = self.tensor_name(graph, outputs[0]) if outputs else ""
        for place in outputs:
            self._refuse_quantized(graph, place, name, own)
        options = None
        if item.BuiltinOptionsType():
            kind = getattr(tflite, _name_of(tflite.BuiltinOptions, item.BuiltinOptionsType()))
            options = kind()
            table = item.BuiltinOptions()
            options.Init(table.Bytes, table.Pos)
        return TfliteNode(
            own, self.types, name,
            [None if place < 0 else self._value(graph, place, values)
             for place in _places(item.InputsLength(), item.Inputs)],
            [self.tensor_type(graph, place) for place in outputs], options, span=Span(node=own),
        )  # fmt: skip

    def _refuse_quantized(self, graph: Any, place: int, op_name: str, own: str) -> None:
        """Refuse an operator whose result is integers that stand for numbers."""
        found = graph.Tensors(place).Quantization()
        if found is not None and found.ScaleLength() and op_name != "DEQUANTIZE":
            raise GraphError(
                f"{OPERATION}: {op_name} {own}",
                "it computes with integers that stand for numbers (a quantized model)",
                hint="import the model before it was quantized",
            )

    def _converted(self, node: TfliteNode) -> Sequence[Expr]:
        """Return the values of an operator, with the types that the file gives them."""
        if node.op_name == "IF":
            return self._branches(node)
        converter = OPERATORS.get(node.op_name)
        if converter is None:
            node.fail("there is no such operator here", got=node.op_name)
        try:
            made = converter(node)
            found = [made] if isinstance(made, Expr) else list(made)
            for value in found:
                self.types[value]  # its operands may not fit
        except DLCompilerError as error:
            if error.operation.startswith(OPERATION):
                raise
            node.fail(error.problem, got=error.got, expected=error.expected)
        return [self._checked(node, *pair) for pair in zip(found, node.results, strict=False)]

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
