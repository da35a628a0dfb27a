"""Counts of the roundings between the inputs of an expression and its result, for error bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dlcompiler import dtypes
from dlcompiler.ir import (
    Binary,
    Call,
    Cast,
    Compare,
    Expr,
    Reduce,
    Reducer,
    TensorHandle,
    TensorLoad,
    walk,
)
from dlcompiler.ir.functions import FUNCTION_ULPS, FUNCTIONS
from dlcompiler.ir.rewrite import Node, children
from dlcompiler.te.tensor import (
    ComputeOp,
    ExternOp,
    Operation,
    ScanOp,
    Tensor,
    outside_cells,
    post_order,
)

_FUNCTION_ROUNDINGS = 2 * FUNCTION_ULPS  # a unit in the last place is up to two unit roundoffs

# Unit roundoff [1] and smallest positive number of each float dtype.
_ROUNDING = {
    "float16": (2.0**-11, 2.0**-24),
    "bfloat16": (2.0**-8, 2.0**-133),
    "float32": (2.0**-24, 2.0**-149),
    "float64": (2.0**-53, 2.0**-1074),
}


class Rounding:
    """Roundings in the expression of a tensor, and in all that it depends on."""

    def __init__(self, output: Tensor) -> None:
        self.unit, self.tiny = coarsest_rounding(output)
        """Unit roundoff and smallest positive number of the least precise float dtype."""
        self._depths = rounding_depths(output)
        self.depth = self._depths[output]
        """Roundings on the longest path from an input to the tensor; [1]."""
        self._memo: dict[int, int] = {}

    def error(self, expr: Expr) -> float:
        """Return the bound of an expression's error, relative to its magnitude."""
        return self.unit * self.depth_of(expr)

    def depth_of(self, expr: Expr) -> int:
        """Return the number of roundings on the longest path to an expression."""
        return _depth(expr, self._depths, self._memo)

    def lost(self, dtype: str) -> float:
        """Return the magnitude whose rounding error is as large as the loss by an underflow."""
        return _ROUNDING[dtypes.element(dtype)][1] / self.unit


def may_underflow(expr: Expr) -> bool:
    """Tell whether the result of a node may be a subnormal number, or underflow to 0."""
    if isinstance(expr, Binary):
        return expr.op in ("mul", "div")
    return isinstance(expr, Call | Cast) and _own_roundings(expr) > 0


MAX_DEPTH = 2**53
"""Limit of a depth, at which a bound says nothing: in a scan, each step may double the depth."""


def rounding_depth(output: Tensor) -> int:
    """Count the roundings on the longest path from an input to `output`.

    An operation, or an inexact conversion to a float, counts 1; a function counts 8 (4 units in the
    last place); a sum over n elements counts n; a choice (maximum, selection) counts 0. For a
    product or a quotient, the counts of both operands are added, since relative errors add up.
    `te.extern` counts as a sum over all its inputs. Integers are exact.

    Parameters
    ----------
    output : Tensor
        The tensor; its extents must be numbers.

    Returns
    -------
    int
        ``K`` in the tolerance ``K * u * absolute_bound(output, arrays)``, where ``u`` is the unit
        roundoff (2**-24 for float32); [1].
    """
    return rounding_depths(output)[output]


def rounding_depths(output: Tensor) -> dict[TensorHandle, int]:
    """Return the `rounding_depth` of a tensor, and of all that it depends on."""
    depths: dict[TensorHandle, int] = {}
    for op in outside_cells(post_order([output])):
        if isinstance(op, ScanOp):
            _add_scan(op, depths)
        else:
            _add_stage(op, depths)
    return depths


def _add_stage(op: Operation, depths: dict[TensorHandle, int]) -> None:
    bodies = op.bodies if isinstance(op, ComputeOp) else ()
    own = _extern_depth(op, depths) if isinstance(op, ExternOp) else 0
    depths.update((t, own if dtypes.is_float(t.dtype) else 0) for t in op.outputs)
    depths.update((t, _depth(b, depths, {})) for t, b in zip(op.outputs, bodies, strict=False))


def _add_scan(scan: ScanOp, depths: dict[TensorHandle, int]) -> None:
    """Add the depths of a scan: repeat its step until they no longer change or the scan ends."""
    now = [depths[init] for init in scan.inits]
    _add_step(scan, now, depths)  # tensors of the cell get depths even if there is no step
    for _ in range(scan.scan_axis.static_extent):
        _add_step(scan, now, depths)
        last, now = now, [
            min(max(old, depths[update]), MAX_DEPTH)
            for old, update in zip(now, scan.updates, strict=True)
        ]  # fmt: skip
        if now == last:
            break
    depths.update(zip(scan.outputs, now, strict=True))


def _add_step(scan: ScanOp, states: Sequence[int], depths: dict[TensorHandle, int]) -> None:
    depths.update(zip(scan.states, states, strict=True))
    for op in scan.cell:
        _add_stage(op, depths)


