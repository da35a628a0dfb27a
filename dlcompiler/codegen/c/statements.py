"""Statements of one function: loops, conditions, assignments, temporaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dlcompiler.codegen.c import buffers
from dlcompiler.codegen.c.arithmetic import LEVELS
from dlcompiler.codegen.c.expressions import Expressions
from dlcompiler.codegen.c.interface import Codes
from dlcompiler.codegen.c.names import comment
from dlcompiler.codegen.c.text import PRODUCT, SUM, UNARY, Text, conversion, infix
from dlcompiler.errors import InternalError, TargetError
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Binary,
    Buffer,
    Expr,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Prefetch,
    Seq,
    Stmt,
    Store,
    Var,
    extent_expr,
    free_vars,
    structural_equal,
    walk,
    walk_statements,
)
from dlcompiler.ir.operations import BINARY
from dlcompiler.ir.printer import format_buffer
from dlcompiler.ir.stmt import compact_strides

MOST_ORIGINS = 3
"""Most axes named in the comment at a loop."""


@dataclass
class _Frame:
    """The code that ends when a check fails: the function, or an iteration of a parallel loop."""

    label: str
    is_parallel: bool
    memory: list[str] = field(default_factory=list)
    """Names of the pointers to free at its end."""


class Statements:
    """Writes the body of a function.

    Parameters
    ----------
    expressions
        Writes its expressions; holds the identifiers of its parameters.
    lines
        The line of each statement in the printed function, by ``id``.
    codes
        The error codes of the function.
    report
        Identifier of the parameter that receives the values of assertions, where some have them.
    """

    def __init__(
        self, expressions: Expressions, lines: Mapping[int, int], codes: Codes, report: str = ""
    ) -> None:
        self.expressions = expressions
        self.writer = expressions.writer
        self.lines = lines
        self.codes = codes
        self.report = report
        self.uses_threads = False
        self._frame = _Frame("done", is_parallel=False)
        self._parallel_loops = 0

    @property
    def index_type(self) -> str:
        """The type of an index."""
        return self.expressions.type_of("index")

    def function(self, body: Stmt, checks: Sequence[tuple[Expr, str]], *, may_fail: bool) -> None:
        """Write a whole body: the checks of the symbols, the statements, the return."""
        if not may_fail:
            self.write(body)
            self.writer.source_line = 0
            self.writer.line("return 0;")
            return
        self.writer.line("int status = 0;")
        self._get_memory(buffers.from_malloc(body, is_parallel=False))
        for condition, message in checks:
            self._assert(Assert(condition, message))
        self.write(body)
        self.writer.source_line = 0
        self._end_frame()
        self.writer.line("return status;")

    def write(self, stmt: Stmt) -> None:  # noqa: C901 - one case per node
        """Append a statement."""
        match stmt:
            case Seq(statements):
                self._sequence(statements)
            case Store():
                self._start(stmt)
                self._store(stmt)
            case For():
                self._start(stmt)
                self._for(stmt)
            case If():
                self._start(stmt)
                self._if(stmt)
            case Allocate():
                self._start(stmt)
                self._allocate(stmt)
            case Let():
                self._start(stmt)
                self._let(stmt)
            case Assert():
                self._start(stmt)
                self._assert(stmt)
            case ExternCall(name):
                raise TargetError(
                    "generate C code",
                    "a call of a registered function, which needs machine code",
                    got=name,
                    hint="target='cpu'",
                )
            case IntrinsicCall():  # emitters write LLVM IR only: C gets the declaration
                self.write(stmt.body)
            case Barrier():
                self._start(stmt)
                self._barrier()
            case Prefetch():
                pass  # a hint
            case _:
                raise InternalError("generate C code", f"unknown statement {type(stmt).__name__}")

    def _start(self, stmt: Stmt) -> None:
        self.writer.source_line = self.lines.get(id(stmt), 0)

    def _barrier(self) -> None:
        """Append nothing: here one thread runs all statements."""

    def _sequence(self, statements: Sequence[Stmt]) -> None:
        """Append statements; a statement that declares names gets a block unless it is the last."""
        for number, statement in enumerate(statements, 1):
            if isinstance(statement, Allocate | Let) and number < len(statements):
                with self.writer.block(""):
                    self.write(statement)
            else:
                self.write(statement)

    # -- assignments ------------------------------------------------------------------------------

    def _store(self, stmt: Store) -> None:
        mask = () if stmt.predicate is None else (stmt.predicate,)
        if mask:
            self.expressions.start(*mask)
            with self.writer.block(f"if ({self.expressions.value(mask[0]).text})"):
                self._assign(stmt)
        else:
            self._assign(stmt)

    def _assign(self, stmt: Store) -> None:
        update = _update(stmt)
        self.expressions.start(*stmt.indices, stmt.value)
        place = self.expressions.element(stmt.buffer, stmt.indices)
        self.expressions.written.add(stmt.buffer)
        if update is None:
            value, symbol = self.expressions.stored(stmt.value), "="
        else:
            self.expressions.read.add(stmt.buffer)
            value, symbol = self.expressions.value(update.b), f"{BINARY[update.op].symbol}="
        self.writer.line(f"{place.text} {symbol} {value.text};")

    # -- control flow -----------------------------------------------------------------------------

    def _for(self, stmt: For) -> None:
        self.expressions.start(stmt.extent)
        extent = self.expressions.value(stmt.extent)
        if any(isinstance(node, Load) for node in walk(stmt.extent)):
            name = self.writer.names.new(f"{stmt.var.name}.extent")
            self.writer.line(f"const {self.index_type} {name} = {extent.text};")
            extent = Text(name)
        is_parallel = stmt.kind == "parallel" and not self._frame.is_parallel
        if is_parallel:
            self.uses_threads = True
            self._directive("parallel for")
        about = _about(stmt)
        with self.writer.names.block():
            name = self.writer.names.new(stmt.var.name)
            self.expressions.bind(stmt.var, name, stmt.extent)
            head = f"for ({self.index_type} {name} = 0; {name} < {extent.at(SUM)}; ++{name}) {{"
            self.writer.line(head + (f"  /* {about} */" if about else ""))
            with self.writer.inside():
                if is_parallel:
                    self._iteration(stmt.body)
                else:
                    self.write(stmt.body)
            self.writer.line("}")
            del self.expressions.variables[stmt.var]
        if is_parallel and self._may_fail(stmt.body):
            with self.writer.block("if (status != 0)"):
                self.writer.line(f"goto {self._frame.label};")

    def _iteration(self, body: Stmt) -> None:
        """Append the body of a parallel loop; a failure jumps to its end, as OpenMP requires."""
        if not self._may_fail(body):
            around, self._frame = self._frame, _Frame("", is_parallel=True)
            self.write(body)
            self._frame = around
            return
        self._parallel_loops += 1
        around = self._frame
        self._frame = _Frame(f"next_{self._parallel_loops}", is_parallel=True)
        self._get_memory(buffers.from_malloc(body, is_parallel=True))
        self.write(body)
        self._end_frame()
        self._frame = around

    def _if(self, stmt: If) -> None:
        self.expressions.start(stmt.condition)
        self.writer.line(f"if ({self.expressions.value(stmt.condition).text}) {{")
        with self.writer.inside():
            self.write(stmt.then)
        if stmt.otherwise is not None:
            self.writer.line("} else {")
            with self.writer.inside():
                self.write(stmt.otherwise)
        self.writer.line("}")

    def _directive(self, text: str) -> None:
        """Append an OpenMP directive, inside ``#ifdef`` for compilers without OpenMP."""
        for line in ("#ifdef _OPENMP", f"#pragma omp {text}", "#endif"):
            self.writer.directive(line)

    # -- what fails -------------------------------------------------------------------------------

    def _may_fail(self, body: Stmt) -> bool:
        """Tell whether an iteration of a parallel loop may fail."""
        return bool(buffers.from_malloc(body, is_parallel=True)) or has_assertions(body)

    def _assert(self, stmt: Assert) -> None:
        self.expressions.start(stmt.condition)
        holds = self.expressions.value(stmt.condition)
        self.writer.line(f"if (!{holds.at(UNARY)}) {{  /* {comment(stmt.text)} */")
        with self.writer.inside():
            self._fail(self.codes.add(stmt.template), stmt.values)
        self.writer.line("}")

    def _fail(self, code: str, values: Sequence[Expr] = ()) -> None:
        """Append the code that makes the function fail; only the first failure is reported."""
        if self._frame.is_parallel:
            self._directive("critical")
            with self.writer.block(""), self.writer.block("if (status == 0)"):
                self._report(code, values)
        else:
            self._report(code, values)
        self.writer.line(f"goto {self._frame.label};")

    def _report(self, code: str, values: Sequence[Expr]) -> None:
        """Append the stores of the status code and of the numbers in its message."""
        self.writer.line(f"status = {code};")
        if not values:
            return
        with self.writer.block(f"if ({self.report} != NULL)"):
            self.expressions.start(*values)
            for place, value in enumerate(values):
                self.writer.line(f"{self.report}[{place}] = {self.expressions.value(value).text};")

    def _end_frame(self) -> None:
        """Append the end of a frame: its label, and the calls that free its memory."""
        self.writer.label(f"{self._frame.label}:" + ("" if self._frame.memory else " ;"))
        for name in reversed(self._frame.memory):
            self.writer.line(f"free({name});")

    # -- temporaries and names --------------------------------------------------------------------

    def _get_memory(self, wanted: Sequence[Buffer]) -> None:
        """Append the calls of ``malloc`` for all temporaries of a frame, at its start."""
        for buffer in wanted:
            name = self.writer.names.new(buffer.name)
            self.expressions.buffers[buffer] = name
            self._frame.memory.append(name)
            type_ = self.expressions.arithmetic.dialect.element(buffer.dtype)
            head = f"{type_} *{name} = {self._malloc(buffer, name)};"
            self.writer.line(f"{head}  /* {comment(format_buffer(buffer))} */")
        if wanted:
            missing = " || ".join(f"{name} == NULL" for name in self._frame.memory)
            with self.writer.block(f"if ({missing})"):
                self._fail(self.codes.no_memory)

    def _malloc(self, buffer: Buffer, name: str) -> str:
        count = buffers.static_elements(buffer)
        if count is not None:
            return f"malloc({count} * sizeof *{name})"
        extents = [extent_expr(extent) for extent in _factors(buffer)]
        known = self.expressions.variables.keys()
        for extent in extents:
            if inner := free_vars(extent) - known:
                raise TargetError(
                    f"generate C code for the temporary {buffer.name}",
                    "its size is known only inside a loop",
                    got=f"{extent}, where {', '.join(sorted(var.name for var in inner))} varies",
                    hint="attach the stage where its size does not depend on a loop",
                )
        self.expressions.start(*extents)
        texts = [conversion("double", self.expressions.value(extent)) for extent in extents]
        elements = texts[0]
        for text in texts[1:]:
            elements = infix("*", elements, text, PRODUCT)
        size = Text(f"sizeof *{name}")
        return self.expressions.arithmetic.helpers.call("allocate", "float64", elements, size).text

    def _allocate(self, stmt: Allocate) -> None:
        buffer = stmt.buffer
        if buffer in self.expressions.buffers:  # it has memory, here or around
            self.write(stmt.body)
            return
        name = self.writer.names.new(buffer.name)
        self.expressions.buffers[buffer] = name
        self.writer.line(
            f"{self._array_type(stmt)} {name}[{buffers.static_elements(buffer)}];"
            f"  /* {comment(format_buffer(buffer))} */"
        )
        self._with_use(buffer, name, stmt.body)
        del self.expressions.buffers[buffer]

    def _array_type(self, stmt: Allocate) -> str:
        """Return the type of the elements of an array, as in its declaration."""
        return self.expressions.arithmetic.dialect.element(stmt.buffer.dtype)

    def _let(self, stmt: Let) -> None:
        self.expressions.start(stmt.value)
        value = self.expressions.value(stmt.value)
        name = self.writer.names.new(stmt.var.name)
        self.expressions.bind(stmt.var, name)
        type_ = self.expressions.type_of(stmt.var.dtype)
        self.writer.line(f"const {type_} {name} = {value.text};")
        self._with_use(stmt.var, name, stmt.body)
        del self.expressions.variables[stmt.var]

    def _with_use(self, what: Var | Buffer, name: str, body: Stmt) -> None:
        """Append a body; if it never reads `name`, a cast to void prevents a warning."""
        place = len(self.writer.lines)
        self.expressions.read.discard(what)
        self.write(body)
        if what not in self.expressions.read:
            head = self.writer.lines[place - 1][0]
            indent = head[: len(head) - len(head.lstrip())]
            self.writer.lines.insert(place, (f"{indent}(void){name};", self.writer.source_line))


