"""Statements of a kernel: barriers, failed checks, shared memory, vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from dlcompiler import dtypes
from dlcompiler.codegen.c.buffers import static_elements
from dlcompiler.codegen.c.interface import Codes
from dlcompiler.codegen.c.names import comment
from dlcompiler.codegen.c.statements import Statements
from dlcompiler.codegen.c.text import SUM, UNARY, Text
from dlcompiler.codegen.gpu import intrinsics
from dlcompiler.codegen.gpu.dialects import VECTOR_BYTES, VECTOR_LANES, WORDS, DeviceDialect
from dlcompiler.codegen.gpu.expressions import KernelExpressions
from dlcompiler.codegen.gpu.lanes import Lanes, aligned_start, copies_words, with_vectors
from dlcompiler.codegen.gpu.shared_memory import refused_size
from dlcompiler.ir import (
    Allocate,
    Assert,
    Buffer,
    Expr,
    For,
    If,
    IfThenElse,
    IntrinsicCall,
    Let,
    Load,
    Logical,
    Region,
    Stmt,
    Store,
    Var,
    along,
    index_const,
    walk,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.printer import format_buffer
from dlcompiler.passes.flatten_storage import flat_index
from dlcompiler.passes.fragments import fragments_in
from dlcompiler.passes.merge_thread_loops import of_warp
from dlcompiler.target.fragments import REGISTER_BYTES


def known_elements(buffer: Buffer) -> int:
    """Return the number of elements of memory of a thread.

    Raises
    ------
    TargetError
        It depends on symbols.
    """
    elements = static_elements(buffer)
    if elements is None:
        raise refused_size(buffer, "thread")
    return elements


def array_type(buffer: Buffer, body: Stmt, dialect: DeviceDialect) -> str:
    """Return the type of an array's elements, with the alignment that vectors in it need."""
    aligned = dialect.aligned.format(bytes=VECTOR_BYTES) if buffer in with_vectors(body) else ""
    return f"{aligned}{dialect.element(buffer.dtype)}"


def copy_function(dialect: DeviceDialect, size: int) -> str:
    """Return the function that begins a copy of some bytes from global to shared memory."""
    caches = "cg" if size == 16 else "ca"  # 16 bytes need not go through the first cache
    return (
        f"/* begin to copy {size} bytes from global to shared memory */\n"
        f"{dialect.helper} void dlc_copy_async_{size}(void *to, const void *from)\n{{\n"
        "    unsigned int place = (unsigned int)__cvta_generic_to_shared(to);\n"
        f'    asm volatile("cp.async.{caches}.shared.global [%0], [%1], {size};"\n'
        '            : : "r"(place), "l"(from) : "memory");\n}'
    )


def wait_function(dialect: DeviceDialect) -> str:
    """Return the function that waits for the copies that this thread has begun."""
    return (
        "/* wait until all copies are done that this thread has begun */\n"
        f"{dialect.helper} void dlc_wait_for_copies(void)\n{{\n"
        '    asm volatile("cp.async.wait_all;" : : : "memory");\n}'
    )


