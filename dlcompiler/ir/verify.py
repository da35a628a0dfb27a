"""Verify that a lowered function is well formed, after lowering and after each pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from dlcompiler import dtypes
from dlcompiler.errors import MAX_VALUES, InternalError
from dlcompiler.ir.expr import (
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
    Reduce,
    Select,
    TensorLoad,
    Var,
    lanes_of,
)
from dlcompiler.ir.func import PrimFunc
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.ir.intrinsic import IntrinsicCall
from dlcompiler.ir.operations import BINARY
from dlcompiler.ir.printer import format_extern_call, format_intrinsic, format_store
from dlcompiler.ir.rewrite import Node, children, walk
from dlcompiler.ir.stmt import (
    Allocate,
    Assert,
    Barrier,
    Buffer,
    ExternCall,
    For,
    If,
    Let,
    Origin,
    Prefetch,
    Region,
    Seq,
    StepRef,
    Stmt,
    Store,
)


class Verified:
    """The nodes that were well formed when earlier versions of a program were verified."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[frozenset[Var], frozenset[Buffer]], set[int]] = {}
        """The nodes that are well formed where these variables and buffers are known, by ``id``."""
        self.funcs: list[PrimFunc] = []
        """The versions: as long as they live, no other node has the ``id`` of one of theirs."""


def verify_func(func: PrimFunc, after: str = "", known: Verified | None = None) -> None:
    """Check that `func` is well formed.

    Variables are bound by exactly one enclosing loop, buffers are parameters or allocated around
    their use, only outputs and allocated buffers are written, ranks, dtypes and lanes agree, no
    expression of the tensor language is left, and the origins of a store and of the loops around it
    contain its stage and all axes of that stage.

    Parameters
    ----------
    func
        The function to check.
    after
        Name of the pass that produced it, for the message.
    known
        The nodes of earlier versions of the program; those of `func` are added. A pass keeps most
        nodes, which are not verified again.

    Raises
    ------
    InternalError
        If a condition does not hold: a bug of the compiler, never of the user.
    """
    _Verifier(func, after, Verified() if known is None else known).check()


