"""The verifier: what a lowered function must satisfy, between any two passes."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.errors import InternalError
from dlcompiler.ir.expr import (
    Binary,
    Compare,
    Expr,
    IfThenElse,
    Load,
    Logical,
    Reduce,
    Select,
    TensorLoad,
    Var,
)
from dlcompiler.ir.func import PrimFunc
from dlcompiler.ir.printer import format_store
from dlcompiler.ir.rewrite import walk
from dlcompiler.ir.stmt import Allocate, Buffer, For, If, Origin, Seq, StepRef, Stmt, Store


def verify_func(func: PrimFunc, after: str = "") -> None:
    """Check that `func` is well formed.

    Variables are bound by exactly one enclosing loop, buffers are parameters or allocated around
    their use, ranks and dtypes agree, no expression of the tensor language is left, and every
    store still reaches all the axes of its stage through its own origin and its loops'.

    Parameters
    ----------
    func
        The function to check.
    after
        Name of the pass that produced it, for the message.

    Raises
    ------
    InternalError
        If a condition does not hold: a bug of the compiler, never of the user.
    """
    _Verifier(func, after).check()


class _Verifier:
    def __init__(self, func: PrimFunc, after: str) -> None:
        self.func = func
        self.where = f"verify {func.name}" + (f" after {after}" if after else "")
        self.checked: set[tuple[int, frozenset[Var]]] = set()

    def check(self) -> None:
        for output in self.func.outputs:
            if output not in self.func.params:
                self.fail(f"output {output.name} is not a parameter")
        self.stmt(self.func.body, frozenset(), frozenset(self.func.params), ())

    def fail(self, problem: str) -> None:
        raise InternalError(self.where, problem, excerpt=str(self.func))

    def stmt(
        self, stmt: Stmt, bound: frozenset[Var], buffers: frozenset[Buffer], origin: Origin
    ) -> None:
        match stmt:
            case For(var, extent, _, body, own):
                if var in bound:
                    self.fail(f"loop variable {var.name} is bound twice")
                if var.dtype != "index" or extent.dtype != "index":
                    self.fail(f"loop {var.name} is not of dtype index")
                self.expr(extent, bound, buffers)
                self.stmt(body, bound | {var}, buffers, origin + own)
            case Store():
                self.store(stmt, bound, buffers, origin)
            case If(condition, then, otherwise):
                self.expr(condition, bound, buffers)
                if condition.dtype != "bool":
                    self.fail(f"condition {condition} has dtype {condition.dtype}")
                self.stmt(then, bound, buffers, origin)
                if otherwise is not None:
                    self.stmt(otherwise, bound, buffers, origin)
            case Seq(statements):
                for statement in statements:
                    self.stmt(statement, bound, buffers, origin)
            case Allocate(buffer, body, _):
                if buffer in buffers:
                    self.fail(f"buffer {buffer.name} is allocated twice")
                self.stmt(body, bound, buffers | {buffer}, origin)
            case _:
                self.fail(f"unknown statement {type(stmt).__name__}")

    def store(
        self, store: Store, bound: frozenset[Var], buffers: frozenset[Buffer], origin: Origin
    ) -> None:
        if store.buffer not in buffers:
            self.fail(f"store to {store.buffer.name}, which is not allocated here")
        if len(store.indices) != len(store.buffer.shape):
            self.fail(f"store to {store.buffer.name} with {len(store.indices)} indices")
        for expr in (*store.indices, store.value):
            self.expr(expr, bound, buffers)
        if dtypes.element(store.value.dtype) != store.buffer.dtype:
            self.fail(f"{format_store(store)} stores {store.value.dtype}")
        reached = {*origin, *store.origin}
        for stage in store.origin:
            if missing := self.func.axes.get(stage, frozenset()) - reached:
                self.fail(f"{format_store(store)} lost its axes {_names(missing)}")

    def expr(self, expr: Expr, bound: frozenset[Var], buffers: frozenset[Buffer]) -> None:
        if (id(expr), bound) in self.checked:
            return
        for item in walk(expr):
            match item:
                case Var() if item not in bound:
                    self.fail(f"variable {item.name} is used outside its loop")
                case TensorLoad() | Reduce():
                    self.fail(f"{item} is left over from the tensor expression")
                case Load(buffer, indices):
                    if buffer not in buffers:
                        self.fail(f"load of {buffer.name}, which is not allocated here")
                    if len(indices) != len(buffer.shape):
                        self.fail(f"load of {buffer.name} with {len(indices)} indices")
                    for index in indices:
                        if dtypes.element(index.dtype) != "index":
                            self.fail(f"index {index} has dtype {index.dtype}")
                case Binary(_, a, b) | Compare(_, a, b) | Logical(_, a, b):
                    self.same_dtype(item, a, b)
                case Select(_, a, b) | IfThenElse(_, a, b):
                    self.same_dtype(item, a, b)
        self.checked.add((id(expr), bound))

    def same_dtype(self, item: Expr, a: Expr, b: Expr) -> None:
        if a.dtype != b.dtype:
            self.fail(f"{item} mixes {a.dtype} and {b.dtype}")


def _names(refs: frozenset[StepRef] | set[StepRef]) -> str:
    return ", ".join(sorted(str(ref) for ref in refs))
