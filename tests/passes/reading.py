"""Reads the text of the loop IR back, so that tests of passes are texts."""

from __future__ import annotations

import ast
import itertools
import re

from dlcompiler import dtypes
from dlcompiler.ir import (
    THREADS,
    Allocate,
    Assert,
    Barrier,
    Broadcast,
    Buffer,
    Call,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Logical,
    Not,
    Prefetch,
    PrimFunc,
    Ramp,
    Select,
    StepRef,
    Store,
    Var,
    Window,
    as_expr,
    binary,
    compare,
    const,
    index_const,
    seq,
)

STAGE = StepRef("", "C")
KINDS = ("range", "parallel", "vectorized", "unrolled", *THREADS)
OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "FloorDiv": "floordiv",
    "Mod": "floormod", "RShift": "shr", "LShift": "shl",
}  # fmt: skip
COMPARISONS = {"Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge", "Eq": "eq", "NotEq": "ne"}
RAMP = re.compile(r"(\w*)\(((?:[^():]|\([^():]*\))*) : \+(\d+)(?::(-?\d+))?\)")
DECLARATION = (
    r"([\w.]+): (\w+)(?:\[([^\]]*)\])?( in [\w.-]+)?(, twice per [\w.]+)?(, rolling by .*)?"
)


def read(text: str, outputs=("C",)) -> PrimFunc:
    """Return the function of a text that begins with its ``def``."""
    return _Reader(text, outputs).func()