def has_assertions(body: Stmt) -> bool:
    """Tell whether a statement contains assertions."""
    return any(isinstance(node, Assert) for node in walk_statements(body))


def reports_values(body: Stmt) -> bool:
    """Tell whether a statement contains assertions that report numbers."""
    return any(isinstance(node, Assert) and node.values for node in walk_statements(body))


def _update(stmt: Store) -> Binary | None:
    """Return the value ``C[i] + x`` of a store that can be written as ``C[i] += x``; or None."""
    match stmt.value:
        case Binary("add" | "sub" | "mul" | "div" as op, Load(buffer, indices, None), _) if (
            buffer is stmt.buffer
            and op in LEVELS
            and _is_plain(buffer.dtype)
            and len(indices) == len(stmt.indices)
            and all(map(structural_equal, indices, stmt.indices))
        ):
            return stmt.value
    return None


def _is_plain(dtype: str) -> bool:
    """Tell whether C's operations on a dtype are those of the loop IR."""
    return dtype in ("float32", "float64", "uint32", "uint64")


def _factors(buffer: Buffer) -> Sequence[int | Expr]:
    """Return factors whose product is the number of elements to allocate for a buffer."""
    compact = compact_strides(buffer.shape)
    is_compact = all(str(a) == str(b) for a, b in zip(buffer.strides, compact, strict=True))
    return buffer.shape if is_compact else (buffer.shape[0], buffer.strides[0])


def _about(loop: For) -> str:
    """Return the comment of a loop: its axes, its kind and its pragmas."""
    origins = [str(ref) for ref in loop.origin]
    more = [f"and {len(origins) - MOST_ORIGINS} more"] if len(origins) > MOST_ORIGINS else []
    kind = [] if loop.kind == "serial" else [loop.kind]
    pragmas = [name if value == 1 else f"{name} = {value}" for name, value in loop.annotations]
    return comment(", ".join([*origins[:MOST_ORIGINS], *more, *kind, *pragmas]))
