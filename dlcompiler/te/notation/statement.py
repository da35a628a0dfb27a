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
    """Whether it stands under a condition, which may keep it from some values."""


@dataclass(frozen=True)
class Words:
    """What names mean beside tensors and axes."""

    symbols: frozenset[str] = frozenset()
    """Numbers that the caller of the program gives."""
    reducers: frozenset[str] = frozenset()
    """Reductions of the user's own."""


@dataclass
class Statement:
    """A statement taken apart."""

    source: Source
    words: Words
    node: ast.stmt
    targets: list[ast.Name]
    """The tensors that it defines."""
    left: list[ast.Name]
    """The axes on the left."""
    values: list[ast.expr]
    """What is computed; of a reduction, what is reduced."""
    reducer: str | None = None
    """``sum``, ``max``, ``argmax`` … or a reduction of the user's own."""
    explicit: list[ast.Name] | None = None
    """The axes reduced over, where they are given."""
    where: ast.expr | None = None
    """The condition under which a point counts."""
    init: list[ast.expr] = field(default_factory=list)
    """What the reduction starts from."""
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
    """Return the elements of a tuple; anything else by itself."""
    return node.elts if isinstance(node, ast.Tuple) else [node]
