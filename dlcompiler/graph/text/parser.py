"""Read the text form by recursive descent; the depth of brackets is limited."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import DLCompilerError, GraphError
from dlcompiler.graph.ir import (
    ANY,
    MAIN,
    MAX_SCOPES,
    AttrValue,
    Call,
    Constant,
    Dimension,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    Let,
    Module,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    named,
    op,
)
from dlcompiler.graph.text.constants import constant_of
from dlcompiler.graph.text.lexer import METADATA, Token, fail, tokens_of
from dlcompiler.graph.text.printer import SUFFIXES
from dlcompiler.json_text import LONGEST_INTEGER, JsonError
from dlcompiler.json_text import parse as parse_json

T = TypeVar("T")
MAX_DEPTH = MAX_SCOPES + 20
"""Most brackets inside each other; [1]."""
_DTYPES = {
    **{suffix: dtype for dtype, suffix in SUFFIXES.items()},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""Dtype by the end of a number."""
_NUMBER = re.compile(r"(-?[\d.]+(?:[eE][-+]?\d+)?)([a-z]*\d*)", re.ASCII)


def parse(text: str) -> Module:
    """Read a module.

    Parameters
    ----------
    text : str
        As `module_text` prints it; or a single expression or function, which becomes ``main``.

    Raises
    ------
    GraphError
        If the text is not well formed; its ``place`` is the line and the column.
    """
    return named(_Parser(text).module())


def parse_expr(text: str, variables: Mapping[str, Var] | None = None) -> Expr:
    """Read an expression.

    Parameters
    ----------
    text : str
        The expression.
    variables : mapping, optional
        Its free variables by name.

    Raises
    ------
    GraphError
        As `parse`.
    """
    parser = _Parser(text)
    parser.variables.append(dict(variables or {}))
    expr = parser.block()
    parser.take_kind("end", "the end of the text")
    return expr


