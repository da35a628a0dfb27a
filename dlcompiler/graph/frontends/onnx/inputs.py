"""Inputs of a model: tensors, sequences of tensors, and optionals, which are their contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.onnx.reading import OPERATION, dtype_of
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import ANY, Expr, TensorType, Tuple, TupleGetItem, TupleType, Type
from dlcompiler.graph.ir.types import checked_shape


def input_type(name: str, proto: Any, shape: Sequence[Any] | None) -> Type:
    """Return the type of an input.

    Parameters
    ----------
    name : str
        Its name.
    proto : onnx.TypeProto
        Its type in the model.
    shape : sequence, optional
        The shape that the user gives; of a sequence, the shapes of its tensors.
    """
    match proto.WhichOneof("value"):
        case "optional_type":
            return input_type(name, proto.optional_type.elem_type, shape)
        case "sequence_type":
            if shape is None:
                raise GraphError(
                    OPERATION, f"input {name!r} is a sequence of unknown length",
                    hint=f"from_onnx(model, shapes={{{name!r}: [(…), …]}})",
                )  # fmt: skip
            each = proto.sequence_type.elem_type
            return TupleType(tuple(input_type(name, each, part) for part in shape))
        case "tensor_type":
            return _tensor_type(name, proto.tensor_type, shape)
    raise GraphError(
        OPERATION, f"input {name!r} is no tensor", got=str(proto.WhichOneof("value")),
        expected="a tensor, or a sequence or an optional of tensors",
    )  # fmt: skip


def _tensor_type(name: str, tensor: Any, shape: Sequence[int] | None) -> TensorType:
    dtype = dtype_of(tensor.elem_type)
    if shape is not None:
        return TensorType(checked_shape(shape), dtype)
    if not tensor.HasField("shape"):
        raise GraphError(
            OPERATION, f"input {name!r} has no shape",
            hint=f"from_onnx(model, shapes={{{name!r}: (…)}})",
        )  # fmt: skip
    # Some exporters write -1 for an extent that is open.
    values = [
        int(dim.dim_value) if dim.WhichOneof("value") == "dim_value" else -1
        for dim in tensor.shape.dim
    ]
    dims = [ANY if value == -1 else value for value in values]
    return TensorType(tuple(dims), dtype)


def declared_type(name: str, proto: Any) -> TensorType | None:
    """Return the type of an input that is one tensor; None if its number of dimensions is open.

    Parameters
    ----------
    name, proto
        As of `input_type`.
    """
    kind = proto.WhichOneof("value")
    if kind == "optional_type":
        return declared_type(name, proto.optional_type.elem_type)
    if kind != "tensor_type":
        raise GraphError(
            OPERATION, f"input {name!r} is no tensor", got=str(kind), expected="a tensor"
        )
    if not proto.tensor_type.HasField("shape"):
        return None
    return _tensor_type(name, proto.tensor_type, None)


def tensors_of(value: Expr, kind: Type) -> Expr:
    """Return a value, of which a sequence is a `Tuple` of its tensors."""
    if not isinstance(kind, TupleType):
        return value
    parts = enumerate(kind.fields)
    return Tuple(tuple(tensors_of(TupleGetItem(value, n), part) for n, part in parts))


def known_value(name: str, proto: Any, given: Any) -> Expr | None:
    """Return an input that is a constant; None for an optional without a value."""
    kind = proto.WhichOneof("value")
    if kind == "optional_type":
        return None if given is None else known_value(name, proto.optional_type.elem_type, given)
    if given is None:
        raise GraphError(OPERATION, f"input {name!r} is None, but no optional", got=str(kind))
    if kind != "sequence_type":
        found = input_type(name, proto, np.shape(given))
        assert isinstance(found, TensorType), found
        return constant_of(np.asarray(given), found.dtype)
    if not isinstance(given, list | tuple):
        raise GraphError(OPERATION, f"input {name!r} is a sequence", got=type(given).__name__,
                         expected="a list of arrays")  # fmt: skip
    each = proto.sequence_type.elem_type
    values = [known_value(name, each, part) for part in given]
    return Tuple(tuple(value for value in values if value is not None))
