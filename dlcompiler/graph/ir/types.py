"""Types of graph expressions: tensors, tuples and functions.

Types are values: equal types are interchangeable. A dimension is an int, or `ANY` if only a run
decides it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from dlcompiler import dtypes
from dlcompiler.errors import GraphError, shown_number


@final
class AnyDimension:
    """The extent of a dimension that only a run decides; `ANY` is the only one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"

    def __reduce__(self) -> str:
        return "ANY"


ANY: Final = AnyDimension()

Dimension: TypeAlias = int | AnyDimension
TENSOR_TYPE: Final = "tensor type"
"""The operation in errors about a type that cannot be."""
MAX_ELEMENTS = 2**60
"""Most elements of a tensor: the addresses of its bytes have 64 bits; [1]."""
MAX_RANK = 64
"""Most dimensions of a tensor, as in NumPy; [1]."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a tensor.

    >>> TensorType((1, 3, 224, 224), "float32")
    Tensor[(1, 3, 224, 224), float32]
    """

    shape: tuple[Dimension, ...]
    """Extents of the dimensions; [1]."""
    dtype: str = "float32"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", checked_shape(self.shape))
        dtype = dtypes.as_dtype(self.dtype)
        if dtypes.is_index(dtype) or dtypes.lanes(dtype) > 1:
            raise GraphError(TENSOR_TYPE, "not a dtype of data", got=dtype, expected="float32, …")
        object.__setattr__(self, "dtype", dtype)

    @property
    def rank(self) -> int:
        """Number of dimensions; [1]."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether all dimensions are known."""
        return ANY not in self.shape

    def __repr__(self) -> str:
        return f"Tensor[{shape_text(self.shape)}, {self.dtype}]"


@dataclass(frozen=True, slots=True)
class TupleType:
    """The type of a tuple.

    >>> TupleType((TensorType((2,), "bool"),))
    (Tensor[(2), bool],)
    """

    fields: tuple[Type, ...]

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.fields))
        return f"({inner},)" if len(self.fields) == 1 else f"({inner})"


@dataclass(frozen=True, slots=True)
class FuncType:
    """The type of a function.

    >>> FuncType((TensorType((2,)),), TensorType(()))
    fn (Tensor[(2), float32]) -> Tensor[(), float32]
    """

    params: tuple[Type, ...]
    result: Type

    def __repr__(self) -> str:
        return f"fn ({', '.join(map(repr, self.params))}) -> {self.result!r}"


Type: TypeAlias = TensorType | TupleType | FuncType


def shape_text(shape: Iterable[Dimension]) -> str:
    """Return a shape as the text form writes it.

    >>> shape_text((1, ANY))
    '(1, ?)'
    """
    return f"({', '.join(map(str, shape))})"


def checked_shape(shape: object) -> tuple[Dimension, ...]:
    """Return a shape as a tuple; refuse one that no tensor can have.

    Raises
    ------
    GraphError
        If an extent is no integer or negative, or there are too many dimensions or elements.
    """
    if not isinstance(shape, Iterable) or isinstance(shape, str | bytes):
        raise GraphError(TENSOR_TYPE, "not a shape", got=repr(shape), expected="(1, 3, 224, 224)")
    dims = tuple(_dimension(extent, shape) for extent in shape)
    if len(dims) > MAX_RANK:
        raise GraphError(TENSOR_TYPE, f"more than {MAX_RANK} dimensions", got=len(dims))
    elements = 1
    for extent in dims:
        elements *= max(extent, 1) if isinstance(extent, int) else 1
    if elements > MAX_ELEMENTS:
        raise GraphError(
            TENSOR_TYPE, "too many elements", got=shown_number(elements), expected="at most 2**60"
        )
    return dims


def _dimension(extent: object, shape: object) -> Dimension:
    if isinstance(extent, AnyDimension):
        return ANY
    try:
        if isinstance(extent, bool):
            raise TypeError
        number = extent.__index__()  # type: ignore[attr-defined]  # NumPy's integers have it
    except (AttributeError, TypeError):
        raise GraphError(
            TENSOR_TYPE, "an extent is not an integer", got=f"{extent!r} in {shape!r}"
        ) from None
    if number < 0:
        raise GraphError(
            TENSOR_TYPE, "an extent is negative", got=f"{shown_number(number)}",
            hint="graph.ANY is an extent that only a run decides",
        )  # fmt: skip
    return int(number)


def tensor_types(kind: Type) -> tuple[TensorType, ...]:
    """Return the tensors in a type, from left to right; a function holds none."""
    match kind:
        case TensorType():
            return (kind,)
        case TupleType(fields):
            return tuple(tensor for field in fields for tensor in tensor_types(field))
    return ()
