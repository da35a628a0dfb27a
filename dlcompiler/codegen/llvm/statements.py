"""Statements of one function: loops, conditions, assignments, allocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from dlcompiler import dtypes
from dlcompiler.codegen.llvm import (
    allocations,
    assertions,
    extern_calls,
    intrinsics,
    memory,
    parallel,
    streaming,
)
from dlcompiler.codegen.llvm.addresses import span
from dlcompiler.codegen.llvm.expressions import Expressions
from dlcompiler.codegen.llvm.types import memory_type, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Buffer,
    Const,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Prefetch,
    Seq,
    Stmt,
    Store,
    extent_expr,
    extent_product,
)


class Statements:
    """Writes the statements of one function.

    Parameters
    ----------
    w
        The function to append to.
    lines
        The line of each statement in the printed function, by ``id``.
    is_outlined
        Whether this is the body of a parallel loop, in which others run serially.
    """

    def __init__(self, w: Function, lines: Mapping[int, int], *, is_outlined: bool) -> None:
        self.w = w
        self.lines = lines
        self.is_outlined = is_outlined
        self.expressions = Expressions(w)
        self.status: str | None = None
        """The operand of the status, which receives the number of a failure."""
        self._stack_bytes = 0
        self._blocks: list[str] = []

    def write(self, stmt: Stmt) -> None:  # noqa: C901 - one case per node
        """Append a statement."""
        match stmt:
            case Seq(statements):
                self._sequence(statements)
            case Store():
                self._start(stmt)
                self.expressions.store(stmt)
            case For():
                self._for(stmt)
            case If():
                self._if(stmt)
            case Allocate(buffer, body):
                self._start(stmt)
                if buffer.is_static:
                    self._allocate(buffer)
                    self.write(body)
                else:
                    self._allocate_here(stmt)
            case Let(var, value, body):
                self._start(stmt)
                self.expressions.variables[var] = self.expressions.value(value)
                self.write(body)
            case Assert():
                self._assert(stmt)
            case Prefetch():
                self._start(stmt)
                memory.prefetch(self.expressions.addresses, stmt)
            case ExternCall():
                self._extern_call(stmt)
            case IntrinsicCall():
                self._start(stmt)
                intrinsics.write(self.expressions.addresses, stmt)
            case Barrier():
                pass  # of one thread alone: loops of more are refused
            case _:
                raise InternalError(
                    "generate LLVM code", f"unknown statement {type(stmt).__name__}"
                )

    def _sequence(self, statements: Sequence[Stmt]) -> None:
        """Append statements; `start_run` sees consecutive plain stores together."""
        for is_plain, run in groupby(statements, _is_plain_store):
            members = list(run)
            if is_plain:
                self._start(members[0])
                self.expressions.start_run([store for store in members if isinstance(store, Store)])
            for statement in members:
                self.write(statement)
            self.expressions.start_run(())

    def _start(self, stmt: Stmt) -> None:
        self.expressions.start_statement()
        self.w.at(self.lines.get(id(stmt), 0))

    # -- control flow -------------------------------------------------------------------------

    def _for(self, stmt: For) -> None:
        self._start(stmt)
        extent = stmt.extent.value if isinstance(stmt.extent, Const) else None
        if extent is not None and extent <= 0:
            return
        if extent == 1:
            self.expressions.variables[stmt.var] = "0"
            self.write(stmt.body)
            return
        operand = self.expressions.value(stmt.extent)
        if stmt.kind == "parallel" and not self.is_outlined:
            self._launch(stmt, operand)
        else:
            self.loop(stmt, "0", operand, runs_once=extent is not None)

    def loop(self, stmt: For, begin: str, end: str, *, runs_once: bool) -> None:
        """Append the iterations of `stmt` from `begin` to below `end`.

        Parameters
        ----------
        stmt
            The loop; its kind does not matter.
        begin, end
            Operands.
        runs_once
            Whether there is certainly at least one iteration.
        """
        addresses, w = self.expressions.addresses, self.w
        known = addresses.pointers
        streamed = () if addresses.streamed else streaming.streamed(stmt, known, streaming.LEAST)
        if not streamed:
            self._iterations(stmt, begin, end, runs_once=runs_once)
            return
        done = w.name("streamed")
        for alignment in streaming.alignments(w.module.triple):
            if streaming.streamed(stmt, known, alignment) != streamed:
                continue
            aligned = streaming.are_aligned(w, [known[buffer] for buffer in streamed], alignment)
            stream, otherwise = w.name("stream"), w.name("otherwise")
            w.branch(aligned, stream, otherwise)
            w.open(stream)
            addresses.streamed = dict.fromkeys(streamed, alignment)
            self._iterations(stmt, begin, end, runs_once=runs_once)
            addresses.streamed = {}
            streaming.write_fence(w)
            w.jump(done)
            w.open(otherwise)
            self._start(stmt)
        self._iterations(stmt, begin, end, runs_once=runs_once)
        w.jump(done)
        w.open(done)

    def _iterations(
        self, stmt: For, begin: str, end: str, *, runs_once: bool, hint: str = ""
    ) -> None:
        """Append the iterations of a loop; `hint` is metadata of its jump, with a comma before."""
        w, name = self.w, stmt.var.name
        type_ = value_type(stmt.var.dtype)
        variable = f"%{w.name(name)}"
        head, done = w.name(f"{name}.loop"), w.name(f"{name}.end")
        if runs_once:
            w.jump(head)
        else:
            w.branch(w.pure(f"icmp slt {type_} {begin}, {end}"), head, done)
        before = w.block
        w.open(head)
        phi = w.reserve()
        self.expressions.variables[stmt.var] = variable
        self.write(stmt.body)
        self._start(stmt)
        following = w.value(f"add nuw nsw {type_} {variable}, 1")
        w.fill(phi, f"{variable} = phi {type_} [ {begin}, %{before} ], [ {following}, %{w.block} ]")
        w.branch(w.pure(f"icmp slt {type_} {following}, {end}"), head, done, hint)
        w.open(done)

    def _launch(self, stmt: For, extent: str) -> None:
        """Append the launch of a parallel loop, and add its body to the module."""
        w, scope = self.w, self.expressions
        symbol = f"{w.symbol}.parallel.{len(w.module.functions) // 2}"
        line = self.lines.get(id(stmt), 0)
        inner = Statements(Function(w.module, f"{symbol}.body", line), self.lines, is_outlined=True)
        limit = f"i64 range(i64 0, {int(extent) + 1})" if extent.isdigit() else "i64"
        begin, end = inner.w.parameter("begin", limit), inner.w.parameter("end", limit)

        types, operands = [], []
        captured = parallel.captures(stmt)
        for buffer in captured.buffers:
            parameter = inner.w.parameter(buffer.name, parallel.buffer_parameter(buffer, w.module))
            inner.expressions.addresses.pointers[buffer] = parameter
            types.append("ptr")
            operands.append(scope.addresses.pointers[buffer])
        for variable in captured.variables:
            type_ = value_type(variable.dtype)
            inner.expressions.variables[variable] = inner.w.parameter(variable.name, type_)
            types.append(type_)
            operands.append(scope.variables[variable])

        if may_fail(stmt.body, is_outlined=True):
            assert self.status is not None
            inner.status = inner.w.parameter("status", "ptr noalias")
            types.append("ptr")
            operands.append(self.status)
            inner.leave_if_failed()
        inner.loop(stmt, begin, end, runs_once=False)
        w.module.functions.append(inner.w.finished("internal", "noinline nounwind"))
        parallel.write_entry(w.module, symbol, line, types)
        parallel.write_launch(w, symbol, extent, types, operands)
        if inner.status is not None:
            self.leave_if_failed()

    def _if(self, stmt: If) -> None:
        w = self.w
        self._start(stmt)
        condition = self.expressions.value(stmt.condition)
        then, end = w.name("then"), w.name("endif")
        otherwise = end if stmt.otherwise is None else w.name("else")
        w.branch(condition, then, otherwise)
        for label, body in ((then, stmt.then), (otherwise, stmt.otherwise)):
            if body is None:
                continue
            w.open(label)
            self.write(body)
            self._start(stmt)
            w.jump(end)
        w.open(end)

    # -- assertions ---------------------------------------------------------------------------

    def _assert(self, stmt: Assert) -> None:
        self._start(stmt)
        assert self.status is not None
        condition = self.expressions.value(stmt.condition)
        values = [self.expressions.value(value) for value in stmt.values]
        holds = assertions.write(self.w, condition, self.status, stmt.template, values)
        self._leave()
        self.w.open(holds)

    def _extern_call(self, stmt: ExternCall) -> None:
        self._start(stmt)
        if stmt.convention == "c":
            extern_calls.call_c(self.expressions, stmt)
            return
        assert self.status is not None
        done = extern_calls.call_packed(self.expressions, stmt, self.status)
        self._leave()
        self.w.open(done)

    def leave_if_failed(self) -> None:
        """Append a return if another thread has failed."""
        assert self.status is not None
        holds = assertions.write_look(self.w, self.status)
        self._leave()
        self.w.open(holds)

    def _leave(self) -> None:
        """Free the open workspaces and end the block with a jump to the end of the function."""
        for pointer in self._blocks:
            self.w.effect(self._take(pointer))
        self.w.leave()

    # -- buffers ------------------------------------------------------------------------------

    def _allocate(self, buffer: Buffer) -> None:
        """Allocate a buffer of fixed size in the prologue, once for all iterations.

        Copies of an unrolled or partitioned loop use the same memory. An `alloca` inside a loop
        would take more stack in each iteration.
        """
        if buffer in self.expressions.addresses.pointers:
            return
        w, size = self.w, allocations.size_bytes(buffer)
        if self._stack_bytes + size <= allocations.STACK_BYTES:
            self._stack_bytes += size
            array = f"[{max(span(buffer), 1)} x {memory_type(buffer.dtype)}]"
            pointer = w.stack(buffer.name, array, allocations.ALIGNMENT)
        else:
            assert self.status is not None
            pointer = f"%{w.name(buffer.name)}"
            w.prologue(f"{pointer} = {self._lend(str(size))}")
            w.prologue_check(pointer, self.status, allocations.NO_MEMORY)
            w.epilogue(self._take(pointer))
        self.expressions.addresses.pointers[buffer] = pointer

    def _allocate_here(self, stmt: Allocate) -> None:
        """Allocate a buffer of variable size as a workspace around its body."""
        w, buffer = self.w, stmt.buffer
        count = extent_product((*buffer.shape[:1], *buffer.strides[:1]))
        elements = self.expressions.value(extent_expr(count))
        size = self._within_reason(
            buffer, w.pure(f"mul nsw i64 {elements}, {dtypes.bytes_of(buffer.dtype)}")
        )
        pointer = w.value(self._lend(size))
        assert self.status is not None
        given = w.value(f"icmp ne ptr {pointer}, null")
        enough = assertions.write_check(w, given, self.status, allocations.NO_MEMORY)
        self._leave()
        w.open(enough)
        self.expressions.addresses.pointers[buffer] = pointer
        self._blocks.append(pointer)
        self.write(stmt.body)
        self._blocks.pop()
        self._start(stmt)
        w.effect(self._take(pointer))

    def _within_reason(self, buffer: Buffer, size: str) -> str:
        """Return a size, or -1 if the extents' product is too large: allocation fails then."""
        w, product = self.w, "1.0"
        for extent in buffer.shape:
            factor = self.expressions.value(extent_expr(extent))
            product = w.pure(f"fmul double {product}, {w.pure(f'sitofp i64 {factor} to double')}")
        absurd = w.pure(f"fcmp ogt double {product}, {allocations.ABSURD_ELEMENTS}")
        return w.pure(f"select i1 {absurd}, i64 -1, i64 {size}")

    def _lend(self, size: str) -> str:
        """Return the call that allocates a workspace of `size` bytes; its result may be null."""
        lend, _ = allocations.declare(self.w.module)
        return f"call align {allocations.ALIGNMENT} ptr {lend}(i64 {size})"

    def _take(self, pointer: str) -> str:
        """Return the call that frees a workspace."""
        _, take = allocations.declare(self.w.module)
        return f"call void {take}(ptr {pointer})"


def may_fail(body: Stmt, *, is_outlined: bool) -> bool:
    """Tell whether the body of a function may fail: an assertion, a call or an allocation."""
    return assertions.are_in(body) or bool(allocations.in_workspaces(body, is_outlined=is_outlined))


def _is_plain_store(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.predicate is None
