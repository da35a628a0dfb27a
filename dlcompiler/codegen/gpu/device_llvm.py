"""Write the kernels of a program in LLVM IR, for the GPUs that LLVM generates code for.

Expressions, memory accesses and control flow are those of the generator for CPUs (`codegen.llvm`).
Added here are the indices of threads, barriers, shared memory, tensor intrinsics, and checks that
fail in one thread while others wait at a barrier.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from dlcompiler import dtypes
from dlcompiler.codegen.c.names import Names
from dlcompiler.codegen.gpu import nvvm
from dlcompiler.codegen.gpu.async_copies import async_copies
from dlcompiler.codegen.gpu.barriers import inserted, without_needless
from dlcompiler.codegen.gpu.dialects import VECTOR_BYTES
from dlcompiler.codegen.gpu.elements import with_elements
from dlcompiler.codegen.gpu.index_type import fits_32_bits
from dlcompiler.codegen.gpu.lanes import with_vectors
from dlcompiler.codegen.gpu.launches import GeneratedKernel, host_variables
from dlcompiler.codegen.gpu.machines import Machine
from dlcompiler.codegen.gpu.narrowing import NARROW, Narrowing, narrowed_variables
from dlcompiler.codegen.gpu.nvvm import async_copy
from dlcompiler.codegen.gpu.nvvm.shuffle import shuffled
from dlcompiler.codegen.gpu.shared_memory import UNIT_BYTES, shared_memory
from dlcompiler.codegen.gpu.shuffles import Exchange, with_shuffles
from dlcompiler.codegen.gpu.statements import known_elements
from dlcompiler.codegen.llvm import assertions
from dlcompiler.codegen.llvm.expressions import Expressions
from dlcompiler.codegen.llvm.parallel import buffer_parameter
from dlcompiler.codegen.llvm.statements import Statements
from dlcompiler.codegen.llvm.types import memory_type, value_type
from dlcompiler.codegen.llvm.writer import Function, Module
from dlcompiler.errors import TargetError
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Binary,
    Buffer,
    Const,
    Expr,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Load,
    Prefetch,
    Stmt,
    Store,
    Var,
    binary,
)
from dlcompiler.ir.program import Launch
from dlcompiler.passes.base import statements
from dlcompiler.passes.fragments import fragments_in
from dlcompiler.passes.merge_thread_loops import (
    ThreadProgram,
    axis_lines,
    has_barrier,
    of_warp,
    skip_after_failure,
)
from dlcompiler.target.fragments import REGISTER_BYTES
from dlcompiler.target.gpus import ASYNC_COPIES


def write_kernel(module: Module, machine: Machine, kernel: Kernel) -> None:
    """Add a kernel to a module.

    Parameters
    ----------
    module
        The module; its messages grow by those of the kernel's checks.
    machine
        What the kernel is for.
    kernel
        The kernel.

    Raises
    ------
    TargetError
        It calls a function of this process, or has memory whose size depends on symbols.
    """
    w = Function(module, kernel.symbol, line=1)
    body, lines = kernel.body()
    func, counts = kernel.launch.kernel, kernel.threads
    written = KernelStatements(w, lines, machine, kernel)
    for buffer in func.buffers:
        written.array(buffer)
    for var in map(kernel.own, func.variables):
        written.expressions.variables[var] = w.parameter(var.name, value_type(var.dtype))
    if kernel.has_checks:
        written.status = written.pointer("status", "noalias align 8")
    written.shared()
    written.indices()
    written.whole(body)
    size = machine.size.format(threads=math.prod(counts.values()), **counts)
    module.functions.append(w.finished(machine.kernel, f"nounwind {size}"))


class Kernel:
    """A kernel: its launch, and what one thread does, with indices of 32 or 64 bits.

    Parameters
    ----------
    launch, thread
        The launch, and what one of its threads does.
    symbol
        Name of its function.
    line_of
        The line of each statement of the launch in the printed loop IR, by ``id``.
    emits
        The tensor intrinsics that are instructions, by the names of their emitters; and
        `SHUFFLES` and `ASYNC_COPIES`, if the processor has these.
    most_shared_bytes
        Shared memory that the kernel may declare [byte]; None if nothing limits it.
    """

    def __init__(
        self,
        launch: Launch,
        thread: ThreadProgram,
        symbol: str,
        line_of: Mapping[int, int],
        emits: Collection[str] = (),
        most_shared_bytes: int | None = None,
    ) -> None:
        self.exchanges: Mapping[Buffer, Exchange] = {}
        """How threads read the registers of others of their warp, if that is an instruction."""
        if nvvm.SHUFFLES in emits:
            thread, self.exchanges = with_shuffles(launch, thread)
        thread = without_needless(launch, thread, inserted(launch, thread))
        thread, self.registers = with_elements(thread, emits)
        self.launch = launch
        self.thread = thread
        self.shared = shared_memory(launch, thread, most_shared_bytes)
        self.symbol = symbol
        self.has_checks = assertions.are_in(thread.body)
        self.threads = {axis: launch.count(f"threadIdx.{axis}") or 1 for axis in "xyz"}
        self.waits = math.prod(self.threads.values()) > 1 and has_barrier(thread.body)
        self.copies: frozenset[int] = frozenset()
        """The stores of a thread, by ``id``, that are asynchronous copies."""
        if self.waits and ASYNC_COPIES in emits:
            self.copies = async_copies(launch, thread)
        self.emits = emits
        self.originals: dict[int, Stmt] = {}
        """By ``id`` of a statement of `body`, the one whose indices have the dtype ``index``."""
        self._kept: list[Expr] = []
        """Expressions whose ``id`` is remembered: another object must not get it."""
        self._line_of = line_of
        self.axis_lines = axis_lines(launch, line_of)
        self._of_host = host_variables(launch)
        self.narrowing = self._narrowing()
        lane = thread.axes.get("threadIdx.x")
        self.lane = None if lane is None else self.own(lane)

    @property
    def index(self) -> str:
        """The dtype in which indices are computed."""
        return NARROW if self.narrowing else "index"

    @property
    def called(self) -> GeneratedKernel:
        """Its name, index dtype and shared memory, for the host that launches it."""
        shared = self.shared
        return GeneratedKernel(
            self.symbol, self.index, self.has_checks, shared.fixed_bytes, shared.added_bytes
        )

    def own(self, var: Var) -> Var:
        """Return the variable in `body` for a parameter or an axis of the kernel."""
        known = self._of_host.get(var, var)
        return self.narrowing.variables.get(known, known) if self.narrowing else known

    def body(self) -> tuple[Stmt, dict[int, int]]:
        """Return the statements of a thread, and their lines in the printed loop IR by ``id``."""
        body, origins = self.thread.body, self.thread.origins
        lines = {id(s): self._line_of.get(id(origins.get(id(s), s)), 0) for s in statements(body)}
        if self.narrowing is None:
            return body, lines
        narrow = self.narrowing.stmt(body)
        pairs = list(zip(statements(narrow), statements(body), strict=True))
        self.originals = {id(new): old for new, old in pairs}
        return narrow, {id(new): lines[id(old)] for new, old in pairs}

    def original(self, stmt: Stmt) -> Stmt:
        """Return the statement whose indices have the dtype ``index``, for one of `body`."""
        return self.originals.get(id(stmt), stmt)

    def narrowed(self, index: Expr) -> Expr:
        """Return an index as it is computed, on variables of `body`."""
        self._kept.append(index)
        return self.narrowing.wide(index) if self.narrowing else index

    def _narrowing(self) -> Narrowing | None:
        """Return what makes its indices narrow; None if 32 bits do not hold all of them."""
        thread, kernel = self.thread, self.launch.kernel
        extents = {var: thread.extents[tag] for tag, var in thread.axes.items()}
        if not fits_32_bits(thread.body, (*kernel.buffers, *thread.shared), extents):
            return None
        numbers = [self._of_host.get(var, var) for var in kernel.variables]
        return Narrowing(narrowed_variables((*thread.axes.values(), *numbers)))


class _Expressions(Expressions):
    """Writes the expressions of a thread."""

    def __init__(
        self, w: Function, exact: Mapping[int, Expr], exchanges: Mapping[Buffer, Exchange]
    ) -> None:
        super().__init__(w)
        self._exchanges = exchanges
        self.cells: dict[Var, str] = {}
        """The address of each variable that changes, a bool."""
        self._exact = exact

    def _variable(self, node: Var) -> str:
        if node in self.cells:
            return self.w.value(f"load i1, ptr {self.cells[node]}, align 1")
        return super()._variable(node)

    def _write(self, node: Expr) -> str:
        match node:
            case Binary("add" | "sub" | "mul" as op, a, b) if id(node) in self._exact:
                return self.w.pure(f"{op} nsw i32 {self.value(a)}, {self.value(b)}")
            case Load(buffer, (lane, *index)) if buffer in self._exchanges:
                exchange = self._exchanges[buffer]
                own = self.value(Load(exchange.own, tuple(index)))
                other = self.w.pure(f"trunc i64 {self.value(lane)} to i32")
                return shuffled(self.w, exchange.group, node.dtype, own, other)
        return super()._write(node)


class KernelStatements(Statements):
    """Writes what one thread does."""

    def __init__(
        self, w: Function, lines: Mapping[int, int], machine: Machine, kernel: Kernel
    ) -> None:
        super().__init__(w, lines, is_outlined=True)
        narrowing = kernel.narrowing
        exact = narrowing.exact if narrowing else {}
        self.expressions: _Expressions = _Expressions(w, exact, kernel.exchanges)
        self.machine = machine
        self.kernel = kernel
        self.lane = kernel.lane
        self.fragments = fragments_in(kernel.thread.body) if "mma" in kernel.emits else {}
        self._holds: Var | None = None

    # -- what a thread gets -----------------------------------------------------------------------

    def pointer(self, name: str, attributes: str) -> str:
        """Add a parameter that points to memory of the device, and return its address."""
        space = self.machine.array_space
        if not space:
            return self.w.parameter(name, f"ptr {attributes}")
        given = self.w.parameter(f"{name}.global", f"ptr addrspace({space}) {attributes}")
        address = f"%{self.w.name(name)}"
        self.w.prologue(f"{address} = addrspacecast ptr addrspace({space}) {given} to ptr")
        return address

    def array(self, buffer: Buffer) -> None:
        """Add the parameter that points to an array of the call."""
        _, _, attributes = buffer_parameter(buffer, self.w.module).partition(" ")
        if buffer in with_vectors(self.kernel.thread.body):
            attributes = attributes.replace(
                f"align {dtypes.bytes_of(buffer.dtype)}", f"align {VECTOR_BYTES}"
            )
        if buffer not in self.kernel.launch.kernel.outputs:
            attributes += " readonly"
        self.expressions.addresses.pointers[buffer] = self.pointer(buffer.name, attributes)

    def shared(self) -> None:
        """Define the memory that the threads of a block share."""
        space, names, memory = self.machine.shared_space, Names(), self.kernel.shared
        constants = self.w.module.constants
        for buffer, count in memory.fixed.items():
            symbol = f"{self.kernel.symbol}_{names.new(buffer.name)}"
            array = f"[{count} x {memory_type(buffer.dtype)}]"
            constants[symbol] = (
                f"@{symbol} = internal addrspace({space}) global {array} undef, "
                f"align {VECTOR_BYTES}"
            )
            self.expressions.addresses.pointers[buffer] = (
                f"addrspacecast (ptr addrspace({space}) @{symbol} to ptr)"
            )
        added = f"{self.kernel.symbol}_{names.new('shared')}"
        for buffer, start in memory.parts.items():
            constants[added] = (
                f"@{added} = external addrspace({space}) global [0 x i8], align {VECTOR_BYTES}"
            )
            first = self.expressions.value(binary("mul", start, UNIT_BYTES))
            place = f"getelementptr i8, ptr addrspace({space}) @{added}, i64 {first}"
            there = f"ptr addrspace({space}) {self.w.value(place)}"
            self.expressions.addresses.pointers[buffer] = self.w.value(
                f"addrspacecast {there} to ptr"
            )

    def indices(self) -> None:
        """Read the indices of the thread and its block."""
        w, lines = self.w, self.kernel.axis_lines
        for tag, var in self.kernel.thread.axes.items():
            w.at(lines.get(var, 0))
            symbol = w.module.declare(self.machine.indices[tag], "i32", "")
            extent = self.kernel.thread.extents[tag]
            limit = f"range(i32 0, {int(extent.value)}) " if isinstance(extent, Const) else ""
            index = w.value(f"call {limit}i32 {symbol}()")
            own = self.kernel.own(var)
            if own.dtype == "index":
                index = w.value(f"zext nneg i32 {index} to i64")
            self.expressions.variables[own] = index

    # -- statements -------------------------------------------------------------------------------

    def write(self, stmt: Stmt) -> None:
        """Append a statement."""
        match stmt:
            case Barrier():
                self._barrier(stmt)
            case Prefetch():
                pass  # a hint
            case Store() if id(original := self.kernel.original(stmt)) in self.kernel.copies:
                assert isinstance(original, Store)
                self._start(stmt)
                async_copy.begin(self, original)
            case If() if self._is_emitted(of_warp(stmt, self.lane)):
                self.write(stmt.then)
            case IntrinsicCall() if self._is_emitted(stmt):
                self._start(stmt)
                original = self.kernel.original(stmt)
                assert isinstance(original, IntrinsicCall)
                nvvm.REGISTRY[str(stmt.part)](self, original)
            case IntrinsicCall(body=body):  # its declaration: emitters write code for CPUs
                line = self.lines.get(id(stmt), 0)
                self.lines = {**self.lines, **{id(inner): line for inner in statements(body)}}
                self.write(body)
            case ExternCall(name):
                raise TargetError(
                    f"generate {self.machine.name}",
                    "a call of a registered function, which is in this process",
                    got=name,
                    hint="target='cpu'",
                )
            case _:
                super().write(stmt)

    def loop(self, stmt: For, begin: str, end: str, *, runs_once: bool) -> None:
        """Append the iterations of a loop; pragmas for the caches of CPUs have no effect.

        Unrolled loops that are left are LLVM's to unroll, as `codegen.gpu.statements` asks of other
        compilers.
        """
        hint = ""
        if stmt.kind == "unrolled":
            hint = f", !llvm.loop !{self.w.module.debug.loop('llvm.loop.unroll.full')}"
        self._iterations(stmt, begin, end, runs_once=runs_once, hint=hint)

    def _barrier(self, stmt: Barrier) -> None:
        if not self.kernel.waits:
            return
        self._start(stmt)
        if self.kernel.copies:
            async_copy.wait(self.w)
        name, parameters = self.machine.barrier_intrinsic
        self.w.module.declare(name, "void", parameters, "convergent nounwind")
        for instruction in self.machine.barrier:
            self.w.effect(instruction)

    def _assert(self, stmt: Assert) -> None:
        """Append a check. A thread that others wait for goes on, and does nothing else."""
        if self._holds is None:
            super()._assert(stmt)
            return
        self._start(stmt)
        assert self.status is not None
        condition = self.expressions.value(stmt.condition)
        values = [self.expressions.value(value) for value in stmt.values]
        holds = assertions.write(self.w, condition, self.status, stmt.template, values)
        self.w.effect(f"store i1 false, ptr {self.expressions.cells[self._holds]}, align 1")
        self.w.jump(holds)
        self.w.open(holds)

    def whole(self, body: Stmt) -> None:
        """Append the statements of a thread."""
        if self.kernel.waits and self.kernel.has_checks:
            holds = self._holds = Var("holds", "bool")
            cell = self.expressions.cells[holds] = self.w.stack("holds", "i1", 1)
            self.w.prologue(f"store i1 true, ptr {cell}, align 1")
            body, made_of = skip_after_failure(body, holds)
            made = {new: self.lines.get(id(old), 0) for new, old in made_of.items()}
            self.lines = {**self.lines, **made}
        self.write(body)
        if self.kernel.copies:
            async_copy.wait(self.w)

    def _allocate(self, buffer: Buffer) -> None:
        pointers = self.expressions.addresses.pointers
        if buffer in pointers:
            return
        array = f"[{known_elements(buffer)} x {memory_type(buffer.dtype)}]"
        if buffer in self.fragments:
            array = f"[{self.fragments[buffer].registers(buffer)} x {register_type(buffer)}]"
        pointers[buffer] = self.w.stack(buffer.name, array, VECTOR_BYTES)
        for registers, of in self.kernel.registers.items():
            if of is buffer:
                pointers[registers] = pointers[buffer]

    def _allocate_here(self, stmt: Allocate) -> None:
        known_elements(stmt.buffer)  # refuses it

    # -- tensor intrinsics ------------------------------------------------------------------------

    def _is_emitted(self, call: IntrinsicCall | None) -> bool:
        return call is not None and call.part in self.kernel.emits and nvvm.is_short(call)

    def index(self, index: Expr) -> str:
        """Write an index, on the variables of the call that an emitter gets: an ``i64``."""
        return self.expressions.value(self.kernel.narrowed(index))

    def address(self, buffer: Buffer, indices: Sequence[Expr]) -> str:
        """Write the address of an element; indices are as of `index`."""
        addresses = self.expressions.addresses
        return addresses.pointer(
            buffer, addresses.offset(buffer, tuple(map(self.kernel.narrowed, indices)))
        )

    @property
    def lane_index(self) -> Var:
        """The number of the thread along x, as of `index`."""
        return self.kernel.thread.axes["threadIdx.x"]


def register_type(buffer: Buffer) -> str:
    """Return the type of a register of a fragment: an element, or several packed ones."""
    is_packed = dtypes.bytes_of(buffer.dtype) < REGISTER_BYTES
    return "i32" if is_packed else memory_type(buffer.dtype)