class KernelStatements(Statements):
    """Writes what one thread does.

    Parameters
    ----------
    expressions, lines, codes
        As for `Statements`.
    dialect
        The language.
    spaces
        The address space of each array that the thread does not allocate: a qualifier.
    waits
        Whether threads wait for each other at barriers. If not, one may end before others.
    lane
        The number of a thread along x.
    registers
        The fragment of each array of registers that the thread reads.
    """

    def __init__(
        self,
        expressions: KernelExpressions,
        lines: Mapping[int, int],
        codes: Codes,
        dialect: DeviceDialect,
        spaces: Mapping[Buffer, str],
        *,
        waits: bool,
        lane: Var | None = None,
        registers: Mapping[Buffer, Buffer] = MappingProxyType({}),
    ) -> None:
        super().__init__(expressions, lines, codes)
        self.in_memory = expressions.in_memory
        self.dialect = dialect
        self.spaces = spaces
        self.waits = waits
        self.lane = lane
        self.registers = registers
        self._copies: frozenset[int] = frozenset()
        """The stores, by `id`, that are asynchronous copies."""
        self._vectors: dict[Var, Sequence[Var]] = {}
        """The lanes of each variable in scope that is a vector."""

    def whole(self, body: Stmt, copies: frozenset[int]) -> None:
        """Append all that a thread does.

        Parameters
        ----------
        body
            The statements.
        copies
            The stores, by ``id``, that are asynchronous copies: see `async_copies`.
        """
        self._copies = copies
        self.write(body)
        self._wait_for_copies()

    def write(self, stmt: Stmt) -> None:
        """Append a statement."""
        match stmt:
            case Store() if id(stmt) in self._copies:
                self._start(stmt)
                self._copy(stmt)
            case Store() if lanes_of(stmt.indices) > 1:
                self._start(stmt)
                self._store_vector(stmt)
            case Let() if dtypes.lanes(stmt.var.dtype) > 1:
                self._start(stmt)
                self._let_vector(stmt)
            case If() if self._is_emitted(of_warp(stmt, self.lane)):
                self.write(stmt.then)
            case IntrinsicCall() if stmt.part in self.dialect.emits:
                self._start(stmt)
                intrinsics.REGISTRY[str(stmt.part)](self, stmt)
            case _:
                super().write(stmt)

    # -- threads ----------------------------------------------------------------------------------

    def _barrier(self) -> None:
        if self.waits:
            self._wait_for_copies()
            self.writer.line(self.dialect.barrier)

    def _for(self, stmt: For) -> None:
        if stmt.kind == "unrolled":
            self.writer.line(self.dialect.unroll)
        elif ("auto_unroll_max_step", 0) in stmt.annotations:
            self.writer.line(f"{self.dialect.unroll} 1")
        super()._for(stmt)

    def _assert(self, stmt: Assert) -> None:
        """Append a check. The first thread for which one fails reports it."""
        self.expressions.start(stmt.condition)
        holds = self.expressions.value(stmt.condition)
        self.writer.line(f"if (!{holds.at(UNARY)}) {{  /* {comment(stmt.text)} */")
        with self.writer.inside():
            first = self.dialect.report.format(code=self.codes.add(stmt.template))
            self.expressions.start(*stmt.values)
            values = [self.expressions.value(value).text for value in stmt.values]
            with self.writer.block(f"if ({first} == 0)"):
                for place, value in enumerate(values, 1):
                    self.writer.line(f"status[{place}] = {value};")
            self.writer.line("holds = false;" if self.waits else "return;")
        self.writer.line("}")

    def _with_use(self, what: Var | Buffer, name: str, body: Stmt) -> None:
        """Append a body; compilers for GPUs do not warn about names that it does not read."""
        self.write(body)

    def _allocate(self, stmt: Allocate) -> None:
        tiles = fragments_in(stmt.body).get(stmt.buffer) if "mma" in self.dialect.emits else None
        if tiles is None:
            known_elements(stmt.buffer)
            super()._allocate(stmt)
            return
        buffer = stmt.buffer
        name = self.expressions.buffers[buffer] = self.writer.names.new(buffer.name)
        about = comment(f"this thread's part of {format_buffer(buffer)}")
        registers = tiles.registers(buffer)
        type_ = self.register_type(buffer)
        for array, of in self.registers.items():
            if of is buffer:
                self.expressions.buffers[array] = name
                type_ = array_type(array, stmt.body, self.dialect)
        self.writer.line(f"{type_} {name}[{registers}];  /* {about} */")
        self.write(stmt.body)
        del self.expressions.buffers[buffer]

    def _array_type(self, stmt: Allocate) -> str:
        return array_type(stmt.buffer, stmt.body, self.dialect)

    # -- asynchronous copies ----------------------------------------------------------------------

    def _copy(self, stmt: Store) -> None:
        assert isinstance(stmt.value, Load)
        source = stmt.value
        size = lanes_of(stmt.indices) * dtypes.bytes_of(stmt.buffer.dtype)
        ends = []
        for buffer, indices in ((stmt.buffer, stmt.indices), (source.buffer, source.indices)):
            start = aligned_start(buffer, indices, self.expressions.analyzer)
            assert start is not None
            self.expressions.start(start)
            place = self.expressions.value(start).at(SUM)
            ends.append(f"{self.expressions.buffers[buffer]} + {place}")
        self.expressions.read.add(source.buffer)
        self.expressions.written.add(stmt.buffer)
        self.expressions.arithmetic.helpers.add(copy_function(self.dialect, size))
        self.writer.line(f"dlc_copy_async_{size}({', '.join(ends)});")

    def _wait_for_copies(self) -> None:
        if self._copies:
            self.expressions.arithmetic.helpers.add(wait_function(self.dialect))
            self.writer.line("dlc_wait_for_copies();")

    # -- tensor intrinsics ------------------------------------------------------------------------

    def _is_emitted(self, call: IntrinsicCall | None) -> bool:
        return call is not None and call.part in self.dialect.emits

    def register_type(self, buffer: Buffer) -> str:
        """Return the type of a register of a fragment: a sum, or several packed elements."""
        packed = dtypes.bytes_of(buffer.dtype) < REGISTER_BYTES
        return "unsigned int" if packed else self.dialect.element(buffer.dtype)

    def shape_of(self, operand: tuple[Region, tuple[int, ...]]) -> tuple[int, ...]:
        """Return the declared shape of an operand of an intrinsic."""
        region, dims = operand
        return tuple(int(extent) for extent in along(region.extents, dims))

    @contextmanager
    def unrolled(self, name: str, extent: int) -> Iterator[Expr]:
        """Append an unrolled loop around what is written inside; none for one iteration."""
        if extent == 1:
            yield index_const(0)
            return
        var = Var(name)
        self.writer.line(self.dialect.unroll)
        with self.writer.names.block():
            own = self.writer.names.new(name)
            self.expressions.bind(var, own, index_const(extent))
            head = f"for ({self.index_type} {own} = 0; {own} < {extent}; ++{own})"
            with self.writer.block(head):
                yield var
            del self.expressions.variables[var]

    def at_once(self, buffer: Buffer, indices: tuple[Expr, ...], type_: str) -> str:
        """Return the value of neighbouring elements, read as one value of a type."""
        start = flat_index(buffer, indices)
        self.expressions.start(start)
        return self._place(buffer, start, f"const {type_}")

    # -- vectors ----------------------------------------------------------------------------------

    def _store_vector(self, stmt: Store) -> None:
        if self._copy_words(stmt):
            return
        count = lanes_of(stmt.indices)
        lanes = Lanes(self._vectors, self._loaded(stmt.value, count))
        values = lanes.all(stmt.value, count)
        start = None if stmt.predicate is not None else self._start_of(stmt.buffer, stmt.indices)
        self.expressions.written.add(stmt.buffer)
        self.expressions.start(*values, *(() if start is None else (start,)))
        texts = [self.expressions.stored(value).text for value in values]
        if start is not None:
            type_ = self._vector_type(stmt.buffer.dtype, count)
            vector = self.dialect.vector.format(type=type_, lanes=", ".join(texts))
            self.writer.line(f"{self._place(stmt.buffer, start, type_)} = {vector};")
            return
        # All lanes are computed before the first one is stored.
        names = [self.writer.names.new("v") for _ in texts]
        for name, text in zip(names, texts, strict=True):
            self.writer.line(f"const {self.dialect.element(stmt.buffer.dtype)} {name} = {text};")
        for number, name in enumerate(names):
            indices = tuple(lanes.lane(index, number) for index in stmt.indices)
            mask = () if stmt.predicate is None else (lanes.lane(stmt.predicate, number),)
            self.expressions.start(*indices, *mask)
            chosen = "".join(f"if ({self.expressions.value(each).text}) " for each in mask)
            place = self.expressions.element(stmt.buffer, indices).text
            self.writer.line(f"{chosen}{place} = {name};")

    def _copy_words(self, stmt: Store) -> bool:
        """Append a copy of elements as words; tell whether the store is such a copy.

        Elements are copied so that are no numbers of the language, or more than its vectors have.
        """
        buffer, count, source = stmt.buffer, lanes_of(stmt.indices), stmt.value
        size = count * dtypes.bytes_of(buffer.dtype)
        is_vector = count in VECTOR_LANES and buffer.dtype not in self.dialect.stored
        if not copies_words(stmt) or size not in WORDS or is_vector:
            return False
        ends = [(buffer, stmt.indices)]
        ends += [(source.buffer, source.indices)] if isinstance(source, Load) else []
        found = [aligned_start(*end, self.expressions.analyzer) for end in ends]
        starts = [start for start in found if start is not None]
        if len(starts) < len(ends):
            return False
        self.expressions.written.add(buffer)
        self.expressions.start(*starts)
        type_ = WORDS[size] if size > REGISTER_BYTES else self.dialect.types["uint32"]
        value = "0"
        if isinstance(source, Load):
            self.expressions.read.add(source.buffer)
            value = self._place(source.buffer, starts[1], f"const {type_}")
        elif size > REGISTER_BYTES:
            zeros = ", ".join(["0"] * (size // REGISTER_BYTES))
            value = self.dialect.vector.format(type=type_, lanes=zeros)
        self.writer.line(f"{self._place(buffer, starts[0], type_)} = {value};")
        return True

    def _let_vector(self, stmt: Let) -> None:
        count, dtype = dtypes.lanes(stmt.var.dtype), dtypes.element(stmt.var.dtype)
        values = Lanes(self._vectors, self._loaded(stmt.value, count)).all(stmt.value, count)
        self.expressions.start(*values)
        made = []
        for value in values:
            text, name = self.expressions.value(value).text, self.writer.names.new(stmt.var.name)
            self.writer.line(f"const {self.expressions.type_of(dtype)} {name} = {text};")
            made.append(self._bound(name, dtype))
        self._vectors[stmt.var] = made
        self.write(stmt.body)
        del self._vectors[stmt.var]

    def _bound(self, text: str, dtype: str) -> Var:
        """Return a variable whose value has been written."""
        var = Var(text, dtype)
        self.expressions.bind(var, text)
        return var

    def _loaded(self, value: Expr, count: int) -> dict[int, Sequence[Var]]:
        """Append the loads of vectors in a value; return the lanes of each, by ``id``."""
        found: dict[int, Sequence[Var]] = {}
        for node in walk(value):
            if not isinstance(node, Load) or node.predicate is not None:
                continue
            start = self._start_of(node.buffer, node.indices)
            if lanes_of(node.indices) != count or start is None or self._may_not_run(value):
                continue
            self.expressions.read.add(node.buffer)
            self.expressions.start(start)
            name = self.writer.names.new(f"{node.buffer.name}.vector")
            type_ = self._vector_type(node.buffer.dtype, count)
            place = self._place(node.buffer, start, f"const {type_}")
            self.writer.line(f"const {type_} {name} = {place};")
            found[id(node)] = [
                self._element(f"{name}.{lane}", node.buffer.dtype) for lane in "xyzw"[:count]
            ]
        return found

    def _element(self, text: str, dtype: str) -> Var:
        """Return a variable for an element of a vector, which is as memory has it."""
        if dtype not in self.dialect.stored:
            return self._bound(text, dtype)
        helpers = self.expressions.arithmetic.helpers
        var = self._bound(helpers.call("to_f32", dtype, Text(text)).text, dtype)
        self.in_memory[var] = text
        return var

    def _may_not_run(self, value: Expr) -> bool:
        """Tell whether some loads of a value are for one side of a choice only."""
        return any(isinstance(node, IfThenElse | Logical) for node in walk(value))

    def _start_of(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Expr | None:
        """Return the position of a vector in memory; None where its lanes are accessed singly."""
        count = lanes_of(indices)
        is_type = count in VECTOR_LANES and buffer.dtype in self.dialect.vectors
        if not is_type or count * dtypes.bytes_of(buffer.dtype) > VECTOR_BYTES:
            return None
        return aligned_start(buffer, indices, self.expressions.analyzer)

    def _vector_type(self, dtype: str, count: int) -> str:
        return f"{self.dialect.vectors[dtype]}{count}"

    def _place(self, buffer: Buffer, start: Expr, type_: str) -> str:
        """Return the lvalue of a vector in memory."""
        address = f"{self.expressions.buffers[buffer]} + {self.expressions.value(start).text}"
        return f"*({self.spaces.get(buffer, self.dialect.private_space)}{type_} *)({address})"
