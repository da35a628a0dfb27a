"""Common parts of figures for papers: display, saving and settings."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlcompiler.output_files import replacing, write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "dlcompiler",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "hatch.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""How matplotlib writes: the same each time, words as text."""


@dataclass(frozen=True, eq=False)
class PaperFigure:
    """A figure that a notebook shows; `save` always writes the same bytes for it."""

    title: str
    words: str
    """A sentence that describes the figure, for readers who cannot see it."""
    figure: Figure

    def svg(self) -> str:
        """Return the figure as SVG, without a date and with fixed ids."""
        file = io.BytesIO()
        self._write(file, "svg", {"Date": None, "Title": self.title, "Description": self.words})
        return file.getvalue().decode()

    def save(self, path: str | Path) -> None:
        """Write the figure to a file, as its ending says: ``.svg``, ``.pdf`` or ``.png``."""
        path = Path(path)
        if path.suffix == ".svg":
            write_file(path, self.svg())
        else:
            about = {"CreationDate": None} if path.suffix == ".pdf" else {}
            with replacing(path) as new:
                self._write(new, path.suffix.removeprefix("."), about)

    def _write(self, file: io.BytesIO | Path, format: str, metadata: Mapping[str, Any]) -> None:
        with importlib.import_module("matplotlib").rc_context(SETTINGS):
            self.figure.savefig(file, format=format, metadata=dict(metadata), dpi=200)

    def __repr__(self) -> str:
        return f"PaperFigure({self.title}: {self.words})"

    def _repr_svg_(self) -> str:
        return self.svg()
