"""Wishes: decisions of fusion that the user forces or forbids.

``fuse_ops`` honours the wishes of a module, or refuses it with the reason why it cannot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from dlcompiler.errors import GraphError
from dlcompiler.graph.decisions import Wish
from dlcompiler.graph.ir import Module


def fuse(module: Module, a: str, b: str) -> Module:
    """Ask for two calls to be one kernel.

    Parameters
    ----------
    module : Module
        A module that is not fused yet.
    a, b : str
        Names of the producer and its consumer: those of ``module.decisions()``.

    Returns
    -------
    Module
        The module with the wish. `fuse_ops` honours it first, before its rules: the producer, its
        consumer and what lies between the producer and the place where all its uses come together
        become one kernel. If a pass wrote the consumer as several calls, all those that the value
        goes through are meant. It raises a `GraphError` with the reason if they cannot be fused, or
        if a pass removed one.

    Raises
    ------
    GraphError
        If no call has one of the names, or the calls were asked to stay apart.

    Examples
    --------
    >>> from dlcompiler import graph
    >>> from dlcompiler.graph import op
    >>> from dlcompiler.graph.passes import fuse_ops
    >>> x = graph.var("x", (4, 4))
    >>> total = op.sum(x, axis=1, name="total")
    >>> module = graph.Module.from_expr(op.sqrt(total, name="root"))
    >>> fuse_ops(module).decisions(about="total")[0].verdict
    'not fused'
    >>> fuse_ops(graph.fuse(module, "total", "root")).decisions(about="total")[0].verdict
    'fused'
    """
    return _with(module, "fuse", a, b)


def keep_apart(module: Module, a: str, b: str) -> Module:
    """Ask for two calls to be in different kernels.

    Parameters
    ----------
    module : Module
        A module that is not fused yet.
    a, b : str
        Names of the calls, in any order.

    Returns
    -------
    Module
        The module with the wish. If a pass wrote one of the two as several calls, none of them
        comes into a kernel with the other. `fuse_ops` raises a `GraphError` if a pass removed one.

    Raises
    ------
    GraphError
        If no call has one of the names, or the calls were asked to be fused.
    """
    return _with(module, "keep apart", a, b)


def _with(module: Module, kind: Literal["fuse", "keep apart"], a: str, b: str) -> Module:
    beside = tuple(name for name in module.calls() if name.startswith((f"{a}.", f"{b}.")))
    wish = Wish(kind, (a, b), beside)
    operation = f"{wish.kind} {' and '.join(wish.subject)}"
    if len(set(wish.subject)) < 2:
        raise GraphError(operation, "it is one call", expected="two calls")
    known = set(module.calls())
    for name in wish.subject:
        # Passes name what they make from a call by its name: bn_1.scale.
        if not any(stem in known for stem in _stems(name)):
            raise GraphError(
                operation, "no call has this name", got=repr(name),
                hint="module.calls() has the names",
            )  # fmt: skip
    for other in module.wishes:
        if other.kind != wish.kind and set(other.subject) == set(wish.subject):
            raise GraphError(operation, f"it was asked to {other.kind} them before")
    if any((other.kind, other.subject) == (wish.kind, wish.subject) for other in module.wishes):
        return module
    return replace(module, wishes=(*module.wishes, wish))


def _stems(name: str) -> list[str]:
    """Return a name, and what is before each of its dots.

    >>> _stems("bn_1.scale")
    ['bn_1.scale', 'bn_1']
    """
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
