"""Fork server: answer a worker's requests in forked children, one after the other.

Starting Python and importing what a kernel needs takes 0.6 s; a fork of a process that has done so
takes 5 ms. So a crash costs little: the next child starts at once. The server is the process that
was started. It runs no request and keeps no second thread. It waits for its child, reports how the
child ended, and forks the next one.
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

#: Header field of a frame with the exit code of a child: its status, or minus a signal's number.
ENDED = "ended"

_LEFT = 64  # exit status of a child whose standard input was closed: there are no more requests
_PR_SET_PDEATHSIG = 1


def serve_in_children(entries: Mapping[str, Handler]) -> None:
    """Answer requests like `dlcompiler.runtime.serve.serve`, in one forked child after the other.

    Parameters
    ----------
    entries : mapping of str to callable
        The only functions that a request can name. State that they keep is lost when their child
        ends.

    Notes
    -----
    A child has a process group of its own, so that it can be killed with all processes that it
    started. A system without ``fork`` answers in this process.
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
        if sys.platform == "linux":  # "parent" is the forking thread: the server's only one
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        serve(entries)
        status = _LEFT
    finally:
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int) -> int:
    """Wait for a child, kill the processes that it started, and return its exit code."""
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # before the child is reaped: then its id may be reused
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _drain(pipe: int) -> None:
    """Discard the part of a request that the child had not read when it ended."""
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while os.read(pipe, 1 << 16):
            pass
    os.set_blocking(pipe, True)
