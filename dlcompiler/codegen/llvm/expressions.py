"""Write expressions; each node is written once per statement, and its value is shared.

If an `IfThenElse` chooses a vector expression only in some lanes, it is still computed for all
lanes, *under a mask*. Only loads test the mask, because no other operation can trap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dlcompiler import dtypes
from dlcompiler.codegen.llvm import arithmetic, calls, functions, memory
from dlcompiler.codegen.llvm.addresses import Addresses, splat
from dlcompiler.codegen.llvm.conversions import convert, convert_clamped, is_inside
from dlcompiler.codegen.llvm.lanes import first_lane, is_uniform, progression
from dlcompiler.codegen.llvm.transposes import Column, find_columns
from dlcompiler.codegen.llvm.types import constant, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.codegen.operands import write_operands
from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Load,
    Logical,
    Not,
    Ramp,
    Select,
    Store,
    Var,
    walk,
)
from dlcompiler.ir.operations import DIVISIONS

MAX_RECURSION = 50
"""Depth beyond which operands are written without recursion, which Python limits."""


class Expressions:
    """Writes the expressions of one function.

    Attributes
    ----------
    variables : dict of Var to str
        The operand of each loop variable in scope.
    addresses : Addresses
        The addresses of buffers.
    columns : dict of int to Column
        Loads, by ``id``, that are columns of a block that is read by rows.
    """

    def __init__(self, w: Function) -> None:
        self.w = w
        self.variables: dict[Var, str] = {}
        self.addresses = Addresses(w, self.value)
        self.columns: dict[int, Column] = {}
        # By `id` of the node. The node is kept with its value, so that no new node gets its id.
        self._values: dict[int, tuple[Expr, str]] = {}
        self._mask: memory.Mask | None = None
        self._depth = 0

    def start_run(self, stores: Sequence[Store]) -> None:
        """Find the columns read by a run of stores, before the first store is written."""
        self.columns = find_columns(stores, self.addresses)

    def start_statement(self) -> None:
        """Drop the values of the last statement: stores may have changed memory since."""
        self._values = {}

    def value(self, node: Expr) -> str:
        """Return the operand of `node`; write it if this statement has not computed it yet."""
        if isinstance(node, Const):
            return constant(node.value, node.dtype)
        if isinstance(node, Var):
            return self._variable(node)
        known = self._values.get(id(node))
        if known is not None:
            return known[1]
        if self._depth >= MAX_RECURSION:
            write_operands(node, self._values, self.value)
        self._depth += 1
        operand = self._write(node)
        self._depth -= 1
        self._values[id(node)] = node, operand
        return operand

    def _variable(self, node: Var) -> str:
        if node not in self.variables:
            raise InternalError("generate LLVM code", f"{node.name} has no value here")
        return self.variables[node]

    def _write(self, node: Expr) -> str:  # noqa: C901 - one case per node
        w, write = self.w, self.value
        match node:
            case Binary(op, a, b):
                if op in DIVISIONS:
                    divisor = _integer_constant(b)
                    return arithmetic.divide(w, op, a.dtype, write(a), write(b), divisor)
                return arithmetic.binary(w, op, a.dtype, write(a), write(b))
            case Load(_, _, None):
                if id(node) in self.columns and self._mask is None:
                    return self.columns[id(node)].operand(self.addresses)
                return memory.load(self.addresses, node, self._mask)
            case Load():
                return self._predicated(node)
            case Broadcast(Const(value, _), _):
                return constant(value, node.dtype)
            case Broadcast(value, lanes):
                return splat(w, write(value), value.dtype, lanes)
            case Compare(op, a, b):
                return self._compare_lanes(node) or arithmetic.compare(
                    w, op, a.dtype, write(a), write(b)
                )
            case Cast(Binary("min", Binary("max", _, low), high) as value, dtype) if is_inside(
                low, high, dtype
            ):
                return convert_clamped(w, write(value), value.dtype, dtype)
            case Cast(value, dtype):
                return convert(w, write(value), value.dtype, dtype)
            case Ramp():
                return self._ramp(node)
            case Select(condition, a, b):
                return self._select(condition, node.dtype, write(a), write(b))
            case IfThenElse(condition, a, b):
                return self._choice(condition, a, b)
            case Logical():
                return self._logical(node)
            case Not(value):
                type_ = value_type(value.dtype)
                return w.pure(f"xor {type_} {write(value)}, {constant(True, value.dtype)}")
            case Call("exp" as name, (Binary("min", x, bound),), _) if functions.is_own(
                name, x.dtype
            ) and _is_zero(bound):
                return functions.call(w, f"{name}_below_1", x.dtype, (write(x),))
            case Call(name, arguments, _):
                dtypes_ = tuple(argument.dtype for argument in arguments)
                return calls.call(w, name, dtypes_, tuple(map(write, arguments)))
        raise InternalError("generate LLVM code", f"unknown expression {type(node).__name__}")

    def _ramp(self, node: Ramp) -> str:
        w, element = self.w, dtypes.element(node.dtype)
        if isinstance(node.stride, Const):
            steps = _multiples(node.stride.value, node.dtype)
        else:
            stride = splat(w, self.value(node.stride), element, node.lanes)
            steps = arithmetic.binary(w, "mul", node.dtype, _multiples(1, node.dtype), stride)
        base = splat(w, self.value(node.base), element, node.lanes)
        return arithmetic.binary(w, "add", node.dtype, base, steps)

    def _compare_lanes(self, node: Compare) -> str | None:
        """Write a comparison of indices whose lanes differ by a constant step; None for others.

        One scalar subtraction gives the limit of the lanes that pass. The limit is clamped to the
        range of the steps, so that lanes of 32 bits suffice: half as many vectors as with 64 bits.
        """
        w, lanes = self.w, dtypes.lanes(node.dtype)
        if lanes == 1 or dtypes.element(node.a.dtype) != "index":
            return None
        left, right = progression(node.a), progression(node.b)
        if left is None or right is None or left[1] == right[1]:
            return None
        step = left[1] - right[1]
        if abs(step) * lanes >= 2**31:
            return None
        low, high = sorted((0, step * (lanes - 1)))
        distance = w.pure(f"sub nsw i64 {self.value(right[0])}, {self.value(left[0])}")
        at_most = arithmetic.binary(w, "min", "index", distance, str(high + 1))
        limit = arithmetic.binary(w, "max", "index", at_most, str(low - 1))
        narrow = w.pure(f"trunc i64 {limit} to i32")
        dtype = f"int32x{lanes}"
        limits = splat(w, narrow, "int32", lanes)
        return arithmetic.compare(w, node.op, dtype, _multiples(step, dtype), limits)

    # -- conditions on memory -----------------------------------------------------------------

    def _predicated(self, node: Load) -> str:
        """Write a load under a predicate; a jump skips a scalar load whose predicate is false."""
        assert node.predicate is not None
        load = Load(node.buffer, node.indices)
        mask = self.value(node.predicate)
        if dtypes.lanes(node.dtype) == 1:
            return self._branch(mask, node.dtype, load, constant(0, node.dtype))
        return self._value_under(load, mask)

    def store(self, node: Store) -> None:
        """Write an assignment."""
        value = self.value(node.value)
        if node.predicate is None:
            memory.store(self.addresses, node, value, None)
            return
        mask = self.value(node.predicate)
        lanes = dtypes.lanes(node.predicate.dtype)
        if lanes > 1:
            active = memory.Mask(mask, lanes)
            with self._scope(active):
                memory.store(self.addresses, node, value, active)
            return
        w = self.w
        then, end = w.name("then"), w.name("endif")
        w.branch(mask, then, end)
        w.open(then)
        with self._scope(self._mask):
            memory.store(self.addresses, node, value, None)
        w.jump(end)
        w.open(end)

    # -- choices ------------------------------------------------------------------------------

    def _select(self, condition: Expr, dtype: str, a: str, b: str) -> str:
        chosen = self.value(condition)
        if dtypes.lanes(condition.dtype) == 1:
            return arithmetic.branch_free_select(self.w, dtype, chosen, a, b)
        return arithmetic.select(self.w, dtype, condition.dtype, chosen, a, b)

    def _choice(self, condition: Expr, a: Expr, b: Expr) -> str:
        """Write an `IfThenElse`."""
        if not (_loads_or_calls(a) or _loads_or_calls(b)):
            return self._select(condition, a.dtype, self.value(a), self.value(b))
        if is_uniform(condition):
            return self._branch(self.value(first_lane(condition)), a.dtype, a, b)
        decided = self.value(condition)
        yes = self._value_under(a, decided)
        no = self._value_under(b, self._inverted(decided, condition.dtype))
        return self._select(condition, a.dtype, yes, no)

    def _branch(self, condition: str, dtype: str, a: Expr | str, b: Expr | str) -> str:
        """Write a choice as a branch; a side given as `str` is a constant operand."""
        w = self.w
        then, otherwise, end = w.name("then"), w.name("else"), w.name("endif")
        w.branch(condition, then, otherwise)
        incoming = []
        for label, side in ((then, a), (otherwise, b)):
            w.open(label)
            with self._scope(self._mask):
                value = side if isinstance(side, str) else self.value(side)
            incoming.append((value, w.block))
            w.jump(end)
        return w.join(end, value_type(dtype), incoming)

    def _logical(self, node: Logical) -> str:
        """Write ``and`` or ``or``; always compute the second side unless it loads or calls."""
        w, dtype = self.w, node.dtype
        if not _loads_or_calls(node.b):
            return w.pure(
                f"{node.op} {value_type(dtype)} {self.value(node.a)}, {self.value(node.b)}"
            )
        if is_uniform(node.a):
            scalar = self.value(first_lane(node.a))
            if node.op == "and":
                return self._branch(scalar, dtype, node.b, constant(False, dtype))
            return self._branch(scalar, dtype, constant(True, dtype), node.b)
        first = self.value(node.a)
        mask = first if node.op == "and" else self._inverted(first, dtype)
        second = self._value_under(node.b, mask)
        return w.pure(f"{node.op} {value_type(dtype)} {first}, {second}")

    def _value_under(self, expr: Expr, mask: str) -> str:
        """Write `expr` for the lanes that are active both here and in `mask`."""
        active = memory.Mask(mask, dtypes.lanes(expr.dtype))
        if self._mask is not None:
            both = self.w.pure(f"and {active.type} {self._mask.operand}, {mask}")
            active = memory.Mask(both, active.lanes)
        with self._scope(active):
            return self.value(expr)

    def _inverted(self, mask: str, dtype: str) -> str:
        return self.w.pure(f"xor {value_type(dtype)} {mask}, {constant(True, dtype)}")

    @contextmanager
    def _scope(self, mask: memory.Mask | None) -> Iterator[None]:
        """Write code that may not run: its values are dropped afterwards."""
        values, outer = self._values, self._mask
        self._values, self._mask = dict(values), mask
        try:
            yield
        finally:
            self._values, self._mask = values, outer


def _multiples(step: float, dtype: str) -> str:
    """Return the constant ``<0, step, 2 * step, …>``."""
    type_ = value_type(dtypes.element(dtype))
    numbers = (constant(lane * step, dtypes.element(dtype)) for lane in range(dtypes.lanes(dtype)))
    return f"<{', '.join(f'{type_} {number}' for number in numbers)}>"


def _integer_constant(expr: Expr) -> int | None:
    """Return the value of an integer constant, equal in all lanes; None for others."""
    match expr:
        case Const(value, _) | Broadcast(Const(value, _), _) if not isinstance(value, float):
            return int(value)
    return None


def _is_zero(expr: Expr) -> bool:
    match expr:
        case Const(value, _) | Broadcast(Const(value, _), _):
            return value == 0
    return False


def _loads_or_calls(expr: Expr) -> bool:
    """Tell whether `expr` contains a load, which may trap, or a call, which is slow."""
    return any(isinstance(node, Load | Call) for node in walk(expr))
