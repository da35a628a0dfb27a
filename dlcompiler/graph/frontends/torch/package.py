"""What the frontend asks of the package `torch`: it is imported when it is needed."""

from __future__ import annotations

import importlib
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import Constant, TensorType
from dlcompiler.graph.operators.base import Array

OPERATION = "import a PyTorch model"
MOST_NODES = 200_000
"""Most nodes of a model; [1]."""

_DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "bfloat16", "float32", "float64",
)  # fmt: skip


def torch_package() -> Any:
    """Return the module `torch`.

    Raises
    ------
    GraphError
        It is not installed.
    """
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise GraphError(
            OPERATION, "the package torch cannot be imported", got=str(error),
            hint="pip install torch",
        ) from None  # fmt: skip


def dtype_of(dtype: Any) -> str:
    """Return the name of a dtype of PyTorch.

    Raises
    ------
    GraphError
        There is none here: of complex numbers, floats of 8 bits, or quantized tensors.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise GraphError(OPERATION, "its tensors have an unknown dtype", got=name,
                         expected=", ".join(_DTYPES))  # fmt: skip
    return name


def type_of(tensor: Any, what: str) -> TensorType:
    """Return the type of a tensor of PyTorch, all extents of which must be known."""
    if not hasattr(tensor, "dtype"):
        raise GraphError(
            OPERATION, f"{what} is a number that only a run decides", got=str(tensor),
            hint="torch.compile(model, dynamic=False)",
        )  # fmt: skip
    shape = tuple(tensor.shape)
    if not all(type(n) is int for n in shape):
        raise GraphError(
            OPERATION, f"{what} has a shape that is not known", got=str(shape),
            hint="export the model for one shape: without dynamic_shapes",
        )  # fmt: skip
    return TensorType(shape, dtype_of(tensor.dtype))


def array_of(tensor: Any) -> Array:
    """Return the elements of a tensor of PyTorch, in memory of their own.

    Raises
    ------
    GraphError
        Its dtype is unknown, or it is not stored as an array.
    """
    torch = torch_package()
    dtype = dtype_of(tensor.dtype)
    if tensor.layout is not torch.strided:
        raise GraphError(OPERATION, "a tensor is not stored as an array", got=str(tensor.layout),
                         hint="tensor.to_dense()")  # fmt: skip
    kept = tensor.detach().resolve_neg().cpu().contiguous().clone()
    if dtype == "bfloat16":
        return kept.view(torch.int16).numpy().view(dtypes.to_numpy(dtype))  # type: ignore[no-any-return]  # torch has no types here
    return kept.numpy()  # type: ignore[no-any-return]  # torch has no types here


def constant_of_tensor(tensor: Any, name: str = "") -> Constant:
    """Return a tensor of PyTorch as a constant of that name."""
    return Constant(array_of(tensor), name)
