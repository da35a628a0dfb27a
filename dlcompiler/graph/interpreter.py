"""The interpreter: it defines what a graph means, by NumPy.

A scope (the body of a function, a branch) is a generator that yields the scopes it enters, so
neither data flow nor recursion is limited by Python's stack.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import CallError, DLCompilerError, GraphError, InternalError
from dlcompiler.graph.inference import Types, types_of
from dlcompiler.graph.ir import (
    MAIN,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Module,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
)
from dlcompiler.graph.ir.arrays import array_of
from dlcompiler.graph.operators import Result, find
from dlcompiler.graph.operators.base import Array, NotKnown, describe
from dlcompiler.ir.numeric import quiet

Value: TypeAlias = "Array | tuple[Value, ...] | Closure"
MAX_CALLS = 1_000_000
"""Most calls of functions inside each other; [1]."""


@dataclass(slots=True, eq=False)
class _Frame:
    """Values of nodes that were computed in a scope, and the scope in which it was defined."""

    parent: _Frame | None
    values: dict[Node, Value] = field(default_factory=dict)

    def find(self, node: Node) -> Value | None:
        """Return the value of a node; None if it was not computed."""
        frame: _Frame | None = self
        while frame is not None:
            value = frame.values.get(node)
            if value is not None:
                return value
            frame = frame.parent
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function with the values of the scope in which it was defined."""

    function: Function
    frame: _Frame


_Running: TypeAlias = Generator[tuple[Expr, _Frame], Value, Value]


def evaluate(
    module: Module | Expr, *args: Any, function: str = MAIN, **named: Any
) -> Array | tuple[Any, ...]:
    """Compute a function of a module with NumPy.

    Parameters
    ----------
    module : Module or Expr
        A module; or an expression, whose free variables are parameters.
    *args, **named
        Arrays, or tuples of arrays, by position or by the names of the parameters.
    function : str
        Name of the function.

    Returns
    -------
    array or tuple
        The result, of the dtype and shape of its type.

    Raises
    ------
    CallError
        If an argument is missing or does not fit its type.
    GraphError
        If the types of the module do not fit.

    Examples
    --------
    >>> from dlcompiler.graph.ir import TensorType, Var
    >>> x = Var("x", TensorType((3,)))
    >>> evaluate(x * 2.0 + 1.0, [1, 2, 3])
    array([3., 5., 7.], dtype=float32)
    """
    whole = module if isinstance(module, Module) else Module.from_expr(module)
    types = types_of(whole)
    chosen = whole[function]
    frame = _Frame(None)
    values = _bound(chosen, args, named, function)
    for param, value in zip(chosen.params, values, strict=True):
        frame.values[param] = _argument(value, types[param], param.name, function)
    running = _Interpreter(whole, types)
    result = running.run(chosen.body, frame)
    return _plain(running.fitting(result, chosen.body, f"result of {function}"))


def _bound(
    function: Function, args: Sequence[Any], named: Mapping[str, Any], name: str
) -> list[Any]:
    """Return one value for each parameter, in order."""
    names = [param.name for param in function.params]
    rest = names[len(args) :]
    unknown = [key for key in named if key not in rest]
    missing = [key for key in rest if key not in named]
    if len(args) > len(names) or unknown or missing:
        raise CallError(
            f"call {name}", "the arguments do not fit the parameters",
            got=f"{len(args)} by position, {', '.join(named) or 'none'} by name",
            expected=", ".join(names) or "none",
        )  # fmt: skip
    return [*args, *(named[key] for key in rest)]


def _argument(value: Any, kind: Type, name: str, function: str) -> Value:
    """Return an argument as a value of its type; refuse one that does not fit."""
    match kind:
        case TupleType(fields) if isinstance(value, list | tuple) and len(value) == len(fields):
            pairs = enumerate(zip(value, fields, strict=True))
            return tuple(_argument(v, k, f"{name}.{i}", function) for i, (v, k) in pairs)
        case TensorType(shape, dtype):
            is_array = isinstance(value, np.ndarray | np.generic)
            try:
                array = np.asarray(value) if is_array else array_of(value, dtype)
            except DLCompilerError as error:
                raise CallError(
                    f"call {function}", f"argument {name} does not fit: {error.problem}",
                    got=error.got, expected=repr(kind), because=error.because,
                ) from None  # fmt: skip
            if array.dtype == dtypes.to_numpy(dtype) and _fits(array.shape, shape):
                return array
            found: object = f"{array.dtype}{list(array.shape)}"
        case _:
            found = type(value).__name__
    raise CallError(
        f"call {function}", f"argument {name} does not fit", got=found, expected=repr(kind)
    )


def _fits(shape: Sequence[int], expected: Sequence[object]) -> bool:
    return len(shape) == len(expected) and all(
        extent == known or not isinstance(known, int)
        for extent, known in zip(shape, expected, strict=True)
    )


def _has_type(value: Value, kind: Type) -> bool:
    """Tell whether a value has the extents of its type."""
    if isinstance(value, tuple):
        assert isinstance(kind, TupleType), kind
        return all(map(_has_type, value, kind.fields))
    if isinstance(value, Closure):
        return True
    return isinstance(kind, TensorType) and _fits(value.shape, kind.shape)


def _plain(value: Value) -> Array | tuple[Any, ...]:
    if isinstance(value, Closure):
        raise GraphError("evaluate a graph", "the result is a function", hint="call it")
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


