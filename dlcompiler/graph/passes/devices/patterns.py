"""Patterns of calls: a small language in the manner of Relay's dataflow patterns.

::

    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    pattern = is_op("nn.relu")(conv) | conv
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import AttrValue, Call, Constant, Expr, Node
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.attributes import completed
from dlcompiler.graph.passes.tools import attrs_of, operator_of


class _Combined:
    """What all patterns have in common."""

    __slots__ = ()

    def __or__(self, other: Pattern) -> Either:
        return Either((self, other))  # type: ignore[arg-type]  # a pattern

    def optional(self, make: Callable[[Pattern], Pattern]) -> Either:
        """Return a pattern that also matches with another one around it.

        Parameters
        ----------
        make : callable
            Returns the pattern around this one: ``lambda p: is_op("nn.relu")(p)``.
        """
        return Either((make(self), self))  # type: ignore[arg-type]  # a pattern


@dataclass(frozen=True, slots=True)
class Wildcard(_Combined):
    """Any value; it is an input of what is matched."""


@dataclass(frozen=True, slots=True)
class IsConstant(_Combined):
    """A constant; it is part of what is matched."""


@dataclass(frozen=True, slots=True)
class IsCall(_Combined):
    """A call of an operator."""

    name: str
    args: tuple[Pattern, ...] | None = None
    """None: any arguments, which are inputs."""
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)

    def __call__(self, *args: Pattern) -> IsCall:
        """Return the pattern with patterns for its arguments.

        Parameters
        ----------
        *args : Pattern
            One for each argument. Sums and products also match with their operands exchanged.
        """
        return replace(self, args=args)

    def has_attr(self, **attrs: AttrValue) -> IsCall:
        """Return the pattern for calls with values of attributes.

        Parameters
        ----------
        **attrs
            Attributes by name, as a call gives them: ``strides=2`` is ``(2, 2)``.

        Raises
        ------
        GraphError
            If the operator has no such attribute, or it cannot have the value.
        """
        known = [replace(attribute, default=None) for attribute in REGISTRY[self.name].attributes]
        normal = completed(f"pattern of {self.name}", known, attrs)
        asked = {name: normal[name] for name in attrs}
        return replace(self, attrs={**self.attrs, **asked})


@dataclass(frozen=True, slots=True)
class Either(_Combined):
    """What the first fitting one of several patterns matches."""

    options: tuple[Pattern, ...]


Pattern: TypeAlias = Wildcard | IsConstant | IsCall | Either
COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum"})


def wildcard() -> Wildcard:
    """Return the pattern of any value."""
    return Wildcard()


def is_constant() -> IsConstant:
    """Return the pattern of a constant."""
    return IsConstant()


def is_op(name: str) -> IsCall:
    """Return the pattern of a call of an operator; call it with patterns for its arguments.

    Parameters
    ----------
    name : str
        Name of the operator.

    Raises
    ------
    GraphError
        If there is no such operator.
    """
    if name not in REGISTRY:
        raise GraphError("pattern", "no operator has this name", got=repr(name))
    return IsCall(name)


@dataclass(frozen=True, slots=True)
class Match:
    """What a pattern matched."""

    calls: tuple[Call, ...] = ()
    """The calls, operands first."""
    inputs: tuple[Expr, ...] = ()
    """The values that wildcards stand for, each once."""
    constants: tuple[Constant, ...] = ()
    """The constants that are part of what is matched."""

    def plus(self, other: Match) -> Match:
        """Return both matches as one."""
        return Match(
            tuple(dict.fromkeys((*self.calls, *other.calls))),
            tuple(dict.fromkeys((*self.inputs, *other.inputs))),
            (*self.constants, *other.constants),
        )


def matched(pattern: Pattern, node: Node) -> Match | None:
    """Return what a pattern matches at a node; None if it does not match.

    Parameters
    ----------
    pattern : Pattern
        The pattern.
    node : Node
        The last call.
    """
    match pattern:
        case Wildcard():
            return Match(inputs=(node,))  # type: ignore[arg-type]  # operands are expressions
        case IsConstant():
            return Match(constants=(node,)) if isinstance(node, Constant) else None
        case Either(options):
            found = (matched(option, node) for option in options)
            return next((each for each in found if each is not None), None)
        case IsCall():
            return _match_call(pattern, node)


def _match_call(pattern: IsCall, node: Node) -> Match | None:
    if operator_of(node) != pattern.name or not isinstance(node, Call):
        return None
    attrs = attrs_of(node)
    if any(attrs.get(name) != value for name, value in pattern.attrs.items()):
        return None
    if pattern.args is None:
        return Match((node,), tuple(dict.fromkeys(node.args)))
    found = _match_args(pattern.args, node.args)
    if found is None and pattern.name in COMMUTATIVE:
        found = _match_args(pattern.args, node.args[::-1])
    return None if found is None else found.plus(Match((node,)))


def _match_args(patterns: tuple[Pattern, ...], args: tuple[Expr, ...]) -> Match | None:
    if len(patterns) != len(args):
        return None
    whole = Match()
    for pattern, arg in zip(patterns, args, strict=True):
        part = matched(pattern, arg)
        if part is None:
            return None
        whole = whole.plus(part)
    return whole
