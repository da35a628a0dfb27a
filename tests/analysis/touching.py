"""Find the elements that loops access by running a program step by step, without any analysis."""

from collections import defaultdict
from collections.abc import Callable

from dlcompiler import dtypes
from dlcompiler.ir import (
    Allocate,
    Assert,
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Logical,
    Not,
    Prefetch,
    Seq,
    Store,
    Var,
)
from dlcompiler.ir.rewrite import children

ARITHMETIC: dict[str, Callable] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b, "min": min, "max": max,
}  # fmt: skip
RELATIONS: dict[str, Callable] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


class TooLongError(Exception):
    """The program takes more steps than are wanted."""


class DataError(Exception):
    """An index or a condition depends on data."""


class Touching:
    """Runs a program: ``one[loop]``, ``whole[loop]`` are the most elements touched, by buffer.

    ``lines[loop]`` are the most cache lines that one iteration touches.
    """

    def __init__(self, func, max_steps=20_000):
        self.left = max_steps
        self.values = {}
        self.open = []
        self.one = defaultdict(lambda: defaultdict(int))
        self.whole = defaultdict(lambda: defaultdict(int))
        self.lines = defaultdict(lambda: defaultdict(int))
        self.points = defaultdict(int)
        self.all = defaultdict(set)
        self.run(func.body)

    def run(self, stmt):
        match stmt:
            case For():
                self.loop(stmt)
            case Seq(statements):
                for each in statements:
                    self.run(each)
            case If(condition, then, otherwise):
                self.loads(condition)
                if self.value(condition):
                    self.run(then)
                elif otherwise is not None:
                    self.run(otherwise)
            case Allocate(_, body):
                self.run(body)
            case Let(var, value, body):
                self.loads(value)
                self.values[var] = value
                self.run(body)
            case Store(buffer, indices, value):
                self.left -= 1
                if self.left < 0:
                    raise TooLongError
                self.points[stmt] += 1
                for expr in (*indices, value):
                    self.loads(expr)
                self.touch(buffer, indices)
            case Prefetch() | Assert():
                pass
            case _:
                raise AssertionError(stmt)

    def loop(self, loop):
        whole = defaultdict(set)
        for n in range(self.value(loop.extent)):
            self.values[loop.var] = n
            self.open.append(defaultdict(set))
            self.run(loop.body)
            for buffer, elements in self.open.pop().items():
                self.one[loop][buffer] = max(self.one[loop][buffer], len(elements))
                lines = len({self.line(buffer, element) for element in elements})
                self.lines[loop][buffer] = max(self.lines[loop][buffer], lines)
                whole[buffer] |= elements
        for buffer, elements in whole.items():
            self.whole[loop][buffer] = max(self.whole[loop][buffer], len(elements))

    def line(self, buffer, element):
        at = zip(element, buffer.static_strides, strict=True)
        place = sum(index * stride for index, stride in at)
        return place * dtypes.bytes_of(buffer.dtype) // 64

    def touch(self, buffer, indices):
        element = tuple(self.value(index) for index in indices)
        self.all[buffer].add(element)
        for seen in self.open:
            seen[buffer].add(element)

    def loads(self, expr):
        match expr:
            case IfThenElse(condition, a, b):
                self.loads(condition)
                self.loads(a if self.value(condition) else b)
            case Logical(op, a, b):
                self.loads(a)
                if bool(self.value(a)) == (op == "and"):
                    self.loads(b)
            case Load(buffer, indices):
                for index in indices:
                    self.loads(index)
                self.touch(buffer, indices)
            case _:
                for child in children(expr):
                    self.loads(child)

    def value(self, expr):
        match expr:
            case Const(value, _):
                return value
            case Var():
                value = self.values[expr]
                return value if isinstance(value, int) else self.value(value)
            case Binary(op, a, b) if op in ARITHMETIC:
                return ARITHMETIC[op](self.value(a), self.value(b))
            case Compare(op, a, b):
                return RELATIONS[op](self.value(a), self.value(b))
            case Logical(op, a, b):
                first = bool(self.value(a))
                return self.value(b) if first == (op == "and") else first
            case Not(a):
                return not self.value(a)
            case Call("likely", (inner,), _) | Cast(inner, _) | Broadcast(inner, _):
                return self.value(inner)
            case IfThenElse(condition, a, b):
                return self.value(a if self.value(condition) else b)
        raise DataError
