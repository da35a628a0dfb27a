"""Store large weights as floats of 16 bits; kernels compute in float32 all the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.inference import infer_types
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Function,
    Module,
    Node,
    TensorType,
    Var,
    calls,
    children,
    named,
    nbytes,
    rewrite_from,
    substitute,
)
from dlcompiler.graph.passes.fusion.kernels import is_kernel_call
from dlcompiler.graph.passes.tools import attrs_of, call_like, decided, operator_of, with_log

NAME = "store_weights"
STORED = ("float16", "bfloat16")
LEAST_BYTES = 1 << 14
"""Smaller weights stay as they are: they are in the caches."""
WEIGHTS: Mapping[str, tuple[int, ...]] = {
    "nn.dense": (1,),
    "nn.matmul": (1,),
    "nn.batch_matmul": (1,),
    "nn.conv2d": (1,),
    "take": (0,),
    **dict.fromkeys(("nn.lstm", "nn.lstm_cell"), (3, 4)),
    **dict.fromkeys(("nn.gru", "nn.gru_cell", "nn.rnn", "nn.rnn_cell"), (2, 3)),
}
"""Operator -> its arguments that may be stored so: kernels convert them as they read them."""


def store_weights(
    module: Module, *, dtype: str = "", least_bytes: int = LEAST_BYTES,
    operators: Sequence[str] = tuple(WEIGHTS),
) -> Module:  # fmt: skip
    """Store large weights of kernels as floats of 16 bits, and convert them in the kernels.

    *Before*::

        %0 = fn (%p0, %p1, Primitive=1) {
          nn.dense(%p0, %p1)
        };
        %0(%x, meta[relay.Constant][0])

    *After*::

        %1 = fn (%p0, %p1, Primitive=1) {
          %0 = cast(%p1, dtype="float32");
          nn.dense(%p0, %0)
        };
        %1(%x, meta[relay.Constant][0])

    where the constant is of bfloat16, for ``dtype="bfloat16"``.

    Parameters
    ----------
    module : Module
        A module that `fuse_ops` made.
    dtype : {"", "float16", "bfloat16"}
        How weights of float32 are stored; "": as they are.
    least_bytes : int
        Smaller weights stay as they are; [byte].
    operators : sequence of str
        Operators whose weights are stored so.

    Raises
    ------
    GraphError
        If it is another dtype, or an operator has no such weights.

    Notes
    -----
    A weight ``w`` becomes ``w * (1 + d)`` with ``|d|`` at most ``2**-11`` (float16) or ``2**-9``
    (bfloat16); below ``2**-14``, float16 is off by at most ``2**-25``. Sums have the accuracy of
    float32. A weight that float16 does not hold, which would be infinite, stays as it is.
    """
    _check(dtype, least_bytes, operators)
    if not dtype:
        return module
    typed = infer_types(module)
    rewriter = _Rewriter(dtype, least_bytes, frozenset(operators))
    functions = {
        name: f if f.is_kernel else rewrite_from(f, rewriter.by_node)
        for name, f in typed.functions.items()
    }
    if all(functions[name] is typed.functions[name] for name in functions):
        return with_log(module, rewriter.log)
    return with_log(named(replace(typed, functions=functions)), rewriter.log)


def _check(dtype: object, least_bytes: object, operators: Sequence[str]) -> None:
    if dtype not in ("", *STORED):
        raise GraphError("store weights", "weights are not stored in this dtype", got=repr(dtype),
                         expected=" or ".join(STORED))  # fmt: skip
    if type(least_bytes) is not int:
        raise GraphError("store weights", "least_bytes is no number of bytes",
                         got=repr(least_bytes), expected="an int")  # fmt: skip
    if isinstance(operators, str) or not isinstance(operators, Collection):
        raise GraphError("store weights", "operators is no list of names", got=repr(operators),
                         expected='such as ("nn.dense",)')  # fmt: skip
    if unknown := [name for name in operators if name not in WEIGHTS]:
        raise GraphError("store weights", "an operator whose weights stay as they are",
                         got=repr(unknown[0]), expected=", ".join(WEIGHTS))  # fmt: skip


class _Rewriter:
    """Rewrites the kernels that read large weights."""

    def __init__(self, dtype: str, least_bytes: int, operators: frozenset[str]) -> None:
        self.dtype = dtype
        self.least_bytes = least_bytes
        self.operators = operators
        self.log: list[Decision] = []
        self._stored: dict[Node, Constant | None] = {}

    def by_node(self, old: Node, new: Node) -> Node:
        """Return a call of a kernel with stored weights; other nodes as they are."""
        if not is_kernel_call(new):
            return new
        function = new.op
        assert isinstance(function, Function)
        for reader in calls(function.body):
            name = operator_of(reader)
            if name in self.operators and not _is_depthwise(reader):
                places = [reader.args[n] for n in WEIGHTS[name]]
                new = self._with_stored(new, reader, places)
        return new

    def _with_stored(self, call: Call, reader: Call, weights: Sequence[Node]) -> Call:
        """Return a call whose kernel converts some of its parameters; all of them, or none."""
        function = call.op
        assert isinstance(function, Function)
        found: dict[int, Constant] = {}
        for weight in weights:
            if weight not in function.params or _readers(weight, function) != 1:
                return call
            place = function.params.index(weight)
            given = call.args[place]
            if not isinstance(given, Constant):
                return call
            made = self._made(given, reader)
            if made is None:
                return call
            found[place] = made
        return _converted(call, reader, found)

    def _made(self, constant: Constant, reader: Call) -> Constant | None:
        """Return a weight as it is stored; None if it stays as it is."""
        if constant not in self._stored:
            self._stored[constant] = self._decided(constant, reader)
        return self._stored[constant]

    def _decided(self, constant: Constant, reader: Call) -> Constant | None:
        kind = constant.type
        if kind.dtype != "float32" or nbytes(kind) < self.least_bytes:
            return None
        with np.errstate(over="ignore"):
            narrow = constant.value.astype(dtypes.to_numpy(self.dtype))
        if not np.isfinite(narrow.astype(np.float32)).all():
            reason = f"the weights of {reader.name} are not all finite as {self.dtype}"
            self.log.append(decided(NAME, reader, "not rewritten", "too large", reason))
            return None
        saved = nbytes(kind) // 2
        reason = f"the weights of {reader.name} are stored as {self.dtype}"
        self.log.append(decided(NAME, reader, "rewritten", "large weight", reason, saved=saved))
        return Constant(narrow)


def _is_depthwise(call: Call) -> bool:
    """Tell whether a call is a convolution with a filter for each channel."""
    return operator_of(call) == "nn.conv2d" and attrs_of(call)["groups"] > 1


def _readers(param: Node, function: Function) -> int:
    """Return how many operands of a kernel are a parameter."""
    return sum(children(each).count(param) for each in calls(function.body))


def _converted(call: Call, reader: Call, stored: Mapping[int, Constant]) -> Call:
    """Return the call of a kernel that gets stored weights."""
    function = call.op
    assert isinstance(function, Function)
    params, args = list(function.params), list(call.args)
    values: dict[Var, Expr] = {}
    for n, (place, constant) in enumerate(stored.items()):
        old = params[place]
        assert isinstance(old.type, TensorType)
        params[place] = Var(old.name, constant.type)
        args[place] = constant
        suffix = f"stored{n or ''}"
        values[old] = call_like(reader, "cast", params[place], suffix=suffix, dtype="float32")
    body = substitute(function.body, values)
    return replace(call, op=replace(function, params=tuple(params), body=body), args=tuple(args))
