"""Type inference: relations of operators, and unification of what they leave open.

Each node gets a term: a type, or a cell that is filled in later. The relation of an operator gives
the type of its result, and may give those of arguments: the shape of a weight follows from the data
and the number of channels. A call whose arguments are not known yet is tried again after others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import (
    ANY,
    MAX_SCOPES,
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
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    check_scopes,
    post_order,
    rewrite_from,
)
from dlcompiler.graph.operators import find
from dlcompiler.graph.operators.base import CallTypes, NotKnown, origin_of

CONDITION = TensorType((), "bool")


class _Cell:
    """A type that is not known yet, or that was found."""

    __slots__ = ("term",)

    def __init__(self) -> None:
        self.term: _Term | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Fields:
    """A tuple; the types of some fields may be open."""

    fields: tuple[_Term, ...]
    depth: int = 1
    """Tuples inside each other, as far as they are known; [1]."""


@dataclass(frozen=True, slots=True, eq=False)
class _Arrow:
    """A function; some of its types may be open."""

    params: tuple[_Term, ...]
    result: _Term


_Term: TypeAlias = TensorType | _Cell | _Fields | _Arrow


class Types(Mapping[Node, Type]):
    """The types of the expressions in a module."""

    def __init__(self, types: dict[Node, Type]) -> None:
        self._types = types

    def __getitem__(self, node: Node) -> Type:
        return self._types[node]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def to_dict(self) -> dict[Node, Type]:
        """Return a copy that may change."""
        return self._types.copy()

    def tensor(self, node: Node) -> TensorType:
        """Return the type of a node that is a tensor."""
        kind = self._types[node]
        if not isinstance(kind, TensorType):
            raise GraphError("type of a node", "not a tensor", got=repr(kind))
        return kind


_KNOWN: WeakKeyDictionary[Module, Types] = WeakKeyDictionary()
_COMPLETE: WeakSet[Module] = WeakSet()
"""Modules in which each variable and function has its type."""


def types_of(module: Module) -> Types:
    """Return the type of each expression in a module.

    Parameters
    ----------
    module : Module
        The module.

    Raises
    ------
    GraphError
        If types do not fit, or one cannot be inferred. The error names the operator, the argument,
        and the types.
    """
    if not isinstance(module, Module):
        raise GraphError(
            "infer types", "not a module", got=type(module).__name__,
            hint="Module.from_expr(expression) makes a module of an expression",
        )  # fmt: skip
    known = _KNOWN.get(module)
    if known is None:
        try:
            inference = _Inference(module.functions)
            for name, function in module.functions.items():
                inference.define(name, function)
            known = _KNOWN[module] = Types(inference.solved())
        except RecursionError:  # by way of lets and types of variables
            raise _too_deep() from None
    return known


def type_of(expr: Expr, module: Module | None = None) -> Type:
    """Return the type of an expression.

    Parameters
    ----------
    expr : Expr
        The types of its free variables must be given, or follow from how they are used.
    module : Module, optional
        Has the functions that the expression calls.

    Raises
    ------
    GraphError
        As `types_of`.
    """
    check_scopes(expr, "type of an expression")
    inference = _Inference({} if module is None else module.functions)
    for name, function in inference.functions.items():
        inference.define(name, function)
    inference.add(expr)
    return inference.solved()[expr]


def infer_types(module: Module) -> Module:
    """Return a module in which each variable and function has its type.

    Parameters
    ----------
    module : Module
        The module.

    Raises
    ------
    GraphError
        As `types_of`.
    """
    types = types_of(module)
    if module in _COMPLETE:
        return module

    def rule(old: Node, new: Node) -> Node:
        match new:
            case Var(_, kind) if kind != types[old]:
                return replace(new, type=types[old])
            case Function(result=result):
                found = types[old]
                if isinstance(found, FuncType) and result != found.result:
                    return replace(new, result=found.result)
        return new

    functions = {name: rewrite_from(f, rule) for name, f in module.functions.items()}
    if all(functions[name] is module.functions[name] for name in functions):
        _COMPLETE.add(module)
        return module
    return replace(module, functions=functions)


class _Inference:
    """Terms of nodes, and the calls whose relations do not hold yet."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.functions = functions
        self.globals: dict[str, _Term] = {name: _Cell() for name in functions}
        self.terms: dict[Node, _Term] = {}
        self.pending: list[Call | TupleGetItem] = []

    def define(self, name: str, function: Function) -> None:
        """Add a function of the module."""
        self.add(function)
        _unify(self.globals[name], self.terms[function], f"function {name}")

    def add(self, expr: Expr) -> None:
        """Give a term to each node of an expression."""
        for node in post_order(expr):
            if node not in self.terms and not isinstance(node, Op):
                self.terms[node] = self.term(node)

    def term(self, node: Node) -> _Term:  # noqa: C901 - by node
        """Return the term of a node whose children have theirs."""
        terms = self.terms
        match node:
            case Var(_, kind):
                return _Cell() if kind is None else _open(kind)
            case Constant():
                return node.type
            case GlobalVar(name):
                return self.global_term(name)
            case Tuple(fields):
                return _tuple([terms[field] for field in fields])
            case Let(var, value, body):
                _unify(terms[var], terms[value], f"let {var.name}")
                return terms[body]
            case If(condition, then, otherwise):
                _unify(terms[condition], CONDITION, "condition of an if")
                _unify(terms[then], terms[otherwise], "branches of an if")
                return _joined(terms[then], terms[otherwise])
            case Function(params, body, result):
                if result is not None:
                    _unify(terms[body], _open(result), "result of a function")
                return _Arrow(tuple(terms[p] for p in params), terms[body])
            case Call(Op()) | TupleGetItem():
                terms[node] = _Cell()
                if not self.is_solved(node):
                    self.pending.append(node)
                return terms[node]
            case Call(callee, args):
                result_term = _Cell()
                given = _Arrow(tuple(terms[arg] for arg in args), result_term)
                _unify(terms[callee], given, f"call of {getattr(callee, 'name', 'a function')}")
                return result_term
        raise GraphError("infer types", "not an expression", got=repr(node))

    def global_term(self, name: str) -> _Term:
        if name not in self.globals:
            raise GraphError(
                "infer types", f"the module has no function {name}",
                expected=", ".join(self.globals) or "none",
            )  # fmt: skip
        return self.globals[name]

    def is_solved(self, node: Call | TupleGetItem) -> bool:
        """Find the type of a call or a field; return False if its arguments are not known yet."""
        cell = self.terms[node]
        if isinstance(node, TupleGetItem):
            found = _field(_found(self.terms[node.value]), node)
            if found is None:
                return False
            _unify(cell, found, f"field {node.index}")
            return True
        operator = find(node.op.name, node)  # type: ignore[union-attr]  # called for operators only
        known = [_closed(self.terms[arg]) for arg in node.args]
        call = CallTypes(operator, list(known), operator.complete(node), node)
        try:
            result = call.result()
        except NotKnown:
            result = None
        for i, (arg, before, after) in enumerate(zip(node.args, known, call.args, strict=True)):
            if before is None and after is not None:
                _unify(self.terms[arg], _open(after), f"argument {call.name(i)} of {operator.name}")
        if result is None:
            return False
        _unify(cell, _open(result), operator.name)
        return True

    def solved(self) -> dict[Node, Type]:
        """Return the type of each node.

        Raises
        ------
        GraphError
            If a type does not follow.
        """
        while self.pending:
            left = [node for node in self.pending if not self.is_solved(node)]
            if len(left) == len(self.pending):
                raise _not_inferred(left[0], self.terms)
            self.pending = left
        types: dict[Node, Type] = {}
        for node, term in self.terms.items():
            kind = _closed(term)
            if kind is None:
                raise _not_inferred(node, self.terms)
            types[node] = kind
        return types