class _Reader:
    def __init__(self, text, outputs):
        self.lines = [line for line in text.splitlines() if line.strip()]
        self.at = 1
        self.names, self.origins = {}, {}
        self.ahead = {}  # variables of loops that an allocation around them names
        head = self.lines[0].strip()
        self.name, params = re.fullmatch(r"def (\w+)\((.*)\):", head).groups()
        self.symbols = []
        self.params = [self.declare(found) for found in re.finditer(DECLARATION, params)]
        self.outputs = tuple(p for p in self.params if p.name in outputs)

    def func(self):
        body = self.block(self.depth(self.lines[1]))
        axes = {STAGE: frozenset()}
        params, symbols = tuple(self.params), tuple(self.symbols)
        return PrimFunc(self.name, params, self.outputs, body, axes, symbols)

    # -- declarations ------------------------------------------------------------------------------

    def declare(self, found):
        name, dtype, shape, scope, *_ = found.groups()
        if shape is None:
            self.names[name] = Var(name, dtype)
            return self.names[name]
        parts = [part.split(",") for part in shape.split("|")]
        extents = tuple(self.extent(item) for part in parts for item in part if item.strip())
        scope = (scope or " in global").removeprefix(" in ")
        separators = tuple(itertools.accumulate(map(len, parts[:-1])))
        self.names[name] = Buffer(name, extents, dtype, scope, separators=separators)
        return self.names[name]

    def extent(self, text):
        for name in re.findall(r"[A-Za-z_]\w*", text):
            if name not in self.names:
                self.names[name] = Var(name)
                self.symbols.append(self.names[name])
        value = self.expr(text)
        return value if not hasattr(value, "value") else int(value.value)

    # -- statements --------------------------------------------------------------------------------

    @staticmethod
    def depth(line):
        return len(line) - len(line.lstrip())

    def block(self, depth):
        statements = []
        while self.at < len(self.lines) and self.depth(self.lines[self.at]) == depth:
            text = self.lines[self.at].strip()
            self.at += 1
            if scoped := self.scoped(text, depth):
                statements.append(scoped)
                break
            statements.append(self.statement(text, depth))
        return seq(statements)

    def scoped(self, text, depth):
        """Return a statement that reaches to the end of its block."""
        if text.startswith("allocate "):
            found = re.fullmatch(DECLARATION, text.removeprefix("allocate "))
            buffer = self.declare(found)
            double, window = self.double(found[5]), self.window(found[6])
            return Allocate(buffer, self.block(depth), (), double, window)
        if (found := re.fullmatch(r"([\w.]+) = (.*)", text)) and found[1] not in self.names:
            value = self.expr(found[2])
            var = self.names[found[1]] = Var(found[1], value.dtype)
            return Let(var, value, self.block(depth))
        return None

    def double(self, text):
        """Return the loop that fills a buffer ahead: ``, twice per y``; it may be further in."""
        if text is None:
            return None
        name = text.removeprefix(", twice per ")
        known = self.names.get(name)
        return self.ahead.setdefault(name, Var(name)) if known is None else known

    def window(self, text):
        """Return how a buffer rolls: ``, rolling by [1, 0] per y``."""
        if text is None:
            return None
        steps, name = re.fullmatch(r", rolling by \[(.*)\] per ([\w.]+)", text).groups()
        return Window(self.names[name], tuple(map(int, steps.split(","))))

    def statement(self, text, depth):
        text, *pragmas = text.split("  # ")
        if found := re.fullmatch(rf"for ([\w.]+) in ({'|'.join(KINDS)})\((.*)\):", text):
            annotations = tuple(_pragma(item) for item in pragmas)
            return self.loop(*found.groups(), annotations, depth)
        if text.startswith("if "):
            condition = self.expr(text[3:-1])
            then, rest = self.block(depth + 4), None
            if self.at < len(self.lines) and self.lines[self.at] == " " * depth + "else:":
                self.at += 1
                rest = self.block(depth + 4)
            return If(condition, then, rest)
        if text == "barrier":
            return Barrier()
        if text == "pass":
            return seq(())
        if text.startswith("prefetch "):
            load = self.expr(text.removeprefix("prefetch "))
            return Prefetch(load.buffer, load.indices)
        if text.startswith("assert "):
            condition, message = text.removeprefix("assert ").split(", ", 1)
            return Assert(self.expr(condition), ast.literal_eval(message))
        return self.store(text)

    def loop(self, name, kind, extent, annotations, depth):
        count = self.expr(extent)
        outer = self.names.get(name)
        var = self.names[name] = self.ahead.pop(name) if name in self.ahead else Var(name)
        body = self.block(depth + 4)
        if outer is not None:
            self.names[name] = outer
        else:
            del self.names[name]
        return For(var, count, kind.replace("range", "serial"), body, (), annotations)

    def store(self, text):
        target, operator, value = re.fullmatch(r"(.*?\]) (\+|\*|min|max)?= (.*)", text).groups()
        load, value = self.expr(target), self.expr(value)
        if operator:
            op = {"+": "add", "*": "mul"}.get(operator, operator)
            value = binary(op, load, value)
        if getattr(value, "dtype", "") == "index":
            value = const(value.value, load.dtype)
        return Store(load.buffer, load.indices, value, (STAGE,))

    # -- expressions -------------------------------------------------------------------------------

    def expr(self, text):
        # The names of loops have dots, which mean attributes to Python.
        text = RAMP.sub(_as_call, text)
        names = sorted((n for n in self.names if "." in n), key=len, reverse=True)
        for name in names:
            text = re.sub(rf"\b{re.escape(name)}\b(?!\.)", name.replace(".", "__"), text)
        self.plain = {name.replace(".", "__"): value for name, value in self.names.items()}
        return self.as_index(self.node(ast.parse(text.strip(), mode="eval").body))

    @staticmethod
    def as_index(value):
        return index_const(value) if type(value) is int else as_expr(value)

    def node(self, node):
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return self.plain[name]
            case ast.UnaryOp(ast.USub(), operand):
                return -self.node(operand)
            case ast.UnaryOp(ast.Not(), operand):
                return Not(self.node(operand))
            case ast.BinOp(a, op, b):
                x, y = self.node(a), self.node(b)
                if type(x) is int and type(y) is int:
                    x = index_const(x)
                return binary(OPERATORS[type(op).__name__], x, y)
            case ast.Compare(a, [op], [b]):
                return compare(COMPARISONS[type(op).__name__], self.node(a), self.node(b))
            case ast.BoolOp(op, values):
                name = "and" if isinstance(op, ast.And) else "or"
                result, *rest = map(self.node, values)
                for value in rest:
                    result = Logical(name, result, value)
                return result
            case ast.Subscript(buffer, index):
                items = index.elts if isinstance(index, ast.Tuple) else [index]
                indices = tuple(self.index(item) for item in items)
                return Load(self.node(buffer), indices)
            case ast.Call(ast.Name(name), args):
                return self.call(name, [self.node(arg) for arg in args])
        raise AssertionError(ast.dump(node))

    def index(self, node):
        if not isinstance(node, ast.Slice):
            return self.as_index(self.node(node))
        step = self.as_index(self.node(node.step)) if node.step else index_const(1)
        base = self.as_index(self.node(node.lower))
        return Ramp(base, step, node.upper.operand.value)

    def call(self, name, args):
        if name in ("min", "max"):
            return binary(name, *args)
        if name == "ramp":
            base = self.as_index(args[0])
            return Ramp(base, const(args[2], base.dtype), args[1])
        if name == "broadcast":
            return Broadcast(self.as_index(args[0]), args[1])
        if name in ("select", "if_then_else"):
            kind = Select if name == "select" else IfThenElse
            a, b = args[1:]
            b = as_expr(b, getattr(a, "dtype", None))
            return kind(args[0], as_expr(a, b.dtype), b)
        if dtypes.is_dtype(name):
            return as_expr(args[0]).astype(name)
        return Call(name, tuple(map(as_expr, args)), as_expr(args[0]).dtype)


def _as_call(found):
    """Return a vector of numbers, which Python has no text for, as a call."""
    name, base, lanes, step = found.groups()
    ramp = f"ramp({base}, {lanes}, {step or 1})"
    return f"{name}({ramp})" if name else ramp


def _pragma(text):
    name, value = text.split(" = ")
    return name.strip(), int(value) if value.strip().isdigit() else value.strip()