def _extern_depth(op: ExternOp, depths: Mapping[TensorHandle, int]) -> int:
    """Return an assumed depth: each element counts as a sum over all elements of the inputs."""
    elements = sum(math.prod(tensor.static_shape) for tensor in op.input_tensors)
    return max((depths[tensor] for tensor in op.input_tensors), default=0) + elements + 1


def coarsest_rounding(output: Tensor) -> tuple[float, float]:
    """Return the unit roundoff and the smallest number of the least precise float dtype in use."""
    computed = (op for op in post_order([output]) if isinstance(op, ComputeOp))
    bodies = [body for op in computed for body in (*op.bodies, *_combinations(op.body))]
    nodes = [node for body in bodies for node in walk(body) if isinstance(node, Expr)]
    kinds = [dtypes.element(node.dtype) for node in nodes if _own_roundings(node)]
    externs = (op for op in post_order([output]) if isinstance(op, ExternOp))
    kinds += [t.dtype for op in externs for t in op.outputs if dtypes.is_float(t.dtype)]
    return max((_ROUNDING[kind] for kind in kinds), default=(0.0, 0.0))


def _combinations(body: Expr) -> tuple[Expr, ...]:
    """Return the expressions of a user's reducer; none for other bodies."""
    return body.reducer.results if isinstance(body, Reduce) else ()


def rounds(expr: Expr) -> bool:
    """Tell whether anything in an expression rounds a float."""
    return any(_own_roundings(node) for node in walk(expr))


def _own_roundings(node: Node) -> int:
    if not isinstance(node, Expr):
        return 0
    if not dtypes.is_float(node.dtype):
        return 0
    match node:
        case Reduce(Reducer(op="add" | "mul"), _, axes):
            return math.prod(axis.static_extent for axis in axes)
        case Reduce(Reducer(op=None), _, axes):
            count = sum(_own_roundings(part) for r in _combinations(node) for part in walk(r))
            return count * math.prod(axis.static_extent for axis in axes)
        case Binary(op, _, _):
            return int(op not in ("min", "max"))
        case Cast(value, dtype):
            is_wider = dtypes.is_float(value.dtype) and dtypes.bits(value.dtype) < dtypes.bits(
                dtype
            )
            return int(not is_wider)
        case Call(name, _, _):
            return 0 if FUNCTIONS[name].is_exact else _FUNCTION_ROUNDINGS
    return 0


def _depth(expr: Expr, tensors: dict[TensorHandle, int], memo: dict[int, int]) -> int:
    if not dtypes.is_float(expr.dtype):
        return 0
    if isinstance(expr, TensorLoad):
        return tensors[expr.tensor]
    if id(expr) not in memo:
        below = [
            _depth(child, tensors, memo) for child in children(expr) if isinstance(child, Expr)
        ]
        memo[id(expr)] = _own_roundings(expr) + _joined_depth(expr, below)
    return memo[id(expr)]


def _joined_depth(expr: Expr, below: Sequence[int]) -> int:
    """Return the roundings of the operands of a node: those of factors are added."""
    match expr:
        case Binary("mul" | "div", _, _):
            return sum(below)
        case Reduce(Reducer(op="mul"), _, axes):
            return max(below) * math.prod(axis.static_extent for axis in axes)
    return max(below, default=0)


_DECIDING = frozenset({
    "ceil", "floor", "fmod", "from_bits", "nearbyint", "round", "sort_key", "tf32", "to_bits",
    "trunc",
})  # fmt: skip
"""Functions that are not continuous."""


def rounding_decides(outputs: Sequence[Tensor]) -> bool:
    """Tell whether rounding may change more than the last digits of a result.

    This is so if a float with rounding errors is compared, rounded to a whole number or converted
    to an integer, and in a user's reducer that compares floats: among equal values, the order
    decides.

    Parameters
    ----------
    outputs : sequence of Tensor
        The results of the expression.
    """
    for output in outputs:
        rounding = Rounding(output)
        for op in post_order([output]):
            bodies = op.bodies if isinstance(op, ComputeOp) else ()
            nodes = (node for body in bodies for node in walk(body))
            if any(_is_decided(node, rounding) for node in nodes):
                return True
            combined = (node for body in bodies for r in _combinations(body) for node in walk(r))
            if any(isinstance(n, Compare) and dtypes.is_float(n.a.dtype) for n in combined):
                return True
    return False


def _is_decided(node: Node, rounding: Rounding) -> bool:
    match node:
        case Compare(_, a, b) if dtypes.is_float(a.dtype):
            return rounding.depth_of(a) + rounding.depth_of(b) > 0
        case Call(name, args, _) if name in _DECIDING:
            return any(rounding.depth_of(arg) for arg in args)
        case Cast(value, dtype) if dtypes.is_float(value.dtype) and not dtypes.is_float(dtype):
            return rounding.depth_of(value) > 0
    return False