def _field(term: _Term, node: TupleGetItem) -> _Term | None:
    """Return the term of a field of a tuple; None if the tuple is not known yet."""
    if isinstance(term, _Cell):
        return None
    if not isinstance(term, _Fields):
        raise GraphError("field of a tuple", "not a tuple", got=_text(term))
    if not 0 <= node.index < len(term.fields):
        raise GraphError(
            "field of a tuple", f"there is no field {node.index}", got=_text(term),
            expected=f"0 to {len(term.fields) - 1}",
        )  # fmt: skip
    return term.fields[node.index]


def _not_inferred(node: Node, terms: Mapping[Node, _Term]) -> GraphError:
    """Return the error for a type that does not follow from anything."""
    if isinstance(node, Call):
        open_args = [arg for arg in node.args if _closed(terms[arg]) is None]
        names = ", ".join(a.name if isinstance(a, Var) else "an argument" for a in open_args)
        return GraphError(
            f"infer types of {node.name or getattr(node.op, 'name', 'a call')}",
            f"the type of {names or 'the result'} is not known", excerpt=origin_of(node),
            hint="give variables a type: var(name, shape=…, dtype=…)",
        )  # fmt: skip
    what = f"variable {node.name}" if isinstance(node, Var) else type(node).__name__
    return GraphError(
        "infer types", f"the type of {what} does not follow from its use",
        hint="give variables a type: var(name, shape=…, dtype=…)",
    )  # fmt: skip


