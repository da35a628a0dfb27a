"""Count what the warps of a launch do by running each thread: the oracle of the counters.

This walk shares no code with `dlcompiler.simulate.gpu`. It runs through every block, warp, thread
and iteration, so it is for small programs.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer
from dlcompiler.codegen.gpu.lanes import aligned_start
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    IntrinsicCall,
    Let,
    Load,
    Logical,
    Not,
    Prefetch,
    Ramp,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
)  # fmt: skip
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.ir.operations import COMPARISONS, fold_index
from dlcompiler.ir.rewrite import children, walk

Env = dict[Var, Any]
Lanes = list[Env]
"""The variables of each active thread of a warp."""


class DataDecidesError(Exception):
    """Raised where values that the program computes decide what it executes."""


class Enumeration:
    """What the warps of a launch do.

    Parameters
    ----------
    thread
        A `ThreadProgram`.
    loops
        Loops of the host around the launch.
    numbers
        Values of symbols.
    arrays
        Values of arrays that decide indices or conditions.
    """

    def __init__(
        self,
        thread: Any,
        loops: Sequence[For] = (),
        numbers: Mapping[Var, int] | None = None,
        arrays: Mapping[Buffer, Any] | None = None,
    ) -> None:
        self.thread, self.arrays = thread, arrays or {}
        self.shared = set(thread.shared)
        self.own: set[Buffer] = set()
        self.instructions: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        """Kind -> executions by warps, and by threads."""
        self.accesses: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * 6)
        """(buffer, is_write, origin, number, bytes) -> the numbers of a tally."""
        for env in self._iterations(list(loops), dict(numbers or {})):
            self._launch(env)

    def _iterations(self, loops: list[For], env: Env) -> Iterable[Env]:
        if not loops:
            yield env
            return
        for n in range(self.number(loops[0].extent, env)):
            yield from self._iterations(loops[1:], {**env, loops[0].var: n})

    def _launch(self, env: Env) -> None:
        axes = dict(self.thread.axes)
        sizes = {tag: self.number(self.thread.extents[tag], env) for tag in axes}
        blocks = [tag for tag in axes if tag.startswith("blockIdx")]
        threads = [f"threadIdx.{axis}" for axis in "zyx" if f"threadIdx.{axis}" in axes]
        for block in itertools.product(*(range(sizes[tag]) for tag in blocks)):
            place = {**env, **{axes[tag]: at for tag, at in zip(blocks, block, strict=True)}}
            everyone = [
                {**place, **{axes[tag]: at for tag, at in zip(threads, thread, strict=True)}}
                for thread in itertools.product(*(range(sizes[tag]) for tag in threads))
            ]
            self.waits = len(everyone) > 1
            for first in range(0, len(everyone), 32):
                warp = everyone[first : first + 32]
                for lane, its in enumerate(warp):
                    its["lane"] = lane  # type: ignore[index]
                self.run(self.thread.body, warp)

    # -- statements -------------------------------------------------------------------------------

    def run(self, stmt: Stmt, lanes: Lanes) -> None:
        if not lanes:
            return
        match stmt:
            case Seq(statements):
                for each in statements:
                    self.run(each, lanes)
            case For():
                self.begin(stmt, stmt.extent)
                self.compute(stmt.extent, lanes, ())
                ends = [self.number(stmt.extent, env) for env in lanes]
                for n in range(max(ends)):
                    inside = [{**env, stmt.var: n} for env, end in zip(lanes, ends, strict=True)
                              if n < end]  # fmt: skip
                    if stmt.kind != "unrolled":
                        self.executed("branch", inside)
                    self.run(stmt.body, inside)
            case If(condition, then, otherwise):
                self.begin(stmt, condition)
                self.compute(condition, lanes, ())
                self.executed("branch", lanes)
                self.run(then, [env for env in lanes if self.number(condition, env)])
                if otherwise is not None:
                    self.run(otherwise, [env for env in lanes if not self.number(condition, env)])
            case Allocate(buffer, body):
                self.own.add(buffer)
                self.run(body, lanes)
            case Let(var, value, body):
                self.begin(stmt, value)
                self.compute(value, lanes, ())
                needed = not dtypes.is_float(dtypes.element(var.dtype))
                self.run(body, [{**env, var: self.bound(value, env) if needed else None}
                                for env in lanes])  # fmt: skip
            case Store():
                self.begin(stmt, stmt.value)
                self.compute(stmt.value, lanes, ())
                for index in stmt.indices:
                    self.compute(index, lanes, ())
                if stmt.predicate is not None:
                    self.compute(stmt.predicate, lanes, ())
                self.access(stmt, lanes)
            case Assert(condition):
                self.begin(stmt, condition)
                self.compute(condition, lanes, ())
                self.executed("branch", lanes)
            case Barrier():
                if self.waits:
                    self.executed("barrier", lanes)
            case IntrinsicCall(body=body):
                self.run(body, lanes)
            case Prefetch():
                pass
            case _:
                raise NotImplementedError(stmt)

    def bound(self, value: Expr, env: Env) -> Any:
        """Return what a variable stands for in one thread: of a vector, a number for each lane."""
        count = dtypes.lanes(value.dtype)
        if count == 1:
            return self.number(value, env)
        return [self.number(value, env, lane) for lane in range(count)]

    def begin(self, stmt: Stmt, value: Expr) -> None:
        self.statement, self.root = stmt, value
        self.done: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        self.numbers: dict[Any, int] = defaultdict(int)

    def executed(self, kind: str, lanes: Lanes, times: int = 1) -> None:
        if lanes:
            self.instructions[kind][0] += times
            self.instructions[kind][1] += times * len(lanes)

    # -- values -----------------------------------------------------------------------------------

    def compute(self, expr: Expr, lanes: Lanes, path: tuple[Any, ...]) -> None:
        """Count what the computation of a value executes."""
        before = self.done[id(expr)]
        if isinstance(expr, Const | Var) or any(path[: len(other)] == other for other in before):
            return  # it was computed for all these threads
        before.append(path)
        dtype, width = dtypes.element(expr.dtype), dtypes.lanes(expr.dtype)

        def chosen(condition: Expr, which: bool) -> Lanes:
            return [env for env in lanes if bool(self.number(condition, env)) == which]

        match expr:
            case Load():
                for index in expr.indices:
                    self.compute(index, lanes, path)
                if expr.predicate is not None:
                    self.compute(expr.predicate, lanes, path)
                self.access(expr, lanes)
                return
            case IfThenElse(condition, a, b) if dtypes.lanes(condition.dtype) == 1:
                self.compute(condition, lanes, path)
                self.executed("branch", lanes)
                self.compute(a, chosen(condition, True), (*path, id(expr), 0))
                self.compute(b, chosen(condition, False), (*path, id(expr), 1))
                return
            case Logical(op, a, b) if width == 1:
                self.compute(a, lanes, path)
                self.compute(b, chosen(a, op == "and"), (*path, id(expr), 1))
                return
            case Binary("add" | "sub", a, b) if dtypes.is_float(dtype):
                products = [p for p in (a, b) if isinstance(p, Binary) and p.op == "mul"]
                self.executed(f"{dtype} {'fma' if products else 'add'}", lanes, width)
                rest = [p for p in (a, b) if not products or p is not products[0]]
                if products and a is b:
                    rest = [a]
                for each in (*rest, *((products[0].a, products[0].b) if products else ())):
                    self.compute(each, lanes, path)
                return
        if kind := self.kind(expr, dtype):
            self.executed(kind, lanes, width)
        for child in children(expr):
            if isinstance(child, Expr):
                self.compute(child, lanes, path)

    def kind(self, expr: Expr, dtype: str) -> str:
        is_int = dtypes.is_int(dtype)
        match expr:
            case Binary(op) if dtypes.is_float(dtype):
                return f"{dtype} {op if op in ('mul', 'div') else 'other'}"
            case Binary() if is_int:
                return "integer"
            case Compare(_, a) if dtypes.is_float(a.dtype):
                return f"{dtypes.element(a.dtype)} other"
            case Compare(_, a) if dtypes.is_int(dtypes.element(a.dtype)):
                return "integer"
            case Select():
                return f"{dtype} other" if dtypes.is_float(dtype) else "integer" if is_int else ""
            case Cast(value):
                return "" if dtypes.is_index(dtype) or value.dtype == expr.dtype else "convert"
            case Call("likely" | "assume_bounds"):
                return ""
            case Call(name, args):
                if name not in FUNCTIONS or not FUNCTIONS[name].is_exact:
                    return "special"
                source = dtypes.element(args[0].dtype)
                return f"{source} other" if dtypes.is_float(source) else "integer"
        return ""

    def number(self, expr: Expr, env: Env, lane: int = 0) -> Any:
        """Return the value of an index or a condition in one thread, at one lane of a vector."""
        match expr:
            case Const(value, _):
                return value
            case Var():
                return env[expr][lane] if isinstance(env[expr], list) else env[expr]
            case Ramp(base, stride, _):
                return self.number(base, env) + lane * self.number(stride, env)
            case Broadcast(value, _):
                return self.number(value, env)
            case Binary(op, a, b):
                return fold_index(op, self.number(a, env, lane), self.number(b, env, lane))
            case Compare(op, a, b):
                one, other = self.number(a, env, lane), self.number(b, env, lane)
                return bool(COMPARISONS[op].numbers(one, other))
            case Logical(op, a, b):
                first = bool(self.number(a, env, lane))
                if first != (op == "and"):
                    return first
                return bool(self.number(b, env, lane))
            case Not(value):
                return not self.number(value, env, lane)
            case Cast(value, _):
                return int(self.number(value, env, lane))
            case Select(condition, a, b) | IfThenElse(condition, a, b):
                side = a if self.number(condition, env, lane) else b
                return self.number(side, env, lane)
            case Call("likely" | "assume_bounds", args, _):
                return self.number(args[0], env, lane)
            case Load(buffer, indices, _):
                if buffer not in self.arrays or dtypes.is_float(buffer.dtype):
                    raise DataDecidesError
                place = tuple(self.number(index, env, lane) for index in indices)
                return int(self.arrays[buffer][place])
        raise DataDecidesError

    # -- memory -----------------------------------------------------------------------------------

    def access(self, node: Load | Store, lanes: Lanes) -> None:
        buffer, is_write = node.buffer, isinstance(node, Store)
        number = self.numbers[buffer, is_write]
        self.numbers[buffer, is_write] += 1
        space = "shared" if buffer in self.shared else "local" if buffer in self.own else "global"
        origin = getattr(self.statement, "origin", ())
        size = dtypes.bytes_of(buffer.dtype)
        width = lanes_of(node.indices)

        def offset(env: Env, lane: int) -> int:
            places = (self.number(index, env, lane) for index in node.indices)
            return sum(at * int(self.number(stride, env) if isinstance(stride, Expr) else stride)
                       for at, stride in zip(places, buffer.strides, strict=True))  # fmt: skip

        at_once = width if self.is_vector(node, width, size) else 1
        for lane in range(0, width, at_once):
            active = lanes
            if node.predicate is not None:
                active = [env for env in lanes if self.number(node.predicate, env, lane)]
            self.executed(f"{'store' if is_write else 'load'} {space}", active)
            if space == "local" or not active:
                continue
            bytes_ = size * at_once
            touched = [(env["lane"], size * offset(env, lane)) for env in active]  # type: ignore[index]
            tally = self.accesses[buffer, is_write, origin, number, bytes_]
            for n, cost in enumerate(_cost(touched, bytes_, space)):
                tally[n] += cost

    def is_vector(self, node: Load | Store, width: int, size: int) -> bool:
        """Tell whether the generated code accesses the lanes of a vector at once."""
        buffer = node.buffer
        if width not in (2, 4) or width * size > 16 or node.predicate is not None:
            return False
        if buffer.dtype in ("float16", "bfloat16", "bool"):
            return False
        if isinstance(node, Load):
            if any(isinstance(part, IfThenElse | Logical) for part in walk(self.root)):
                return False
            if isinstance(self.statement, Store) and lanes_of(self.statement.indices) != width:
                return False
        return aligned_start(buffer, node.indices, Analyzer({}, {})) is not None


def _cost(touched: list[tuple[int, int]], bytes_: int, space: str) -> tuple[int, ...]:
    """Return requests, threads, sectors, lines, wavefronts and the least number of these."""
    parts: dict[int, list[int]] = defaultdict(list)
    share = 32 // max(bytes_ // 4, 1)
    if space == "shared" and bytes_ > 4 and _is_paired(touched):
        share *= 2
    for lane, address in touched:
        parts[lane // share].append(address)
    if space == "global":
        sectors = sum(len({at // 32 for at in part}) for part in parts.values())
        lines = sum(len({at // 128 for at in part}) for part in parts.values())
        return 1, len(touched), sectors, lines, 0, 0
    passes = 0
    for part in parts.values():
        banks = defaultdict(set)
        for address in part:
            for word in range(address // 4, (address + bytes_ - 1) // 4 + 1):
                banks[word % 32].add(word)
        passes += max(len(words) for words in banks.values())
    return 1, len(touched), 0, 0, passes, len(parts)


def _is_paired(touched: list[tuple[int, int]]) -> bool:
    """Tell whether threads n and n ^ 1, or n and n ^ 2, read the same everywhere."""
    at = dict(touched)
    return any(
        all(at.get(lane ^ distance, address) == address for lane, address in touched)
        for distance in (1, 2)
    )
