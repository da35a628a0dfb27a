"""Compile C source with the C compiler of this machine, and load the machine code.

The compiler is started without a shell. It writes into a folder that only this user may use, and
the library is loaded from there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from dlcompiler.errors import DeviceUnavailable, InternalError, UserError
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.private_folders import private_folder
from dlcompiler.runtime.source import chosen
from dlcompiler.runtime.trust import load_shared, read_trusted

COMPILERS = ("cc", "gcc", "clang")
"""Names of C compilers that are searched for, in this order."""
FLAGS = ("-O2", "-std=c99", "-fPIC", "-shared")
MISTAKES = ("implicit-function-declaration", "implicit-int", "incompatible-pointer-types",
            "int-conversion", "return-type")  # fmt: skip
"""Warnings that count as errors: each shows that the source is not valid C99. Other warnings, such
as a comparison that is always true, are about the meaning of the program and are ignored."""
_NO_HEADER = ("No such file or directory", "file not found")
"""What gcc and clang print if a header is missing."""
LIMIT_S = 120.0
"""Time limit for compiling one source [s]."""


def c_compiler() -> str | None:
    """Return the path of a C compiler, or None."""
    return next((found for name in COMPILERS if (found := shutil.which(name))), None)


class CCode:
    """C source, compiled and loaded when it is first called.

    Parameters
    ----------
    texts : mapping
        Its texts by name: the source, complete, and the header.
    name : str
        Name of the function in messages.
    returns_number : bool
        Whether a call stores the returned number at the address in its last operand.
    reports_values : bool
        Whether the function takes one more pointer, to the values behind that number.
    """

    is_machine_code = False
    """Whether its functions run here, called by their addresses: each is compiled when called."""

    def __init__(
        self,
        texts: Mapping[str, str],
        name: str,
        *,
        returns_number: bool,
        reports_values: bool = False,
    ) -> None:
        self._texts = dict(texts)
        self.name = name
        self.returns_number = returns_number
        self.reports_values = reports_values
        self.imports: frozenset[str] = frozenset()
        """Functions of this runtime that it calls: none."""
        self._library: ctypes.CDLL | None = None
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """The C source."""
        return self.source()

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the texts that `source` returns."""
        return tuple(self._texts)

    def source(self, name: str | None = None) -> str:
        """Return the source, or another text by its name."""
        return chosen(self._texts, name, self.name)

    @property
    def options(self) -> Options:
        """Options of LLVM: refused, since LLVM does not compile C source."""
        return self._refuse("compile")

    @property
    def optimized_ir(self) -> str:
        """LLVM IR: refused, since there is none."""
        return self._refuse("show the LLVM IR of")

    @property
    def assembly(self) -> str:
        """Assembly text: refused, since there is none."""
        return self._refuse("show the assembly of")

    def _refuse(self, what: str) -> NoReturn:
        raise UserError(
            f"{what} {self.name}",
            "it was built as C, which LLVM does not see",
            hint="kernel.source() is the C; target='cpu' builds machine code by LLVM",
        )

    def entry(self, symbol: str, types: Sequence[Any]) -> Callable[..., object]:
        """Return a callable for operands of these types; its first call compiles the source."""

        def call(*operands: Any) -> object:
            function = getattr(self._loaded(), symbol)
            function.restype = ctypes.c_int
            if not self.returns_number:
                function.argtypes = types
                return function(*operands)
            *given, status = operands
            function.argtypes = types[:-1]
            if self.reports_values:
                given.append(status + ctypes.sizeof(ctypes.c_int64))
                function.argtypes = types
            number = function(*given)
            ctypes.c_int64.from_address(status).value = number
            return number

        return call

    def address(self, symbol: str) -> int:
        """Return the address of a function that returns the number of its error message."""
        value = ctypes.cast(getattr(self._loaded(), symbol), ctypes.c_void_p).value
        assert value is not None
        return value

    def _loaded(self) -> ctypes.CDLL:
        with self._lock:
            if self._library is None:
                self._library = _load(self.text, self.name)
            return self._library


def _load(text: str, name: str) -> ctypes.CDLL:
    """Compile a source and load it; remove the files."""
    compiler = c_compiler()
    if compiler is None:
        raise DeviceUnavailable(
            f"call {name}",
            "there is no C compiler to compile it",
            got="target='c'",
            expected=f"{', '.join(COMPILERS[:-1])} or {COMPILERS[-1]} on the PATH",
            hint="kernel.source() is the code; target='cpu' needs no compiler",
        )
    with private_folder() as folder:
        source, library = folder / "kernel.c", folder / "kernel.so"
        source.write_text(text, encoding="utf-8")
        errors = [f"-Werror={mistake}" for mistake in MISTAKES]
        _compile([compiler, *FLAGS, *errors, "-o", str(library), str(source), "-lm"], name)
        return load_shared(read_trusted(library))


def run_compiler(
    command: Sequence[str], operation: str, error: type[UserError]
) -> subprocess.CompletedProcess[str]:
    """Run a C compiler, to compile or to link; its messages are in English.

    Raises
    ------
    UserError
        Of the class `error`: the compiler cannot be started, or runs longer than `LIMIT_S`.

    Notes
    -----
    A compiler driver starts other processes (``cc1``, ``as``, ``ld``). The driver therefore runs in
    a session of its own, and after the time limit or an interruption the whole group is killed.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},  # `_compile` searches the messages
            start_new_session=True,
        )
    except OSError as reason:
        raise error(operation, f"{command[0]} cannot be started", got=reason.strerror) from reason
    with process:
        try:
            output, messages = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired as late:
            _kill_group(process)
            raise error(operation, f"{command[0]} did not end within {LIMIT_S:g} s") from late
        except BaseException:  # Ctrl-C reaches this process only: the compiler has another session
            _kill_group(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, messages)


def _kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a process that leads a session, and all that it started in this session."""
    # The leader is not reaped before, so that its id still names the group.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _compile(command: Sequence[str], name: str) -> None:
    operation = f"call {name}: compile its C"
    done = run_compiler(command, operation, DeviceUnavailable)
    if done.returncode == 0:
        return
    said = done.stderr.strip()
    if any(text in said for text in _NO_HEADER):
        raise DeviceUnavailable(
            operation,
            "a header of the C library is missing",
            got=said,
            hint="install it (Debian and Ubuntu: libc6-dev)",
        )
    raise InternalError(operation, f"{command[0]} refuses it", got=said)
