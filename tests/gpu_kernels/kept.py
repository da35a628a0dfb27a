"""A program and some of its calls, as a file keeps them."""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from dlcompiler.ir.program import Program


@dataclass
class Kept:
    """A program, and calls of it."""

    program: Program
    test: str
    """The test that made it first."""
    calls: list[tuple[list[object], list[object]]] = field(default_factory=list)
    """Arguments before and after calls that raised no error."""


def read_only(mapping: dict[object, object]) -> Mapping[object, object]:
    """Return a read-only view; pickle finds this function by its name."""
    return MappingProxyType(mapping)


copyreg.pickle(MappingProxyType, lambda mapping: (read_only, (dict(mapping),)))


def read(path: Path) -> Kept:
    """Read a file."""
    kept = pickle.loads(path.read_bytes())
    assert isinstance(kept, Kept)
    return kept


def write(path: Path, kept: Kept) -> None:
    """Write a file."""
    path.write_bytes(pickle.dumps(kept))