class _Verifier:
    def __init__(self, func: PrimFunc, after: str, known: Verified) -> None:
        self.func = func
        known.funcs.append(func)
        self.where = f"verify {func.name}" + (f" after {after}" if after else "")
        self.read_only = frozenset(func.buffers) - frozenset(func.outputs)
        self.checked = known.nodes
        self.traced: dict[tuple[int, int], tuple[Origin, Origin]] = {}
        """Origins that are complete together, by ``id``; the copies of a body share them."""

    def check(self) -> None:
        for output in self.func.outputs:
            if output not in self.func.buffers:
                self.fail(f"output {output.name} is not a parameter")
        known = frozenset(self.func.variables)
        for buffer in self.func.buffers:
            self.shape(buffer, known)
        self.stmt(self.func.body, known, frozenset(self.func.buffers), ())

    def fail(self, problem: str) -> NoReturn:
        raise InternalError(self.where, problem, excerpt=str(self.func))

    def stmt(  # noqa: C901 - one case per node
        self, stmt: Stmt, bound: frozenset[Var], buffers: frozenset[Buffer], origin: Origin
    ) -> None:
        match stmt:
            case For(var, extent, _, body, own):
                self.loop(var, extent, bound, buffers)
                self.stmt(body, bound | {var}, buffers, origin + own)
            case Store():
                self.store(stmt, bound, buffers, origin)
            case If(condition, then, otherwise):
                self.condition(condition, bound, buffers)
                for branch in (then, otherwise) if otherwise is not None else (then,):
                    self.stmt(branch, bound, buffers, origin)
            case Seq(statements):
                for statement in statements:
                    self.stmt(statement, bound, buffers, origin)
            case Allocate(buffer, body):
                if buffer in buffers:
                    self.fail(f"buffer {buffer.name} is allocated twice")
                self.shape(buffer, bound)
                self.stmt(body, bound, buffers | {buffer}, origin)
            case Let(var, value, body):
                self.expr(value, bound, buffers)
                if var in bound:
                    self.fail(f"variable {var.name} is bound twice")
                if var.dtype != value.dtype:
                    self.fail(f"{var.name} is {var.dtype}, its value {value.dtype}")
                self.stmt(body, bound | {var}, buffers, origin)
            case Prefetch(buffer, indices):
                for index in indices:
                    self.expr(index, bound, buffers)
                if buffer not in buffers:
                    self.fail(f"prefetch of {buffer.name}, which is not allocated here")
                if problem := _index_problem(buffer, indices):
                    self.fail(f"prefetch of {buffer.name} {problem}")
            case Assert(condition, _, values):
                self.condition(condition, bound, buffers)
                for value in values:
                    self.expr(value, bound, buffers)
                if len(values) > MAX_VALUES or any(value.dtype != "index" for value in values):
                    self.fail(f"the message of {condition} has too many values, or no indices")
            case Barrier():
                pass
            case ExternCall():
                self.extern_call(stmt, bound, buffers, origin)
            case IntrinsicCall():
                self.intrinsic(stmt, bound, buffers)
                self.stmt(stmt.body, bound, buffers, origin + stmt.origin)
            case _:
                self.fail(f"unknown statement {type(stmt).__name__}")

    def condition(self, condition: Expr, bound: frozenset[Var], buffers: frozenset[Buffer]) -> None:
        self.expr(condition, bound, buffers)
        if condition.dtype != "bool":
            self.fail(f"condition {condition} has dtype {condition.dtype}")

    def shape(self, buffer: Buffer, bound: frozenset[Var]) -> None:
        """Check that the extents of a buffer depend only on variables in scope."""
        for extent in (*buffer.shape, *buffer.strides):
            if isinstance(extent, Expr):
                self.expr(extent, bound, frozenset())
                if extent.dtype != "index":
                    self.fail(f"the extent {extent} of {buffer.name} has dtype {extent.dtype}")

    def loop(
        self, var: Var, extent: Expr, bound: frozenset[Var], buffers: frozenset[Buffer]
    ) -> None:
        if var in bound:
            self.fail(f"loop variable {var.name} is bound twice")
        if var.dtype != "index" or extent.dtype != "index":
            self.fail(f"loop {var.name} is not of dtype index")
        self.expr(extent, bound, buffers)

    def store(
        self, store: Store, bound: frozenset[Var], buffers: frozenset[Buffer], origin: Origin
    ) -> None:
        if store.buffer not in buffers:
            self.fail(f"store to {store.buffer.name}, which is not allocated here")
        if store.buffer in self.read_only:
            self.fail(f"store to {store.buffer.name}, which is not an output")
        mask = () if store.predicate is None else (store.predicate,)
        for expr in (*store.indices, store.value, *mask):
            self.expr(expr, bound, buffers)
        problem = _index_problem(store.buffer, store.indices)
        if problem := problem or _predicate_problem(store.predicate, store.value.dtype):
            self.fail(f"store to {store.buffer.name} {problem}")
        expected = dtypes.with_lanes(store.buffer.dtype, lanes_of(store.indices))
        if store.value.dtype != expected:
            self.fail(f"{format_store(store)} stores {store.value.dtype}, not {expected}")
        self.origins(store, origin)

    def intrinsic(
        self, call: IntrinsicCall, bound: frozenset[Var], buffers: frozenset[Buffer]
    ) -> None:
        """Check the regions of a call, and that its declaration accesses only their buffers."""
        shown = format_intrinsic(call)
        for n, (region, dims) in enumerate(call.operands):
            if region.buffer not in buffers:
                self.fail(f"{shown}: {region.buffer.name} is not allocated here")
            if region.mode != ("r" if n else "rw" if call.mode == "update" else "w"):
                self.fail(f"{shown}: {region.buffer.name} is a region of mode {region.mode!r}")
            for part in (*region.indices, *region.extents):
                self.expr(part, bound, buffers)
            for places in (region.indices, region.extents):
                if problem := _index_problem(region.buffer, places):
                    self.fail(f"{shown}: a region of {region.buffer.name} {problem}")
            if not _has_dims(region, dims):
                self.fail(f"{shown}: a region does not fit {region.buffer.name}")
        if call.mode not in call.intrinsic.parts:
            self.fail(f"{shown}: nothing carries out {call.mode}")
        inside = [node for node in walk(call.body) if isinstance(node, Load | Store)]
        read = {node.buffer for node in inside if isinstance(node, Load)}
        written = {node.buffer for node in inside if isinstance(node, Store)}
        known = {region.buffer for region in call.regions}
        if written != {call.regions[0].buffer} or not read <= known:
            self.fail(f"{shown}: its declaration touches other buffers")

    def extern_call(
        self, call: ExternCall, bound: frozenset[Var], buffers: frozenset[Buffer], origin: Origin
    ) -> None:
        for arg in call.args:
            parts = (*arg.indices, *arg.extents) if isinstance(arg, Region) else (arg,)
            for part in parts:
                self.expr(part, bound, buffers)
                if dtypes.lanes(part.dtype) > 1:
                    self.fail(f"{format_extern_call(call)} gets a vector")
        for region in call.regions:
            if region.buffer not in buffers:
                self.fail(f"call with {region.buffer.name}, which is not allocated here")
            if not region.mode:
                self.fail(f"{format_extern_call(call)} does not say what it does with {region}")
            if region.is_written and region.buffer in self.read_only:
                self.fail(f"{format_extern_call(call)} writes {region.buffer.name}, no output")
            for places in (region.indices, region.extents):
                if problem := _index_problem(region.buffer, places):
                    self.fail(f"call with {region.buffer.name} {problem}")
        self.origins(call, origin)

    def origins(self, store: Store | ExternCall, origin: Origin) -> None:
        """Check that the origin of a store names its stage, and all axes of that stage."""
        key = id(origin), id(store.origin)
        if key in self.traced:
            return
        self.traced[key] = origin, store.origin
        reached = {*origin, *store.origin}
        if self.func.axes and not any(ref in self.func.axes for ref in store.origin):
            self.fail(f"{_text(store)} has no stage")
        for stage in store.origin:
            if missing := self.func.axes.get(stage, frozenset()) - reached:
                self.fail(f"{_text(store)} lost its axes {_names(missing)}")

    def expr(self, expr: Expr, bound: frozenset[Var], buffers: frozenset[Buffer]) -> None:
        if type(expr) is Const or (type(expr) is Var and expr in bound):  # most indices
            return
        checked = self.checked.setdefault((bound, buffers), set())
        stack: list[Node] = [expr]
        while stack:
            item = stack.pop()
            key = id(item)
            if key in checked:
                continue
            checked.add(key)
            kind = type(item)
            if kind is Const:
                continue
            if kind is Var:
                if item not in bound:
                    self.fail(f"variable {item} is used outside its loop")
                continue
            if isinstance(item, Load) and item.buffer not in buffers:
                self.fail(f"load of {item.buffer.name}, which is not allocated here")
            if isinstance(item, Expr) and (problem := _problem(item)):
                self.fail(problem)
            stack += children(item)


