"""Classic TVM's ``tvm.contrib.cc``: linking."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.notes import note
from dlcompiler.runtime.c_source import c_compiler
from dlcompiler.runtime.libraries import Written, link_shared


def create_shared(output: Any, objects: Any, options: Sequence[str] | None = None) -> Written:
    """Link objects to a shared object.

    Parameters
    ----------
    output : path
        Where to write it.
    objects : path or sequence of path
        What `Module.save` wrote.
    options : sequence of str, optional
        Flags of the compiler: accepted, with a note.

    Returns
    -------
    Written
        The path and what it is: without a C compiler, a container of this project.
    """
    if options:
        note("create_shared: the options are ignored")
    items = objects if isinstance(objects, list | tuple) else [objects]
    written = link_shared(Path(output), [Path(item) for item in items])
    if written.surprise:
        note(f"create_shared: {written}")
    return written


def get_cc() -> str | None:
    """Return the path of a C compiler, or None."""
    return c_compiler()


__getattr__ = reporter(__name__)
__all__ = ["create_shared", "get_cc"]