class _Interpreter:
    def __init__(self, module: Module, types: Types) -> None:
        self.module = module
        self.types = types
        self.globals = _Frame(None)

    def fitting(self, value: Value, node: Expr, what: str) -> Value:
        """Return a value of a node; refuse one whose extents are not those of its type.

        Inference takes an unknown extent as equal to a known one, which only a run can check.
        """
        if not _has_type(value, self.types[node]):
            raise GraphError(
                "evaluate a graph", f"{what}: the value is not of its type",
                got=repr(type_of_value(value)), expected=repr(self.types[node]),
            )  # fmt: skip
        return value

    def run(self, body: Expr, frame: _Frame) -> Value:
        """Compute a scope, and the scopes that it enters."""
        stack: list[_Running] = [self.scope(body, frame)]
        entered = next_entered = None
        value: Value | None = None
        while stack:
            try:
                # The first value that is sent to a generator must be None.
                entered, next_entered = stack[-1].send(value)  # type: ignore[arg-type]
            except StopIteration as stop:
                stack.pop()
                value = stop.value
                continue
            if len(stack) > MAX_CALLS:
                raise GraphError(
                    "evaluate a graph", f"more than {MAX_CALLS} calls inside each other",
                    hint="a recursive function may not end",
                )  # fmt: skip
            stack.append(self.scope(entered, next_entered))
            value = None
        assert value is not None
        return value

    def scope(self, root: Expr, frame: _Frame) -> _Running:
        """Compute the root of a scope; yield each scope that is entered, with its frame."""
        stack: list[Expr] = [root]
        while stack:
            node = stack[-1]
            if frame.find(node) is not None:
                stack.pop()
                continue
            missing = [n for n in _needed(node, frame) if frame.find(n) is None]
            if missing:
                stack += reversed(missing)
                continue
            value = yield from self.value(node, frame)
            if value is not None:
                frame.values[node] = value
        found = frame.find(root)
        assert found is not None
        return found

    def value(self, node: Expr, frame: _Frame) -> Generator[Any, Any, Value | None]:  # noqa: C901 - by node
        """Compute a node whose operands are known; None if it needs more first."""

        def known(operand: Expr) -> Any:
            return frame.find(operand)

        match node:
            case Constant(value):
                return value
            case Function():
                return Closure(node, frame)
            case GlobalVar():
                return Closure(self.module[node], self.globals)
            case Tuple(fields):
                return tuple(map(known, fields))
            case TupleGetItem(value, index):
                return known(value)[index]  # type: ignore[no-any-return]
            case Let(var, value, body):
                frame.values[var] = self.fitting(known(value), var, f"let {var.name}")
                return frame.find(body)
            case If(condition, then, otherwise):
                chosen = then if known(condition) else otherwise
                found = yield chosen, _Frame(frame)
                return self.fitting(found, node, "branch of an if")
            case Call(Op(), args):
                return value_of_call(node, [known(arg) for arg in args])
            case Call(callee, args):
                closure = known(callee)  # type: ignore[arg-type]  # the case above has the operators
                inner = _Frame(closure.frame)
                for param, arg in zip(closure.function.params, args, strict=True):
                    inner.values[param] = self.fitting(known(arg), param, f"argument {param.name}")
                found = yield closure.function.body, inner
                return self.fitting(found, node, "result of a function")
        raise GraphError("evaluate a graph", "a variable has no value", got=repr(node))


def _needed(node: Expr, frame: _Frame) -> Sequence[Expr]:
    """Return the operands without which a node cannot be computed."""
    match node:
        case Let(var, value, body):
            return (value,) if frame.find(var) is None else (body,)
        case If(condition):
            return (condition,)
        case Call(Op(), args) | Tuple(args):
            return args
        case Call(callee, args):
            return (callee, *args)  # type: ignore[arg-type]  # the case above has the operators
        case TupleGetItem(value):
            return (value,)
    return ()


def type_of_value(value: Value) -> Type:
    """Return the type of a value."""
    if isinstance(value, tuple):
        return TupleType(tuple(map(type_of_value, value)))
    if isinstance(value, Closure):
        raise GraphError("evaluate a graph", "a function is no operand of an operator")
    return _tensor_type(value.shape, value.dtype)


@lru_cache(maxsize=4096)
def _tensor_type(shape: tuple[int, ...], dtype: np.dtype[Any]) -> TensorType:
    """Return the type of an array; its checks were a quarter of the time of a long chain."""
    return TensorType(shape, dtypes.from_numpy(dtype))


def value_of_call(call: Call, values: Sequence[Value]) -> Value:
    """Return the value of a call of an operator.

    Parameters
    ----------
    call : Call
        The call; its arguments are not computed.
    values : sequence
        Values of its arguments.

    Raises
    ------
    GraphError
        If their types do not fit.
    """
    operator = find(call.op.name, call)  # type: ignore[union-attr]  # called for operators only
    inputs = tuple(map(type_of_value, values))
    attrs = operator.complete(call)
    try:
        kind = operator.result_type(call, inputs)
    except NotKnown:
        raise InternalError(describe(operator, call), "has no type for known inputs") from None
    try:
        with quiet():
            result = operator.evaluate(Result(attrs, inputs, kind), *values)
    except MemoryError as error:
        raise GraphError(
            describe(operator, call), "its value does not fit the memory", got=repr(kind),
            because=str(error),
        ) from None  # fmt: skip
    if type_of_value(result) != kind:
        raise InternalError(
            describe(operator, call), "its value is not of its type",
            got=repr(type_of_value(result)), expected=repr(kind),
        )  # fmt: skip
    return result