def _problem(item: Expr) -> str | None:
    """Return what is wrong with a node, apart from its operands; None if nothing is."""
    match item:
        case Binary():
            return _binary_problem(item)
        case Load(buffer, indices, predicate):
            problem = _index_problem(buffer, indices) or _predicate_problem(predicate, item.dtype)
            return problem and f"load of {buffer.name} {problem}"
        case Region():
            return f"{item} stands outside a call"
        case TensorLoad() | Reduce():
            return f"{item} is left over from the tensor expression"
        case Compare() | Logical() | Select() | IfThenElse() if item.a.dtype != item.b.dtype:
            return f"{item} mixes {item.a.dtype} and {item.b.dtype}"
        case Logical(_, value, _) | Not(value) if not dtypes.is_bool(value.dtype):
            return f"{item} joins {value.dtype}"
        case Select(condition, _, _) | IfThenElse(condition, _, _):
            if condition.dtype not in ("bool", dtypes.with_lanes("bool", dtypes.lanes(item.dtype))):
                return f"{item} is decided by {condition.dtype}"
        case _:
            return _vector_problem(item)
    return None


def _binary_problem(item: Binary) -> str | None:
    if item.a.dtype != item.b.dtype:
        return f"{item} mixes {item.a.dtype} and {item.b.dtype}"
    element = dtypes.element(item.a.dtype)
    if not BINARY[item.op].takes(element):
        return f"{item} computes {item.op} of {element}"
    if item.op in ("shl", "shr") and dtypes.is_index(element):
        return f"{item} shifts an index"
    return None


def _vector_problem(item: Expr) -> str | None:
    match item:
        case Ramp(base, stride, _) if base.dtype != stride.dtype or dtypes.lanes(base.dtype) > 1:
            return f"{item} is a ramp of {base.dtype} and {stride.dtype}"
        case Broadcast(value, _) if dtypes.lanes(value.dtype) > 1:
            return f"{item} broadcasts {value.dtype}"
        case Call(name, args, dtype) if name in FUNCTIONS:
            signature, given = FUNCTIONS[name], [arg.dtype for arg in args]
            if not signature.takes(*given) or signature.result_dtype(given[0]) != dtype:
                return f"{item} makes {dtype} of {', '.join(given) or 'nothing'}"
        case Cast(value, dtype) if dtypes.lanes(value.dtype) != dtypes.lanes(dtype):
            return f"{item} changes the lanes of {value.dtype}"
    return None


def _index_problem(buffer: Buffer, indices: tuple[Expr, ...]) -> str | None:
    if len(indices) != len(buffer.shape):
        return f"with {len(indices)} indices"
    if all(index.dtype == "index" for index in indices):
        return None
    for index in indices:
        if dtypes.element(index.dtype) != "index":
            return f"with an index {index} of dtype {index.dtype}"
        if dtypes.lanes(index.dtype) not in (1, lanes_of(indices)):
            return f"with an index {index} of {dtypes.lanes(index.dtype)} lanes"
    return None


def _has_dims(region: Region, dims: tuple[int, ...]) -> bool:
    """Tell whether `dims` has no duplicates, and all other dimensions have extent 1."""
    lengths = [e.value if isinstance(e, Const) else 0 for e in region.extents]
    others = set(range(len(lengths))) - set(dims)
    return len(set(dims)) == len(dims) and all(lengths) and all(lengths[n] == 1 for n in others)


def _predicate_problem(predicate: Expr | None, dtype: str) -> str | None:
    if predicate is None or predicate.dtype == dtypes.with_lanes("bool", dtypes.lanes(dtype)):
        return None
    return f"under a predicate of {predicate.dtype}"


def _text(stmt: Store | ExternCall) -> str:
    return format_store(stmt) if isinstance(stmt, Store) else format_extern_call(stmt)


def _names(refs: Iterable[StepRef]) -> str:
    return ", ".join(sorted(str(ref) for ref in refs))
