"""The project's own sources, parsed, and the order of packages, for the tests beside this file."""

from __future__ import annotations

import ast
import functools
import gc
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "dlcompiler": ROOT / "dlcompiler",
    "dlcompiler_widgets": ROOT / "widgets/dlcompiler_widgets",
}


@dataclass(frozen=True)
class Source:
    """One Python file of the two packages."""

    module: str
    path: Path
    text: str
    tree: ast.Module

    @functools.cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree: many tests look at each."""
        return list(ast.walk(self.tree))

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(ROOT))

    def at(self, node: ast.AST) -> str:
        """Where a node stands, as an editor understands it."""
        return f"{self.shown}:{node.lineno}"

    def imported(self):
        """Yield (node, dotted name) of each import; relative ones are not used in this project."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.at(node)}: relative import"
                yield node, node.module


@dataclass(frozen=True)
class Layers:
    """The order of dlcompiler's packages, as pyproject.toml tells it to import-linter."""

    rank: dict[str, int]  # 0 is the lowest

    def allows(self, importer: str, imported: str) -> bool:
        """Whether one module may import another, both given by dotted name."""
        if importer in PACKAGES or importer.startswith("dlcompiler_widgets."):
            return True
        if imported.startswith("dlcompiler_widgets"):
            return False
        a, b = importer.split(".")[1], imported.split(".")[1]
        return a == b or self.rank[b] < self.rank[a]


def _read(package: str, folder: Path, path: Path) -> Source:
    parts = path.relative_to(folder).with_suffix("").parts
    module = ".".join((package, *(part for part in parts if part != "__init__")))
    text = path.read_text(encoding="utf-8")
    return Source(module, path, text, ast.parse(text, filename=str(path)))


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def sources():
    """Every Python file of dlcompiler and dlcompiler_widgets."""
    gc.disable()  # a million nodes, none of them garbage: with the collector it takes 7 s, not 2
    read = [
        _read(package, folder, path)
        for package, folder in PACKAGES.items()
        for path in sorted(folder.rglob("*.py"))
    ]
    gc.freeze()
    gc.enable()
    return read


@pytest.fixture(scope="session")
def core(sources):
    """Every Python file of dlcompiler."""
    return [source for source in sources if source.module.split(".")[0] == "dlcompiler"]


@pytest.fixture(scope="session")
def layers():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    (lines,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    rank = {
        name: height
        for height, line in enumerate(reversed(lines))
        for name in re.findall(r"\w+", line)
    }
    return Layers({**rank, "__main__": len(lines)})
