"""A worker whose calls run in a child of its own: after a crash the next one is there at once.

Starting Python and importing what a kernel needs takes 0.6 s; a fork of a process that has done so
takes 5 ms. The process that was started, the nursery, runs no request and keeps no thread: it waits
for its child, says how it ended, and forks the next one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Mapping

from dlcompiler.runtime.frames import Frame, encode
from dlcompiler.runtime.serve import Handler, serve

#: Header field of a frame that says how a child ended: a signal's number, negative, or a status.
ENDED = "ended"

_LEFT = 64  # status of a child whose requests have come to their end
_PR_SET_PDEATHSIG = 1


def serve_in_children(entries: Mapping[str, Handler]) -> None:
    """Answer requests as `dlcompiler.runtime.serve.serve`, in one forked child after the other.

    Parameters
    ----------
    entries : mapping of str to callable
        The only functions that a request can name. What they keep is lost with their child.

    Notes
    -----
    A child has a process group of its own, so that it can be ended with all that it started. What
    has no fork serves by itself.
    """
    if not hasattr(os, "fork"):
        serve(entries)
        return
    while True:
        child = os.fork()
        if child == 0:
            _be_child(entries)
        status = _wait(child)
        if status == _LEFT:
            return
        _drain(0)
        with contextlib.suppress(BrokenPipeError):
            os.write(1, encode(Frame({ENDED: status})))


def _be_child(entries: Mapping[str, Handler]) -> None:
    status = 1
    try:
        os.setpgid(0, 0)
        if sys.platform == "linux":  # the nursery's only thread lives as long as it does
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        serve(entries)
        status = _LEFT
    finally:
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int) -> int:
    """Wait for a child, end what it leaves behind, and return how it ended."""
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # before its number is free to be another's
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _drain(pipe: int) -> None:
    """Drop what the child did not read of the request that it was to answer."""
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while os.read(pipe, 1 << 16):
            pass
    os.set_blocking(pipe, True)