class _Parser:
    """The tokens of a text, and what names stand for in the scopes around the current token."""

    def __init__(self, source: object) -> None:
        if not isinstance(source, str):
            raise GraphError("parse a graph", "not a text", got=type(source).__name__)
        self.source = source
        self.tokens = list(tokens_of(source))
        self.next = 0
        self.variables: list[dict[str, Var]] = []
        self.numbered: list[dict[str, Expr]] = []
        self.depth = 0
        self.constants = self._metadata(self.tokens[-1].start)

    # -- tokens -----------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def fail(self, problem: str, expected: object = None, at: Token | None = None) -> NoReturn:
        """Refuse the text at the current token, or another one."""
        token = at or self.token
        fail(self.source, token.start, problem, token.text or "the end of the text", expected)

    def is_at(self, *texts: str) -> bool:
        """Tell whether the next tokens are these marks and names."""
        ahead = self.tokens[self.next : self.next + len(texts)]
        return len(ahead) == len(texts) and all(
            t.text == text and t.kind in ("mark", "name", "header")
            for t, text in zip(ahead, texts, strict=True)
        )

    def skip(self, text: str) -> bool:
        """Take a mark if it is next; tell whether it was."""
        if not self.is_at(text):
            return False
        self.next += 1
        return True

    def take(self, text: str) -> Token:
        """Take a mark or a name that must be next."""
        token = self.token
        if not self.skip(text):
            self.fail("another token is expected", repr(text))
        return token

    def take_kind(self, kind: str, what: str) -> Token:
        """Take a token of a kind that must be next."""
        token = self.token
        if token.kind != kind:
            self.fail("another token is expected", what)
        self.next += kind != "end"
        return token

    def name(self) -> str:
        """Take the name of an attribute."""
        if self.token.kind == "text":
            return self.unquoted(self.take_kind("text", "a name").text)
        return self.take_kind("name", "a name").text

    def named(self, kind: str, what: str) -> str:
        """Take a variable, or a function of the module, and return its name."""
        return self.unquoted(self.take_kind(kind, what).text[1:])

    def unquoted(self, text: str) -> str:
        """Return a name without its quotes, if it has any."""
        if not text.startswith('"'):
            return text
        try:
            return str(json.loads(text))
        except ValueError:
            self.fail("not a text that JSON allows", at=self.tokens[self.next - 1])

    def separated(self, read: Callable[[], T], end: str) -> list[T]:
        """Read items up to a closing mark, which is taken; a comma may stand before it."""
        items: list[T] = []
        self.enter()
        while not self.is_at(end):
            items.append(read())
            if not self.skip(","):
                break
        self.take(end)
        self.depth -= 1
        return items

    # -- modules and functions --------------------------------------------------------------------

    def module(self) -> Module:
        """Read a whole text."""
        while self.token.kind == "header":
            self.next += 1
        functions: dict[str, Function] = {}
        while self.skip("def"):
            at = self.token
            name = self.named("global", "@ and the name of a function")
            if name in functions:
                self.fail(f"a second function {name}", at=at)
            functions[name] = self.function()
        if not functions and self.token.kind != "end":
            functions[MAIN] = Module.from_expr(self.block()).main
        self.take_kind("end", "the end of the text")
        return Module(functions)

    def function(self) -> Function:
        """Read parameters, result and body of a function."""
        self.take("(")
        scope: dict[str, Var] = {}
        attrs: dict[str, AttrValue] = {}

        def item() -> None:
            if self.token.kind != "local":
                attrs.update([self.attribute()])
                return
            at, name = self.token, self.named("local", "a parameter")
            if name in scope:
                self.fail(f"a second parameter {name}", at=at)
            scope[name] = Var(name, self.type() if self.skip(":") else None)

        self.separated(item, ")")
        result = self.type() if self.skip("->") else None
        return Function(tuple(scope.values()), self.braced(scope), result, attrs)

    def braced(self, scope: dict[str, Var]) -> Expr:
        """Read a block in braces, with the variables that it may use."""
        self.take("{")
        self.variables.append(scope)
        expr = self.block()
        self.variables.pop()
        self.take("}")
        return expr

    # -- expressions ------------------------------------------------------------------------------

    def block(self) -> Expr:
        """Read statements, and the expression that is the value of the block."""
        self.enter()
        self.numbered.append({})
        lets: list[tuple[Var, Expr]] = []
        while True:
            if self.skip("let"):
                lets.append(self.let())
            elif self.token.kind == "numbered" and self.tokens[self.next + 1].text == "=":
                self.numbered_value()
            else:
                break
        value = self.expr()
        for var, bound in reversed(lets):
            value = Let(var, bound, value)
            self.variables.pop()
        self.numbered.pop()
        self.depth -= 1
        return value

    def enter(self) -> None:
        """Count one more bracket around the current token."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"brackets are nested more than {MAX_DEPTH} deep")

    def let(self) -> tuple[Var, Expr]:
        """Read a let up to its semicolon; its variable is known in its value and after it."""
        name = self.named("local", "a variable")
        var = Var(name, self.type() if self.skip(":") else None)
        self.take("=")
        self.variables.append({name: var})  # a function may call itself
        value = self.expr()
        self.take(";")
        return var, value

    def numbered_value(self) -> None:
        """Read ``%0 = …;``."""
        at = self.take_kind("numbered", "a number")
        self.take("=")
        value = self.expr()
        self.take(";")
        if at.text in self.numbered[-1]:
            self.fail(f"a second value {at.text}", at=at)
        self.numbered[-1][at.text] = value

    def expr(self) -> Expr:
        """Read an expression."""
        if self.skip("if"):
            return self.branches()
        if self.skip("fn"):
            return self.function()
        value = self.atom()
        while True:
            if self.skip("("):
                value = self.call(value)
            elif self.token.kind == "field":
                value = TupleGetItem(value, self.natural(self.take_kind("field", "a field")))
            else:
                return value

    def branches(self) -> If:
        """Read an ``if`` behind its first word."""
        self.take("(")
        condition = self.expr()
        self.take(")")
        then = self.braced({})
        self.take("else")
        return If(condition, then, self.braced({}))

    def atom(self) -> Expr:
        """Read an expression without calls and fields, or a call of an operator."""
        at = self.token
        match at.kind:
            case "local":
                return self.variable(self.named("local", "a variable"), at)
            case "numbered":
                self.next += 1
                return self.value_of(at)
            case "global":
                return GlobalVar(self.named("global", "a function"))
            case "number":
                self.next += 1
                return self.scalar(at)
            case "name" if at.text in ("True", "False"):
                self.next += 1
                return Constant(np.asarray(at.text == "True"))
            case "name" if at.text == "meta":
                return self.metadata_constant()
            case "name":
                self.next += 1
                self.take("(")
                return self.call(at.text)
        self.take("(")
        return self.bracket()

    def bracket(self) -> Expr:
        """Read a tuple, or an expression in brackets, behind the opening one."""
        if self.is_at("let") or (
            self.token.kind == "numbered" and self.tokens[self.next + 1].text == "="
        ):
            value = self.block()
            self.take(")")
            return value
        begin = self.next
        fields = self.separated(self.expr, ")")
        is_single = len(fields) == 1 and self.tokens[self.next - 2].text != ","
        return fields[0] if is_single and self.next > begin + 1 else Tuple(tuple(fields))

    def call(self, callee: Expr | str) -> Call:
        """Read arguments and attributes behind the opening bracket."""
        args: list[Expr] = []
        attrs: dict[str, AttrValue] = {}

        def item() -> None:
            if self.token.kind in ("name", "text") and self.tokens[self.next + 1].text == "=":
                attrs.update([self.attribute()])
            else:
                args.append(self.expr())

        self.separated(item, ")")
        return Call(op(callee) if isinstance(callee, str) else callee, tuple(args), attrs)

    def variable(self, name: str, at: Token) -> Var:
        """Return the variable of a name, of the innermost scope that has it."""
        for scope in reversed(self.variables):
            if name in scope:
                return scope[name]
        self.fail(f"no variable {name} here", at=at)

    def value_of(self, at: Token) -> Expr:
        """Return the value with a number."""
        for scope in reversed(self.numbered):
            if at.text in scope:
                return scope[at.text]
        self.fail(f"no value {at.text} here", at=at)

    # -- literals ---------------------------------------------------------------------------------

    def scalar(self, token: Token) -> Constant:
        """Return a number as a constant."""
        match = _NUMBER.fullmatch(token.text)
        suffix = match[2] if match else ""
        dtype = _DTYPES.get(suffix, "")
        if match is None or not dtype:
            self.fail("not a number of a dtype", "2, 2i64, 2.5f, 2.5f64", token)
        try:
            # By way of float64, a float32 would be rounded twice.
            number = match[1] if dtypes.is_float(dtype) else int(match[1])
            with np.errstate(over="ignore"):
                value = np.float32(number) if dtype == "float32" else _wide(number, dtype)
                made = np.asarray(value).astype(dtypes.to_numpy(dtype))
            if dtypes.is_float(dtype) and not np.isfinite(made):
                raise OverflowError
            return Constant(made)
        except (OverflowError, ValueError):
            self.fail(f"not a number of dtype {dtype}", at=token)

    def attribute(self) -> tuple[str, AttrValue]:
        """Read ``name=value``."""
        name = self.name()
        self.take("=")
        return name, self.attribute_value()

    def attribute_value(self) -> AttrValue:
        """Read the value of an attribute."""
        token = self.token
        if token.kind == "text":
            return self.unquoted(self.take_kind("text", "a text").text)
        if self.skip("["):
            return tuple(self.separated(self.attribute_value, "]"))
        if token.kind == "name" and token.text in _WORDS:
            self.next += 1
            return _WORDS[token.text]
        number = self.take_kind("number", "a value").text
        if number.endswith("f"):
            value = float(number[:-1])
            if not np.isinf(value) or number.lstrip("-") == "inff":
                return value
        if number.lstrip("-").isdigit() and len(number) <= LONGEST_INTEGER:
            return int(number)
        self.fail("not a value of an attribute", "1, 2.5f, True, None, a text, or a list", token)

    def metadata_constant(self) -> Constant:
        """Read ``meta[relay.Constant][0]``."""
        self.take("meta")
        self.take("[")
        self.take("relay.Constant")
        self.take("]")
        self.take("[")
        at = self.take_kind("number", "a number")
        self.take("]")
        place = self.natural(at)
        if place >= len(self.constants):
            self.fail(f"the metadata has {len(self.constants)} constants", at=at)
        return self.constants[place]

    def _metadata(self, start: int) -> list[Constant]:
        """Read the constants behind the functions."""
        text = self.source[start:].removeprefix(METADATA)
        if not text.strip():
            return []
        try:
            entries = parse_json(text)["relay.Constant"]
            return [constant_of(entry) for entry in entries]
        except (JsonError, KeyError, TypeError, ValueError, DLCompilerError) as error:
            fail(self.source, start, f"the metadata cannot be read: {error}")

    # -- types ------------------------------------------------------------------------------------

    def type(self) -> Type:
        """Read a type."""
        self.enter()
        at = self.token
        kind: Type
        if self.skip("("):
            kind = TupleType(tuple(self.separated(self.type, ")")))
        elif self.skip("fn"):
            self.take("(")
            params = self.separated(self.type, ")")
            self.take("->")
            kind = FuncType(tuple(params), self.type())
        elif self.skip("Tensor"):
            self.take("[")
            self.take("(")
            shape = self.separated(self.dimension, ")")
            self.take(",")
            kind = self.tensor_type(tuple(shape), self.take_kind("name", "a dtype").text, at)
            self.take("]")
        else:
            kind = self.tensor_type((), self.take_kind("name", "a type").text, at)
        self.depth -= 1
        return kind

    def dimension(self) -> Dimension:
        """Read an extent."""
        if self.skip("?"):
            return ANY
        return self.natural(self.take_kind("number", "an extent"))

    def natural(self, token: Token) -> int:
        """Return the value of a token: an extent, or a place in a list."""
        digits = token.text.removeprefix(".")
        if not digits.isdigit() or len(digits) > LONGEST_INTEGER:
            self.fail("not an extent or a place", "an integer that is not negative", token)
        return int(digits)

    def tensor_type(self, shape: tuple[Dimension, ...], dtype: str, at: Token) -> TensorType:
        """Return a tensor type, or refuse the text."""
        try:
            return TensorType(shape, dtype)
        except DLCompilerError as error:
            self.fail(f"not a type: {error.problem}", at=at)


def _wide(number: str | int, dtype: str) -> npt.NDArray[Any]:
    """Return a number before it is rounded."""
    return np.asarray(number, "float64" if dtypes.is_float(dtype) else dtype)


_WORDS: Mapping[str, AttrValue] = {
    "None": None, "True": True, "False": False,
}  # fmt: skip
