"""An entry of the operator table, and the view of a call that its functions get."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph.ir.nodes import Call, Op
from dlcompiler.graph.ir.types import TENSOR_TYPE, TensorType, TupleType, Type
from dlcompiler.graph.operators.attributes import Attribute, completed
from dlcompiler.te import Tensor

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = "Array | tuple[Value, ...]"
Attributes: TypeAlias = Mapping[str, Any]


class Pattern(enum.IntEnum):
    """How an operator may be fused; a higher class restricts more.

    **Source:** T. Chen and others, "TVM: An automated end-to-end optimizing compiler for deep
    learning", OSDI 2018, section 3; the numbers are those of Relay.
    """

    ELEMENTWISE = 0
    """Element i of the output depends on element i of each input."""
    BROADCAST = 1
    """As elementwise, but inputs may be repeated along dimensions."""
    INJECTIVE = 2
    """Each element of the output depends on one element of an input: transpose, concatenate."""
    REDUCTION = 3
    """Elements of an input are combined: sum."""
    ANCHOR = 4
    """A loop nest of its own, to whose output elementwise operators can be fused: conv2d."""
    TUPLE = 7
    """Makes a tuple."""
    OPAQUE = 8
    """Cannot be fused."""


class NotKnown(Exception):  # noqa: N818 - a state of the inference, not an error
    """The type of an argument is not known yet; inference asks again later."""


@dataclass(slots=True)
class CallTypes:
    """A call whose type is inferred: what its relation reads, and where it reports errors."""

    operator: GraphOperator
    args: list[Type | None]
    """Types of the arguments; None where it is not known yet. `assign` fills them in."""
    attrs: Attributes
    """All attributes in their normal form."""
    call: Call | None = None

    def any(self, i: int) -> Type:
        """Return the type of argument `i`; raise `NotKnown` if it is not known yet."""
        if (kind := self.args[i]) is None:
            raise NotKnown
        return kind

    def tensor(self, i: int) -> TensorType:
        """Return the type of argument `i`, which must be a tensor."""
        kind = self.any(i)
        if not isinstance(kind, TensorType):
            self.fail(f"argument {self.name(i)} is not a tensor", got=kind)
        return kind

    def tensors(self, i: int) -> tuple[TensorType, ...]:
        """Return the types of the fields of argument `i`, which must be a tuple of tensors."""
        kind = self.any(i)
        if isinstance(kind, TupleType) and all(isinstance(f, TensorType) for f in kind.fields):
            return tuple(f for f in kind.fields if isinstance(f, TensorType))
        self.fail(f"argument {self.name(i)} is not a tuple of tensors", got=kind)

    def assign(self, i: int, kind: TensorType) -> TensorType:
        """Give argument `i` a type if it has none, and return its type."""
        if self.args[i] is None:
            self.args[i] = kind
        return self.tensor(i)

    def result(self) -> Type:
        """Return the type of the result by the relation of the operator."""
        try:
            return self.operator.relation(self)
        except GraphError as error:
            if error.operation != TENSOR_TYPE:
                raise
            found = error
        # The relation made a type that cannot be: the error names the call instead.
        self.fail(f"the result has {found.problem}", got=found.got, expected=found.expected)

    def name(self, i: int) -> str:
        """Return the name of argument `i`."""
        return self.operator.input_name(i)

    def fail(
        self, problem: str, *, got: object = None, expected: object = None,
        because: str | None = None, hint: str | None = None,
    ) -> NoReturn:  # fmt: skip
        """Refuse the call.

        Raises
        ------
        GraphError
            Always; by default it lists the types of the arguments.
        """
        if got is None:
            got = ", ".join(
                f"{self.name(i)} {'of unknown type' if kind is None else kind}"
                for i, kind in enumerate(self.args)
            )
        raise GraphError(
            describe(self.operator, self.call), problem, got=got, expected=expected,
            because=because, hint=hint, excerpt=origin_of(self.call),
        )  # fmt: skip


def describe(operator: GraphOperator, call: Call | None) -> str:
    """Return the words for a call in errors: its operator, and its name if it has one."""
    return f"{operator.name} {call.name}" if call is not None and call.name else operator.name


def origin_of(call: Call | None) -> str | None:
    """Return where a call comes from, for errors; None if that is not known."""
    return f"from {call.span}" if call is not None and call.span else None


Relation: TypeAlias = Callable[[CallTypes], Type]
"""Returns the type of the result. Raises `NotKnown`, or reports an error by `CallTypes.fail`."""
TensorRelation: TypeAlias = Callable[[CallTypes], TensorType]
"""A relation whose result is a tensor."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the functions of an entry get besides the arguments: the call without its operands."""

    attrs: Attributes
    """All attributes in their normal form."""
    inputs: tuple[Type, ...]
    type: Type

    @property
    def tensor(self) -> TensorType:
        """The type of the result of an operator with one output."""
        if not isinstance(self.type, TensorType):
            raise TypeError(self.type)
        return self.type


