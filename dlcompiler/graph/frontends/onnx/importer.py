"""Make a module of an ONNX model, node by node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.onnx import functions, inputs
from dlcompiler.graph.frontends.onnx.control import CONTROL
from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.onnx.operators import DOMAINS
from dlcompiler.graph.frontends.onnx.reading import (
    OPERATION,
    domain_of,
    onnx_package,
    opsets_of,
    read_model,
    read_tensor,
    text_of,
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
    TupleType,
    Var,
)
from dlcompiler.graph.passes.tools import KnownTypes

MOST_FOLDED = 1 << 20
"""Most elements of a result that is computed while the model is imported; [1]."""


def from_onnx(
    source: Any,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Module:
    """Return an ONNX model as a module.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        The model. Tensors outside of a file must lie in its folder.
    shapes : mapping, optional
        Shapes of inputs, by their names, where the model leaves extents open. The shape of a
        sequence is the list of the shapes of its tensors.
    constants : mapping, optional
        Arrays of inputs that are constants from now on, by their names: axes, sizes and other
        operands that decide about shapes. None stands for an optional input without a value.

    Returns
    -------
    Module
        Calls have the names of the nodes. The result is a tensor, or a tuple of the outputs. An
        input or output that is a sequence is a tuple of tensors.

    Raises
    ------
    GraphError
        The file is damaged, an operator is not known, or a shape depends on values that only a run
        decides. The error names the node.

    Notes
    -----
    Values that depend on constants only are computed while the model is read. An operator that has
    no converter is written by its function in the standard, where it has one.

    **Source:** the ONNX specification, operator sets 7 to the newest one of the package `onnx`.
    """
    model, folder = read_model(source)
    importer = Importer(opsets_of(model), folder, functions.of_model(model), dict(shapes or {}))
    scope: dict[str, Expr | None] = {}
    for tensor in model.graph.initializer:
        scope[tensor.name] = Constant(read_tensor(tensor, folder), tensor.name)
    given = dict(constants or {})
    known = {value.name for value in model.graph.input}
    for name in (*given, *importer.shapes):
        if name not in known:
            raise GraphError(OPERATION, "there is no such input", got=name,
                             expected=", ".join(sorted(known)) or "none")  # fmt: skip
    params = []
    for value in model.graph.input:
        if value.name in scope:  # older models list their weights as inputs
            continue
        if value.name in given:
            scope[value.name] = inputs.known_value(value.name, value.type, given[value.name])
            continue
        kind = inputs.input_type(value.name, value.type, importer.shapes.get(value.name))
        param = Var(value.name, kind)
        importer.types[param] = kind
        scope[value.name] = inputs.tensors_of(param, kind)
        params.append(param)
    importer.run(model.graph.node, scope)
    results = [importer.result(value.name, scope) for value in model.graph.output]
    if not results:
        raise GraphError(OPERATION, "the model has no outputs")
    body = results[0] if len(results) == 1 else Tuple(tuple(results))
    return Module({"main": Function(tuple(params), body)})


Scope: TypeAlias = Mapping[str, Expr | None]
"""Values by their names; None for an optional without a value."""


def onnx_inputs(source: Any) -> dict[str, TensorType | None]:
    """Return the inputs of an ONNX model that a caller gives, with `ANY` for open extents.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        The model.

    Returns
    -------
    dict
        The type of each input by its name; None if the model does not say how many dimensions it
        has.

    Raises
    ------
    GraphError
        The file is damaged, or an input is no tensor, such as a sequence of them.
    """
    model, _ = read_model(source)
    weights = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in weights]
    return {value.name: inputs.declared_type(value.name, value.type) for value in values}


@dataclass
class Importer:
    """What is known about a model while its nodes become calls."""

    opsets: Mapping[str, int]
    folder: Path | None
    functions: Mapping[tuple[str, str], Any]
    """Functions of the model, by domain and name."""
    shapes: Mapping[str, Sequence[int]]
    types: KnownTypes = field(default_factory=lambda: KnownTypes({}))
    depth: int = 0

    def value(self, name: str, scope: Scope) -> Expr | None:
        """Return the expression of a name; None for an optional without a value."""
        if name not in scope:
            raise GraphError(OPERATION, "a value is read that nothing computes", got=repr(name))
        return scope[name]

    def result(self, name: str, scope: Scope) -> Expr:
        """Return the expression of an output of the model."""
        value = self.value(name, scope)
        if value is None:
            raise GraphError(OPERATION, "an output is an optional without a value", got=repr(name))
        return value

    def run(self, nodes: Sequence[Any], scope: dict[str, Expr | None]) -> None:
        """Add the values of nodes, in their order, to a scope."""
        for proto in nodes:
            for name, value in self.outputs(proto, scope):
                scope[name] = value

    def outputs(self, proto: Any, scope: Scope) -> Iterator[tuple[str, Expr | None]]:
        """Yield the outputs of a node that have a name."""
        node = self.node(proto, scope)
        domain = domain_of(proto.domain)
        for name, value in self.converted(node, proto, domain, scope).items():
            if name:
                yield name, None if value is None else self.folded(value)

    def node(self, proto: Any, scope: Scope) -> Node:
        """Return a node with its operands and attributes."""
        domain = domain_of(proto.domain)
        if domain not in self.opsets and (domain, proto.op_type) not in self.functions:
            raise GraphError(OPERATION, "an operator is of a domain that is not imported",
                             got=f"{proto.domain}.{proto.op_type}")  # fmt: skip
        name = text_of(proto.name)
        return Node(
            name, self.types, proto.op_type, self.opsets.get(domain, 1),
            [self.value(name, scope) if name else None for name in proto.input],
            tuple(proto.output), self.attributes(proto),
            span=Span(node=name or next((text_of(name) for name in proto.output if name), "")),
        )  # fmt: skip

    def attributes(self, proto: Any) -> dict[str, Any]:
        """Return the attributes of a node: numbers, texts, lists of them, arrays, types, graphs.

        Those that its version of the operator does not have are left out.
        """
        onnx = onnx_package()
        kinds = onnx.AttributeProto
        known = functions.checked_attributes(proto, self.opsets)
        found: dict[str, Any] = {}
        for attribute in proto.attribute:
            if known is not None and attribute.name not in known:
                continue
            match attribute.type:
                case kinds.TENSOR:
                    found[attribute.name] = read_tensor(attribute.t, self.folder)
                case kinds.TYPE_PROTO:
                    found[attribute.name] = attribute.tp
                case kinds.GRAPH:
                    found[attribute.name] = attribute.g
                case kinds.STRING:
                    found[attribute.name] = attribute.s.decode("utf-8", "replace")
                case kinds.STRINGS:
                    found[attribute.name] = [
                        s.decode("utf-8", "replace") for s in attribute.strings
                    ]
                case kinds.FLOAT | kinds.INT | kinds.FLOATS | kinds.INTS:
                    found[attribute.name] = onnx.helper.get_attribute_value(attribute)
                case _:
                    raise GraphError(
                        f"{OPERATION}: {proto.op_type} {proto.name}", "an attribute is not known",
                        got=attribute.name,
                    )  # fmt: skip
        return found

    def converted(self, node: Node, proto: Any, domain: str, scope: Scope) -> Scope:
        """Return the values of the outputs of a node that are computed, by their names."""
        key = (domain, node.op_type)
        if not domain and node.op_type in CONTROL:
            made = CONTROL[node.op_type](node, self, dict(scope))
            return dict(zip(node.outputs, made, strict=False))
        converter = DOMAINS.get(domain, {}).get(node.op_type)
        if key not in self.functions and converter is not None:
            with node.refusing(OPERATION, node.inputs):
                found = converter(node)
            values = found if isinstance(found, list | tuple) else [found]
            return dict(zip(node.outputs, values, strict=False))
        body = self.functions.get(key) or functions.of_standard(node, proto, domain)
        if body is None:
            node.fail("there is no such operator here", got=f"{domain or 'ai.onnx'} {node.op_type}")
        return self.called(body, node)

    def called(self, body: Any, node: Node) -> Scope:
        """Return the outputs of a node that a function computes."""
        if self.depth >= functions.MOST_DEPTH:
            node.fail("functions call each other without end")
        inside = Importer(
            functions.opsets_of(body, self.opsets), self.folder, self.functions, {}, self.types,
            self.depth + 1,
        )  # fmt: skip
        scope: dict[str, Expr | None] = {
            name: value
            for name, value in zip(body.input, node.inputs, strict=False)
            if value is not None
        }
        for proto in functions.bound_nodes(body, node):
            missing = [n for n in proto.input if n and n not in scope and n in body.input]
            if missing:
                proto.input[:] = [("" if n in missing else n) for n in proto.input]
            for name, value in inside.outputs(proto, scope):
                scope[name] = value
        pairs = zip(body.output, node.outputs, strict=False)
        return {output: scope[name] for name, output in pairs if name in scope}

    def subgraph(self, body: Any, given: Sequence[Expr | None], scope: Scope) -> list[Expr | None]:
        """Return the outputs of a body with these operands; it reads names from around it."""
        if body is None:
            raise GraphError(OPERATION, "an operator has no body")
        inside = dict(scope)
        for tensor in body.initializer:
            inside[tensor.name] = Constant(read_tensor(tensor, self.folder), tensor.name)
        for value, operand in zip(body.input, given, strict=False):
            inside[value.name] = operand
        self.run(body.node, inside)
        return [self.value(output.name, inside) for output in body.output]

    def folded(self, value: Expr) -> Expr:
        """Return the constant that a value is, if its operands are constants and it is small."""
        if isinstance(value, Tuple):  # a sequence
            fields = tuple(map(self.folded, value.fields))
            return value if fields == value.fields else Tuple(fields)
        kind = self.types[value]  # a wrong type is found here, at its node
        if isinstance(kind, TupleType):
            raise GraphError(OPERATION, "a value is a tuple", got=str(kind))
        return folded(value, self.types, MOST_FOLDED)
