"""Print modules and expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.ir import (
    AttrValue,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Module,
    Node,
    Op,
    Tuple,
    TupleGetItem,
    Type,
    Var,
)
from dlcompiler.graph.ir.scopes import Scope, Scopes
from dlcompiler.graph.ir.structural import digest_of
from dlcompiler.graph.text.constants import constant_row
from dlcompiler.graph.text.lexer import METADATA

VERSION = '#[version = "0.0.5"]'
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
SUFFIXES = {"float32": "f", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int32": ""}
"""Dtype -> what follows a number of it; of other integers: ``i64``, ``u8``, …"""


def module_text(
    module: Module, *, metadata: bool = True, notes: Mapping[Node, str] | None = None
) -> str:
    """Return a module as text that `parse` reads.

    Parameters
    ----------
    module : Module
        The module.
    metadata : bool
        Append the constants, which may be long. Without them the text cannot be read back.
    notes : mapping, optional
        Comments behind the lines of calls.
    """
    printer = _Printer(notes or {})
    functions = [printer.function(name, f) for name, f in module.functions.items()]
    parts = [VERSION, *functions]
    if metadata and printer.stored:
        parts.append(f"{METADATA}\n{printer.metadata()}")
    return "\n\n".join(parts) + "\n"


def expr_text(expr: Expr, *, notes: Mapping[Node, str] | None = None) -> str:
    """Return an expression as text; constants other than numbers are only numbered.

    Parameters
    ----------
    expr : Expr
        The expression.
    notes : mapping, optional
        Comments behind the lines of calls.
    """
    printer = _Printer(notes or {})
    scopes = Scopes(expr)
    return "\n".join(printer.block(scopes, scopes.outermost, ""))


def global_text(name: str) -> str:
    """Return the name of a function of a module as text."""
    return "@" + _name_text(name)


def _name_text(name: str) -> str:
    return name if IDENTIFIER.fullmatch(name) else json.dumps(name)


def attr_text(value: AttrValue) -> str:
    """Return the value of an attribute as text.

    >>> attr_text((1, 2)), attr_text(1e-05), attr_text("NCHW"), attr_text(None)
    ('[1, 2]', '1e-05f', '"NCHW"', 'None')
    """
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(attr_text, value))}]"
    if isinstance(value, float):
        return f"{value!r}f"
    return repr(value)


def number_text(constant: Constant) -> str | None:
    """Return a constant as a number in the text; None if it is no scalar, or not finite."""
    value = constant.value
    dtype = dtypes.from_numpy(value.dtype)
    if value.ndim or (dtypes.is_float(dtype) and not np.isfinite(value)):
        return None
    if dtypes.is_bool(dtype):
        return str(bool(value))
    suffix = SUFFIXES.get(dtype, dtype.replace("uint", "u").replace("int", "i"))
    return f"{value.item() if dtypes.is_int(dtype) else str(value)}{suffix}"


def _annotation(kind: Type | None) -> str:
    return "" if kind is None else f": {kind!r}"


class _Printer:
    """Names of what is printed, and constants in order of appearance."""

    def __init__(self, notes: Mapping[Node, str]) -> None:
        self.notes = notes
        self.names: dict[Node, str] = {}
        self.taken: set[str] = set()
        self.constants: dict[tuple[str, ...], int] = {}
        self.stored: list[Constant] = []
        self.count = 0

    def function(self, name: str, function: Function) -> str:
        """Return a function of a module."""
        self.taken, self.count = set(), 0
        scopes = Scopes(function)
        head = f"def {global_text(name)}{self.signature(function)} {{"
        return "\n".join([head, *self.body(function, scopes, "  "), "}"])

    def signature(self, function: Function) -> str:
        """Return the parameters, attributes and result of a function."""
        params = [f"{self.variable(p)}{_annotation(p.type)}" for p in function.params]
        params += _attrs_text(function.attrs)
        result = f" -> {function.result!r}" if function.result is not None else ""
        return f"({', '.join(params)}){result}"

    def body(self, function: Function, scopes: Scopes, indent: str) -> list[str]:
        """Return the lines inside a function."""
        return self.block(scopes, scopes.entered[function, len(function.params)], indent)

    def block(self, scopes: Scopes, scope: Scope, indent: str) -> list[str]:
        """Return the lines of a scope; the last one is its value."""
        lines: list[str] = []
        # The value of a let may use its variable, as a function that calls itself does.
        inline = {let.value for let in scope.lets if scopes.uses[let.value] == 1}
        for node in scopes.statements(scope):
            note = f"  /* {_comment(self.notes[node])} */" if node in self.notes else ""
            if isinstance(node, Let) and node in scope.lets:
                head = f"let {self.variable(node.var)}{_annotation(node.var.type)}"
                lines.append(f"{indent}{head} = {self.name(node.value)};{note}")
            elif node is scope.result:
                self.names[node] = f"{self.value(node, scopes, indent)}{note}"
            elif isinstance(node, Constant | GlobalVar | TupleGetItem) or node in inline:
                self.names[node] = self.value(node, scopes, indent)
            else:
                value = self.value(node, scopes, indent)
                self.names[node] = f"%{self.count}"
                self.count += 1
                lines.append(f"{indent}{self.names[node]} = {value};{note}")
        return [*lines, indent + self.name(scope.result)]

    def name(self, node: Node) -> str:
        """Return what stands for a node that was printed before."""
        return self.variable(node) if isinstance(node, Var) else self.names[node]

    def value(self, node: Node, scopes: Scopes, indent: str) -> str:
        """Return what computes a node whose operands have names."""
        match node:
            case Constant():
                return number_text(node) or self.constant(node)
            case GlobalVar(name):
                return global_text(name)
            case Call(callee, args, attrs):
                of = callee.name if isinstance(callee, Op) else self.name(callee)
                parts = [*map(self.name, args), *_attrs_text(attrs)]
                return f"{of}({', '.join(parts)})"
            case Tuple(fields):
                inner = ", ".join(map(self.name, fields))
                return f"({inner},)" if len(fields) == 1 else f"({inner})"
            case TupleGetItem(value, index):
                return f"{self.name(value)}.{index}"
            case Function():
                inside = self.body(node, scopes, f"{indent}  ")
                return "\n".join([f"fn {self.signature(node)} {{", *inside, f"{indent}}}"])
            case If(condition):
                yes, no = (
                    "\n".join(self.block(scopes, scopes.entered[node, place], f"{indent}  "))
                    for place in (1, 2)
                )
                head = f"if ({self.name(condition)}) {{"
                return f"{head}\n{yes}\n{indent}}} else {{\n{no}\n{indent}}}"
            case Let():
                inside = self.block(scopes, scopes.entered[node, 0], f"{indent}  ")
                return "\n".join(["(", *inside, f"{indent})"])
        raise AssertionError(node)

    def variable(self, var: Var) -> str:
        """Return the name of a variable in the text: another one for each variable."""
        if var not in self.names:
            name, number = var.name, 0
            while (text := _name_text(name)) in self.taken:
                number += 1
                name = f"{var.name}_{number}"
            self.taken.add(text)
            self.names[var] = f"%{text}"
        return self.names[var]

    def constant(self, constant: Constant) -> str:
        """Return the reference to a constant of the metadata."""
        key = (str(constant.type), digest_of(constant))
        if key not in self.constants:
            self.constants[key] = len(self.stored)
            self.stored.append(constant)
        return f"meta[relay.Constant][{self.constants[key]}]"

    def metadata(self) -> str:
        """Return the constants as JSON."""
        entries = [constant_row(constant) for constant in self.stored]
        return json.dumps({"relay.Constant": entries})


def _attrs_text(attrs: Mapping[str, AttrValue]) -> list[str]:
    return [f"{_name_text(name)}={attr_text(value)}" for name, value in attrs.items()]


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("\n", " ")
