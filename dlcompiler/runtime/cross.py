"""Generate code for other machines, in a child process.

LLVM ends its process if it cannot generate code for a machine. In a child process this becomes an
error with LLVM's message. ``python -m dlcompiler.runtime.cross`` is the child, and has one entry
point.
"""

from __future__ import annotations

import base64
import dataclasses
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from dlcompiler.errors import TargetError
from dlcompiler.runtime import llvm
from dlcompiler.runtime.llvm import Options
from dlcompiler.runtime.object_files import ObjectFacts, read_facts
from dlcompiler.runtime.serve import Request, serve
from dlcompiler.runtime.workers import Outcome, Worker

COMMAND = (sys.executable, "-P", "-m", "dlcompiler.runtime.cross")
LIMIT_S = 60.0
_IGNORED = "is not a recognized"
"""LLVM's message for an unknown processor or feature, which it then ignores."""


@dataclass(frozen=True)
class CrossCode:
    """The code of a module for another machine."""

    llvm_ir: str
    """LLVM IR after LLVM's passes."""
    assembly: str
    """Assembly text."""
    image: bytes
    """The object file."""
    facts: ObjectFacts | None
    """Facts from the object's header; None for a format that cannot be read here."""


def compile_elsewhere(text: str, options: Options, name: str = "a module") -> CrossCode:
    """Generate code for any machine that LLVM supports, in a child process.

    Parameters
    ----------
    text : str
        LLVM IR.
    options : Options
        Triple, processor and features may be another machine's.
    name : str, optional
        Name in messages.

    Raises
    ------
    TargetError
        LLVM does not know the machine or a feature, or cannot generate the code for it.
    DeviceUnavailable
        A child process cannot be started here.
    """
    made = _emitted(_worker(), "emit", text, options, name)
    image = base64.b64decode(made["image"])
    return CrossCode(made["llvm_ir"], made["assembly"], image, read_facts(image))


def assembly_elsewhere(text: str, options: Options, name: str = "a module") -> str:
    """Return the assembly text of LLVM IR, for any machine that LLVM supports.

    Raises
    ------
    TargetError, DeviceUnavailable
        As for `compile_elsewhere`.
    """
    return str(_emitted(_worker(), "assembly", text, options, name)["assembly"])


class Assembler:
    """A generator of assembly text in its own child process, which `cancel` ends.

    The process starts at the first use, and ends with `close` or with this object.
    """

    def __init__(self) -> None:
        self._worker = Worker(COMMAND)

    def assembly(self, text: str, options: Options, name: str = "a module") -> str:
        """Return the assembly text of LLVM IR, for any machine that LLVM supports.

        Raises
        ------
        TargetError
            LLVM does not know the machine, or cannot generate the code; or it was cancelled.
        """
        made = _emitted(self._worker, "assembly", text, options, name)
        return str(made["assembly"])

    def cancel(self) -> None:
        """End the request that another thread is waiting for."""
        self._worker.interrupt()

    def close(self) -> None:
        """End the process."""
        self._worker.close()


def _emitted(worker: Worker, entry: str, text: str, options: Options, name: str) -> dict[str, Any]:
    """Return the code that the child generated from LLVM IR."""
    operation = f"compile {name} for {options.triple}"
    outcome = worker.call(
        entry, {"options": dataclasses.asdict(options)}, data=text.encode(), timeout_s=LIMIT_S
    )
    ignored = [line for line in outcome.stderr.splitlines() if _IGNORED in line]
    if ignored:
        raise TargetError(
            operation,
            "LLVM does not know all of this machine",
            got=ignored[0].partition(" (ignoring")[0],
            hint="the fields cpu and features of the target name it",
        )
    if not outcome.ok:
        raise _refused(operation, outcome)
    return outcome.value


def _refused(operation: str, outcome: Outcome) -> TargetError:
    """Return the error of the child, with the line of LLVM's message that gives the reason."""
    said = [line for line in outcome.stderr.splitlines() if "error:" in line.lower()]
    return TargetError(
        operation,
        "LLVM cannot generate the code",
        got=outcome.message if outcome.kind == "error" else f"{outcome.kind}: {outcome.message}",
        because=said[0].strip() if said else None,
    )


@cache
def _worker() -> Worker:
    return Worker(COMMAND)


# -- the child ------------------------------------------------------------------------------------


def _emit(request: Request) -> dict[str, Any]:
    """Generate code. ``data``: LLVM IR; ``options``: the fields of `Options`."""
    made = llvm.emit_all(request.data.decode(), _options(request))
    return {
        "llvm_ir": made.llvm_ir,
        "assembly": made.assembly,
        "image": base64.b64encode(made.image).decode(),
    }


def _assembly(request: Request) -> dict[str, Any]:
    """Print assembly. ``data``: LLVM IR; ``options``: the fields of `Options`."""
    return {"assembly": llvm.emit_assembly(request.data.decode(), _options(request))}


def _options(request: Request) -> Options:
    llvm.forget_machines()  # what is unknown is printed for each request
    given = request.params["options"]
    return Options(**{**given, "features": tuple(given["features"])})


def main() -> None:
    """Serve until the pipe closes."""
    llvm.initialize_all()
    serve({"emit": _emit, "assembly": _assembly})


if __name__ == "__main__":
    main()
