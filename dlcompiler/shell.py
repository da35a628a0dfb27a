"""Start and end of every shell command: signals, failing streams, and exit statuses.

========================  ====================================  ===========
What happens              What a user sees                      Exit status
========================  ====================================  ===========
Ctrl-C, at any moment     ``interrupted``                       130
SIGTERM, SIGHUP           ``terminated``                        143, 129
output is closed: `head`  nothing                               141
output cannot be written  one line with the system's reason     2
memory or the disk ends   one line with the system's reason     2
========================  ====================================  ===========

A status above 128 is that of a program which a signal ends: 128 plus its number; 141 is SIGPIPE.
Signals become exceptions, so that worker processes, shared memory and unfinished files are cleaned
up. Characters that a terminal cannot show are written as escapes.

Before `run` is called, `dlcompiler.early_interrupts` handles Ctrl-C.
"""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from dlcompiler.early_interrupts import leave

T = TypeVar("T")

BY_SIGNAL = 128
"""Exit status of a program that a signal ended, minus the signal's number."""
CLOSED_PIPE = BY_SIGNAL + 13
USER_CAN_MEND_IT = 2

_AGAIN_S = 0.01
_ASKING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
# Failures of the machine, not of this project: disk, memory, permissions, limits.
_STATES_OF_THE_MACHINE = (
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
    errno.ENOSPC, errno.EPERM, errno.EROFS,
)  # fmt: skip


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, raised as an exception like Ctrl-C."""


class OutputError(OSError):
    """Standard output cannot be written."""


# -- the run ----------------------------------------------------------------------------------


def run(prepare: Callable[[], T], act: Callable[[T], int]) -> int:
    """Run a command in this process, and return its exit status.

    Parameters
    ----------
    prepare
        Reads the arguments and imports; Ctrl-C ends it at once, since nothing needs cleaning up.
    act
        Does the work; Ctrl-C and SIGTERM are raised in it as exceptions.
    """
    output = _guard_streams()
    signals = _Signals()
    try:
        try:
            prepared = prepare()
            signals.catch()
            status = act(prepared)
        finally:
            signals.release()
    except SystemExit as error:  # argparse, and scripts
        status = _status_of(error)
    except BaseException as error:
        if signals.asked is not None:
            status = _say_asked(signals.asked)
        else:
            status = _status_of_failure(error)
    if signals.asked is not None and status == BY_SIGNAL + signal.SIGINT:
        status = BY_SIGNAL + signals.asked
    return _finish(output, status)


def _status_of(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    _say(str(error.code))
    return 1


def _say_asked(number: int) -> int:
    _say("interrupted" if number == signal.SIGINT else "terminated")
    return BY_SIGNAL + number


def _status_of_failure(error: BaseException) -> int:
    """Report a failure of the machine in one line; other errors keep their traceback."""
    match error:
        case KeyboardInterrupt():
            return _say_asked(signal.SIGINT)
        case OutputError(errno=errno.EPIPE):
            return CLOSED_PIPE
        case OutputError():
            _say(f"UserError: write standard output: {error.strerror}")
        case MemoryError():
            _say(f"{type(error).__name__}: {str(error) or 'out of memory'}")
        case OSError(errno=number) if number in _STATES_OF_THE_MACHINE:
            _say(f"{type(error).__name__}: {error}")
        case _:
            raise error
    return USER_CAN_MEND_IT


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _finish(output: _Stream, status: int) -> int:
    """Flush the output; a command whose output cannot be written has failed."""
    had_failed = output.failure is not None
    try:
        sys.stdout.flush()
    except OutputError as error:
        if status == 0:
            return _status_of_failure(error)
    if had_failed and status == 0:
        assert output.failure is not None
        return _status_of_failure(OutputError(*output.failure.args))
    return status


# -- signals ----------------------------------------------------------------------------------


class _Signals:
    """Signals that end a process; between `catch` and `release` they are raised as exceptions."""

    def __init__(self) -> None:
        self.asked: int | None = None
        """The signal that came first."""
        self._is_again = False
        self._old_hook: Any = sys.unraisablehook

    def catch(self) -> None:
        """Start raising the signals as exceptions."""
        sys.unraisablehook = self._on_unraisable
        for number in _ASKING:
            # A shell lets jobs in the background, and nohup its program, ignore signals.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def release(self) -> None:
        """Let a signal end the process at once from now on: everything is cleaned up."""
        for number in _ASKING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, leave if number == signal.SIGINT else signal.SIG_DFL)
        sys.unraisablehook = self._old_hook

    def _on_signal(self, number: int, frame: object) -> None:
        del frame
        is_first, is_again = self.asked is None, self._is_again
        self.asked, self._is_again = self.asked or number, False
        if number == signal.SIGINT and self.asked == signal.SIGINT:
            raise KeyboardInterrupt
        if is_first or is_again:  # a second signal would interrupt the cleaning up
            raise Terminated

    def _on_unraisable(self, dropped: Any) -> None:
        """Raise an interrupt again that Python dropped, in a destructor or a callback."""
        if isinstance(dropped.exc_value, KeyboardInterrupt) and self.asked is not None:
            self._is_again = True
            signal.signal(signal.SIGALRM, lambda *_: self._on_signal(self.asked or 2, None))
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        elif self.asked is None:
            self._old_hook(dropped)


# -- streams ----------------------------------------------------------------------------------


class _Stream(io.RawIOBase):
    """A standard stream; after a failure, everything written to it is dropped.

    Parameters
    ----------
    number
        Its file descriptor.
    is_needed
        Whether a failure is raised, once, as `OutputError`: true for standard output. A failure of
        standard error is ignored, as it cannot be reported anywhere.
    """

    def __init__(self, number: int, *, is_needed: bool) -> None:
        self.number = number
        self.is_needed = is_needed
        self.failure: OSError | None = None
        """Why it cannot be written."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.number

    def isatty(self) -> bool:
        return os.isatty(self.number)

    def write(self, data: Any) -> int:
        """Write all of the data."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest and self.failure is None:
            try:
                rest = rest[os.write(self.number, rest) :]
            except (
                BlockingIOError
            ):  # another process that shares the terminal has made it non-blocking
                select.select([], [self.number], [])
            except OSError as error:
                self.failure = error
                if self.is_needed:
                    raise OutputError(error.errno, error.strerror) from None
        return size


def _guard_streams() -> _Stream:
    """Replace the standard streams by `_Stream`, whose failures are handled in one place."""
    closed = _open_missing()
    output, errors = _Stream(1, is_needed=True), _Stream(2, is_needed=False)
    if 1 in closed:
        output.failure = OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout, sys.stderr = _text(output, sys.stdout), _text(errors, sys.stderr)
    return output


def _open_missing() -> list[int]:
    """Open standard descriptors that are closed: the next file would get their numbers."""
    closed = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            closed.append(number)
            os.open(os.devnull, os.O_RDWR)
    return closed


def _text(stream: _Stream, old: Any) -> io.TextIOWrapper:
    is_direct = getattr(old, "write_through", False)  # python -u
    return io.TextIOWrapper(
        stream if is_direct else io.BufferedWriter(stream),  # type: ignore[arg-type]
        encoding=getattr(old, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=getattr(old, "line_buffering", True),
        write_through=is_direct,
    )
