"""Name the process of a run, and find out whether it has ended."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path


def this_process() -> str:
    """Return a unique name of this process: host, process number and start time."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Tell whether the process that `this_process` named is certain to have ended.

    False for a process on another machine, about which nothing is known.
    """
    host, _, rest = owner.rpartition(":")
    host, _, number = host.rpartition(":")
    if host != socket.gethostname() or not re.fullmatch("[0-9]{1,9}", number):
        return False
    if rest != _started(int(number)):
        return True
    if os.name != "posix":  # on Windows, signal 0 is CTRL_C_EVENT
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it exists, and belongs to another user
        return False
    return False


def _started(process: int) -> str:
    """Return when a process started, in clock ticks since boot; '' if this is unknown."""
    try:
        # The name of the program, in parentheses, may hold anything.
        fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2]
        return fields.split()[19]
    except (OSError, IndexError):
        return ""