# -- terms ----------------------------------------------------------------------------------------


def _open(kind: Type) -> _Term:
    """Return a type as a term."""
    match kind:
        case TupleType(fields):
            return _Fields(tuple(_open(field) for field in fields))
        case FuncType(params, result):
            return _Arrow(tuple(_open(param) for param in params), _open(result))
    return kind


def _tuple(fields: Sequence[_Term]) -> _Fields:
    """Return the term of a tuple; refuse one that is too deep for tools that are recursive."""
    known = map(_found, fields)
    depth = 1 + max((field.depth for field in known if isinstance(field, _Fields)), default=0)
    if depth > MAX_SCOPES:
        raise _too_deep()
    return _Fields(tuple(fields), depth)


def _too_deep() -> GraphError:
    return GraphError(
        "infer types", f"tuples are nested more than {MAX_SCOPES} deep",
        hint="use one tuple with all fields",
    )  # fmt: skip


def _found(term: _Term) -> _Term:
    """Return what a cell was found to be; the last cell if nothing."""
    while isinstance(term, _Cell) and term.term is not None:
        term = term.term
    return term


def _closed(term: _Term) -> Type | None:
    """Return a term as a type; None if a part is open."""
    match _found(term):
        case TensorType() as tensor:
            return tensor
        case _Fields(fields):
            closed = _all_closed(fields)
            return None if closed is None else TupleType(closed)
        case _Arrow(params, result):
            closed, last = _all_closed(params), _closed(result)
            return None if closed is None or last is None else FuncType(closed, last)
    return None


def _all_closed(terms: Sequence[_Term]) -> tuple[Type, ...] | None:
    kinds = [_closed(term) for term in terms]
    known = tuple(kind for kind in kinds if kind is not None)
    return known if len(known) == len(kinds) else None


def _unify(a: _Term, b: _Term, where: str) -> None:  # noqa: C901 - by node
    """Make two terms equal; a dimension `ANY` agrees with each extent."""
    a, b = _found(a), _found(b)
    if a is b:
        return
    match a, b:
        case _Cell(), _:
            _bind(a, b, where)
        case _, _Cell():
            _bind(b, a, where)
        case TensorType(), TensorType():
            if a != b and not _agree(a, b):
                _differ(a, b, where)
        case _Fields(left), _Fields(right) if len(left) == len(right):
            for x, y in zip(left, right, strict=True):
                _unify(x, y, where)
        case _Arrow(), _Arrow() if len(a.params) == len(b.params):
            for x, y in zip(a.params, b.params, strict=True):
                _unify(x, y, where)
            _unify(a.result, b.result, where)
        case _Arrow(), _Arrow():
            raise GraphError(
                where, "the number of arguments is wrong", got=len(b.params),
                expected=len(a.params),
            )  # fmt: skip
        case _:
            _differ(a, b, where)


def _joined(a: _Term, b: _Term) -> _Term:
    """Return the type of a value that has one of two unified types."""
    match _found(a), _found(b):
        case TensorType(left, dtype), TensorType(right) if left != right:
            return TensorType(
                tuple(x if x == y else ANY for x, y in zip(left, right, strict=True)), dtype
            )
        case _Fields(left), _Fields(right):
            return _Fields(tuple(map(_joined, left, right)))
        case found, _:
            return found


def _bind(cell: _Cell, term: _Term, where: str) -> None:
    if _occurs(cell, term):
        raise GraphError(where, "the type would contain itself")
    cell.term = term


def _occurs(cell: _Cell, term: _Term) -> bool:
    match _found(term):
        case _Fields(fields):
            return any(_occurs(cell, field) for field in fields)
        case _Arrow(params, result):
            return any(_occurs(cell, part) for part in (*params, result))
        case found:
            return found is cell


def _agree(a: TensorType, b: TensorType) -> bool:
    return (
        a.dtype == b.dtype
        and a.rank == b.rank
        and all(x == y or ANY in (x, y) for x, y in zip(a.shape, b.shape, strict=True))
    )


def _differ(a: _Term, b: _Term, where: str) -> NoReturn:
    raise GraphError(where, "the types differ", got=_text(b), expected=_text(a))


def _text(term: _Term) -> str:
    """Return a term as text, with ``_`` for what is open."""
    match _found(term):
        case _Cell():
            return "_"
        case _Fields(fields):
            return f"({', '.join(map(_text, fields))})"
        case _Arrow(params, result):
            return f"fn ({', '.join(map(_text, params))}) -> {_text(result)}"
        case tensor:
            return repr(tensor)
