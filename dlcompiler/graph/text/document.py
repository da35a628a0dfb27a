"""Modules as JSON: all nodes in one list, operands first, so that shared nodes stay shared.

The text is parsed and checked, never evaluated, so texts from unknown sources are safe to read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NoReturn, TypeAlias, TypeVar

from dlcompiler.errors import DLCompilerError, GraphError
from dlcompiler.graph.decisions import Wish, decision_of, rows_of
from dlcompiler.graph.ir import (
    ANY,
    AttrValue,
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    Let,
    Module,
    Node,
    Op,
    Span,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    op,
    post_order,
)
from dlcompiler.graph.ir.nodes import EXPRESSIONS
from dlcompiler.graph.ir.structural import digest_of
from dlcompiler.graph.text.constants import constant_of, constant_row
from dlcompiler.json_text import JsonError, parse

FORMAT = "dlcompiler graph"
VERSION = 1
DEEPEST = 400
"""Most lists and objects inside each other; types may be nested half as deep; [1]."""

Row: TypeAlias = dict[str, Any]
T = TypeVar("T")
N = TypeVar("N", bound=Node)


def to_json(module: Module) -> str:
    """Return a module as JSON: its functions, decisions and wishes.

    Parameters
    ----------
    module : Module
        The module.

    Examples
    --------
    >>> from dlcompiler import graph
    >>> from dlcompiler.graph import op
    >>> module = graph.Module.from_expr(op.exp(graph.var("x", (3,))))
    >>> graph.modules_equal(graph.from_json(graph.to_json(module)), module)
    True
    """
    writer = _Writer()
    functions = {name: writer.add(function) for name, function in module.functions.items()}
    return json.dumps({
        "format": FORMAT, "version": VERSION, "functions": functions, "nodes": writer.rows,
        "constants": [constant_row(constant) for constant in writer.stored],
        "log": rows_of(module.log),
        "wishes": [asdict(wish) for wish in module.wishes],
    })  # fmt: skip


def from_json(text: str | bytes) -> Module:
    """Read a module that `to_json` wrote.

    Parameters
    ----------
    text : str or bytes
        The JSON.

    Raises
    ------
    GraphError
        If the text is not a module; the error names the node.
    """
    try:
        data = parse(text, deepest=DEEPEST)
    except JsonError as error:
        _refuse(f"not JSON: {error}")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        _refuse("not a graph", expected=f'"format": "{FORMAT}"')
    if data.get("version") != VERSION:
        _refuse("another version", got=repr(data.get("version")), expected=VERSION)
    constants = _each(data, "constants", constant_of)
    reader = _Reader(constants)
    _each(data, "nodes", reader.add)
    functions = data.get("functions")
    if not isinstance(functions, dict):
        _refuse("functions: not an object")
    log = _each(data, "log", decision_of)
    wishes = _each(data, "wishes", _wish)
    try:
        found = {name: reader.node(place, Function) for name, place in functions.items()}
    except (TypeError, ValueError) as error:
        _refuse(f"functions: {error}")
    return Module(found, tuple(log), tuple(wishes))


def _refuse(problem: str, *, got: object = None, expected: object = None) -> NoReturn:
    raise GraphError("read a graph from JSON", problem, got=got, expected=expected)


def _each(data: Row, key: str, read: Callable[[Any], T]) -> list[T]:
    """Read each entry of a list; refuse the first that is wrong, by its number."""
    rows = data.get(key)
    if not isinstance(rows, list):
        _refuse(f"{key}: not a list")
    found = []
    for number, row in enumerate(rows):
        try:
            if not isinstance(row, dict):
                raise TypeError("not an object")
            found.append(read(row))
        except KeyError as error:
            _refuse(f"{key}, entry {number}: no {error.args[0]!r}")
        except DLCompilerError as error:
            _refuse(f"{key}, entry {number}: {error.problem or error}", got=error.got)
        except (TypeError, ValueError, OverflowError) as error:
            _refuse(f"{key}, entry {number}: {error}")
    return found


# -- writing --------------------------------------------------------------------------------------


class _Writer:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.places: dict[int, int] = {}
        self.stored: list[Constant] = []
        self.constants: dict[tuple[str, str], int] = {}

    def add(self, function: Function) -> int:
        """Write a function and all that it needs; return its place in the list of nodes."""
        for node in post_order(function, done=set(self.places)):
            if not isinstance(node, Op):
                row = {"kind": type(node).__name__, **self.fields(node)}
                span = getattr(node, "span", None)
                if span is not None:
                    row["span"] = [span.file, span.node, span.line]
                self.places[id(node)] = len(self.rows)
                self.rows.append(row)
        return self.places[id(function)]

    def at(self, nodes: Sequence[Node]) -> list[int]:
        return [self.places[id(node)] for node in nodes]

    def fields(self, node: Node) -> Row:
        """Return what a node holds, with the places of its children."""
        match node:
            case Var(name, kind):
                return {"name": name, "type": type_row(kind)}
            case Constant(_, name):
                return {"name": name, "constant": self.constant(node)}
            case GlobalVar(name):
                return {"name": name}
            case Call(callee, args, attrs, name):
                called = callee.name if isinstance(callee, Op) else self.places[id(callee)]
                return {"op": called, "args": self.at(args), "attrs": _attrs_row(attrs),
                        "name": name}  # fmt: skip
            case Tuple(fields):
                return {"fields": self.at(fields)}
            case TupleGetItem(value, index):
                return {"value": self.places[id(value)], "index": index}
            case Let(var, value, body):
                return {"parts": self.at((var, value, body))}
            case If(condition, then, otherwise):
                return {"parts": self.at((condition, then, otherwise))}
            case Function(params, body, result, attrs):
                return {"params": self.at(params), "body": self.places[id(body)],
                        "result": type_row(result), "attrs": _attrs_row(attrs)}  # fmt: skip
        raise AssertionError(node)

    def constant(self, node: Constant) -> int:
        """Return the place of an array; equal arrays are written once."""
        key = (str(node.type), digest_of(node))
        if key not in self.constants:
            self.constants[key] = len(self.stored)
            self.stored.append(node)
        return self.constants[key]


def type_row(kind: Type | None) -> Row | None:
    """Return a type as JSON values."""
    match kind:
        case TensorType(shape, dtype):
            return {"shape": [None if e is ANY else e for e in shape], "dtype": dtype}
        case TupleType(fields):
            return {"fields": [type_row(field) for field in fields]}
        case FuncType(params, result):
            return {"params": [type_row(p) for p in params], "result": type_row(result)}
    return None


def _attrs_row(attrs: Mapping[str, AttrValue]) -> Row:
    return {name: _attr_row(value) for name, value in attrs.items()}


def _attr_row(value: AttrValue) -> Any:
    if isinstance(value, tuple):
        return [_attr_row(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    return value


# -- reading --------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, constants: Sequence[Constant]) -> None:
        self.constants = constants
        self.nodes: list[Expr] = []

    def node(self, place: object, kind: type[N] | tuple[type[N], ...]) -> Any:
        """Return a node that was read before, and is of a kind."""
        found = self.nodes[_place(place, len(self.nodes))]
        if not isinstance(found, kind):
            raise ValueError(f"node {place} is a {type(found).__name__}")
        return found

    def several(self, places: object, kind: Any = EXPRESSIONS) -> tuple[Any, ...]:
        return tuple(self.node(place, kind) for place in _list(places))

    def add(self, row: Row) -> None:
        """Read a node whose children were read."""
        self.nodes.append(self.made(row, _span(row.get("span"))))

    def made(self, row: Row, span: Span | None) -> Expr:  # noqa: C901 - one case per node
        match row["kind"]:
            case "Var":
                return Var(_text(row["name"]), _type(row["type"]), span)
            case "Constant":
                stored = self.constants[_place(row["constant"], len(self.constants))]
                return Constant(stored.value, _text(row["name"]), span)
            case "GlobalVar":
                return GlobalVar(_text(row["name"]), span)
            case "Call":
                callee = row["op"]
                called = op(callee) if isinstance(callee, str) else self.node(callee, EXPRESSIONS)
                args = self.several(row["args"])
                return Call(called, args, _attrs(row["attrs"]), _text(row["name"]), span)
            case "Tuple":
                return Tuple(self.several(row["fields"]), span)
            case "TupleGetItem":
                value = self.node(row["value"], EXPRESSIONS)
                return TupleGetItem(value, _integer(row["index"]), span)
            case "Let":
                var, value, body = self.several(row["parts"])
                if not isinstance(var, Var):
                    raise ValueError("a let of something else than a variable")
                return Let(var, value, body, span)
            case "If":
                condition, then, otherwise = self.several(row["parts"])
                return If(condition, then, otherwise, span)
            case "Function":
                params, body = self.several(row["params"], Var), self.node(row["body"], EXPRESSIONS)
                return Function(params, body, _type(row["result"]), _attrs(row["attrs"]), span)
            case kind:
                raise ValueError(f"no kind of node: {str(kind)[:80]!r}")


def _wish(row: Row) -> Wish:
    subject = tuple(map(_text, _list(row["subject"])))
    if row["kind"] not in ("fuse", "keep apart") or len(subject) != 2:
        raise ValueError("not a wish about two calls")
    beside = tuple(map(_text, _list(row.get("beside", []))))
    return Wish(row["kind"], subject, beside)


def _place(place: object, count: int) -> int:
    number = _integer(place)
    if not 0 <= number < count:
        raise ValueError(f"{number} is no entry before this one")
    return number


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"not an integer: {str(value)[:80]!r}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {str(value)[:80]!r}")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"not a list: {str(value)[:80]!r}")
    return value


def _span(value: object) -> Span | None:
    if value is None:
        return None
    file, node, line = _list(value)
    return Span(_text(file), _text(node), _integer(line))


def _type(row: Any) -> Type | None:
    return None if row is None else known_type(row)


def known_type(row: Any) -> Type:
    """Return the type that `type_row` wrote.

    Raises
    ------
    TypeError, KeyError
        It wrote something else.
    """
    if not isinstance(row, dict):
        raise TypeError(f"not a type: {str(row)[:80]!r}")
    if "shape" in row:
        shape = tuple(ANY if e is None else _integer(e) for e in _list(row["shape"]))
        return TensorType(shape, _text(row["dtype"]))
    if "fields" in row:
        return TupleType(tuple(map(known_type, _list(row["fields"]))))
    return FuncType(tuple(map(known_type, _list(row["params"]))), known_type(row["result"]))


def _attrs(row: object) -> dict[str, AttrValue]:
    if not isinstance(row, dict):
        raise TypeError("attributes are not an object")
    return {name: _attr(value) for name, value in row.items()}


def _attr(value: Any) -> AttrValue:
    if isinstance(value, list):
        return tuple(map(_attr, value))
    if isinstance(value, dict):
        if value.get("number") not in ("inf", "-inf", "nan"):
            raise ValueError(f"not a value of an attribute: {str(value)[:80]!r}")
        return float(value["number"])
    return value  # type: ignore[no-any-return]  # None, a bool, a number or a text
