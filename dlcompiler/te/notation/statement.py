"""The parts of one statement of notation, as `read_statement` finds them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from dlcompiler.te.notation.source import Source


@dataclass(frozen=True)
class Use:
    """An axis that indexes a dimension directly, as k does in ``A[i, k]``."""

    tensor: str
    dimension: int
    node: ast.Name
    is_guarded: bool
    """Whether it is under a condition, so that the axis may go beyond the dimension."""


@dataclass(frozen=True)
class Words:
    """Names that are neither tensors nor axes."""

    symbols: frozenset[str] = frozenset()
    """Numbers that the caller of the program gives."""
    reducers: frozenset[str] = frozenset()
    """Reducers that the user defines."""


@dataclass
class Statement:
    """The parts of one statement."""

    source: Source
    words: Words
    node: ast.stmt
    targets: list[ast.Name]
    """The tensors that it defines."""
    left: list[ast.Name]
    """The axes on the left."""
    values: list[ast.expr]
    """The expressions of an element, or the values of a reduction."""
    reducer: str | None = None
    """``sum``, ``max``, ``argmax`` …, or a reducer of the user; None without a reduction."""
    explicit: list[ast.Name] | None = None
    """The reduction axes, if they are given by ``axis=``."""
    where: ast.expr | None = None
    """The condition of the reduction."""
    init: list[ast.expr] = field(default_factory=list)
    """The start values of the reduction."""
    tensors: dict[str, list[ast.Subscript]] = field(default_factory=dict)
    """The tensors read, in order of appearance."""
    right: dict[str, ast.Name] = field(default_factory=dict)
    """The axes on the right, in order of appearance."""
    direct: dict[str, list[Use]] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """The names of the tensors that it defines."""
        return {target.id for target in self.targets}

    @property
    def axes(self) -> set[str]:
        """The names of the axes on the left."""
        return {node.id for node in self.left}

    @property
    def reduced(self) -> dict[str, ast.Name]:
        """The axes reduced over, in order."""
        if self.explicit is not None:
            return {node.id: node for node in self.explicit}
        return {name: node for name, node in self.right.items() if name not in self.axes}


def elements_of(node: ast.expr) -> list[ast.expr]:
    """Return the elements of a tuple node; a list of the node itself for any other."""
    return node.elts if isinstance(node, ast.Tuple) else [node]
