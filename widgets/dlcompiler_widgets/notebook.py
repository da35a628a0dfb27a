"""IPython extension: a schedule is displayed as its workbench, and ``%%explore`` opens one.

If the last line of a cell is a schedule, its workbench is shown: the open one, or else a new one.
Outside a notebook, nothing changes.
"""

from __future__ import annotations

import shlex
from typing import Any

from IPython import get_ipython

from dlcompiler.errors import DLCompilerError, UserError
from dlcompiler.schedule import Schedule
from dlcompiler_widgets.containers import CONTAINERS
from dlcompiler_widgets.containers import show as show_container
from dlcompiler_widgets.explorer import Explorer
from dlcompiler_widgets.static_output import is_kernel

OPTIONS = ("target", "name", "level")


def workbench_of(schedule: Schedule) -> Explorer:
    """Return the workbench that was opened last on a schedule; a new one if none is open."""
    owners = (getattr(listener, "__self__", None) for listener in reversed(schedule.listeners))
    found = next((owner for owner in owners if isinstance(owner, Explorer)), None)
    return found or Explorer(schedule)


def show(schedule: Schedule) -> None:
    """Display the workbench of a schedule; a NotImplementedError: the schedule displays itself."""
    if not is_kernel():
        raise NotImplementedError
    try:
        found = workbench_of(schedule)
    except DLCompilerError as error:
        # There is nothing to explore: it has no output, or cannot be drawn.
        raise NotImplementedError from error
    found._ipython_display_()


def explore(line: str, cell: str) -> Explorer:
    """Open the expression of a cell: notation, and a line such as ``A: float32[512, 512]`` each.

    ::

        %%explore target=x86-64-avx2 name=matmul level=learn
        C[i, j] += A[i, k] * B[k, j]
        A: float32[512, 512]
        B: float32[512, 512]

    The workbench is the result of the cell, ``_``; ``_.schedule`` is the schedule that it edits.
    """
    try:
        options = _options(line)
        return Explorer.write(cell, **options)
    except UserError as error:
        _shorten(error)
        raise


def _options(line: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in shlex.split(line):
        key, _, value = word.partition("=")
        if key not in OPTIONS or not value:
            raise UserError(
                "%%explore", "an option is not understood", got=repr(word),
                expected=", ".join(f"{name}=…" for name in OPTIONS),
            )  # fmt: skip
        options[key] = value
    return options


def _shorten(error: UserError) -> None:
    """Make IPython show an error in the cell without its traceback."""
    lines = [f"{type(error).__name__}: {error}"]
    error._render_traceback_ = lambda *args: lines  # type: ignore[attr-defined]


def load_ipython_extension(ipython: Any) -> None:
    """Add ``%%explore``, and show schedules as workbenches: ``%load_ext dlcompiler_widgets``.

    Parameters
    ----------
    ipython
        The shell, which calls the function.
    """
    ipython.register_magic_function(explore, "cell", "explore")
    formatter = ipython.display_formatter.ipython_display_formatter
    formatter.for_type(Schedule, show)
    for container in CONTAINERS:
        formatter.for_type(container, show_container)


def unload_ipython_extension(ipython: Any) -> None:
    """Remove ``%%explore``, and display schedules without workbenches again.

    Parameters
    ----------
    ipython
        The shell, which calls the function.
    """
    ipython.magics_manager.magics["cell"].pop("explore", None)
    formatter = ipython.display_formatter.ipython_display_formatter
    for shown in (Schedule, *CONTAINERS):
        formatter.pop(shown, None)


def join_notebook() -> None:
    """Load the extension if IPython runs as a kernel; a terminal cannot show widgets."""
    if is_kernel():
        load_ipython_extension(get_ipython())
