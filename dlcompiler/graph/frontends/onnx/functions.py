"""Functions: operators that a model, or the standard, writes by other operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.onnx.reading import OPERATION, domain_of, onnx_package

MOST_DEPTH = 16
"""Most functions that call each other; [1]."""


def of_model(model: Any) -> dict[tuple[str, str], Any]:
    """Return the functions of a model by domain and name."""
    return {(domain_of(f.domain), f.name): f for f in model.functions}


def of_standard(node: Node, proto: Any, domain: str) -> Any | None:
    """Return the function by which the standard defines an operator; None if there is none."""
    onnx = onnx_package()
    try:
        schema = onnx.defs.get_schema(node.op_type, node.version, domain)
    except Exception:
        return None
    if schema.has_function:
        return _with_defaults(onnx, schema.function_body, schema)
    if not schema.has_context_dependent_function:
        return None
    versions = schema.context_dependent_function_opset_versions
    fitting = [version for version in versions if version <= node.version]
    kinds = [_type_text(onnx, node, i) for i in range(len(proto.input))]
    text = schema.get_context_dependent_function_with_opset_version(
        max(fitting, default=min(versions)), proto.SerializeToString(), kinds
    )
    body = onnx.FunctionProto()
    body.ParseFromString(text)
    return _with_defaults(onnx, body, schema)


def checked_attributes(proto: Any, opsets: Mapping[str, int]) -> frozenset[str] | None:
    """Return the names of an operator's attributes; None if the standard has no such operator.

    The attributes of the node are of the kinds that the standard names, and none is missing.

    Raises
    ------
    GraphError
        They are not those of the operator in the standard.
    """
    onnx, domain = onnx_package(), domain_of(proto.domain)
    try:
        schema = onnx.defs.get_schema(proto.op_type, opsets.get(domain, 1), domain)
    except Exception:
        return None
    given = {attribute.name: attribute.type for attribute in proto.attribute}
    name_of = onnx.AttributeProto.AttributeType.Name
    for name, attribute in schema.attributes.items():
        kind = int(attribute.type.value)
        if given.get(name, kind) != kind or (attribute.required and name not in given):
            raise GraphError(
                f"{OPERATION}: {proto.op_type} {proto.name}".strip(),
                f"attribute {name} is {'of another kind' if name in given else 'missing'}",
                got=name_of(given[name]) if name in given else None, expected=name_of(kind),
            )  # fmt: skip
    return frozenset(schema.attributes)


def _with_defaults(onnx: Any, body: Any, schema: Any) -> Any:
    """Return a function with the defaults of the operator's attributes."""
    found = onnx.FunctionProto()
    found.CopyFrom(body)
    for attribute in schema.attributes.values():
        if attribute.default_value.name:
            found.attribute_proto.append(attribute.default_value)
    return found


def _type_text(onnx: Any, node: Node, i: int) -> bytes:
    """Return the type of an operand as the package wants it."""
    value = node.optional(i)
    if value is None:
        return bytes(onnx.TypeProto().SerializeToString())
    kind = node.type(value)
    name = {"float32": "FLOAT", "float64": "DOUBLE"}.get(kind.dtype, kind.dtype.upper())
    shape = [n if isinstance(n, int) else None for n in kind.shape]
    number = onnx.TensorProto.DataType.Value(name)
    return bytes(onnx.helper.make_tensor_type_proto(number, shape).SerializeToString())


def opsets_of(body: Any, others: Mapping[str, int]) -> dict[str, int]:
    """Return the versions that a function uses; those of the model where it says nothing."""
    own = {domain_of(e.domain): int(e.version) for e in body.opset_import}
    return {**others, **own}


def bound_nodes(body: Any, node: Node) -> Iterator[Any]:
    """Yield the nodes of a function, with the attributes of the node that calls it."""
    onnx = onnx_package()
    defaults = {attribute.name: attribute for attribute in body.attribute_proto}
    for original in body.node:
        proto = onnx.NodeProto()
        proto.CopyFrom(original)
        if node.name:
            proto.name = f"{node.name}.{original.name or original.output[0]}"
        bound = []
        for attribute in original.attribute:
            if not attribute.ref_attr_name:
                bound.append(attribute)
            elif attribute.ref_attr_name in node.attrs:
                value = node.attrs[attribute.ref_attr_name]
                bound.append(onnx.helper.make_attribute(attribute.name, value))
            elif attribute.ref_attr_name in defaults:
                found = onnx.AttributeProto()
                found.CopyFrom(defaults[attribute.ref_attr_name])
                found.name = attribute.name
                bound.append(found)
        del proto.attribute[:]
        proto.attribute.extend(bound)
        yield proto
