"""Write expressions; shared and deeply nested parts become constants before the statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer, Interval
from dlcompiler.codegen.c import calls
from dlcompiler.codegen.c.arithmetic import Arithmetic
from dlcompiler.codegen.c.conversions import convert
from dlcompiler.codegen.c.literals import literal
from dlcompiler.codegen.c.sharing import named
from dlcompiler.codegen.c.text import AND, COMPARE, OR, UNARY, Text, choice, conversion
from dlcompiler.codegen.c.writer import Writer
from dlcompiler.codegen.operands import write_operands
from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Load,
    Logical,
    Not,
    Select,
    Var,
    index_const,
)
from dlcompiler.ir.operations import DIVISIONS, fold_index
from dlcompiler.ir.printer import is_negation
from dlcompiler.passes.flatten_storage import flat_index

MAX_RECURSION = 50
"""Depth beyond which operands are written without recursion, which Python limits."""


class Expressions:
    """Writes the expressions of one function.

    Parameters
    ----------
    writer
        Where names are declared.
    arithmetic
        The operations of the language.
    """

    def __init__(self, writer: Writer, arithmetic: Arithmetic) -> None:
        self.writer = writer
        self.arithmetic = arithmetic
        self.variables: dict[Var, str] = {}
        """The identifier of each variable in scope."""
        self.buffers: dict[Buffer, str] = {}
        """The identifier of each buffer in scope."""
        self.read: set[Var | Buffer] = set()
        """What the text reads; compilers warn about variables that are only set."""
        self.written: set[Buffer] = set()
        """The buffers that the text writes."""
        self._ranges: dict[Var, Interval] = {}
        self._extents: dict[Var, Expr] = {}
        self._analyzer: Analyzer | None = None
        self._named: set[int] = set()
        # By `id` of the node. The node is kept with its text, so that no new node gets its id.
        self._texts: dict[int, tuple[Expr, Text]] = {}
        self._depth = 0

    # -- variables --------------------------------------------------------------------------------

    def bind(self, var: Var, name: str, extent: Expr | None = None) -> None:
        """Declare the identifier of a variable, and the extent of its loop if it has one."""
        self.variables[var] = name
        self._analyzer = None
        self._ranges.pop(var, None)
        self._extents.pop(var, None)
        if isinstance(extent, Const):
            self._ranges[var] = Interval(0, max(int(extent.value) - 1, 0))
        elif extent is not None:
            self._extents[var] = extent
        elif var.is_symbol and dtypes.is_index(var.dtype):
            self._ranges[var] = Interval(0, float("inf"))

    @property
    def analyzer(self) -> Analyzer:
        """What is known about the variables in scope."""
        if self._analyzer is None:
            self._analyzer = Analyzer(dict(self._ranges), dict(self._extents))
        return self._analyzer

    def least(self, expr: Expr) -> float:
        """Return a lower bound of an index."""
        return self.analyzer.interval(expr).low

    # -- statements -------------------------------------------------------------------------------

    def start(self, *roots: Expr) -> None:
        """Begin a statement with these expressions; the names of the last statement are dropped."""
        self._texts = {}
        parts = named(roots)
        self._named = parts.all
        for node in parts.harmless:  # the others only where a chosen side needs them
            self.value(node)

    def value(self, node: Expr) -> Text:
        """Return the text of an expression of the statement."""
        if isinstance(node, Const):
            return literal(node.value, node.dtype)
        if isinstance(node, Var):
            return self._variable(node)
        known = self._texts.get(id(node))
        if known is not None:
            return known[1]
        if self._depth >= MAX_RECURSION:
            write_operands(node, self._texts, self.value)
        self._depth += 1
        text = self._write(node)
        self._depth -= 1
        if id(node) in self._named:
            text = self._declared(node.dtype, text)
        self._texts[id(node)] = node, text
        return text

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Text:
        """Return the lvalue of an element in memory."""
        return Text(f"{self.buffers[buffer]}[{self.value(flat_index(buffer, indices)).text}]")

    def stored(self, value: Expr) -> Text:
        """Return a value as it is stored in memory: floats of 16 bits as integers of their bits."""
        if value.dtype not in self.arithmetic.dialect.stored:
            return self.value(value)
        if dtypes.is_bool(value.dtype):  # a load compares with 0, so that 0 or 1 is stored
            return self.value(value)
        if isinstance(value, Load) and value.predicate is None:
            return self._loaded(value)
        return self.arithmetic.helpers.call("from_f32", value.dtype, self.value(value))

    def _loaded(self, load: Load) -> Text:
        self.read.add(load.buffer)
        return self.element(load.buffer, load.indices)

    def _variable(self, node: Var) -> Text:
        if node not in self.variables:
            raise InternalError("generate C code", f"{node.name} has no value here")
        self.read.add(node)
        return Text(self.variables[node])

    def _declared(self, dtype: str, text: Text) -> Text:
        """Write a constant that holds a value, and return its name."""
        name = self.writer.names.new("v")
        self.writer.line(f"const {self.type_of(dtype)} {name} = {text.text};")
        return Text(name)

    def type_of(self, dtype: str) -> str:
        """Return the type of a value."""
        if dtype not in self.arithmetic.dialect.types:
            raise InternalError("generate C code", f"a vector is left: {dtype}")
        return self.arithmetic.dialect.types[dtype]

    def _write(self, node: Expr) -> Text:  # noqa: C901 - one case per node
        arithmetic, value = self.arithmetic, self.value
        match node:
            case Binary(op, a, b) if dtypes.is_index(node.dtype):
                return self._index(node)
            case Binary("sub", Const(number, dtype), b) if dtypes.is_float(dtype) and is_negation(
                number, dtype
            ):
                return arithmetic.negated(value(b))
            case Binary(op, a, b):
                return arithmetic.binary(op, node.dtype, value(a), value(b))
            case Load(buffer, _, None):
                text = self._loaded(node)
                if dtypes.is_bool(buffer.dtype):
                    return Text(f"{text.text} != 0", COMPARE)
                if buffer.dtype in arithmetic.dialect.stored:
                    return arithmetic.helpers.call("to_f32", buffer.dtype, text)
                return text
            case Load(buffer, indices, predicate) if predicate is not None:
                zero = Const(0, buffer.dtype)
                return self._choice(predicate, Load(buffer, indices), zero)
            case Compare(op, a, b):
                return arithmetic.compare(op, a.dtype, value(a), value(b))
            case Cast(inner, dtype):
                return convert(arithmetic, value(inner), inner.dtype, dtype)
            case Select(condition, a, b):
                return self._chosen(node.dtype, value(condition), value(a), value(b))
            case IfThenElse(condition, a, b):
                return self._choice(condition, a, b)
            case Logical():
                return self._logical(node)
            case Not(inner):
                return Text(f"!{value(inner).at(UNARY)}", COMPARE)  # in parentheses beside ==
            case Call(name, arguments, _):
                texts = tuple(value(argument) for argument in arguments)
                return calls.call(arithmetic, name, arguments[0].dtype, texts)
        raise InternalError("generate C code", f"unknown expression {type(node).__name__}")

    # -- indices ----------------------------------------------------------------------------------

    def _index(self, node: Binary) -> Text:
        """Return an operation on indices, with constants folded."""
        number = self._number(node)
        if number is not None:
            return literal(number, "index")
        op, a, b = node.op, node.a, node.b
        left, right = self._number(a), self._number(b)
        if (op, right) in (("add", 0), ("sub", 0), ("mul", 1), ("floordiv", 1), ("truncdiv", 1)):
            return self.value(a)
        if (op, left) in (("add", 0), ("mul", 1)):
            return self.value(b)
        if (op, left) == ("sub", 0):
            return self.arithmetic.negated(self.value(b))
        if op == "mul" and right is not None and isinstance(a, Binary) and a.op == "mul":
            inner = self._number(a.b)
            if inner is not None:
                return self._index(Binary("mul", a.a, index_const(inner * right)))
        if op == "add" and right is not None and right < 0:
            return self.arithmetic.binary("sub", "index", self.value(a), literal(-right, "index"))
        if op in DIVISIONS and self.least(a) >= 0 and self.least(b) >= 1:
            return self.arithmetic.quotient(op, self.value(a), self.value(b))
        return self.arithmetic.binary(op, "index", self.value(a), self.value(b))

    def _number(self, expr: Expr) -> int | None:
        """Return the value of an index if it is a constant."""
        match expr:
            case Const(value, "index"):
                return int(value)
            case Binary(op, Const(a, "index"), Const(b, "index")):
                return fold_index(op, int(a), int(b))
            case Binary("mul", a, b, dtype="index"):
                return 0 if 0 in (self._number(a), self._number(b)) else None
        return None

    # -- conditions and choices -------------------------------------------------------------------

    def _choice(self, condition: Expr, a: Expr, b: Expr) -> Text:
        """Return a choice that computes only one side; an ``if`` if a side declares constants."""
        decided = self.value(condition)
        name, sides = self.writer.names.new("v"), []
        for side in (a, b):
            with self._scope(), self.writer.aside() as lines:
                text = self.value(side)
                sides.append((text, lines))
        if not any(lines for _, lines in sides):
            self.writer.names.release(name)
            return self._chosen(a.dtype, decided, sides[0][0], sides[1][0])
        self.writer.line(f"{self.type_of(a.dtype)} {name};")
        self.writer.line(f"if ({decided.text}) {{")
        for number, (text, lines) in enumerate(sides):
            self.writer.extend(lines)
            with self.writer.inside():
                self.writer.line(f"{name} = {text.text};")
            self.writer.line("} else {" if number == 0 else "}")
        return Text(name)

    def _chosen(self, dtype: str, condition: Text, a: Text, b: Text) -> Text:
        if dtypes.is_index(dtype):  # the choice between two literals would have type int
            a = conversion(self.type_of(dtype), a)
        return choice(condition, a, b)

    def _logical(self, node: Logical) -> Text:
        """Return ``and`` or ``or``; the second side is computed only if it decides the result."""
        symbol, level = ("&&", AND) if node.op == "and" else ("||", OR)
        first, name = self.value(node.a), self.writer.names.new("v")
        with self._scope(), self.writer.aside() as lines:
            second = self.value(node.b)
        if not lines:
            self.writer.names.release(name)
            left = first.text if first.level == level else first.at(COMPARE)
            return Text(f"{left} {symbol} {second.at(COMPARE)}", level)
        self.writer.line(f"bool {name} = {first.text};")
        self.writer.line(f"if ({name if node.op == 'and' else f'!{name}'}) {{")
        self.writer.extend(lines)
        with self.writer.inside():
            self.writer.line(f"{name} = {second.text};")
        self.writer.line("}")
        return Text(name)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Write code that may not run: names declared in it are dropped afterwards."""
        texts = self._texts
        self._texts = dict(texts)
        try:
            yield
        finally:
            self._texts = texts