@dataclass(frozen=True, slots=True)
class GraphOperator:
    """An operator of graphs: everything that importers, passes and executors ask about it."""

    name: str
    """As in Relay: ``nn.conv2d``."""
    inputs: tuple[str, ...]
    """Names of the arguments. One that ends with ``?`` may be left out; all after it, too."""
    relation: Relation
    """Returns the type of the result from those of the arguments."""
    evaluate: Callable[..., Value]
    """Computes it with NumPy: ``evaluate(result, *arrays)``; this is the meaning of the operator.
    An argument that is a tuple is a tuple of arrays."""
    pattern: Pattern
    define: Callable[..., Tensor | tuple[Tensor, ...]] | None = None
    """Returns it as tensor expressions: ``define(result, *tensors)``. None: nothing is computed,
    or only NumPy can."""
    attributes: tuple[Attribute, ...] = ()
    doc: str = ""
    """What it computes, in one sentence."""
    layouts: Callable[..., Any] | None = None
    """Returns the layouts of inputs and output for a layout of one of them; None: only as given."""
    gradient: Callable[..., Any] | None = None
    """Returns gradients of the arguments as graph expressions; None: it has none."""
    kernel: str = ""
    """Name of the operator of `dlcompiler.ops` that schedules it; "" for the rules of its
    pattern."""
    nest: Callable[..., Tensor | tuple[Tensor, ...]] | None = None
    """Returns it for a CPU as loops that run in order: ``nest(result, target, *tensors)``, where
    the result has elements. None: `define` is for all machines."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Facts for single passes: ``is_stateful``, ``is_reshape``, …"""

    def input_name(self, i: int) -> str:
        """Return the name of argument `i`."""
        return self.inputs[i].rstrip("?") if i < len(self.inputs) else f"{i + 1}"

    @property
    def least_inputs(self) -> int:
        """Number of arguments that a call must give."""
        return sum(not name.endswith("?") for name in self.inputs)

    def complete(self, call: Call) -> dict[str, Any]:
        """Return all attributes of a call in their normal form.

        Raises
        ------
        GraphError
            If the number of arguments, or an attribute, is wrong.
        """
        operation = describe(self, call)
        if not self.least_inputs <= len(call.args) <= len(self.inputs):
            raise GraphError(
                operation, "the number of arguments is wrong", got=len(call.args),
                expected=", ".join(self.inputs) or "none", excerpt=origin_of(call),
            )  # fmt: skip
        return completed(operation, self.attributes, call.attrs)

    def result_type(self, call: Call, args: Sequence[Type | None]) -> Type:
        """Return the type of a call from the types of its arguments.

        Raises
        ------
        NotKnown
            If a type is missing.
        GraphError
            If the types or the attributes do not fit.
        """
        return CallTypes(self, list(args), self.complete(call), call).result()


def operator_name(call: Call) -> str:
    """Return the name of the operator of a call; "" for a call of a function."""
    return call.op.name if isinstance(call.op, Op) else ""


def as_array(value: Any, kind: TensorType) -> Array:
    """Return a value as an array of a type's dtype and shape."""
    array: Array = np.asarray(value).astype(dtypes.to_numpy(kind.dtype), copy=False)
    return array.reshape([extent for extent in kind.shape if isinstance(extent, int)])
