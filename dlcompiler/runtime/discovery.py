"""Ask the drivers of devices which devices are here, in a process of its own.

A broken driver may crash or hang when it starts. Then that process ends, and this one says why the
device cannot be used.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from dlcompiler.runtime import cuda, opencl
from dlcompiler.runtime.serve import Request, serve
from dlcompiler.runtime.workers import Outcome, Worker

COMMAND = (sys.executable, "-P", "-m", "dlcompiler.runtime.discovery")
LIMIT_S = 30.0
"""Time limit of the drivers: some need seconds to start [s]."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of one kind that are here."""

    names: tuple[str, ...] = ()
    """Their names, by number."""
    reason: str = ""
    """Why there is none; empty if there are some."""

    def why_not(self, number: int) -> str | None:
        """Return why the device of a number cannot be used; None if it can."""
        if self.reason:
            return self.reason
        if 0 <= number < len(self.names):
            return None
        count = len(self.names)
        known = ", ".join(f"{place} is {name}" for place, name in enumerate(self.names))
        return f"there is no device {number}, but {count} {'are' if count > 1 else 'is'}: {known}"


@dataclass(frozen=True, slots=True)
class _Kind:
    title: str
    """The drivers in messages."""
    module: str
    """The Python package without which there is no driver."""
    names: Callable[[], tuple[list[str], str | None]]
    """Returns the names of the devices, or the reason why there is none."""


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "opencl": _Kind("OpenCL drivers", "pyopencl", opencl.device_names),
        "cuda": _Kind("NVIDIA driver", "cuda", cuda.device_names),
    }
)
"""Language of code for a device -> how its devices are found."""
_found: dict[str, Devices] = {}
_FINDING = threading.Lock()


def devices(language: str) -> Devices:
    """Return the devices that run code of a language; they are searched for once in a process."""
    with _FINDING:
        if language in _found:
            return _found[language]
        found, is_final = _searched(language)
        if is_final:
            _found[language] = found
        return found


def forget() -> None:
    """Search again when `devices` is called next."""
    with _FINDING:
        _found.clear()


def _searched(language: str) -> tuple[Devices, bool]:
    """Return the devices, and whether they were asked for: a process could be started."""
    kind = _KINDS[language]
    # Without the package the reason is the same in any process; Windows has no workers yet.
    if find_spec(kind.module) is None or os.name == "nt":
        names, reason = kind.names()
        return Devices(tuple(names), reason or ""), True
    with Worker(COMMAND, memory_limit_bytes=None) as worker:
        outcome = worker.call("find", {"language": language}, timeout_s=LIMIT_S)
    if not outcome.ok:
        return Devices(reason=_failure(kind.title, outcome)), outcome.has_started
    return Devices(tuple(outcome.value["names"]), outcome.value["reason"]), True


def _failure(title: str, outcome: Outcome) -> str:
    """Return what happened to the process in which the drivers were asked."""
    said = outcome.stderr.strip().splitlines()[-1:]
    text = f"the {title} could not be asked: {outcome.message}"
    return text + (f" ({said[0][:200]})" if said else "")


def find(request: Request) -> dict[str, Any]:
    """Return the ``names`` of the devices for a ``language``, or the ``reason`` for none."""
    names, reason = _KINDS[request.params["language"]].names()
    return {"names": names, "reason": reason or ""}


if __name__ == "__main__":
    serve({"find": find})
