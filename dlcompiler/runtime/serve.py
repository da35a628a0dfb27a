"""The worker's side of `dlcompiler.runtime.workers`: answer requests until the pipe closes."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from dlcompiler.errors import DLCompilerError, MeasurementError
from dlcompiler.runtime.frames import Decoder, Frame, FrameError, encode
from dlcompiler.runtime.shared import map_arrays

if sys.platform != "win32":
    import resource

#: Entry that `dlcompiler.runtime.workers` calls first.
SETUP = "setup"

_GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request: the argument of an entry point."""

    params: dict[str, Any]
    """JSON values."""
    data: bytes = b""
    """Raw bytes, for example the text of a module."""
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    """Arrays in memory that is shared with the caller, who sees what is written."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an entry point that returns raw bytes."""

    value: dict[str, Any]
    """JSON values."""
    data: bytes = b""
    """Raw bytes, for example an object file."""


Handler = Callable[[Request], dict[str, Any] | Answer]


def serve(entries: Mapping[str, Handler]) -> None:
    """Answer requests on standard input until it closes.

    Parameters
    ----------
    entries : mapping of str to callable
        The only functions that a request can name. Each returns JSON values, or an `Answer`; an
        exception becomes the answer.

    Notes
    -----
    Standard input and output belong to the protocol: whatever a handler prints goes to standard
    error. If the caller dies while a handler hangs, this process ends itself.
    """
    requests, answers = _take_over_pipes()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # printed text is sent before the answer
    threading.Thread(target=_end_with_caller, args=(requests,), daemon=True).start()
    handlers = {SETUP: _set_up, **entries}
    decoder = Decoder()
    while piece := os.read(requests, 1 << 16):
        decoder.feed(piece)
        while (frame := decoder.take()) is not None:
            _send(answers, _encoded(_answer(handlers, frame)))


def _answer(handlers: Mapping[str, Handler], frame: Frame) -> Frame:
    number = frame.header.get("number")
    try:
        handler = _find(handlers, frame.header["entry"])
        arrays = map_arrays(frame.header["shared"])
        answer = handler(Request(frame.header["params"], frame.data, arrays))
    except DLCompilerError as error:
        return Frame({"number": number, "error": type(error).__name__, "message": str(error)})
    except Exception as error:
        traceback.print_exc()
        message = f"{type(error).__name__}: {error}"
        return Frame({"number": number, "error": type(error).__name__, "message": message})
    if isinstance(answer, Answer):
        return Frame({"number": number, "value": answer.value}, answer.data)
    return Frame({"number": number, "value": answer})


def _find(handlers: Mapping[str, Handler], name: str) -> Handler:
    if name in handlers:
        return handlers[name]
    raise MeasurementError(
        f"call {name!r} in a worker", "no such entry point", expected=", ".join(handlers)
    )


def _set_up(request: Request) -> dict[str, Any]:
    """Limit the memory of this process, and disable core files."""
    limit = request.params["memory_limit_bytes"]
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if limit is not None:
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))  # see `lift_memory_limit`
    return {"pid": os.getpid()}


def lift_memory_limit() -> None:
    """Lift the limit of this process's addresses, of which a device's driver reserves many."""
    if sys.platform != "win32":
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _encoded(answer: Frame) -> bytes:
    try:
        return encode(answer)
    except FrameError as error:
        message = f"the answer cannot be sent: {error}"
        failure = {"number": answer.header["number"], "error": "FrameError", "message": message}
        return encode(Frame(failure))


def _send(answers: int, payload: bytes) -> None:
    rest = memoryview(payload)
    while rest:
        rest = rest[os.write(answers, rest) :]


def _take_over_pipes() -> tuple[int, int]:
    """Return the pipes of the protocol, moved away from standard input and output."""
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return requests, answers


def _end_with_caller(requests: int) -> None:
    """End this process when the caller's end of the pipe has closed, even if a kernel hangs.

    PR_SET_PDEATHSIG would do it on Linux only, and too early: it fires when the *thread* that
    started this process ends.
    """
    poll = select.poll()
    poll.register(requests, 0)
    while not poll.poll():
        pass
    time.sleep(_GRACE_S)  # an idle process ends by itself at the end of its input
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
