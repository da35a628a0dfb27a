"""In CI, where nobody reads the pages, run the notebooks at the sizes of their tests."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from tests.notebook_sizes import SMALLER


def shrink(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace sizes in the text of a notebook."""
    del app
    for text, smaller in SMALLER.get(f"{PurePosixPath(name).name}.ipynb", {}).items():
        source[0] = source[0].replace(text, smaller)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Look at the sources, if this is CI."""
    if "CI" in os.environ:
        app.connect("source-read", shrink)
    return {"version": "1", "parallel_read_safe": True}
