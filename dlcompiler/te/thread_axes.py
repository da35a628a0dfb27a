"""Thread axes (`te.thread_axis`), to which a schedule binds loops to run them on a GPU."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import THREADS, Var
from dlcompiler.ir.names import checked_label


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """An axis of the grid of threads that runs a kernel; see `thread_axis`."""

    tag: str
    """Its name in the grid: ``blockIdx.x``, …, ``threadIdx.z``, ``vthread``."""
    extent: int | None = None
    """Number of blocks or threads along it; None for the extent of the loop that is bound; [1]."""
    name: str = ""
    """Name to show, by default the tag."""

    @property
    def var(self) -> Var:
        """The variable that holds the thread's number on this axis: ``tx.var == 0``."""
        return _variable(self.tag)

    def __repr__(self) -> str:
        size = "" if self.extent is None else f", extent={self.extent}"
        return f"thread_axis({self.tag!r}{size})"


@cache
def _variable(tag: str) -> Var:
    return Var(tag)


def thread_axis(
    dom: int | tuple[int, int] | str | None = None, tag: str = "", name: str = ""
) -> ThreadAxis:
    """Return a thread axis, for ``s[C].bind(loop, axis)``.

    Parameters
    ----------
    dom : int, tuple of int, or str, optional
        The number of threads: a number, or ``(0, number)``. By default it is the extent of the loop
        that is bound. The tag may be given here instead.
    tag : str
        ``"blockIdx.x"`` to ``"blockIdx.z"``, ``"threadIdx.x"`` to ``"threadIdx.z"``, or
        ``"vthread"`` (also ``"cthread"``) for virtual threads: one thread runs several of them.
    name : str, optional
        Name to show, by default the tag.

    Returns
    -------
    ThreadAxis

    Raises
    ------
    ExpressionError
        If there is no such thread axis, or `dom` is not a number of threads.

    Notes
    -----
    **Source:** the names are CUDA's, and the function is classic TVM's.

    Examples
    --------
    >>> thread_axis("threadIdx.x"), thread_axis((0, 64), "threadIdx.x")
    (thread_axis('threadIdx.x'), thread_axis('threadIdx.x', extent=64))
    """
    size, wanted = (None, dom) if isinstance(dom, str) else (dom, tag)
    wanted = "vthread" if wanted == "cthread" else wanted
    if wanted not in THREADS:
        close = difflib.get_close_matches(str(wanted), THREADS, n=1)
        raise ExpressionError(
            "thread_axis", "no such thread axis", got=repr(wanted), expected=", ".join(THREADS),
            hint=f"did you mean {close[0]}?" if close else None,
        )  # fmt: skip
    return ThreadAxis(wanted, _extent(size), checked_label(name or wanted, "thread_axis"))


def _extent(dom: object) -> int | None:
    """Return the number of threads in a domain; None if it is not given."""
    start, extent = dom if isinstance(dom, tuple) and len(dom) == 2 else (0, dom)
    is_number = isinstance(extent, int) and not isinstance(extent, bool)
    if extent is None and start == 0:
        return None
    if start == 0 and is_number and extent >= 1:  # type: ignore[operator]
        return extent  # type: ignore[return-value]
    raise ExpressionError(
        "thread_axis", "not a number of threads", got=repr(dom),
        expected="None, a number of at least 1, or (0, number)",
    )  # fmt: skip
