"""Make a module of an MXNet model, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.mxnet.node import MxnetNode
from dlcompiler.graph.frontends.mxnet.operators import LABELLED, OPERATORS, WITHOUT_EFFECT
from dlcompiler.graph.frontends.mxnet.reading import (
    DTYPES,
    OPERATION,
    SymbolNode,
    read_arrays,
    read_symbol,
)
from dlcompiler.graph.frontends.origin import folded
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
from dlcompiler.graph.ir.types import checked_shape
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.tools import KnownTypes

MOST_FOLDED = 1 << 22
"""Most elements of a result that is computed while the model is imported; [1]."""


def from_mxnet(
    symbol: Any,
    params: Any = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> Module:
    """Return an MXNet model as a module, in inference.

    Parameters
    ----------
    symbol : path or bytes
        The graph, ``NAME-symbol.json``, as `HybridBlock.export` and `Symbol.save` write it.
    params : path, bytes or mapping, optional
        The weights, ``NAME-0000.params``, as `mx.nd.save` writes them, or arrays by their names.
    shapes : mapping, optional
        Shapes of the inputs, by their names. Inputs are the variables without weights. The file
        itself has no shapes, but for variables that were made with one. `ANY` leaves the batch
        open.
    dtypes : mapping, optional
        Dtypes of inputs, by their names; float32 by default.

    Returns
    -------
    Module
        Calls have the names of the nodes. The result is a tensor, or a tuple of the outputs.
        Labels, which only training reads, are no inputs.

    Raises
    ------
    GraphError
        A file is damaged, an operator or an attribute is not known, or an input has no shape. The
        error names the node.

    Notes
    -----
    The package `mxnet` is not needed. Batch normalisation has the moments of the file, and dropout
    does nothing.

    **Source:** MXNet 1.9.1; attributes in the JSON of older versions are read, too.
    """
    graph = read_symbol(symbol)
    weights = {} if params is None else read_arrays(params)
    importer = Importer(weights, dict(shapes or {}), dict(dtypes or {}))
    known = [n.name for n in graph.nodes if n.op == "null" and n.name not in weights]
    for name in (*importer.shapes, *importer.dtypes):
        if name not in known:
            raise GraphError(OPERATION, "there is no such input", got=name,
                             expected=", ".join(known)[:200] or "none")  # fmt: skip
    results: list[Sequence[Expr]] = []

    def value(entry: tuple[int, int]) -> Expr:
        number, place = entry
        node = graph.nodes[number]
        if node.op == "null":
            return importer.variable(node)
        if place >= len(results[number]):
            raise GraphError(OPERATION, "a result is read that is not computed here",
                             got=f"result {place} of {node.op} {node.name}")  # fmt: skip
        return results[number][place]

    for node in graph.nodes:
        read = node.inputs[:1] if node.op in LABELLED else node.inputs
        results.append(() if node.op == "null" else importer.results(node, list(map(value, read))))
    outputs = tuple(map(value, graph.heads))
    if not outputs:
        raise GraphError(OPERATION, "the model has no outputs")
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    return Module({"main": Function(tuple(importer.params.values()), body)})


@dataclass
class Importer:
    """What is known about a model while its nodes become calls."""

    weights: Mapping[str, Array]
    shapes: Mapping[str, Sequence[int]]
    dtypes: Mapping[str, str]
    types: KnownTypes = field(default_factory=lambda: KnownTypes({}))
    params: dict[str, Var] = field(default_factory=dict)
    """The inputs that were read, by their names."""
    constants: dict[str, Constant] = field(default_factory=dict)

    def variable(self, node: SymbolNode) -> Expr:
        """Return the weights or the input that a variable stands for."""
        name = node.name
        if name in self.weights:
            return self.constants.setdefault(name, Constant(self.weights[name], name))
        if name not in self.params:
            kind = self._input_type(node)
            self.params[name] = Var(name, kind)
            self.types[self.params[name]] = kind
        return self.params[name]

    def _input_type(self, node: SymbolNode) -> TensorType:
        noted = MxnetNode(node.name, self.types, "variable", [], node.attrs)
        shape: Sequence[int] | None = self.shapes.get(node.name)
        if shape is None:
            shape = noted.integers("__shape__")
            if not shape or min(shape) < 1:  # 0 and -1 leave an extent open
                raise GraphError(
                    OPERATION, f"input {node.name!r} has no shape, and no weights",
                    hint=f"from_mxnet(symbol, params, shapes={{{node.name!r}: (…)}})",
                )  # fmt: skip
        dtype = self.dtypes.get(node.name)
        if dtype is None:
            number = noted.integer("__dtype__", 0)
            dtype = DTYPES[number] if 0 <= number < len(DTYPES) else "float32"
        return TensorType(checked_shape(shape), dtype)

    def results(self, item: SymbolNode, inputs: list[Expr]) -> Sequence[Expr]:
        """Return the results of a node; those that depend on constants only are computed."""
        attrs = {
            name: text for name, text in item.attrs.items()
            if not (name.startswith("__") and name.endswith("__"))
        }  # fmt: skip
        node = MxnetNode(item.name, self.types, item.op, inputs, attrs, span=Span(node=item.name))
        converter = OPERATORS.get(item.op)
        if converter is None:
            node.fail("there is no such operator here", got=item.op)
        if item.op.startswith("BatchNorm") and len(inputs) == 3:  # before version 0.9
            node.inputs = [*inputs, *(
                self.variable(SymbolNode("null", f"{item.name}_{name}", (), {}))
                for name in ("moving_mean", "moving_var")
            )]  # fmt: skip
        with node.refusing(OPERATION, node.inputs):
            made = converter(node)
            found = [made] if isinstance(made, Expr) else list(made)
            for value in found:
                self.types[value]  # its operands may not fit
        unknown = attrs.keys() - node.asked - WITHOUT_EFFECT
        if unknown:
            node.fail("an attribute is not known here", got=", ".join(sorted(unknown))[:200])
        if all(isinstance(value, Constant) for value in node.inputs):
            found = [folded(value, self.types, MOST_FOLDED) for value in found]
        return found
